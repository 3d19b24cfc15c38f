//! Runs a request to its end: send it, collect offers, accept one, and wait for the work.
//!
//! The direct flow skips the offers: a RESULT ends the request whenever it comes.

use std::time::Duration;

use rialto_protocols::agora::Code;
use rialto_protocols::agora::payload::result::Status;
use rialto_protocols::agora::thread::State;
use rialto_protocols::kit::ed25519::PublicKey;
use tokio::time::{Instant, timeout_at};

use super::agent::Agent;
use super::inbox::{Inbox, Trouble};
use super::incoming::Incoming;
use super::negotiation_options::{Negotiation, Proposal};
use super::request_spec::Order;
use super::outcome::{Failed, Outcome, Work};
use super::payload::Said;
use crate::call::CallError;

/// The hub's default timeout of a request (`agora.default_timeout`).
const PATIENCE: Duration = Duration::from_secs(600);
/// The hub reports when a request times out; only after this long the client does it itself.
const GRACE: Duration = Duration::from_secs(5);
/// Maximum number of unrelated envelopes to set aside in the meantime.
const ASIDE_MAX: usize = 10_000;

impl Agent {
    /// Sends a request and runs it to its end. The inbox is the agent's own; unrelated envelopes
    /// are put back into it afterwards.
    pub async fn negotiate(
        &self,
        inbox: &mut Inbox,
        order: &Order,
        how: Negotiation<'_>,
    ) -> Result<Outcome, CallError> {
        let sealed = self.draw_up(order)?;
        let request_id = sealed.id.clone();
        self.send(sealed).await?;
        let now = Instant::now();
        let mut talks = Talks {
            agent: self,
            order,
            enough: if order.recipient().is_some() { 1 } else { how.enough },
            choose_at: now + how.collect,
            until: now + order.time_limit().unwrap_or(PATIENCE) + GRACE,
            how,
            request_id,
            offers: Vec::new(),
            taken: None,
            aside: Vec::new(),
        };
        let outcome = talks.run(inbox).await;
        inbox.put_back(talks.aside.into_iter());
        outcome
    }
}

/// One running request.
struct Talks<'t, 'h> {
    agent: &'t Agent,
    order: &'t Order,
    how: Negotiation<'h>,
    request_id: String,
    enough: usize,
    choose_at: Instant,
    until: Instant,
    offers: Vec<Proposal>,
    taken: Option<Proposal>,
    aside: Vec<Incoming>,
}

impl Talks<'_, '_> {
    async fn run(&mut self, inbox: &mut Inbox) -> Result<Outcome, CallError> {
        loop {
            if self.is_time_to_choose()
                && let Some(outcome) = self.take_one().await?
            {
                return Ok(outcome);
            }
            let waiting = self.taken.is_none() && !self.offers.is_empty();
            let until = if waiting { self.choose_at.min(self.until) } else { self.until };
            match timeout_at(until, inbox.next()).await {
                Ok(Some(Ok(incoming))) => {
                    if let Some(outcome) = self.hear(incoming).await? {
                        return Ok(outcome);
                    }
                }
                // An envelope that cannot be trusted is ignored.
                Ok(Some(Err(Trouble::NotTrusted(_)))) => {}
                Ok(Some(Err(Trouble::Ended(error)))) => return Err(error),
                Ok(None) => return Err(CallError::Unreadable("the inbox has ended".to_owned())),
                Err(_) if Instant::now() < self.until => {}
                Err(_) => {
                    if self.taken.is_none() {
                        self.withdraw(Code::Timeout, "no agent answered in time").await;
                    }
                    return Ok(Outcome::TimedOut { request_id: self.request_id.clone() });
                }
            }
        }
    }

    fn is_time_to_choose(&mut self) -> bool {
        let now = Instant::now();
        self.offers.retain(|offer| offer.until > now);
        let ready = now >= self.choose_at || self.offers.len() >= self.enough;
        self.taken.is_none() && !self.offers.is_empty() && ready
    }

    /// Accepts an offer, or none. Offers that have expired are dropped.
    async fn take_one(&mut self) -> Result<Option<Outcome>, CallError> {
        let chosen = (self.how.choose)(&self.offers).filter(|place| *place < self.offers.len());
        let Some(place) = chosen else {
            self.withdraw(Code::PaymentRequired, "none of the offers was accepted").await;
            let (request_id, offers) = (self.request_id.clone(), std::mem::take(&mut self.offers));
            return Ok(Some(Outcome::NoDeal { request_id, offers }));
        };
        let offer = self.offers.swap_remove(place);
        let proof = self.how.payment_proof.as_deref();
        let accept =
            self.agent.accept(offer.provider, &offer.offer_id, proof, Duration::ZERO).await;
        match accept {
            Ok(_) => self.taken = Some(offer),
            Err(CallError::Refused { status: 408, .. }) => {}
            Err(error) => return Err(error),
        }
        Ok(None)
    }

    async fn hear(&mut self, incoming: Incoming) -> Result<Option<Outcome>, CallError> {
        if incoming.said.request_id() != Some(&self.request_id) {
            if self.aside.len() < ASIDE_MAX {
                self.aside.push(incoming);
            }
            return Ok(None);
        }
        let by = incoming.sender;
        Ok(match incoming.said {
            Said::Offer { cost, ttl, eta, .. } => {
                let fits = self.may_work(by) && self.order.max().is_none_or(|max| cost <= max);
                if self.taken.is_none() && fits {
                    let until = Instant::now() + Duration::from_millis(ttl.0.unsigned_abs());
                    let offer_id = incoming.id;
                    self.offers.push(Proposal { offer_id, provider: by, cost, eta, until });
                }
                None
            }
            Said::Result { status, data, .. } if self.may_work(by) => {
                if status.completes() {
                    let whole = status == Status::Success;
                    let cost = self.taken.as_ref().map(|offer| offer.cost);
                    let request_id = self.request_id.clone();
                    let work = Work { request_id, provider: by, data, whole, cost };
                    return Ok(Some(Outcome::Done(work)));
                }
                (self.how.part)(&data);
                None
            }
            Said::Error { code, number, message, hint, .. } => {
                let request_id = self.request_id.clone();
                let failed = Failed { request_id, by, code, number, message, hint };
                self.is_end(by).await.then_some(Outcome::Failed(failed))
            }
            _ => None,
        })
    }

    /// Whether an agent may offer or deliver: the chosen one, or the one that was asked.
    fn may_work(&self, by: PublicKey) -> bool {
        let taken = self.taken.as_ref().map(|offer| offer.provider);
        taken.or(self.order.recipient()).is_none_or(|wanted| wanted == by)
    }

    /// Whether an agent's ERROR ends the request. If several were asked, it only drops out (R44).
    async fn is_end(&mut self, by: PublicKey) -> bool {
        if by == self.agent.server().key() {
            return true;
        }
        let wanted = self.taken.as_ref().map(|offer| offer.provider).or(self.order.recipient());
        if let Some(wanted) = wanted {
            return wanted == by;
        }
        self.offers.retain(|offer| offer.provider != by);
        let thread = self.agent.thread(&self.request_id).await;
        thread.is_ok_and(|thread| thread.state == State::Failed)
    }

    /// Withdraws the request. If that does not arrive, the request times out.
    async fn withdraw(&self, code: Code, why: &str) {
        let (to, id) = (self.order.recipient(), Some(self.request_id.as_str()));
        let _ = self.agent.error(to, id, code, why).await;
    }
}

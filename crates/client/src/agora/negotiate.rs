//! Runs a request to its end: send it, collect offers, accept one, and wait for the work.
//!
//! The direct flow skips the offers: a RESULT ends the request whenever it comes.

use std::time::Duration;

use rialto_protocols::agora::Code;
use rialto_protocols::agora::wire::payload::ResultStatus;
use rialto_protocols::agora::wire::status::RequestState;
use rialto_protocols::kit::ed25519::PublicKey;
use tokio::time::{Instant, timeout_at};

use super::agent::Agent;
use super::inbox::{Inbox, InboxError};
use super::incoming::IncomingEnvelope;
use super::negotiation_options::{NegotiationOptions, ReceivedOffer};
use super::outcome::{CompletedWork, RequestFailure, RequestOutcome};
use super::payload::EnvelopePayload;
use super::request_spec::RequestSpec;
use crate::call::CallError;

/// The hub's default timeout of a request (`agora.default_timeout`).
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(600);
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
        order: &RequestSpec,
        how: NegotiationOptions<'_>,
    ) -> Result<RequestOutcome, CallError> {
        let sealed = self.sign_request(order)?;
        let request_id = sealed.id.clone();
        self.send(sealed).await?;
        let now = Instant::now();
        let mut talks = NegotiationRun {
            agent: self,
            order,
            max_offers: if order.recipient().is_some() { 1 } else { how.enough },
            choose_at: now + how.collect,
            until: now + order.time_limit().unwrap_or(DEFAULT_TIMEOUT) + GRACE,
            options: how,
            request_id,
            offers: Vec::new(),
            accepted: None,
            aside: Vec::new(),
        };
        let outcome = talks.run(inbox).await;
        inbox.put_back(talks.aside.into_iter());
        outcome
    }
}

/// One running request.
struct NegotiationRun<'t, 'h> {
    agent: &'t Agent,
    order: &'t RequestSpec,
    options: NegotiationOptions<'h>,
    request_id: String,
    max_offers: usize,
    choose_at: Instant,
    until: Instant,
    offers: Vec<ReceivedOffer>,
    accepted: Option<ReceivedOffer>,
    aside: Vec<IncomingEnvelope>,
}

impl NegotiationRun<'_, '_> {
    async fn run(&mut self, inbox: &mut Inbox) -> Result<RequestOutcome, CallError> {
        loop {
            if self.is_time_to_choose()
                && let Some(outcome) = self.choose_offer().await?
            {
                return Ok(outcome);
            }
            let waiting = self.accepted.is_none() && !self.offers.is_empty();
            let until = if waiting { self.choose_at.min(self.until) } else { self.until };
            match timeout_at(until, inbox.next()).await {
                Ok(Some(Ok(incoming))) => {
                    if let Some(outcome) = self.handle_envelope(incoming).await? {
                        return Ok(outcome);
                    }
                }
                // An envelope that cannot be trusted is ignored.
                Ok(Some(Err(InboxError::NotTrusted(_)))) => {}
                Ok(Some(Err(InboxError::Ended(error)))) => return Err(error),
                Ok(None) => return Err(CallError::Unreadable("the inbox has ended".to_owned())),
                Err(_) if Instant::now() < self.until => {}
                Err(_) => {
                    if self.accepted.is_none() {
                        self.withdraw(Code::Timeout, "no agent answered in time").await;
                    }
                    return Ok(RequestOutcome::TimedOut { request_id: self.request_id.clone() });
                }
            }
        }
    }

    fn is_time_to_choose(&mut self) -> bool {
        let now = Instant::now();
        self.offers.retain(|offer| offer.expires_at > now);
        let ready = now >= self.choose_at || self.offers.len() >= self.max_offers;
        self.accepted.is_none() && !self.offers.is_empty() && ready
    }

    /// Accepts an offer, or none. Offers that have expired are dropped.
    async fn choose_offer(&mut self) -> Result<Option<RequestOutcome>, CallError> {
        let chosen = (self.options.choose)(&self.offers).filter(|place| *place < self.offers.len());
        let Some(place) = chosen else {
            self.withdraw(Code::PaymentRequired, "none of the offers was accepted").await;
            let (request_id, offers) = (self.request_id.clone(), std::mem::take(&mut self.offers));
            return Ok(Some(RequestOutcome::NoOfferAccepted { request_id, offers }));
        };
        let offer = self.offers.swap_remove(place);
        let proof = self.options.payment_proof.as_deref();
        let accept =
            self.agent.accept_offer(offer.provider, &offer.offer_id, proof, Duration::ZERO).await;
        match accept {
            Ok(_) => self.accepted = Some(offer),
            Err(CallError::Refused { status: 408, .. }) => {}
            Err(error) => return Err(error),
        }
        Ok(None)
    }

    async fn handle_envelope(
        &mut self,
        incoming: IncomingEnvelope,
    ) -> Result<Option<RequestOutcome>, CallError> {
        if incoming.payload.request_id() != Some(&self.request_id) {
            if self.aside.len() < ASIDE_MAX {
                self.aside.push(incoming);
            }
            return Ok(None);
        }
        let by = incoming.sender;
        Ok(match incoming.payload {
            EnvelopePayload::Offer { cost, ttl, eta, .. } => {
                let fits = self.may_work(by) && self.order.max_cost().is_none_or(|max| cost <= max);
                if self.accepted.is_none() && fits {
                    let until = Instant::now() + Duration::from_millis(ttl.0.unsigned_abs());
                    let offer_id = incoming.id;
                    self.offers.push(ReceivedOffer {
                        offer_id,
                        provider: by,
                        cost,
                        eta,
                        expires_at: until,
                    });
                }
                None
            }
            EnvelopePayload::Result { status, data, .. } if self.may_work(by) => {
                if status.is_final() {
                    let whole = status == ResultStatus::Success;
                    let cost = self.accepted.as_ref().map(|offer| offer.cost);
                    let request_id = self.request_id.clone();
                    let work =
                        CompletedWork { request_id, provider: by, data, is_complete: whole, cost };
                    return Ok(Some(RequestOutcome::Done(work)));
                }
                (self.options.part)(&data);
                None
            }
            EnvelopePayload::Error { code, number, message, hint, .. } => {
                let request_id = self.request_id.clone();
                let failed = RequestFailure { request_id, by, code, number, message, hint };
                self.ends_request(by).await.then_some(RequestOutcome::Failed(failed))
            }
            _ => None,
        })
    }

    /// Whether an agent may offer or deliver: the chosen one, or the one that was asked.
    fn may_work(&self, by: PublicKey) -> bool {
        let taken = self.accepted.as_ref().map(|offer| offer.provider);
        taken.or(self.order.recipient()).is_none_or(|wanted| wanted == by)
    }

    /// Whether an agent's ERROR ends the request. If several were asked, it only drops out (R44).
    async fn ends_request(&mut self, by: PublicKey) -> bool {
        if by == self.agent.server().key() {
            return true;
        }
        let wanted = self.accepted.as_ref().map(|offer| offer.provider).or(self.order.recipient());
        if let Some(wanted) = wanted {
            return wanted == by;
        }
        self.offers.retain(|offer| offer.provider != by);
        let thread = self.agent.thread(&self.request_id).await;
        thread.is_ok_and(|thread| thread.state == RequestState::Failed)
    }

    /// Withdraws the request. If that does not arrive, the request times out.
    async fn withdraw(&self, code: Code, why: &str) {
        let (to, id) = (self.order.recipient(), Some(self.request_id.as_str()));
        let _ = self.agent.send_error(to, id, code, why).await;
    }
}

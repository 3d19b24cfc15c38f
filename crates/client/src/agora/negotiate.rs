//! Runs a request to its end: send it, collect offers, accept one, and wait for the work.
//!
//! The direct flow skips the offers: a RESULT ends the request whenever it comes.

use std::time::Duration;

use rialto_core::money::Credits;
use rialto_core::time::Millis;
use rialto_protocols::agora::Code;
use rialto_protocols::agora::wire::payload::ResultStatus;
use rialto_protocols::agora::wire::status::RequestState;
use rialto_protocols::kit::ed25519::PublicKey;
use tokio::time::{Instant, timeout_at};

use super::agent::Agent;
use super::calls::RequestSpec;
use super::inbox::{Inbox, InboxError};
use super::incoming::IncomingEnvelope;
use super::payload::EnvelopePayload;
use crate::call::CallError;

/// The hub's default timeout of a request (`agora.default_timeout`).
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(600);
/// The hub reports when a request times out; only after this long the client does it itself.
const GRACE: Duration = Duration::from_secs(5);
/// Maximum number of unrelated envelopes to set aside in the meantime.
const ASIDE_MAX: usize = 10_000;

/// An offer for our request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReceivedOffer {
    /// The id of the OFFER.
    pub offer_id: String,
    /// The agent that made it.
    pub provider: PublicKey,
    /// The price.
    pub cost: Credits,
    /// How long the work would take.
    pub eta: Millis,
    /// Until when it can be accepted.
    pub expires_at: Instant,
}

/// Chooses the index of an offer to accept, if any.
type ChooseOffer<'a> = dyn FnMut(&[ReceivedOffer]) -> Option<usize> + Send + 'a;

/// Options for a negotiation.
pub struct NegotiationOptions<'a> {
    collect: Duration,
    enough: usize,
    choose: Box<ChooseOffer<'a>>,
    part: Box<dyn FnMut(&str) + Send + 'a>,
    payment_proof: Option<String>,
}

impl Default for NegotiationOptions<'_> {
    fn default() -> Self {
        Self {
            collect: Duration::from_secs(2),
            enough: usize::MAX,
            choose: Box::new(choose_cheapest),
            part: Box::new(|_| {}),
            payment_proof: None,
        }
    }
}

impl<'a> NegotiationOptions<'a> {
    /// Collects offers for this long before choosing; if there is none by then, chooses as soon as
    /// the first one arrives.
    pub fn collect_for(self, collect: Duration) -> Self {
        Self { collect, ..self }
    }

    /// Chooses as soon as there are this many offers.
    pub fn max_offers(self, enough: usize) -> Self {
        Self { enough: enough.max(1), ..self }
    }

    /// Chooses by your own rule; `None` accepts none and withdraws the request.
    pub fn choose(self, choose: impl FnMut(&[ReceivedOffer]) -> Option<usize> + Send + 'a) -> Self {
        Self { choose: Box::new(choose), ..self }
    }

    /// Calls this with every partial result.
    pub fn on_part(self, part: impl FnMut(&str) + Send + 'a) -> Self {
        Self { part: Box::new(part), ..self }
    }

    /// Attaches proof of a payment made elsewhere.
    pub fn payment_proof(self, proof: impl Into<String>) -> Self {
        Self { payment_proof: Some(proof.into()), ..self }
    }
}

/// The cheapest offer, and among equals the quickest.
pub fn choose_cheapest(offers: &[ReceivedOffer]) -> Option<usize> {
    let best = offers.iter().enumerate().min_by_key(|(_, offer)| (offer.cost, offer.eta.0));
    best.map(|(place, _)| place)
}

/// How a request ended.
#[derive(Clone, Debug)]
pub enum RequestOutcome {
    /// The work is done.
    Done(CompletedWork),
    /// The provider or the hub says that the work will not be done.
    Failed(RequestFailure),
    /// None of these offers was accepted, and the request was withdrawn.
    NoOfferAccepted {
        /// The id of the REQUEST.
        request_id: String,
        /// The offers.
        offers: Vec<ReceivedOffer>,
    },
    /// Nothing arrived in time.
    TimedOut {
        /// The id of the REQUEST.
        request_id: String,
    },
}

/// Completed work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompletedWork {
    /// The id of the REQUEST.
    pub request_id: String,
    /// The provider.
    pub provider: PublicKey,
    /// The result: a JSON object, as text. Earlier partial results went to the callback.
    pub data: String,
    /// Whether the provider marked it as complete, rather than as the last part.
    pub is_complete: bool,
    /// The agreed price; `None` without a negotiation.
    pub cost: Option<Credits>,
}

/// A request that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestFailure {
    /// The id of the REQUEST.
    pub request_id: String,
    /// The sender of the ERROR.
    pub by: PublicKey,
    /// The error code.
    pub code: Code,
    /// The code's number as received, which may be none of the eight.
    pub number: i64,
    /// The error message, for people to read.
    pub message: String,
    /// The hub's advice on what to do.
    pub hint: Option<String>,
}

impl Agent {
    /// Sends a request and runs it to its end. The inbox is the agent's own; unrelated envelopes
    /// are put back into it afterwards.
    pub async fn negotiate(
        &self,
        inbox: &mut Inbox,
        spec: &RequestSpec,
        options: NegotiationOptions<'_>,
    ) -> Result<RequestOutcome, CallError> {
        let request = self.sign_request(spec)?;
        let request_id = request.id.clone();
        self.send(request).await?;
        let now = Instant::now();
        let mut negotiation = NegotiationRun {
            agent: self,
            spec,
            max_offers: if spec.recipient().is_some() { 1 } else { options.enough },
            choose_at: now + options.collect,
            until: now + spec.time_limit().unwrap_or(DEFAULT_TIMEOUT) + GRACE,
            options,
            request_id,
            offers: Vec::new(),
            accepted: None,
            aside: Vec::new(),
        };
        let outcome = negotiation.run(inbox).await;
        inbox.put_back(negotiation.aside.into_iter());
        outcome
    }
}

/// One running request.
struct NegotiationRun<'t, 'h> {
    agent: &'t Agent,
    spec: &'t RequestSpec,
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
                Ok(None) => return Err(CallError::unreadable("the inbox has ended")),
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
                let fits = self.may_work(by) && self.spec.max_cost().is_none_or(|max| cost <= max);
                if self.accepted.is_none() && fits {
                    let expires_at = Instant::now() + Duration::from_millis(ttl.0.unsigned_abs());
                    let (offer_id, provider) = (incoming.id, by);
                    self.offers.push(ReceivedOffer { offer_id, provider, cost, eta, expires_at });
                }
                None
            }
            EnvelopePayload::Result { status, data, .. } if self.may_work(by) => {
                if status.is_final() {
                    return Ok(Some(RequestOutcome::Done(CompletedWork {
                        request_id: self.request_id.clone(),
                        provider: by,
                        data,
                        is_complete: status == ResultStatus::Success,
                        cost: self.accepted.as_ref().map(|offer| offer.cost),
                    })));
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

    /// The only agent that may do the work: the chosen one, or the one that was asked.
    fn provider(&self) -> Option<PublicKey> {
        self.accepted.as_ref().map(|offer| offer.provider).or(self.spec.recipient())
    }

    /// Whether an agent may offer or deliver.
    fn may_work(&self, by: PublicKey) -> bool {
        self.provider().is_none_or(|provider| provider == by)
    }

    /// Whether an agent's ERROR ends the request. If several were asked, it only drops out (R44).
    async fn ends_request(&mut self, by: PublicKey) -> bool {
        if by == self.agent.server().key() {
            return true;
        }
        if let Some(provider) = self.provider() {
            return provider == by;
        }
        self.offers.retain(|offer| offer.provider != by);
        let thread = self.agent.thread(&self.request_id).await;
        thread.is_ok_and(|thread| thread.state == RequestState::Failed)
    }

    /// Withdraws the request. If that does not arrive, the request times out.
    async fn withdraw(&self, code: Code, why: &str) {
        let (to, id) = (self.spec.recipient(), Some(self.request_id.as_str()));
        let _ = self.agent.send_error(to, id, code, why).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cheapest_is_taken_and_the_quickest_among_equals() {
        let offer = |micros, eta| ReceivedOffer {
            offer_id: String::new(),
            provider: PublicKey::from_bytes([1; 32]),
            cost: Credits::from_micros(micros),
            eta: Millis(eta),
            expires_at: Instant::now(),
        };
        assert_eq!(choose_cheapest(&[]), None);
        assert_eq!(choose_cheapest(&[offer(3, 1), offer(2, 9), offer(2, 5)]), Some(2));
    }
}

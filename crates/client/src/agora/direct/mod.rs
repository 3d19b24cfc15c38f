//! Direct calls from agent to agent, without a hub: each knows the other's URL.
//!
//! A peer answers an envelope with an envelope: HELLO with WELCOME, REQUEST with OFFER, RESULT or
//! ERROR, ACCEPT with RESULT or ERROR, everything else with STATUS. The rules are the hub's, with
//! two exceptions: request ids are kept for a while and not for ever, and no money is held.
//!
//! ```no_run
//! use rialto_client::agora::{Credits, Identity, RequestSpec, Seed, direct};
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let me = Identity::new(&Seed::random()?);
//! let request = RequestSpec::new("agora:search:v1", r#"{"q":"bridges"}"#);
//! let request = request.budget(Credits::parse("0.10", 2)?);
//! let outcome = direct::request("http://127.0.0.1:8010", me, &request, |_| true).await?;
//! println!("{outcome:?}");
//! # Ok(())
//! # }
//! ```

mod endpoint;
mod idempotency;
mod offers;
mod service;

use std::time::Duration;

use rialto_protocols::agora::wire::payload::ResultStatus;
use rialto_protocols::kit::ed25519::PublicKey;
use tokio::time::Instant;

use super::agent::Agent;
use super::calls::RequestSpec;
use super::hello::{Profile, WelcomeResponse};
use super::identity::Identity;
use super::incoming::{EnvelopeResponse, IncomingEnvelope};
use super::negotiate::{CompletedWork, ReceivedOffer, RequestOutcome};
use super::payload::EnvelopePayload;
use super::server::Server;
use crate::call::CallError;

pub(crate) use endpoint::endpoint;
pub use endpoint::serve;

/// The default timeout of an answer.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(600);
/// Extra time for the network besides the work.
const GRACE: Duration = Duration::from_secs(10);

/// Another agent, known by its URL.
#[derive(Clone, Debug)]
pub struct Peer {
    agent: Agent,
}

/// Requests work from the agent at a URL and accepts its offer if `agree` returns true. A refusal
/// of the peer is an error of the call. Partial results are not supported.
pub async fn request(
    url: &str,
    identity: Identity,
    order: &RequestSpec,
    agree: impl FnOnce(&ReceivedOffer) -> bool,
) -> Result<RequestOutcome, CallError> {
    let timeout = order.time_limit().unwrap_or(DEFAULT_TIMEOUT) + GRACE;
    Peer::connect(url, identity, timeout).await?.request(order, agree).await
}

impl Peer {
    /// Connects to the agent at a URL, with a timeout for its answers.
    pub async fn connect(
        url: &str,
        identity: Identity,
        timeout: Duration,
    ) -> Result<Self, CallError> {
        let server = Server::discover_with_timeout(url, Some(timeout)).await?;
        Ok(Self { agent: Agent::new(identity, server).for_peer() })
    }

    /// The peer's key. The peer states it itself: compare it with the key you expect.
    pub fn key(&self) -> PublicKey {
        self.agent.server().key()
    }

    /// Sends HELLO; the WELCOME proves that the peer has its key.
    pub async fn hello(&self, profile: &Profile) -> Result<WelcomeResponse, CallError> {
        self.agent.hello(profile, false).await
    }

    /// Requests work, and accepts an offer if `agree` returns true.
    pub async fn request(
        &self,
        order: &RequestSpec,
        agree: impl FnOnce(&ReceivedOffer) -> bool,
    ) -> Result<RequestOutcome, CallError> {
        let sealed = self.agent.sign_request(&order.clone().to(self.key()))?;
        let id = sealed.id.clone();
        let answer = self.check_answer(&id, self.agent.send(sealed).await?)?;
        let EnvelopePayload::Offer { cost, ttl, eta, .. } = answer.payload else {
            return completed_outcome(answer, id, None);
        };
        let until = Instant::now() + Duration::from_millis(ttl.0.unsigned_abs());
        let offer_id = answer.id;
        let offer = ReceivedOffer { offer_id, provider: self.key(), cost, eta, expires_at: until };
        if order.max_cost().is_some_and(|max| offer.cost > max) || !agree(&offer) {
            let why = "the offer was not accepted";
            let code = rialto_protocols::agora::Code::PaymentRequired;
            // If this does not arrive, the offer expires.
            let _ = self.agent.send_error(Some(self.key()), Some(&id), code, why).await;
            return Ok(RequestOutcome::NoOfferAccepted { request_id: id, offers: vec![offer] });
        }
        let accept =
            self.agent.accept_offer(self.key(), &offer.offer_id, None, Duration::ZERO).await?;
        completed_outcome(self.check_answer(&id, accept)?, id, Some(&offer))
    }

    /// Checks that the answer comes from the peer and is about this request.
    fn check_answer(
        &self,
        id: &str,
        answered: EnvelopeResponse,
    ) -> Result<Box<IncomingEnvelope>, CallError> {
        let wrong = |why: &str| Err(CallError::Unreadable(why.to_owned()));
        match answered {
            EnvelopeResponse::Accepted(_) => {
                wrong("the peer accepted the request without an answer")
            }
            EnvelopeResponse::Answered(answer) if answer.sender != self.key() => {
                wrong("the answer is not signed by the peer")
            }
            EnvelopeResponse::Answered(answer) if answer.payload.request_id() != Some(id) => {
                wrong("the answer is about another request")
            }
            EnvelopeResponse::Answered(answer) => Ok(answer),
        }
    }
}

fn completed_outcome(
    answer: Box<IncomingEnvelope>,
    request_id: String,
    offer: Option<&ReceivedOffer>,
) -> Result<RequestOutcome, CallError> {
    let EnvelopePayload::Result { status, data, .. } = answer.payload else {
        return Err(CallError::Unreadable(format!("{} is not an answer", answer.kind)));
    };
    let whole = status == ResultStatus::Success;
    let (provider, cost) = (answer.sender, offer.map(|offer| offer.cost));
    Ok(RequestOutcome::Done(CompletedWork { request_id, provider, data, is_complete: whole, cost }))
}

#[cfg(test)]
mod tests;

//! Direct calls from agent to agent, without a hub: each knows the other's URL.
//!
//! A peer answers an envelope with an envelope: HELLO with WELCOME, REQUEST with OFFER, RESULT or
//! ERROR, ACCEPT with RESULT or ERROR, everything else with STATUS. The rules are the hub's, with
//! two exceptions: request ids are kept for a while and not for ever, and no money is held.
//!
//! ```no_run
//! use rialto_client::agora::{Credits, Identity, Order, Seed, direct};
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let me = Identity::new(&Seed::random()?);
//! let order = Order::new("agora:search:v1", r#"{"q":"bridges"}"#);
//! let order = order.budget(Credits::parse("0.10", 2)?);
//! let outcome = direct::request("http://127.0.0.1:8010", me, &order, |_| true).await?;
//! println!("{outcome:?}");
//! # Ok(())
//! # }
//! ```

mod service;
mod endpoint;
mod journal_notes;
mod idempotency;
mod offers;
mod serve;

use std::time::Duration;

use rialto_protocols::agora::payload::result::Status;
use rialto_protocols::kit::ed25519::PublicKey;
use tokio::time::Instant;

use super::agent::Agent;
use super::response::Answered;
use super::hello::{Profile, Welcomed};
use super::identity::Identity;
use super::incoming::Incoming;
use super::negotiation_options::Proposal;
use super::request_spec::Order;
use super::outcome::{Outcome, Work};
use super::payload::Said;
use super::server::Server;
use crate::call::CallError;

pub(crate) use endpoint::endpoint;
pub use serve::serve;

/// The default timeout of an answer.
const PATIENCE: Duration = Duration::from_secs(600);
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
    order: &Order,
    agree: impl FnOnce(&Proposal) -> bool,
) -> Result<Outcome, CallError> {
    let patience = order.time_limit().unwrap_or(PATIENCE) + GRACE;
    Peer::find(url, identity, patience).await?.ask(order, agree).await
}

impl Peer {
    /// Connects to the agent at a URL, with a timeout for its answers.
    pub async fn find(
        url: &str,
        identity: Identity,
        patience: Duration,
    ) -> Result<Self, CallError> {
        let server = Server::find(url, Some(patience)).await?;
        Ok(Self { agent: Agent::new(identity, server).at_peer() })
    }

    /// The peer's key. The peer states it itself: compare it with the key you expect.
    pub fn key(&self) -> PublicKey {
        self.agent.server().key()
    }

    /// Sends HELLO; the WELCOME proves that the peer has its key.
    pub async fn hello(&self, profile: &Profile) -> Result<Welcomed, CallError> {
        self.agent.hello(profile, false).await
    }

    /// Requests work, and accepts an offer if `agree` returns true.
    pub async fn ask(
        &self,
        order: &Order,
        agree: impl FnOnce(&Proposal) -> bool,
    ) -> Result<Outcome, CallError> {
        let sealed = self.agent.draw_up(&order.clone().to(self.key()))?;
        let id = sealed.id.clone();
        let answer = self.answered(&id, self.agent.send(sealed).await?)?;
        let Said::Offer { cost, ttl, eta, .. } = answer.said else {
            return finished(answer, id, None);
        };
        let until = Instant::now() + Duration::from_millis(ttl.0.unsigned_abs());
        let offer_id = answer.id;
        let offer = Proposal { offer_id, provider: self.key(), cost, eta, until };
        if order.max().is_some_and(|max| offer.cost > max) || !agree(&offer) {
            let why = "the offer was not accepted";
            let code = rialto_protocols::agora::Code::PaymentRequired;
            // If this does not arrive, the offer expires.
            let _ = self.agent.error(Some(self.key()), Some(&id), code, why).await;
            return Ok(Outcome::NoDeal { request_id: id, offers: vec![offer] });
        }
        let accept = self.agent.accept(self.key(), &offer.offer_id, None, Duration::ZERO).await?;
        finished(self.answered(&id, accept)?, id, Some(&offer))
    }

    /// Checks that the answer comes from the peer and is about this request.
    fn answered(&self, id: &str, answered: Answered) -> Result<Box<Incoming>, CallError> {
        let wrong = |why: &str| Err(CallError::Unreadable(why.to_owned()));
        match answered {
            Answered::Accepted(_) => wrong("the peer accepted the request without an answer"),
            Answered::By(answer) if answer.sender != self.key() => {
                wrong("the answer is not signed by the peer")
            }
            Answered::By(answer) if answer.said.request_id() != Some(id) => {
                wrong("the answer is about another request")
            }
            Answered::By(answer) => Ok(answer),
        }
    }
}

fn finished(
    answer: Box<Incoming>,
    request_id: String,
    offer: Option<&Proposal>,
) -> Result<Outcome, CallError> {
    let Said::Result { status, data, .. } = answer.said else {
        return Err(CallError::Unreadable(format!("{} is not an answer", answer.kind)));
    };
    let whole = status == Status::Success;
    let (provider, cost) = (answer.sender, offer.map(|offer| offer.cost));
    Ok(Outcome::Done(Work { request_id, provider, data, whole, cost }))
}

#[cfg(test)]
mod tests;

//! agora client: request work or do it, with a hub or directly from agent to agent.
//!
//! An [`Identity`] signs. A [`Server`] is found by its URL. An [`Agent`] is an identity at a
//! server: it sends, waits, negotiates and serves. An [`Inbox`] returns envelopes from others, each
//! checked against the hub's receipt, across reconnects. [`direct`] works without a hub, [`webhook`]
//! is for agents that receive webhooks, and a [`Socket`] carries both directions.

mod agent;
mod calls;
pub mod direct;
mod handler;
mod hello;
mod identity;
mod inbox;
mod incoming;
mod negotiate;
mod payload;
mod serve;
mod server;
mod sign;
mod socket;
pub mod webhook;

#[cfg(test)]
mod tests;

pub use agent::Agent;
pub use calls::RequestSpec;
pub use handler::{Handler, Job, Progress, Terms, WorkError};
pub use hello::{Profile, Skill, WelcomeResponse};
pub use identity::{Identity, Seed, SignedEnvelope};
pub use inbox::{EnvelopePage, Inbox, InboxError, InboxOptions};
pub use incoming::{Acceptance, EnvelopeResponse, IncomingEnvelope, TrustError};
pub use negotiate::{
    CompletedWork, NegotiationOptions, ReceivedOffer, RequestFailure, RequestOutcome,
    choose_cheapest,
};
pub use payload::EnvelopePayload;
pub use serve::ServeOptions;
pub use server::Server;
pub use sign::{canonical_json, signing_input};
pub use socket::{Frame, Socket};

pub use crate::retry::RetryPolicy;
pub use crate::webhook_signature::WebhookSecret;
pub use crate::worker::ServeError;
pub use rialto_core::money::Credits;
pub use rialto_core::time::{Millis, Timestamp};
pub use rialto_protocols::agora::wire::payload::ResultStatus;
pub use rialto_protocols::agora::wire::responses::{AckAnswer, RequestView};
pub use rialto_protocols::agora::wire::status::{AgentStatus, RequestState};
pub use rialto_protocols::agora::{Code, Failure, MessageType};
pub use rialto_protocols::kit::ed25519::PublicKey;

/// Entries of the hub's directory.
pub mod directory {
    pub use rialto_protocols::agora::wire::responses::{
        AgentEntry, CapabilityEntry, DirectoryPage,
    };
}

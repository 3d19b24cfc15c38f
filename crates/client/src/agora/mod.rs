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
mod inbox_reads;
mod incoming;
mod json_object;
mod negotiate;
mod negotiation_options;
mod outcome;
mod payload;
mod request_spec;
mod response;
mod retry;
mod seed;
mod seen_messages;
mod serve;
mod server;
mod sign;
mod signed_envelope;
mod socket;
mod token;
pub mod webhook;

#[cfg(test)]
mod tests;

pub use agent::Agent;
pub use handler::{Handler, Job, Progress, Terms, WorkError};
pub use hello::{Profile, Skill, WelcomeResponse};
pub use identity::Identity;
pub use inbox::{Inbox, InboxError, InboxOptions};
pub use inbox_reads::EnvelopePage;
pub use incoming::{IncomingEnvelope, TrustError};
pub use negotiation_options::{NegotiationOptions, ReceivedOffer, choose_cheapest};
pub use outcome::{CompletedWork, RequestFailure, RequestOutcome};
pub use payload::EnvelopePayload;
pub use request_spec::RequestSpec;
pub use response::{Acceptance, EnvelopeResponse};
pub use seed::Seed;
pub use serve::ServeOptions;
pub use server::Server;
pub use sign::{canonical_json, signing_input};
pub use signed_envelope::SignedEnvelope;
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

//! agora client: request work or do it, with a hub or directly from agent to agent.
//!
//! An [`Identity`] signs. A [`Server`] is found by its URL. An [`Agent`] is an identity at a
//! server: it sends, waits, negotiates and serves. An [`Inbox`] returns envelopes from others, each
//! checked against the hub's receipt, across reconnects. [`direct`] works without a hub, [`push`]
//! is for agents that receive webhooks, and a [`Socket`] carries both directions.

mod agent;
mod response;
mod calls;
pub mod direct;
mod handler;
mod hello;
mod identity;
mod inbox;
mod incoming;
mod negotiate;
mod negotiation_options;
mod json_object;
mod request_spec;
mod outcome;
pub mod webhook;
mod inbox_reads;
mod retry;
mod payload;
mod signed_envelope;
mod seed;
mod seen_messages;
mod serve;
mod server;
mod sign;
mod socket;
mod token;

#[cfg(test)]
mod tests;

pub use agent::Agent;
pub use response::{Accepted, Answered};
pub use handler::{Broken, Handler, Job, Progress, Terms};
pub use hello::{Profile, Skill, Welcomed};
pub use identity::Identity;
pub use inbox::{Inbox, Listen, Trouble};
pub use incoming::{Incoming, NotTrusted};
pub use negotiation_options::{Negotiation, Proposal, cheapest};
pub use request_spec::Order;
pub use outcome::{Failed, Outcome, Work};
pub use inbox_reads::Page;
pub use payload::Said;
pub use signed_envelope::Sealed;
pub use seed::Seed;
pub use serve::{Mishap, Workplace};
pub use server::Server;
pub use sign::{canonical, to_be_signed};
pub use socket::{Frame, Socket};

pub use crate::retry::Retry;
pub use crate::webhook_signature::WebhookSecret;
pub use rialto_core::money::Credits;
pub use rialto_core::time::{Millis, Timestamp};
pub use rialto_protocols::agora::inbox::Acked;
pub use rialto_protocols::agora::payload::Mood;
pub use rialto_protocols::agora::payload::result::Status;
pub use rialto_protocols::agora::thread::{State, Thread};
pub use rialto_protocols::agora::{Code, Failure, Kind, directory};
pub use rialto_protocols::kit::ed25519::PublicKey;

//! relay client: register, send, listen, with a server or directly from agent to agent.
//!
//! A [`Server`] is found by its well-known document and offers the protocol's operations. An
//! [`Inbox`] receives messages across reconnects. [`direct`] works without a server.

mod agents;
pub mod direct;
mod message;
mod send;
mod server;
mod stream;
mod turn_dedup;

#[cfg(test)]
mod tests;

pub use agents::{AgentFilter, ListedAgent, RegisteredAgent, Registration};
pub use message::{
    EnvelopeContents, EnvelopeSpec, HistoryFilter, Message, PastMessage, ValidEnvelope,
};
pub use send::{DeliveryOutcome, Rejection, SendRequest, SendResponse, SentMessage};
pub use server::{AckAnswer, Server};
pub use stream::{Inbox, InboxOptions, ReplyStream, ReplyStreamItem};

pub use crate::key::Key;
pub use crate::retry::RetryPolicy;
pub use crate::webhook_signature::{VerifyError, WebhookSecret};
pub use rialto_protocols::relay::EnvelopeFormat;
pub use rialto_protocols::relay::wire::reply::ReplyEvent;

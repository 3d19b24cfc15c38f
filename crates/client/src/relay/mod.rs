//! relay client: register, send, listen, with a server or directly from agent to agent.
//!
//! A [`Server`] is found by its well-known document and offers the protocol's operations. An
//! [`Inbox`] receives messages across reconnects. [`direct`] works without a server.

pub mod direct;
mod envelope;
mod history;
mod inbox;
mod listed_agent;
mod message;
mod outcome;
mod registration;
mod reply_stream;
mod response;
mod retry;
mod send;
mod server;
mod turn_dedup;

#[cfg(test)]
mod tests;

use crate::{key, origin_client, webhook_signature};

pub use envelope::{EnvelopeSpec, ValidEnvelope};
pub use history::{HistoryFilter, PastMessage};
pub use inbox::{Inbox, InboxOptions};
pub use key::Key;
pub use listed_agent::{AgentFilter, ListedAgent};
pub use message::{EnvelopeContents, Message};
pub use outcome::{DeliveryOutcome, Rejection, SentMessage};
pub use registration::{RegisteredAgent, Registration};
pub use reply_stream::{ReplyStream, ReplyStreamItem};
pub use retry::RetryPolicy;
pub use rialto_protocols::relay::EnvelopeFormat;
pub use rialto_protocols::relay::wire::reply::ReplyEvent;
pub use send::{SendRequest, SendResponse};
pub use server::{AckAnswer, Server};
pub use webhook_signature::{VerifyError, WebhookSecret};

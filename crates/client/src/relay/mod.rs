//! relay client: register, send, listen, with a server or directly from agent to agent.
//!
//! A [`Server`] is found by its well-known document and offers the protocol's operations. An
//! [`Inbox`] receives messages across reconnects. [`direct`] works without a server.

mod registration;
mod response;
pub mod direct;
mod history;
mod inbox;
mod envelope;
mod message;
mod turn_dedup;
mod outcome;
mod listed_agent;
mod retry;
mod send;
mod server;
mod reply_stream;

#[cfg(test)]
mod tests;

use crate::{key, origin_client, webhook_signature};

pub use registration::{Announcement, Registered};
pub use history::{Past, Span};
pub use inbox::{Inbox, Listen};
pub use key::Key;
pub use envelope::{Draft, Letter};
pub use message::{Contents, Message};
pub use outcome::{Outcome, Rejection, Sent};
pub use listed_agent::{Filter, Record};
pub use retry::Retry;
pub use rialto_protocols::relay::Format;
pub use rialto_protocols::relay::stream::Word;
pub use send::{Answered, Order};
pub use server::{Acked, Server};
pub use webhook_signature::{NotVerified, WebhookSecret};
pub use reply_stream::{Said, Words};

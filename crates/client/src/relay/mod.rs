//! relay client: register, send, listen, with a server or directly from agent to agent.
//!
//! A [`Server`] is found by its well-known document and offers the protocol's operations. An
//! [`Inbox`] receives messages across reconnects. [`direct`] works without a server.

mod announcement;
mod answer;
pub mod direct;
mod history;
mod inbox;
mod letter;
mod message;
mod once;
mod outcome;
mod record;
mod retry;
mod send;
mod server;
mod words;

#[cfg(test)]
mod tests;

use crate::{key, line, signature};

pub use announcement::{Announcement, Registered};
pub use history::{Past, Span};
pub use inbox::{Inbox, Listen};
pub use key::Key;
pub use letter::{Draft, Letter};
pub use message::{Contents, Message};
pub use outcome::{Outcome, Rejection, Sent};
pub use record::{Filter, Record};
pub use retry::Retry;
pub use rialto_protocols::relay::Format;
pub use rialto_protocols::relay::stream::Word;
pub use send::{Answered, Order};
pub use server::{Acked, Server};
pub use signature::{NotVerified, WebhookSecret};
pub use words::{Said, Words};

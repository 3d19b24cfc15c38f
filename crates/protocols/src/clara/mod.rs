//! clara: the adapter of the C.L.A.R.A. Marketplace on the AO wire. Agents register with a topic
//! and a fee, requesters register tasks with a reward, and the market chooses the agent for each
//! task.
//!
//! The wire modules read orders from messages, write the market's messages, and write and read its
//! results. They do not wait, store anything or read the clock, so the hub and its clients share
//! every rule. [`crate::kit::ans104`] reads and verifies the signed items.

pub mod action;
pub mod answers;
pub mod examples;
pub mod failure;
pub mod fault;
pub mod message;
pub mod order;
pub mod outgoing;
pub mod paging;
pub mod price;
pub mod process;
pub mod query;
pub mod record;
pub mod result;
pub mod strategy;
pub mod topics;

#[cfg(feature = "server")]
mod board;
#[cfg(feature = "server")]
mod clerk;
#[cfg(feature = "server")]
mod compute;
#[cfg(feature = "server")]
mod deed;
#[cfg(feature = "server")]
mod evidence;
#[cfg(feature = "server")]
pub mod face;
#[cfg(feature = "server")]
mod intake;
#[cfg(feature = "server")]
mod layout;
#[cfg(feature = "server")]
mod people;
#[cfg(feature = "server")]
mod question;
#[cfg(feature = "server")]
mod reading;
#[cfg(feature = "server")]
mod routes;
#[cfg(feature = "server")]
mod settings;
#[cfg(feature = "server")]
mod sides;
#[cfg(feature = "server")]
mod task;
#[cfg(feature = "server")]
mod word;

#[cfg(test)]
mod tests;

pub use action::Action;
#[cfg(feature = "server")]
pub use clerk::EventRecordWriter;
pub use failure::Failure;
pub use fault::OrderError;
pub use message::IncomingMessage;
pub use order::Order;
pub use outgoing::OutgoingMessage;
pub use paging::{Paging, ResultCursor};
pub use process::{Dialect, Processes};
#[cfg(feature = "server")]
pub use settings::Settings;
pub use strategy::Strategy;
pub use topics::{BridgedTopics, Topics};

use rialto_core::alias::Protocol;

use crate::kit::ans104;

/// The protocol's id.
pub const ID: Protocol = Protocol::new("clara");
/// The process id under which the market was published. Many hubs answer to it, so orders that move
/// money need a hub's own process id (R67).
pub const PROCESS: &str = "CS5biQW6v2PsT3HM19P_f8Fj8UGYnFFNF8O6sfZ1jLc";
/// The value of the tag `Protocol` (R2).
pub const PROTOCOL: &str = "C.L.A.R.A.";
/// The largest body in bytes, of an item or a dry-run.
pub const BODY_MAX: usize = ans104::ITEM_MAX;
/// The most characters of an agent's id (R5).
pub const AGENT_ID_MAX: usize = 128;
/// The most bytes of an agent's metadata, because the hub keeps it in memory.
pub const METADATA_MAX: usize = 64 << 10;
/// The most characters of the id and the owner that a dry-run claims.
pub const CLAIM_MAX: usize = 128;
/// The largest fee or reward, in credits (R4).
pub const PRICE_MAX: i64 = 1_000_000_000;
/// The topics that agents can always have (R3).
pub const TOPICS: [&str; 4] = ["tweet", "discord", "telegram", "nft"];
/// The topic of tasks for all agents (R34).
pub const BROADCAST: &str = "broadcast";
/// The topics that are also known in the dialect of the deployed processes.
pub const TOPICS_DEPLOYED: [&str; 2] = ["chat", "none"];
/// The default number of results on a page.
pub const PAGE: usize = 25;
/// The most results on a page.
pub const PAGE_MAX: usize = 1_000;
/// The protocols of the hub. An agent's id must not start with one of them and a slash, because
/// agents of other protocols are listed that way (R5, R79).
pub const PROTOCOLS: [&str; 5] = ["registry", "relay", "openclaw", "clara", "agora"];

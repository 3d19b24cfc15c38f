//! openclaw client: publish an agent's capabilities, request work, and do it.
//!
//! A [`Server`] is a hub at a URL: it lists agents and accepts an identity, built with a
//! [`Profile`]. An [`Agent`] is an identity with its key: it sends requests, waits for results,
//! reads and cancels. A [`Duty`] keeps the agent online, reports its status and reputation, and
//! serves requests with a [`Handler`]. A [`Stream`] receives the hub's events across reconnects,
//! and [`push`] is for agents that receive webhooks. [`direct`] works without a hub.

mod agent;
mod response;
mod collaboration;
pub mod direct;
mod directory;
mod presence;
mod event;
mod handler;
mod request_spec;
mod retry;
mod profile;
mod published_agent;
pub mod webhook;
mod request;
mod recent_set;
mod serve;
mod server;
mod stream;
mod wait;

#[cfg(test)]
mod tests;

use crate::ids;

pub use agent::Agent;
pub use collaboration::{Collaboration, Listing, Page};
pub use directory::{Filter, Found, FoundPage, Reputed};
pub use presence::{Busy, Done, Duty, Record, Rhythm};
pub use event::{Cancelled, Event, Incoming};
pub use handler::{Broken, Handler, Job, Mishap, Verdict};
pub use request_spec::Order;
pub use retry::Patience;
pub use profile::{Profile, Skill};
pub use published_agent::Published;
pub use request::Asked;
pub use serve::Workplace;
pub use server::Server;
pub use stream::{Stream, Trouble, Watch};
pub use wait::{End, Errand};

pub use crate::key::Key;
pub use crate::retry::Retry;
pub use crate::webhook_signature::{NotVerified, WebhookSecret};
pub use rialto_core::money::Credits;
pub use rialto_core::time::{Millis, Timestamp};
pub use rialto_protocols::openclaw::answers::{
    ClaimRecorded, Health, ResultPublished, StatusTaken,
};
pub use rialto_protocols::openclaw::directory::Entry;
pub use rialto_protocols::openclaw::message::{
    Answer, Details, Failed, Identity, Limits, Message, Metrics, Outcome, Output, Rejection,
    Report, Reputation, Request, Response, StatusUpdate,
};
pub use rialto_protocols::openclaw::state::{
    Category, ErrorType, Mode, Role, State, Status, UpdateType,
};
pub use rialto_protocols::openclaw::{Code, Rejected, Score};
pub use uuid::Uuid;

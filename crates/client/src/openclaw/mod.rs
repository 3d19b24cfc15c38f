//! openclaw, from the client's side: announce what an agent can do, ask others for work, and do it.
//!
//! A [`Server`] is a hub by its address: it lists agents and takes an identity, made with a
//! [`Profile`]. An [`Agent`] is an identity with its key: it asks, waits, looks and cancels. A
//! [`Duty`] tells the hub for as long as it lives how the agent is and how well it does, and serves
//! requests with a [`Handler`]. A [`Stream`] brings what the hub has to say, however often the line
//! breaks, and [`push`] is for agents that a hub calls. [`direct`] needs no hub at all.

mod agent;
mod answer;
mod collaboration;
pub mod direct;
mod directory;
mod duty;
mod event;
mod handler;
mod order;
mod patience;
mod profile;
mod published;
pub mod push;
mod request;
mod seen;
mod serve;
mod server;
mod stream;
mod wait;

#[cfg(test)]
mod tests;

use crate::fresh;

pub use agent::Agent;
pub use collaboration::{Collaboration, Listing, Page};
pub use directory::{Filter, Found, FoundPage, Reputed};
pub use duty::{Busy, Done, Duty, Record, Rhythm};
pub use event::{Cancelled, Event, Incoming};
pub use handler::{Broken, Handler, Job, Mishap, Verdict};
pub use order::Order;
pub use patience::Patience;
pub use profile::{Profile, Skill};
pub use published::Published;
pub use request::Asked;
pub use serve::Workplace;
pub use server::Server;
pub use stream::{Stream, Trouble, Watch};
pub use wait::{End, Errand};

pub use crate::key::Key;
pub use crate::retry::Retry;
pub use crate::signature::{NotVerified, WebhookSecret};
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

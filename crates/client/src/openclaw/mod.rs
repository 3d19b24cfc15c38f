//! openclaw client: publish an agent's capabilities, request work, and do it.
//!
//! A [`Server`] is a hub at a URL: it lists agents and accepts an identity, built with a
//! [`Profile`]. An [`Agent`] is an identity with its key: it sends requests, waits for results,
//! reads and cancels. A [`Presence`] keeps the agent online, reports its status and reputation, and
//! serves requests with a [`Handler`]. A [`EventStream`] receives the hub's events across reconnects,
//! and [`webhook`] is for agents that receive webhooks. [`direct`] works without a hub.

mod agent;
mod collaboration;
pub mod direct;
mod directory;
mod event;
mod handler;
mod job_runner;
mod presence;
mod profile;
mod request;
mod response;
mod serve;
mod server;
mod stream;
pub mod webhook;

#[cfg(test)]
mod tests;

pub use agent::{Agent, PublishedAgent};
pub use collaboration::{
    Collaboration, CollaborationFilter, CollaborationPage, PendingRequest, RequestEnd,
};
pub use directory::{AgentFilter, AgentPage, ListedAgent, ReputationView};
pub use event::{Cancellation, Event, IncomingRequest};
pub use handler::{Decision, Handler, Job, WorkError};
pub use presence::{BusyGuard, FinishedCollaboration, Presence, PresenceOptions, WorkHistory};
pub use profile::{Profile, Skill};
pub use request::{RequestReply, RequestRetryPolicy, RequestSpec};
pub use serve::ServeOptions;
pub use server::Server;
pub use stream::{EventStream, StreamError, WatchScope};

pub use crate::key::Key;
pub use crate::retry::RetryPolicy;
pub use crate::webhook_signature::{VerifyError, WebhookSecret};
pub use crate::worker::ServeError;
pub use rialto_core::money::Credits;
pub use rialto_core::time::{Millis, Timestamp};
pub use rialto_protocols::openclaw::wire::answers::{
    ClaimRecorded, Health, ResultPublished, StatusTaken,
};
pub use rialto_protocols::openclaw::wire::directory::AgentEntry;
pub use rialto_protocols::openclaw::wire::words::{
    Category, ErrorType, Mode, Role, State, Status, UpdateType,
};
pub use rialto_protocols::openclaw::wire::{
    CollaborationResult, Identity, Message, Rejection, ReportedStatus, ReputationMetrics,
    ReputationUpdate, Request, ResourceLimits, Response, ResponseAnswer, ResultError,
    ResultOutcome, StatusDetails, StatusUpdate,
};
pub use rialto_protocols::openclaw::{Code, Rejected, Score};
pub use uuid::Uuid;

//! The hub's own API under `/v1`: agents, jobs, money, inbox, events, keys, and operations for the
//! operator.
//!
//! It uses the terms of core. Amounts are exact numbers, times are RFC 3339 in UTC, lists are paged
//! with cursors, errors are problems (RFC 9457), and a POST with an `Idempotency-Key` takes effect
//! once however often it is sent. Things of other callers get the same response as things that do
//! not exist.

pub(crate) mod accounts;
pub(crate) mod agent_names;
pub(crate) mod agents;
mod api;
pub(crate) mod auth;
mod delivery_preview;
pub(crate) mod errors;
mod events;
mod examples;
pub(crate) mod inbox;
pub(crate) mod jobs;
mod json_object;
pub(crate) mod keys;
pub(crate) mod ledger;
pub(crate) mod me;
pub(crate) mod messages;
pub(crate) mod notices;
mod operations;
mod operator;
pub mod page;
pub(crate) mod params;
mod presence;
pub mod problem;
mod public_ids;
pub(crate) mod response;
mod strict_fields;
#[cfg(test)]
pub mod tests;
pub(crate) mod wait;
mod webhooks;
pub(crate) mod work;

pub use api::V1Api;
pub use events::HistoryReader;
pub use operations::operations;
pub use problem::errors;

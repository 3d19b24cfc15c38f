//! The hub's own API under `/v1`: agents, jobs, money, inbox, events, keys, and operations for the
//! operator.
//!
//! It uses the terms of core. Amounts are exact numbers, times are RFC 3339 in UTC, lists are paged
//! with cursors, errors are problems (RFC 9457), and a POST with an `Idempotency-Key` takes effect
//! once however often it is sent. Things of other callers get the same response as things that do
//! not exist.

mod accounts;
mod agent_names;
mod agents;
mod api;
mod auth;
mod delivery_preview;
mod errors;
mod events;
mod examples;
mod inbox;
mod jobs;
mod json_object;
mod keys;
mod ledger;
mod me;
mod messages;
mod notices;
mod operations;
mod operator;
pub mod page;
mod params;
mod presence;
pub mod problem;
mod public_ids;
mod response;
mod strict_fields;
#[cfg(test)]
mod tests;
mod wait;
mod webhooks;
mod work;

pub use api::V1Api;
pub use events::HistoryReader;
pub use operations::operations;
pub use problem::errors;

//! The rules of the hub: pure functions from state, command and time to changes or a refusal.
//!
//! This crate only decides. It has no clock, no randomness and no I/O. Money is never a float.

#![deny(clippy::float_arithmetic, clippy::disallowed_methods, clippy::disallowed_types)]

pub mod agent;
pub mod alias;
pub mod answer;
pub mod changes;
pub mod command;
pub mod confusables;
pub mod decide;
pub mod delivery;
pub mod draft;
pub mod encoding;
pub mod envelope;
pub mod event;
mod hex;
pub mod id;
pub mod idempotency;
pub mod job;
pub mod ledger;
pub mod market;
pub mod message;
pub mod money;
pub mod notice;
pub mod number;
pub mod owner;
pub mod price_step;
pub mod refusal;
pub mod reputation;
#[cfg(any(test, feature = "testkit"))]
pub mod testkit;
#[cfg(test)]
mod tests;
pub mod time;
pub mod world;

pub use decide::{decide, missing_rows};

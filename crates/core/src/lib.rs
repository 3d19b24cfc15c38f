//! The rules of the hub.
//!
//! This crate only decides. It is told what is known, what is asked and what time it is, and it
//! answers with changes or a refusal. It has no clock, no randomness, no input or output, and no
//! float ever touches money.

#![deny(clippy::float_arithmetic, clippy::disallowed_methods, clippy::disallowed_types)]

pub mod agent;
pub mod alias;
pub mod answer;
pub mod changes;
pub mod command;
pub mod decide;
pub mod draft;
pub mod event;
pub mod grain;
mod hex;
pub mod id;
pub mod job;
pub mod ledger;
pub mod likeness;
pub mod market;
pub mod memory;
pub mod message;
pub mod money;
pub mod notice;
pub mod number;
pub mod owner;
pub mod push;
pub mod refusal;
pub mod reputation;
pub mod signed;
#[cfg(any(test, feature = "testkit"))]
pub mod testkit;
#[cfg(test)]
mod tests;
pub mod time;
pub mod world;

pub use decide::{decide, needs};

//! A2A, requirement by requirement; CONFORMANCE.md beside its code maps tests to requirements.

mod cards;
mod frames;
pub mod kit;
mod list;
mod parts;
mod paths;
mod questions;
mod refusals;
mod remote;
mod repeats;
mod send;
mod tasks;
mod tck;
mod versions;

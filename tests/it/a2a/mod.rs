//! A2A, requirement by requirement; CONFORMANCE.md beside its code maps tests to requirements.

mod cards;
mod catalog;
pub mod flows;
mod frames;
mod hub_itself;
mod identity;
pub mod kit;
mod limits;
mod list;
mod old_version;
mod parts;
mod paths;
mod push;
mod questions;
mod refusals;
pub mod remote;
mod repeats;
mod sdk;
mod send;
mod streams;
mod tasks;
mod tck;
mod versions;

//! A2A, requirement by requirement; CONFORMANCE.md beside its code maps tests to requirements.

mod cards;
mod catalog;
mod content;
mod extended_card;
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
mod push_configs;
mod questions;
mod refusals;
pub mod remote;
mod repeats;
mod resume;
mod sdk;
mod send;
mod streams;
mod tasks;
mod tck;
mod versions;

//! A2A, requirement by requirement; CONFORMANCE.md beside its code maps tests to requirements.

mod cards;
mod frames;
pub mod kit;
mod parts;
mod paths;
mod questions;
mod versions;

//! A2A, requirement by requirement; CONFORMANCE.md beside its code maps tests to requirements.

mod cards;
pub mod kit;
mod parts;
mod questions;

//! The rules of the hub.
//!
//! This crate only decides. It is told what is known, what is asked and what time it is, and it
//! answers with changes or a refusal. It has no clock, no randomness, no input or output, and no
//! float ever touches money.

pub mod id;
pub mod money;
pub mod text;
pub mod time;

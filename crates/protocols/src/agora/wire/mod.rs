//! The wire: reads, verifies and signs envelopes and defines the hub's responses. It does not wait,
//! store anything or read the clock, so the hub and its clients share every rule.

pub mod api_doc;
pub mod envelope;
pub mod error;
pub mod hello;
pub mod payload;
pub mod receipt;
pub mod responses;
pub mod signature;
pub mod status;

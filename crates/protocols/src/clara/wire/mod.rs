//! The wire types: reads orders from messages, writes the market's messages, and writes and reads
//! its results. Nothing here waits, stores anything or reads the clock, so the hub and its clients
//! share every rule. [`crate::kit::ans104`] reads and verifies the signed items.

pub mod action;
pub mod api_doc;
pub mod error;
pub mod message;
pub mod order;
pub mod outgoing;
pub mod record;
pub mod register;
pub mod result;
pub mod task;

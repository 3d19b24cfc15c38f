//! The client side of Rialto: call a hub, or be an agent of one.
//!
//! One thin module per protocol. What it shares is how a call is made and how it fails.

pub mod call;
pub mod registry;
pub mod relay;

pub use call::{CallError, Hub};
pub use reqwest::Method;

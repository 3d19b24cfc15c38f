//! The client side of Rialto: call a hub, or be an agent of one.
//!
//! One thin module per protocol. What they share is how a call is made and how it fails.

pub mod agent;
mod again;
pub mod agora;
pub mod call;
pub mod clara;
mod clock;
mod endpoint;
mod events;
mod fresh;
mod key;
mod line;
pub mod openclaw;
pub mod registry;
pub mod relay;
mod retry;
mod signature;
#[cfg(test)]
mod testing;

pub use call::{CallError, Hub};
pub use events::{Events, Notice};
pub use reqwest::Method;
pub use retry::Retry;

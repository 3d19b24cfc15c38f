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
mod hire;
mod keep;
mod key;
mod key_file;
mod line;
pub mod openclaw;
pub mod registry;
pub mod relay;
mod retry;
mod signature;
#[cfg(test)]
mod testing;

pub use agent::{Agent, AgentError};
pub use call::{CallError, Hub};
pub use events::{Events, Notice};
pub use hire::{Job, Wanted};
pub use key::Key;
pub use key_file::KeyFile;
pub use reqwest::Method;
pub use retry::Retry;

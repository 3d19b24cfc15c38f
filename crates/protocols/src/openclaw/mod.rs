//! openclaw: the adapter of Chimera–OpenClaw integration 1.0.0. Content agents publish capabilities
//! with schemas, report their status, and accept requests with deadlines.
//!
//! The wire modules read and write the six messages and define the hub's answers. They do not wait,
//! store anything or read the clock, so the hub and its clients share every rule.

pub mod answers;
pub mod codes;
pub mod collaboration;
pub mod common;
pub mod cursor;
pub mod directory;
pub mod examples;
pub mod failure;
pub mod kind;
pub mod message;
pub mod orders;
pub mod place;
pub mod schemas;
pub mod score;
pub mod shape;
pub mod state;
pub mod stream;
mod words;

#[cfg(feature = "server")]
mod bulletin;
#[cfg(feature = "server")]
mod courier;
#[cfg(feature = "server")]
pub mod face;
#[cfg(feature = "server")]
mod feed;
#[cfg(feature = "server")]
mod fitting;
#[cfg(feature = "server")]
mod letter;
#[cfg(feature = "server")]
mod proof;
#[cfg(feature = "server")]
mod record;
#[cfg(feature = "server")]
mod refusals;
#[cfg(feature = "server")]
mod room;
#[cfg(feature = "server")]
mod routes;
#[cfg(feature = "server")]
mod say;
#[cfg(feature = "server")]
mod settings;
#[cfg(feature = "server")]
mod sides;
#[cfg(feature = "server")]
mod translate;
#[cfg(feature = "server")]
mod updates;
#[cfg(feature = "server")]
mod view;

#[cfg(test)]
mod tests;

pub use codes::{Code, Rejected};
pub use failure::Failure;
pub use kind::Kind;
pub use message::{AnyMessage, Message};
#[cfg(feature = "server")]
pub use room::OpenclawState;
pub use score::Score;
#[cfg(feature = "server")]
pub use settings::Settings;

use rialto_core::alias::Protocol;
use rialto_core::time::Millis;

/// The protocol's id.
pub const ID: Protocol = Protocol::new("openclaw");
/// The version that every message of the hub declares (R75).
pub const VERSION: &str = "1.0.0";
/// The largest body, in bytes (C1).
pub const BODY_MAX: usize = 1_048_576;
/// The most decimals of a price or budget, by value (C6).
pub const DECIMALS: usize = 6;
/// The most characters of a name or a capability id. The spec has no limit; the hub needs one.
pub const NAME_MAX: usize = 256;
/// The most characters of an idempotency key.
pub const KEY_MAX: usize = 256;
/// The most characters of a reason, an error message or an error code.
pub const TEXT_MAX: usize = 10_000;
/// The most bytes of a status or reputation message, and of a request or result without its input
/// or output.
pub const MEMBERS_BYTES_MAX: usize = 65_536;
/// The most bytes of an identity, because the hub keeps it in memory. One schema of the largest
/// size fits.
pub const IDENTITY_MAX: usize = 96 << 10;
/// A status update is late if it is written more than this after the status changed (R32).
pub const LATE_AFTER: Millis = Millis::seconds(5);
/// The priority of a request that has none.
pub const PRIORITY: u8 = 5;

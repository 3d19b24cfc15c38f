//! openclaw: Chimera–OpenClaw integration 1.0.0. Content agents announce capabilities with schemas,
//! report how they are, and take requests with deadlines.
//!
//! Here is the wire: how the six messages are told apart, read and written, and what the hub's
//! answers look like. Nothing here waits, stores or knows the time, so the hub and its clients share
//! every rule.

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
pub use message::{Any, Message};
#[cfg(feature = "server")]
pub use room::Room;
pub use score::Score;
#[cfg(feature = "server")]
pub use settings::Settings;

use rialto_core::alias::Protocol;
use rialto_core::time::Millis;

/// The protocol's id.
pub const ID: Protocol = Protocol::new("openclaw");
/// The version every message of ours says it is (R75).
pub const VERSION: &str = "1.0.0";
/// The longest body, in bytes (C1).
pub const BODY_MAX: usize = 1_048_576;
/// Decimals of a price or budget, by value (C6).
pub const DECIMALS: usize = 6;
/// Characters of a name or of the id of a capability. The spec has no limit; the hub needs one.
pub const NAME_MAX: usize = 256;
/// Characters of an idempotency key.
pub const KEY_MAX: usize = 256;
/// Characters of a reason, an error's message or code.
pub const TEXT_MAX: usize = 10_000;
/// Bytes of a status or a reputation, and of a request or result besides input and output.
pub const WORDS_MAX: usize = 65_536;
/// Bytes of an identity: the hub keeps it in memory. One schema of the largest size fits.
pub const IDENTITY_MAX: usize = 96 << 10;
/// A status told later than this after it changed is late (R32).
pub const LATE_AFTER: Millis = Millis::seconds(5);
/// What a request without a priority has.
pub const PRIORITY: u8 = 5;

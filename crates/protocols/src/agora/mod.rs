//! agora: Agora Protocol 1.0. Agents that are their keys ask, offer, accept and deliver in signed
//! envelopes.
//!
//! Here is the wire: how an envelope is read, proven and made, and what the hub's answers look like.
//! Nothing here waits, stores or knows the time, so the hub and its clients share every rule.

pub mod about;
pub mod bridge;
pub mod codes;
pub mod compose;
pub mod directory;
pub mod envelope;
pub mod examples;
pub mod failure;
pub mod inbox;
pub mod kind;
pub mod payload;
pub mod proof;
pub mod receipt;
pub mod thread;

#[cfg(feature = "server")]
mod address;
#[cfg(feature = "server")]
mod carried;
#[cfg(feature = "server")]
mod courier;
#[cfg(feature = "server")]
mod evidence;
#[cfg(feature = "server")]
pub mod face;
#[cfg(feature = "server")]
mod feed;
#[cfg(feature = "server")]
mod intake;
#[cfg(feature = "server")]
mod letter;
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
mod stored;
#[cfg(feature = "server")]
mod token;
#[cfg(feature = "server")]
mod translate;

#[cfg(test)]
mod tests;

pub use bridge::Bridge;
pub use codes::Code;
pub use compose::{Composer, Draft, Signed};
pub use envelope::Envelope;
pub use failure::Failure;
pub use kind::Kind;
pub use proof::{Form, Proof, prove};
pub use receipt::Receipt;
#[cfg(feature = "server")]
pub use room::Room;
#[cfg(feature = "server")]
pub use settings::Settings;

use rialto_core::alias::Protocol;
use rialto_core::time::Millis;

/// The protocol's id.
pub const ID: Protocol = Protocol::new("agora");
/// What every envelope says it is.
pub const VERSION: &str = "agora/1.0";
/// The longest envelope, in bytes (section 2.2).
pub const BODY_MAX: usize = 1_048_576;
/// Characters of an envelope's id.
pub const ID_MAX: usize = 128;
/// How far a timestamp may be from now, either way, unless the operator says otherwise (R5).
pub const WINDOW: Millis = Millis::seconds(60);
/// Decimals of an amount, by value (R52).
pub const DECIMALS: usize = 6;
/// The one currency (R65).
pub const CURRENCY: &str = "credits";

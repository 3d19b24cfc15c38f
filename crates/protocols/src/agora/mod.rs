//! agora: the adapter of Agora Protocol 1.0. Agents are identified by their keys and request,
//! offer, accept and deliver work in signed envelopes.
//!
//! The wire modules read, verify and sign envelopes and define the hub's answers. They do not wait,
//! store anything or read the clock, so the hub and its clients share every rule.

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
pub use compose::{EnvelopeSigner, SignedMessage, UnsignedEnvelope};
pub use envelope::Envelope;
pub use failure::Failure;
pub use kind::MessageType;
pub use proof::{Proof, SignatureForm, prove};
pub use receipt::Receipt;
#[cfg(feature = "server")]
pub use room::AgoraState;
#[cfg(feature = "server")]
pub use settings::Settings;

use rialto_core::alias::Protocol;
use rialto_core::time::Millis;

/// The protocol's id.
pub const ID: Protocol = Protocol::new("agora");
/// The value of `protocol` in every envelope.
pub const VERSION: &str = "agora/1.0";
/// The largest envelope, in bytes (section 2.2).
pub const BODY_MAX: usize = 1_048_576;
/// The most characters of an envelope's id.
pub const ID_MAX: usize = 128;
/// The default of the largest difference between a timestamp and the clock, either way (R5).
pub const WINDOW: Millis = Millis::seconds(60);
/// The most decimals of an amount, by value (R52).
pub const DECIMALS: usize = 6;
/// The only currency (R65).
pub const CURRENCY: &str = "credits";

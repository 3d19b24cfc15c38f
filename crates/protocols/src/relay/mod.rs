//! relay: Chorus Transport 0.4. Agents with addresses send each other envelopes.
//!
//! The wire types need no server, so the hub and its clients read and write the same forms. The
//! protocol shares a word in its name with the registry protocol, and nothing else.

pub mod a2a;
pub mod address;
pub mod bad;
pub mod card;
pub mod codes;
pub mod culture;
pub mod delivery;
pub mod discovery;
pub mod envelope;
pub mod event;
pub mod examples;
pub mod receive;
pub mod register;
pub mod reply;
pub mod send;
pub mod shape;
pub mod skill;
pub mod spoken;
pub mod stream;
pub mod wish;

#[cfg(feature = "server")]
mod attempt;
#[cfg(feature = "server")]
mod courier;
#[cfg(feature = "server")]
pub mod face;
#[cfg(feature = "server")]
mod feed;
#[cfg(feature = "server")]
mod hire;
#[cfg(feature = "server")]
mod letter;
#[cfg(feature = "server")]
mod live;
#[cfg(feature = "server")]
mod loop_guard;
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
mod settings;
#[cfg(feature = "server")]
mod sides;
#[cfg(feature = "server")]
mod state;
#[cfg(feature = "server")]
mod stored;
#[cfg(feature = "server")]
mod trace;
#[cfg(feature = "server")]
mod wording;
#[cfg(feature = "server")]
mod work;

#[cfg(test)]
mod tests;

pub use a2a::EnvelopeFormat;
pub use address::{Address, BadAddress};
pub use bad::InvalidBody;
pub use card::AgentCard;
pub use codes::Code;
pub use delivery::{DeliveryOutcome, DeliveryReport};
pub use envelope::Envelope;
#[cfg(feature = "server")]
pub use room::RelayState;
#[cfg(feature = "server")]
pub use settings::Settings;
pub use shape::Failure;

use rialto_core::alias::Protocol;

/// The protocol's id.
pub const ID: Protocol = Protocol::new("relay");
/// The version of envelopes and of the transport.
pub const VERSION: &str = "0.4";
/// The longest body (R87).
#[cfg(feature = "server")]
const BODY_MAX: usize = 65_536;
/// The alias namespace of skeletons, so that no two agents have confusable names. It is never used
/// for addressing.
#[cfg(feature = "server")]
const CONFUSABLES: Protocol = Protocol::new("relaylooks");

//! The protocols: one folder each, with wire types, authentication, translation, errors and
//! operations.
//!
//! `kit` holds what the protocols share for reading and writing bytes. Each protocol implements
//! `ProtocolAdapter` for the hub, and `ALL` lists the adapters. A new protocol is a new folder and
//! a new entry.

pub mod a2a;
#[cfg(feature = "server")]
pub mod adapter;
pub mod agora;
pub mod clara;
pub mod kit;
pub mod openclaw;
pub mod registry;
pub mod relay;

/// Every protocol the hub speaks.
#[cfg(feature = "server")]
pub const ALL: &[&dyn adapter::ProtocolAdapter] = &[
    &registry::Registry,
    &relay::Relay,
    &agora::Agora,
    &openclaw::Openclaw,
    &clara::Clara,
    &a2a::A2a,
];

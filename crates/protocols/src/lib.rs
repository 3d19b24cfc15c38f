//! One folder per protocol: wire, proof, translation, codes, routes.
//!
//! What the protocols share in reading and writing their bytes lives in `kit`; what each shows the
//! hub is a `Face`, and `ALL` is the list of them. A new protocol is a new folder and a new entry.

pub mod agora;
pub mod clara;
#[cfg(feature = "server")]
pub mod face;
pub mod kit;
pub mod openclaw;
pub mod registry;
pub mod relay;

/// Every protocol the hub speaks.
#[cfg(feature = "server")]
pub const ALL: &[&dyn face::Face] = &[
    &registry::face::Registry,
    &relay::face::Relay,
    &agora::face::Agora,
    &openclaw::face::Openclaw,
    &clara::face::Clara,
];

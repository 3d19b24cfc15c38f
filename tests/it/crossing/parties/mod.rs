//! How each protocol's agents hire and are hired: one file per protocol.

pub mod a2a;
pub mod a2a_server;
mod agora;
mod called;
mod clara;
mod openclaw;
mod registry;
mod relay;

use super::party::Protocol;

/// All protocols of the matrix.
pub const ALL: &[&dyn Protocol] = &[
    &registry::Registry,
    &relay::Relay,
    &openclaw::Openclaw,
    &clara::Clara,
    &agora::Agora,
    &a2a::A2a,
];

/// Parties whose workers are reached in another way.
pub const OTHER_WORKERS: &[&dyn Protocol] = &[&called::Called];

/// The party of a protocol.
#[track_caller]
pub fn of(id: &str) -> &'static dyn Protocol {
    let found = ALL.iter().copied().find(|party| party.id() == id);
    found.unwrap_or_else(|| {
        panic!("{id} is in rialto_protocols::ALL and has no file in tests/it/crossing/parties")
    })
}

/// Every protocol the hub serves must be in the matrix.
#[test]
fn every_protocol_the_hub_speaks_is_a_party() {
    for face in rialto_protocols::ALL {
        assert_eq!(of(face.id().as_str()).id(), face.id().as_str());
    }
    assert_eq!(ALL.len(), rialto_protocols::ALL.len(), "a party is not a protocol");
}

//! Requests of one protocol, converted for agents of all others.
//!
//! The first byte selects the protocol of the request.

use std::collections::HashSet;

use rialto_core::time::Timestamp;
use rialto_protocols::ALL;
use rialto_protocols::adapter::fidelity::{Fate, convert as converted};
use rialto_protocols::kit::ijson;

/// Checks the conversion between all protocols.
pub fn convert(bytes: &[u8]) {
    let Some((which, request)) = bytes.split_first() else { return };
    let from = ALL[usize::from(*which) % ALL.len()].id();
    for to in ALL.iter().map(|face| face.id()) {
        let done = match converted(from, to, request, Timestamp(1_770_000_000_000)) {
            Ok(done) => done,
            Err(why) => {
                assert!(!why.is_empty(), "a refusal without a reason");
                return;
            }
        };
        if from != to {
            let given = ijson::read(done.target.payload.as_bytes());
            assert!(given.is_ok(), "{from} to {to} is not valid JSON: {given:?}");
        }
        let own = done.notes.iter().filter(|note| note.fate != Fate::Defaulted);
        let mut once = HashSet::new();
        for note in own {
            assert!(once.insert(&note.field.name), "{} has two notes", note.field.name);
        }
    }
}

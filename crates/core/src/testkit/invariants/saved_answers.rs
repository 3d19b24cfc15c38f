//! Saved answers: counted exactly, and never more than the rules allow. Also: waiting deliveries
//! hold no text.

use std::collections::BTreeMap;

use crate::changes::Changes;
use crate::idempotency::{GUARANTEED_SIZE, Principal, SavedSize};
use crate::world::World;

/// Panics if the sums are wrong or a limit was exceeded.
pub fn check(changes: &Changes, world: &World) {
    for push in changes.deliveries.values().flatten() {
        assert!(!push.has_text(), "a delivery has the text of its message: {push:?}");
    }
    if changes.idempotency_records.is_empty() {
        return;
    }
    let mut shares: BTreeMap<Principal, SavedSize> = BTreeMap::new();
    for memory in world.idempotency_entries() {
        let share = shares.entry(memory.principal).or_default();
        share.answers += 1;
        share.bytes += memory.bytes;
    }
    let (mut total, mut anonymous) = (SavedSize::default(), SavedSize::default());
    for (principal, share) in &shares {
        assert_eq!(world.saved_for(*principal), *share, "what is saved for {principal:?}");
        let without_key = matches!(principal, Principal::Anonymous(_));
        let sums = [Some(&mut total), without_key.then_some(&mut anonymous)];
        for sum in sums.into_iter().flatten() {
            sum.answers += share.answers;
            sum.bytes += share.bytes;
        }
        let cap = world.rules.saved_per_principal.answers;
        assert!(cap == 0 || share.answers <= cap, "{principal:?} saves {share:?}");
    }
    assert_eq!(world.saved_total(), total, "what is saved in total");
    assert_eq!(world.saved_anonymous(), anonymous, "what is saved without a key");
    let cap = world.rules.saved_total.answers;
    let guaranteed = GUARANTEED_SIZE.answers * shares.len() as u64;
    assert!(cap == 0 || total.answers <= cap + guaranteed, "{total:?} is saved in total");
}

//! Saved answers: what was answered under which idempotency key, kept independently of the hub.

use std::collections::BTreeMap;

use rialto_core::alias::Digest;
use rialto_core::command::SaveAnswer;
use rialto_core::idempotency::SavedAnswer;
use rialto_core::refusal::Refusal;
use rialto_core::time::{Millis, Timestamp};
use rialto_engine::Idempotency;

use crate::ask::Due;

/// How long an answer is saved, defined again here on purpose.
const KEPT_FOR: Millis = Millis::hours(24);

/// Everything that was ever answered under a key.
#[derive(Default)]
pub struct Memory(BTreeMap<Digest, First>);

/// The first request with a key, and its result.
struct First {
    request: Digest,
    kept: SavedAnswer,
    at: Timestamp,
}

impl Memory {
    /// What a repeat must get; `None` for the first request.
    pub fn due(&self, once: Idempotency, now: Timestamp) -> Option<Due> {
        let first = self.known(once.scope, now)?;
        Some(match &first.kept {
            _ if first.request != once.request => Due::Refused(Refusal::SameIdOtherContent),
            SavedAnswer::Done(receipt) => Due::Before(receipt.clone()),
            SavedAnswer::Answer { .. } => Due::StillRunning,
        })
    }

    /// Saves an answer; its time to live counts from the first record of the key.
    pub fn keep(&mut self, order: SaveAnswer, now: Timestamp) {
        let SaveAnswer { idempotency: Idempotency { scope, request, .. }, answer: kept } = order;
        let at = self.known(scope, now).map_or(now, |first| first.at);
        self.0.insert(scope, First { request, kept, at });
    }

    fn known(&self, scope: Digest, now: Timestamp) -> Option<&First> {
        self.0.get(&scope).filter(|first| now < first.at.plus(KEPT_FOR))
    }
}

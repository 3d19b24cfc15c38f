//! A node's collaborations, the answers recorded by idempotency key, and its work history.

use std::sync::Arc;

use rialto_core::alias::Digest;
use rialto_core::money::Credits;
use rialto_core::time::Timestamp;
use rialto_protocols::kit::{ijson, jcs};
use rialto_protocols::openclaw::wire::{Rejection, Request};
use uuid::Uuid;

use super::collaboration::LocalCollaboration;
use crate::agent::direct::bounded_cache::BoundedCache;
use crate::openclaw::presence::{FinishedCollaboration, WorkHistory};

/// The answer to a request.
#[derive(Clone, Debug)]
pub(super) enum RecordedAnswer {
    /// It was accepted; the work is running or has ended.
    Accepted(Arc<LocalCollaboration>),
    /// It was rejected permanently (D12).
    Rejected(Rejection),
}

/// Identifies a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fingerprint {
    /// The same for all repeats.
    pub(super) key: Digest,
    /// The same for all requests with the same content.
    pub(super) content: Digest,
}

/// The node's collaborations and answers.
#[derive(Debug, Default)]
pub(super) struct CollaborationStore {
    collaborations: BoundedCache<Uuid, Arc<LocalCollaboration>>,
    answers: BoundedCache<Digest, (Digest, RecordedAnswer)>,
    record: WorkHistory,
}

impl CollaborationStore {
    /// The answer to an earlier request with the same key, and whether its content was the same.
    pub(super) fn find_answer(
        &mut self,
        name: Fingerprint,
        now: Timestamp,
    ) -> Option<(RecordedAnswer, bool)> {
        let (first, answered) = self.answers.get(&name.key, now)?;
        Some((answered, first == name.content))
    }

    /// A collaboration by its id.
    pub(super) fn find(&mut self, id: Uuid, now: Timestamp) -> Option<Arc<LocalCollaboration>> {
        self.collaborations.get(&id, now)
    }

    /// Records an accepted request.
    pub(super) fn add_accepted(&mut self, collaboration: &Arc<LocalCollaboration>, now: Timestamp) {
        let name = collaboration.fingerprint;
        let answered = RecordedAnswer::Accepted(Arc::clone(collaboration));
        self.answers.insert_running(name.key, (name.content, answered), now);
        self.collaborations.insert_running(collaboration.id, Arc::clone(collaboration), now);
    }

    /// Records a rejected request that would be rejected again.
    pub(super) fn add_rejected(
        &mut self,
        name: Fingerprint,
        why: Rejection,
        bytes: usize,
        now: Timestamp,
    ) {
        let kept = (name.content, RecordedAnswer::Rejected(why));
        self.answers.insert_finished(name.key, kept, bytes, now);
    }

    /// Records the end of a collaboration. Cancelled ones are not counted.
    pub(super) fn finish(
        &mut self,
        collaboration: &LocalCollaboration,
        done: Option<FinishedCollaboration>,
        now: Timestamp,
    ) {
        let result = collaboration.result.get().map_or(0, |over| over.message.len());
        let bytes = collaboration.request.raw.len() + result;
        self.collaborations.finish(&collaboration.id, bytes, now);
        // Both caches share the collaboration.
        self.answers.finish(&collaboration.fingerprint.key, bytes, now);
        if let Some(done) = done {
            self.record.push(done);
        }
    }

    /// The node's work history.
    pub(super) fn history(&self) -> &WorkHistory {
        &self.record
    }
}

impl Fingerprint {
    /// A repeat is recognised by its key or, without a key, by the request's own id (R64, R66).
    pub(super) fn of_request(said: &Request) -> Self {
        let who = said.requester_agent_id.as_bytes();
        let scope = match &said.idempotency_key {
            Some(key) => Digest::of(&[b"key", who, key.as_bytes()]),
            None => Digest::of(&[b"request", who, said.request_id.as_bytes()]),
        };
        Self { key: scope, content: content(said) }
    }
}

/// A digest of the request's content, independent of member order and number format.
fn content(said: &Request) -> Digest {
    let json = ijson::read(said.input_data.as_bytes()).ok();
    let input = json.and_then(|json| jcs::canonicalize(&json).ok());
    let input = input.unwrap_or_else(|| said.input_data.to_string());
    let number = |n: Option<i64>| n.map(|n| n.to_string()).unwrap_or_default();
    Digest::of(&[
        said.capability_id.as_bytes(),
        input.as_bytes(),
        number(said.deadline.map(|at| at.0)).as_bytes(),
        &[said.priority()],
        number(said.budget.map(Credits::micros)).as_bytes(),
    ])
}

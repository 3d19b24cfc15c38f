//! The book of a node: its collaborations, what was answered under which key, and how well it does.

use std::sync::Arc;

use rialto_core::alias::Digest;
use rialto_core::money::Credits;
use rialto_core::time::Timestamp;
use rialto_protocols::kit::{ijson, jcs};
use rialto_protocols::openclaw::message::{Rejection, Request};
use uuid::Uuid;

use super::collaboration::Collaboration;
use crate::agent::direct::shelf::Shelf;
use crate::openclaw::duty::{Done, Record};

/// What was answered to a request.
#[derive(Clone, Debug)]
pub(super) enum Answered {
    /// It is, or was, worked on.
    Accepted(Arc<Collaboration>),
    /// It was rejected for good (D12).
    Rejected(Rejection),
}

/// What a request is known by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Name {
    /// The same for all repeats.
    pub(super) scope: Digest,
    /// The same for all that ask for the same.
    pub(super) content: Digest,
}

/// What stands in the book.
#[derive(Debug, Default)]
pub(super) struct Book {
    collaborations: Shelf<Uuid, Arc<Collaboration>>,
    answers: Shelf<Digest, (Digest, Answered)>,
    record: Record,
}

impl Book {
    /// What was answered to the same request before, and whether that had the same content.
    pub(super) fn known(&mut self, name: Name, now: Timestamp) -> Option<(Answered, bool)> {
        let (first, answered) = self.answers.get(&name.scope, now)?;
        Some((answered, first == name.content))
    }

    /// A collaboration by its id.
    pub(super) fn find(&mut self, id: Uuid, now: Timestamp) -> Option<Arc<Collaboration>> {
        self.collaborations.get(&id, now)
    }

    /// A request is accepted.
    pub(super) fn accepted(&mut self, collaboration: &Arc<Collaboration>, now: Timestamp) {
        let name = collaboration.name;
        let answered = Answered::Accepted(Arc::clone(collaboration));
        self.answers.begin(name.scope, (name.content, answered), now);
        self.collaborations.begin(collaboration.id, Arc::clone(collaboration), now);
    }

    /// A request is rejected, and would be again.
    pub(super) fn rejected(&mut self, name: Name, why: Rejection, bytes: usize, now: Timestamp) {
        let kept = (name.content, Answered::Rejected(why));
        self.answers.keep(name.scope, kept, bytes, now);
    }

    /// A collaboration is over. What was called off counts nowhere.
    pub(super) fn over(
        &mut self,
        collaboration: &Collaboration,
        done: Option<Done>,
        now: Timestamp,
    ) {
        let result = collaboration.result.now().map_or(0, |over| over.message.len());
        let bytes = collaboration.request.raw.len() + result;
        self.collaborations.end(&collaboration.id, bytes, now);
        // Both shelves share it.
        self.answers.end(&collaboration.name.scope, bytes, now);
        if let Some(done) = done {
            self.record.push(done);
        }
    }

    /// How well the node does.
    pub(super) fn record(&self) -> &Record {
        &self.record
    }
}

impl Name {
    /// What makes a repeat one is the key, or without a key the request's own id (R64, R66).
    pub(super) fn of(said: &Request) -> Self {
        let who = said.requester_agent_id.as_bytes();
        let scope = match &said.idempotency_key {
            Some(key) => Digest::of(&[b"key", who, key.as_bytes()]),
            None => Digest::of(&[b"request", who, said.request_id.as_bytes()]),
        };
        Self { scope, content: content(said) }
    }
}

/// What a request asks for: the order of members and the spelling of numbers say nothing.
fn content(said: &Request) -> Digest {
    let json = ijson::read(said.input_data.as_bytes()).ok();
    let input = json.and_then(|json| jcs::canonical(&json).ok());
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

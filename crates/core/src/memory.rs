//! Memory: answers kept so that a repeated request gets the first one again.

use serde::{Deserialize, Serialize};

use crate::alias::Digest;
use crate::draft::Draft;
use crate::id::{AgentId, AnswerId, JobId, OwnerId, TransferId};
use crate::refusal::Refusal;
use crate::time::{Millis, Timestamp};

/// How long an answer is kept.
pub const KEPT_FOR: Millis = Millis::hours(24);

/// One remembered answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Memory {
    pub id: AnswerId,
    /// Of caller, path and key.
    pub scope: Digest,
    /// Of the request's body.
    pub request: Digest,
    pub at: Timestamp,
    pub kept: Kept,
}

/// What is remembered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Kept {
    /// The command has run; the answer had not been written down yet.
    Done(Receipt),
    /// The whole answer, secrets left out.
    Answer { status: u16, body: String },
}

/// What a command did, by reference, so that its answer can be told again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Receipt {
    Nothing,
    Agent(AgentId),
    Owner(OwnerId),
    Job(JobId),
    Transfer(TransferId),
    Refused(Refusal),
}

impl Memory {
    /// When it may be forgotten.
    pub fn until(&self) -> Timestamp {
        self.at.plus(KEPT_FOR)
    }
}

/// Writes an answer down, over the receipt that stood there.
pub fn remember(draft: &mut Draft<'_>, scope: Digest, request: Digest, kept: Kept) {
    // The time is counted from the receipt: ids then grow with age, and forgetting goes by ids.
    let known = draft.world.memory(scope, draft.now).map(|memory| (memory.id, memory.at));
    let (id, at) = known.unwrap_or_else(|| {
        let id = draft.next.answer;
        draft.next.answer = id.next();
        (id, draft.now)
    });
    draft.memories.push(Memory { id, scope, request, at, kept });
}

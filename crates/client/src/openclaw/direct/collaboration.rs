//! A collaboration of one node: its request and its result.

use std::sync::Arc;
use std::time::Duration;

use rialto_core::time::{Millis, Timestamp};
use rialto_protocols::kit::raw_json;
use rialto_protocols::openclaw::wire::answers::CollaborationView;
use rialto_protocols::openclaw::wire::words::State;
use rialto_protocols::openclaw::wire::{
    self, CollaborationResult, CommonMembers, Message, Request, Response, ResponseAnswer,
    ResultError, ResultOutcome as End,
};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::store::Fingerprint;
use crate::agent::direct::bounded_cache::RETENTION;
use crate::agent::direct::journal::Entry;
use crate::agent::direct::shared_result::SharedResult;
use crate::agent::{Job, Outcome};
use crate::clock;
use crate::openclaw::handler::WorkError;
use crate::openclaw::presence::FinishedCollaboration;

/// An accepted request.
#[derive(Debug)]
pub(super) struct LocalCollaboration {
    pub(super) id: Uuid,
    /// Identifies the request.
    pub(super) fingerprint: Fingerprint,
    pub(super) responder: Uuid,
    pub(super) request: Message<Request>,
    pub(super) accepted_at: Timestamp,
    pub(super) result: SharedResult<CollaborationEnd>,
}

/// The journal's note of a collaboration.
#[derive(Serialize, Deserialize)]
struct Note {
    id: Uuid,
    request: String,
    accepted_at: Timestamp,
    over: Option<(State, String)>,
}

/// How a collaboration ended.
#[derive(Clone, Debug)]
pub(super) struct CollaborationEnd {
    pub(super) state: State,
    /// The result message.
    pub(super) message: Arc<str>,
}

impl LocalCollaboration {
    /// Restores a collaboration of an earlier run of this program.
    pub(super) fn restore(entry: &Entry, responder: Uuid) -> Option<Self> {
        let note: Note = serde_json::from_str(entry.note.as_deref()?).ok()?;
        let request: Message<Request> = wire::read(note.request.as_bytes()).ok()?;
        let result = SharedResult::new();
        if let Some((state, message)) = note.over {
            result.complete(CollaborationEnd { state, message: message.into() });
        }
        let (name, accepted_at) = (Fingerprint::of_request(&request.body), note.accepted_at);
        Some(Self { id: note.id, fingerprint: name, responder, request, accepted_at, result })
    }

    /// The journal entry: that it started, or how it ended.
    pub(super) fn entry(&self, over: Option<&CollaborationEnd>) -> Entry {
        let note = Note {
            id: self.id,
            request: self.request.raw.to_string(),
            accepted_at: self.accepted_at,
            over: over.map(|over| (over.state, over.message.to_string())),
        };
        Entry {
            key: self.fingerprint.key,
            content: self.fingerprint.content,
            expires_at: self.accepted_at.plus(RETENTION),
            is_finished: over.is_some(),
            note: serde_json::to_string(&note).ok(),
        }
    }

    /// The job for the handlers.
    pub(super) fn job(&self) -> Job {
        let said = &self.request.body;
        Job {
            id: self.id.to_string(),
            epoch: 0,
            skill: said.capability_id.clone(),
            input: said.input_data.to_string(),
            requester: said.requester_agent_id.to_string(),
            budget: said.budget.unwrap_or_default(),
            deadline: said.deadline,
            time_limit: Duration::MAX,
        }
    }

    /// The response to a request for it, with that request's own ids (R65).
    pub(super) fn response(&self, to: &Request) -> Response {
        Response {
            request_id: to.request_id,
            responder_agent_id: self.responder,
            answer: ResponseAnswer::Accepted {
                collaboration_id: self.id,
                estimated_completion: None,
            },
            correlation_id: to.correlation_id,
            timestamp: clock::now(),
            result: self.result.get().map(|over| over.message.as_ref().into()),
        }
    }

    /// Ends it with the outcome of the work, and the entry for the work history. No outcome means
    /// that the deadline has passed (R82).
    pub(super) fn finish(
        &self,
        outcome: Option<Outcome>,
    ) -> (CollaborationEnd, FinishedCollaboration) {
        let now = clock::now();
        let (state, end) = match outcome {
            Some(Outcome::Done(output)) => {
                (State::Completed, End::Completed { output_data: output.into() })
            }
            Some(outcome) => (State::Failed, End::Failed(failure_of(outcome))),
            None => (State::Failed, End::Failed(ResultError::deadline_exceeded())),
        };
        let took = now.since(self.accepted_at);
        let ok = state == State::Completed;
        let on_time =
            ok && FinishedCollaboration::is_on_time(now, self.request.body.deadline, None);
        (
            self.end_with(state, end, now),
            FinishedCollaboration { collaboration_id: self.id, ok, on_time, took },
        )
    }

    /// Cancels it; `None` if it had ended.
    pub(super) fn cancel(&self, reason: Option<String>) -> Option<CollaborationEnd> {
        let over = self.end_with(State::Cancelled, End::Cancelled { reason }, clock::now());
        self.result.complete(over.clone()).map(|_| over)
    }

    fn end_with(&self, state: State, outcome: End, now: Timestamp) -> CollaborationEnd {
        let Millis(took) = now.since(self.accepted_at);
        let message = CollaborationResult {
            collaboration_id: self.id,
            request_id: self.request.body.request_id,
            responder_agent_id: self.responder,
            outcome,
            execution_duration_ms: Some(took),
            completed_at: Some(now),
            correlation_id: self.request.body.correlation_id,
            timestamp: now,
        };
        CollaborationEnd { state, message: message.write().into() }
    }

    /// The view for its two parties.
    pub(super) fn view(&self) -> Vec<u8> {
        let said = &self.request.body;
        let over = self.result.get();
        let state = over.as_ref().map_or(State::Running, |over| over.state);
        let response = Response { result: None, ..self.response(said) };
        let common = CommonMembers { correlation_id: said.correlation_id, timestamp: clock::now() };
        let view = CollaborationView::new(
            common,
            Some(self.id.to_string()),
            state,
            raw_json::verbatim(&self.request.raw),
            Some(raw_json::verbatim(&response.write())),
            over.map(|over| raw_json::verbatim(&over.message)),
        );
        serde_json::to_vec(&view).unwrap_or_default()
    }
}

/// Why there is no output. A declined job may be requested again; a failed one would fail again.
fn failure_of(outcome: Outcome) -> ResultError {
    match outcome {
        Outcome::Declined(why) => WorkError::transient("DECLINED", why).into(),
        Outcome::InvalidInput(why) => WorkError::permanent("INVALID_INPUT", why).into(),
        Outcome::Failed(why) | Outcome::Done(why) => {
            WorkError::permanent("EXECUTION_ERROR", why).into()
        }
    }
}

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

use crate::agent::{Dialogue, Job, Outcome};
use crate::clock;
use crate::openclaw::handler::WorkError;
use crate::openclaw::presence::FinishedCollaboration;
use crate::worker::journal::Entry;
use crate::worker::request_log::{PeerRequest, TrackedRequest};

/// An accepted request.
#[derive(Debug)]
pub(super) struct LocalCollaboration {
    pub(super) id: Uuid,
    pub(super) responder: Uuid,
    pub(super) request: Message<Request>,
    pub(super) accepted_at: Timestamp,
}

/// An accepted request and its result.
pub(super) type TrackedCollaboration = TrackedRequest<LocalCollaboration>;

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

impl PeerRequest for LocalCollaboration {
    type Answer = CollaborationEnd;

    /// Requesters that got an acceptance wait for a result, and need not ask again.
    const RESUMES: bool = true;

    fn note(&self, end: Option<&CollaborationEnd>) -> Option<String> {
        let note = Note {
            id: self.id,
            request: self.request.raw.to_string(),
            accepted_at: self.accepted_at,
            over: end.map(|end| (end.state, end.message.to_string())),
        };
        serde_json::to_string(&note).ok()
    }

    fn bytes(&self, end: &CollaborationEnd) -> usize {
        self.request.raw.len() + end.message.len()
    }
}

impl LocalCollaboration {
    /// Restores a collaboration of an earlier run of this program.
    pub(super) fn restore(
        entry: &Entry,
        responder: Uuid,
    ) -> Option<(Self, Option<CollaborationEnd>)> {
        let note: Note = serde_json::from_str(entry.note.as_deref()?).ok()?;
        let request: Message<Request> = wire::read(note.request.as_bytes()).ok()?;
        let end =
            note.over.map(|(state, message)| CollaborationEnd { state, message: message.into() });
        let (id, accepted_at) = (note.id, note.accepted_at);
        Some((Self { id, responder, request, accepted_at }, end))
    }

    /// The job for the handlers.
    pub(super) fn job(&self) -> Job {
        let request = &self.request.body;
        Job {
            id: self.id.to_string(),
            epoch: 0,
            skill: request.capability_id.clone(),
            input: request.input_data.to_string(),
            requester: request.requester_agent_id.to_string(),
            budget: request.budget.unwrap_or_default(),
            deadline: request.deadline,
            time_limit: Duration::MAX,
            meta: None,
            dialogue: Dialogue::default(),
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

    /// Its end if it is cancelled now.
    pub(super) fn cancelled(&self, reason: Option<String>) -> CollaborationEnd {
        self.end_with(State::Cancelled, End::Cancelled { reason }, clock::now())
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
}

impl TrackedCollaboration {
    /// The response to a request for it, with that request's own ids (R65).
    pub(super) fn response(&self, to: &Request) -> Response {
        let LocalCollaboration { id, responder, .. } = self.request;
        Response {
            request_id: to.request_id,
            responder_agent_id: responder,
            answer: ResponseAnswer::Accepted { collaboration_id: id, estimated_completion: None },
            correlation_id: to.correlation_id,
            timestamp: clock::now(),
            result: self.answer.get().map(|end| end.message.as_ref().into()),
        }
    }

    /// The view for its two parties.
    pub(super) fn view(&self) -> Vec<u8> {
        let Message { raw, body: request, .. } = &self.request.request;
        let end = self.answer.get();
        let state = end.as_ref().map_or(State::Running, |end| end.state);
        let response = Response { result: None, ..self.response(request) };
        let common =
            CommonMembers { correlation_id: request.correlation_id, timestamp: clock::now() };
        let view = CollaborationView::new(
            common,
            Some(self.request.id.to_string()),
            state,
            raw_json::verbatim(raw),
            Some(raw_json::verbatim(&response.write())),
            end.map(|end| raw_json::verbatim(&end.message)),
        );
        serde_json::to_vec(&view).unwrap_or_default()
    }
}

/// Why there is no output. A declined job may be requested again; a failed one would fail again.
fn failure_of(outcome: Outcome) -> ResultError {
    match outcome {
        Outcome::Declined(why) => WorkError::transient("DECLINED", why).into(),
        Outcome::InvalidInput(why) => WorkError::permanent("INVALID_INPUT", why).into(),
        Outcome::Refused(why) => WorkError::permanent("POLICY_VIOLATION", why).into(),
        Outcome::Failed(why) | Outcome::Done(why) => {
            WorkError::permanent("EXECUTION_ERROR", why).into()
        }
    }
}

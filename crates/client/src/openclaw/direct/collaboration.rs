//! A collaboration of one node: its request and its result.

use std::sync::Arc;
use std::time::Duration;

use rialto_core::time::{Millis, Timestamp};
use rialto_protocols::kit::raw_json;
use rialto_protocols::openclaw::collaboration::View;
use rialto_protocols::openclaw::common::Common;
use rialto_protocols::openclaw::message::{
    self, Answer, Failed, Message, Outcome as End, Output, Request, Response,
};
use rialto_protocols::openclaw::state::State;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::store::Name;
use crate::agent::direct::journal::Entry;
use crate::agent::direct::shared_result::Ongoing;
use crate::agent::direct::bounded_cache::LIFE;
use crate::agent::{Job, Outcome};
use crate::clock;
use crate::openclaw::presence::Done;
use crate::openclaw::handler::Broken;

/// An accepted request.
#[derive(Debug)]
pub(super) struct Collaboration {
    pub(super) id: Uuid,
    /// Identifies the request.
    pub(super) name: Name,
    pub(super) responder: Uuid,
    pub(super) request: Message<Request>,
    pub(super) accepted_at: Timestamp,
    pub(super) result: Ongoing<Over>,
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
pub(super) struct Over {
    pub(super) state: State,
    /// The result message.
    pub(super) message: Arc<str>,
}

impl Collaboration {
    /// Restores a collaboration of an earlier run of this program.
    pub(super) fn found(entry: &Entry, responder: Uuid) -> Option<Self> {
        let note: Note = serde_json::from_str(entry.note.as_deref()?).ok()?;
        let request: Message<Request> = message::read(note.request.as_bytes()).ok()?;
        let result = Ongoing::new();
        if let Some((state, message)) = note.over {
            result.end(Over { state, message: message.into() });
        }
        let (name, accepted_at) = (Name::of(&request.said), note.accepted_at);
        Some(Self { id: note.id, name, responder, request, accepted_at, result })
    }

    /// The journal entry: that it started, or how it ended.
    pub(super) fn entry(&self, over: Option<&Over>) -> Entry {
        let note = Note {
            id: self.id,
            request: self.request.raw.to_string(),
            accepted_at: self.accepted_at,
            over: over.map(|over| (over.state, over.message.to_string())),
        };
        Entry {
            scope: self.name.scope,
            content: self.name.content,
            until: self.accepted_at.plus(LIFE),
            over: over.is_some(),
            note: serde_json::to_string(&note).ok(),
        }
    }

    /// The job for the handlers.
    pub(super) fn job(&self) -> Job {
        let said = &self.request.said;
        Job {
            id: self.id.to_string(),
            turn: 0,
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
            answer: Answer::Accepted { collaboration_id: self.id, estimated_completion: None },
            correlation_id: to.correlation_id,
            timestamp: clock::now(),
            result: self.result.now().map(|over| over.message.as_ref().into()),
        }
    }

    /// Ends it with the outcome of the work, and the entry for the work history. No outcome means
    /// that the deadline has passed (R82).
    pub(super) fn ending(&self, outcome: Option<Outcome>) -> (Over, Done) {
        let now = clock::now();
        let (state, end) = match outcome {
            Some(Outcome::Done(output)) => {
                (State::Completed, End::Completed { output_data: output.into() })
            }
            Some(outcome) => (State::Failed, End::Failed(failed(outcome))),
            None => (State::Failed, End::Failed(Failed::deadline_exceeded())),
        };
        let took = now.since(self.accepted_at);
        let ok = state == State::Completed;
        let on_time = ok && Done::is_on_time(now, self.request.said.deadline, None);
        (self.over(state, end, now), Done { collaboration_id: self.id, ok, on_time, took })
    }

    /// Cancels it; `None` if it had ended.
    pub(super) fn cancel(&self, reason: Option<String>) -> Option<Over> {
        let over = self.over(State::Cancelled, End::Cancelled { reason }, clock::now());
        self.result.end(over.clone()).map(|_| over)
    }

    fn over(&self, state: State, outcome: End, now: Timestamp) -> Over {
        let Millis(took) = now.since(self.accepted_at);
        let message = Output {
            collaboration_id: self.id,
            request_id: self.request.said.request_id,
            responder_agent_id: self.responder,
            outcome,
            execution_duration_ms: Some(took),
            completed_at: Some(now),
            correlation_id: self.request.said.correlation_id,
            timestamp: now,
        };
        Over { state, message: message.write().into() }
    }

    /// The view for its two parties.
    pub(super) fn view(&self) -> Vec<u8> {
        let said = &self.request.said;
        let over = self.result.now();
        let state = over.as_ref().map_or(State::Running, |over| over.state);
        let response = Response { result: None, ..self.response(said) };
        let common = Common { correlation_id: said.correlation_id, timestamp: clock::now() };
        let view = View::new(
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
fn failed(outcome: Outcome) -> Failed {
    match outcome {
        Outcome::Declined(why) => Broken::for_now("DECLINED", why).into(),
        Outcome::Unfit(why) => Broken::for_good("INVALID_INPUT", why).into(),
        Outcome::Failed(why) | Outcome::Done(why) => {
            Broken::for_good("EXECUTION_ERROR", why).into()
        }
    }
}

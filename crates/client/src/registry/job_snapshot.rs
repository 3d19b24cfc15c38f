//! The state of a job: done, failed, or pending.

use rialto_core::money::Credits;
use rialto_core::time::Timestamp;
use rialto_protocols::kit::fields::Malformed;
use rialto_protocols::kit::ijson;
use rialto_protocols::registry::wire::{JobStatus, ResultPost};
use uuid::Uuid;

use super::server::ServerResponse;
use crate::call::CallError;

/// The state of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobSnapshot {
    /// The job's id.
    pub job_id: Uuid,
    /// The worker, if there is one.
    pub agent_id: Option<Uuid>,
    /// The outcome.
    pub outcome: JobOutcome,
    /// The amount paid, or to be paid.
    pub cost: Credits,
    /// How long it took, in milliseconds.
    pub took_ms: i64,
    /// The time of this state, by its writer's clock.
    pub at: Option<Timestamp>,
}

/// The outcome of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobOutcome {
    /// Not finished yet.
    Pending,
    /// Success: a JSON object, as text.
    Done(String),
    /// It failed permanently.
    Failed {
        /// One of the protocol's codes; `None` for a cancelled job.
        code: Option<String>,
        /// The error message, for people to read.
        message: String,
    },
}

impl JobSnapshot {
    /// Whether the job has ended.
    pub fn is_finished(&self) -> bool {
        self.outcome != JobOutcome::Pending
    }

    /// Parses the response to a job: a result under any status, or else a refusal.
    pub(super) fn read(reply: &ServerResponse, job_id: Uuid) -> Result<Self, CallError> {
        let is_result = match reply.status {
            200..=299 => true,
            // For an agent's unusable response, the hub creates a result; refusals have an `error`.
            502 => ijson::read(&reply.body)
                .is_ok_and(|json| json.get("status").is_some() && json.get("error").is_none()),
            _ => false,
        };
        if !is_result {
            return Err(reply.refusal());
        }
        let unreadable = |bad: Malformed| CallError::Unreadable(bad.message);
        let result = ResultPost::read(&reply.body).map_err(unreadable)?;
        if result.job_id.is_some_and(|id| id != job_id) {
            return Err(CallError::Unreadable("the answer is about another job".to_owned()));
        }
        let outcome = match (result.status, result.output_data) {
            (JobStatus::Success, output) => {
                JobOutcome::Done(output.unwrap_or_else(|| "{}".to_owned()))
            }
            (JobStatus::Failure, _) => JobOutcome::Failed {
                code: result.error_code,
                message: result.error_message.unwrap_or_else(|| "it gave no reason".to_owned()),
            },
            (JobStatus::Pending, _) => JobOutcome::Pending,
        };
        Ok(Self {
            job_id,
            agent_id: result.agent_id,
            outcome,
            cost: result.execution_cost.unwrap_or(Credits::ZERO),
            took_ms: result.execution_time_ms,
            at: written_at(&reply.body),
        })
    }
}

fn written_at(body: &[u8]) -> Option<Timestamp> {
    let json = ijson::read(body).ok()?;
    let fields = rialto_protocols::kit::fields::Fields::read(&json, "").ok()?;
    fields.time("timestamp_utc").ok().flatten()
}

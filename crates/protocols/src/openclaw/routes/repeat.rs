//! Idempotent requests: which requests are repeats, and the saved answer (R64–R66).

use std::sync::Arc;

use rialto_core::alias::Digest;
use rialto_core::command::{Command, JobRef};
use rialto_core::idempotency::{IdempotencyRecord, Receipt, SavedAnswer};
use rialto_core::job::{Job, Requester};
use uuid::Uuid;

use super::ask::{PendingRequest, RequestOutcome};
use super::{about, failed};
use crate::adapter::HubContext;
use crate::kit::ijson;
use crate::kit::object::ObjectWriter;
use crate::openclaw::message::{Rejection, Request};
use crate::openclaw::refusals::{self, RejectionContext};
use crate::openclaw::say::ErrorResponse;
use crate::openclaw::state::State as Stands;
use crate::openclaw::{ID, common, view};

/// The idempotency scope: the key, or without a key the request's own id (R64, R66).
pub fn idempotency_scope(requester: &Requester, said: &Request) -> Digest {
    let who = match requester {
        Requester::Agent(agent) => agent.0.to_string(),
        Requester::Guest(name) => name.clone(),
    };
    match &said.idempotency_key {
        Some(key) => Digest::of(&[b"openclaw key", who.as_bytes(), key.as_bytes()]),
        None => Digest::of(&[b"openclaw request", who.as_bytes(), said.request_id.as_bytes()]),
    }
}

/// Whether a repeat starts anew: the earlier rejection was for a lack that can pass (D12).
pub fn is_retryable(job: &Job) -> bool {
    view::collaboration_state(job) == Stands::Rejected && view::rejection(job).code.retryable()
}

/// The saved outcome; `None` if it can no longer be produced.
pub async fn saved_outcome(
    context: &HubContext,
    memory: &IdempotencyRecord,
    id: Option<Uuid>,
) -> Result<Option<RequestOutcome>, ErrorResponse> {
    Ok(match &memory.answer {
        SavedAnswer::Answer { body, .. } => remembered(body),
        SavedAnswer::Done(Receipt::Job(job)) => {
            let job =
                context.engine.load_job(*job).await.map_err(|bad| failed(context, &bad, id))?;
            job.map(RequestOutcome::Job)
        }
        SavedAnswer::Done(Receipt::Refused(refusal)) => {
            let now = context.engine.now();
            let rejection = context.engine.with_world(|world| {
                refusals::rejection(refusal, RejectionContext { world, agent: None, now })
            });
            Some(RequestOutcome::Rejected(rejection.map_err(|bad| about(context, bad, id))?, None))
        }
        SavedAnswer::Done(_) => None,
    })
}

/// A job under the request's own id that is older than the idempotency records.
pub async fn find_earlier_job(
    context: &HubContext,
    asking: &PendingRequest,
    by_key: bool,
) -> Result<Option<Arc<Job>>, ErrorResponse> {
    if by_key {
        return Ok(None);
    }
    let wanted = JobRef::Foreign { origin: ID, id: asking.name.clone() };
    let found = context.engine.find_job(&wanted).await;
    let found = found.map_err(|bad| failed(context, &bad, asking.message.correlation_id))?;
    Ok(found.filter(|job| job.requester == asking.requester))
}

/// Saves a rejection for repeats. A rejected request has no effect, so losing the record is
/// harmless.
pub async fn save_rejection(
    context: &HubContext,
    asking: &PendingRequest,
    rejection: &Rejection,
    by: Option<Uuid>,
) {
    let body = ObjectWriter::new()
        .raw("rejection_reason", &rejection.write())
        .maybe_uuid("by", by)
        .finish();
    let order = asking.idempotency.into_record(SavedAnswer::Answer { status: 200, body });
    if let Err(failure) = context.engine.run(Command::SaveAnswer(Box::new(order))).await {
        tracing::warn!(%failure, "storing a rejection failed");
    }
}

fn remembered(body: &str) -> Option<RequestOutcome> {
    let json = ijson::read(body.as_bytes()).ok()?;
    let rejection = Rejection::read(json.get("rejection_reason")?.raw())?;
    let by = json.get("by").and_then(common::read_uuid);
    Some(RequestOutcome::Rejected(rejection, by))
}

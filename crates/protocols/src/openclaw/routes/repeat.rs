//! Idempotent requests: which requests are repeats, and the saved answer (R64–R66).

use std::sync::Arc;

use rialto_core::alias::Digest;
use rialto_core::command::{Command, JobRef};
use rialto_core::job::{Job, Requester};
use rialto_core::idempotency::{Kept, Memory, Receipt};
use uuid::Uuid;

use super::ask::{Asking, Reply};
use super::{about, failed};
use crate::adapter::Floor;
use crate::kit::ijson;
use crate::kit::object::Object;
use crate::openclaw::message::{Rejection, Request};
use crate::openclaw::refusals::{self, Asked};
use crate::openclaw::say::Refused;
use crate::openclaw::state::State as Stands;
use crate::openclaw::{ID, common, view};

/// The idempotency scope: the key, or without a key the request's own id (R64, R66).
pub fn scope(requester: &Requester, said: &Request) -> Digest {
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
pub fn may_be_asked_again(job: &Job) -> bool {
    view::state(job) == Stands::Rejected && view::rejection(job).code.retryable()
}

/// The saved outcome; `None` if it can no longer be produced.
pub async fn again(
    floor: &Floor,
    memory: &Memory,
    id: Option<Uuid>,
) -> Result<Option<Reply>, Refused> {
    Ok(match &memory.kept {
        Kept::Answer { body, .. } => remembered(body),
        Kept::Done(Receipt::Job(job)) => {
            let job = floor.engine.job(*job).await.map_err(|bad| failed(floor, &bad, id))?;
            job.map(Reply::Job)
        }
        Kept::Done(Receipt::Refused(refusal)) => {
            let now = floor.engine.now();
            let rejection = floor
                .engine
                .look(|world| refusals::rejection(refusal, Asked { world, agent: None, now }));
            Some(Reply::No(rejection.map_err(|bad| about(floor, bad, id))?, None))
        }
        Kept::Done(_) => None,
    })
}

/// A job under the request's own id that is older than the idempotency records.
pub async fn known_by_name(
    floor: &Floor,
    asking: &Asking,
    by_key: bool,
) -> Result<Option<Arc<Job>>, Refused> {
    if by_key {
        return Ok(None);
    }
    let wanted = JobRef::Foreign { origin: ID, id: asking.name.clone() };
    let found = floor.engine.find_job(&wanted).await;
    let found = found.map_err(|bad| failed(floor, &bad, asking.message.correlation_id))?;
    Ok(found.filter(|job| job.requester == asking.requester))
}

/// Saves a rejection for repeats. A rejected request has no effect, so losing the record is
/// harmless.
pub async fn remember(floor: &Floor, asking: &Asking, rejection: &Rejection, by: Option<Uuid>) {
    let body =
        Object::new().raw("rejection_reason", &rejection.write()).maybe_id("by", by).finish();
    let order = asking.once.keeping(Kept::Answer { status: 200, body });
    if let Err(failure) = floor.engine.run(Command::Remember(Box::new(order))).await {
        tracing::warn!(%failure, "storing a rejection failed");
    }
}

fn remembered(body: &str) -> Option<Reply> {
    let json = ijson::read(body.as_bytes()).ok()?;
    let rejection = Rejection::read(json.get("rejection_reason")?.raw())?;
    let by = json.get("by").and_then(common::uuid);
    Some(Reply::No(rejection, by))
}

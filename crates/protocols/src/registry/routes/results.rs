//! Results: sent with the worker's key, or to the callback URL made for the job.

use axum::extract::State;
use rialto_core::answer::Answer;
use rialto_core::command::JobRef;
use rialto_core::id::AgentId;
use rialto_core::job::Job;
use rialto_core::money::Credits;
use rialto_engine::Idempotency;
use serde::Serialize;
use serde_json::value::RawValue;

use super::Answered;
use super::jobs::by_either_name;
use crate::adapter::Floor;
use crate::kit::fields::Malformed;
use crate::registry::codes::{Context, Failure, failed, json, unread};
use crate::registry::proof::{Anyone, Known, Named, Sent, differs};
use crate::registry::wire::ResultPost;
use crate::registry::{ID, examples, shape, token, translate};

#[derive(Serialize)]
struct Accepted<'a> {
    status: &'static str,
    job_id: &'a str,
    paid: Box<RawValue>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
}

/// `POST /results`: the assigned agent reports its job's result (§3.4).
pub async fn post(State(floor): State<Floor>, known: Known, sent: Sent) -> Answered {
    let wire = ResultPost::read(&sent.0).map_err(unread(examples::RESULT))?;
    let missing =
        || Malformed { field: "/job_id".to_owned(), message: "job_id is required".to_owned() };
    let id = wire.job_id.ok_or_else(missing)?;
    let named = wire.agent_id.map(|id| id.to_string());
    let by = floor.engine.look(|world| known.agent(world, named.as_deref()))?;
    let job = by_either_name(&floor, id).await?;
    accept(&floor, wire, &job, by, known.0.once).await
}

/// `POST /callbacks/{token}`: the same, from the holder of the job's callback URL.
pub async fn call_back(
    State(floor): State<Floor>,
    anyone: Anyone,
    Named(text): Named,
    sent: Sent,
) -> Answered {
    let token = token::read(floor.engine.secret(), &text).ok_or_else(Failure::not_found)?;
    let found = floor.engine.find_job(&JobRef::Uuid(token.job)).await;
    let found = found.map_err(|failure| failed(failure, Context::Job))?;
    let job = found.filter(|job| job.epoch == token.epoch).ok_or_else(Failure::not_found)?;
    let worker = job.worker().ok_or_else(Failure::not_found)?;
    let wire = ResultPost::read(&sent.0).map_err(unread(examples::RESULT))?;
    let named = wire.agent_id.map(|id| id.to_string());
    let is_worker =
        |name: &str| floor.engine.look(|world| world.agent_named(ID, name)) == Some(worker);
    if named.is_some_and(|name| !is_worker(&name)) {
        return Err(differs());
    }
    let own = [job.foreign.clone(), job.uuid.to_string()];
    if wire.job_id.is_some_and(|id| !own.contains(&id.to_string())) {
        return Err(Failure::field("/job_id", "job_id is not the job of this callback URL"));
    }
    accept(&floor, wire, &job, worker, anyone.once).await
}

/// All results are accepted here, whichever way they came.
async fn accept(
    floor: &Floor,
    wire: ResultPost,
    job: &Job,
    by: AgentId,
    once: Option<Idempotency>,
) -> Answered {
    floor.engine.seen(by);
    let command = translate::report(wire, JobRef::Id(job.id), by);
    let ran = floor.engine.run_once(command, once).await;
    let Answer::Job { job: now, .. } = ran.map_err(|failure| failed(failure, Context::Job))?.answer
    else {
        return Err(Failure::not_found());
    };
    let warnings = floor.engine.look(|world| shape::warnings(world, &now));
    let paid = shape::money(now.report.as_ref().map_or(Credits::ZERO, |report| report.paid));
    // A bridged worker knows the job by the hub's id.
    let uuid = job.uuid.to_string();
    let job_id = if job.origin == ID { &job.foreign } else { &uuid };
    Ok(json(200, &Accepted { status: "accepted", job_id, paid, warnings }))
}

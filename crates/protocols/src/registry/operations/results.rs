//! Results: sent with the worker's key, or to the callback URL made for the job.

use axum::extract::State;
use rialto_core::answer::Answer;
use rialto_core::command::JobRef;
use rialto_core::id::AgentId;
use rialto_core::job::Job;
use rialto_core::money::Credits;
use rialto_engine::Idempotency;
use schemars::JsonSchema;
use serde::Serialize;

use super::HandlerResult;
use super::jobs::find_job_by_any_id;
use crate::adapter::caller::{KnownCaller, OptionalCaller};
use crate::adapter::request::{BodyBytes, PathParam};
use crate::kit::raw_json::Number;
use crate::registry::ID;
use crate::registry::RegistryContext;
use crate::registry::auth::{acting_agent, identity_mismatch, read_callback_token};
use crate::registry::errors::{
    Failure, RESULT_EXAMPLE, RequestKind, from_engine, json_response, with_body_example,
};
use crate::registry::translate::{format_amount, read_warnings, report_result};
use crate::registry::wire::ResultPost;

#[derive(Serialize, JsonSchema)]
pub struct ResultAnswer<'a> {
    status: &'static str,
    job_id: &'a str,
    paid: Number,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
}

/// `POST /results`: the assigned agent reports its job's result (§3.4).
pub async fn post_result(
    State(context): State<RegistryContext>,
    known: KnownCaller,
    sent: BodyBytes,
) -> HandlerResult {
    let wire = ResultPost::read(&sent.0).map_err(with_body_example(RESULT_EXAMPLE))?;
    let missing = || Failure::field("/job_id", "job_id is required");
    let id = wire.job_id.ok_or_else(missing)?;
    let named = wire.agent_id.map(|id| id.to_string());
    let by = context.engine.with_world(|world| acting_agent(known, world, named.as_deref()))?;
    let job = find_job_by_any_id(&context, id).await?;
    accept(&context, wire, &job, by, known.0.idempotency).await
}

/// `POST /callbacks/{token}`: the same, from the holder of the job's callback URL.
pub async fn post_callback(
    State(context): State<RegistryContext>,
    anyone: OptionalCaller,
    PathParam(text): PathParam,
    sent: BodyBytes,
) -> HandlerResult {
    let token =
        read_callback_token(context.engine.hub_secret(), &text).ok_or_else(Failure::not_found)?;
    let found = context.engine.find_job(&JobRef::Uuid(token.job)).await;
    let found = found.map_err(|failure| from_engine(failure, RequestKind::Job))?;
    let job = found.filter(|job| job.epoch == token.epoch).ok_or_else(Failure::not_found)?;
    let worker = job.worker().ok_or_else(Failure::not_found)?;
    let wire = ResultPost::read(&sent.0).map_err(with_body_example(RESULT_EXAMPLE))?;
    let named = wire.agent_id.map(|id| id.to_string());
    let is_worker = |name: &str| {
        context.engine.with_world(|world| world.agent_by_alias(ID, name)) == Some(worker)
    };
    if named.is_some_and(|name| !is_worker(&name)) {
        return Err(identity_mismatch());
    }
    let own = [job.request.foreign_id.clone(), job.uuid.to_string()];
    if wire.job_id.is_some_and(|id| !own.contains(&id.to_string())) {
        return Err(Failure::field("/job_id", "job_id is not the job of this callback URL"));
    }
    accept(&context, wire, &job, worker, anyone.idempotency).await
}

/// All results are accepted here, whichever way they came.
async fn accept(
    context: &RegistryContext,
    wire: ResultPost,
    job: &Job,
    by: AgentId,
    once: Option<Idempotency>,
) -> HandlerResult {
    context.engine.record_seen(by);
    let command = report_result(wire, JobRef::Id(job.id), by).into();
    let ran = context.engine.run_once(command, once).await;
    let Answer::Job { job: now, .. } =
        ran.map_err(|failure| from_engine(failure, RequestKind::Job))?.answer
    else {
        return Err(Failure::not_found());
    };
    let warnings = context.engine.with_world(|world| read_warnings(world, &now));
    let paid = format_amount(now.result.as_ref().map_or(Credits::ZERO, |report| report.paid));
    // A bridged worker knows the job by the hub's id.
    let uuid = job.uuid.to_string();
    let job_id = if job.request.origin == ID { &job.request.foreign_id } else { &uuid };
    Ok(json_response(200, &ResultAnswer { status: "accepted", job_id, paid, warnings }))
}

//! Operations on a collaboration: response, result, approval and cancellation.

use std::sync::Arc;

use axum::extract::State;
use rialto_core::answer::Answer;
use rialto_core::command::{Approver, Canceller, Command, JobRef};
use rialto_core::id::AgentId;
use rialto_core::job::{Job, Requester, State as JobState};
use rialto_core::refusal::Refusal;
use rialto_engine::Failure as EngineFailure;
use uuid::Uuid;

use super::collaborations::find_collaboration;
use super::{about, failed, run_blocking_limited};
use crate::adapter::caller::{Caller, KnownCaller};
use crate::adapter::request::BodyBytes;
use crate::openclaw::OpenclawContext;
use crate::openclaw::auth::{PathUuid, acting_agent};
use crate::openclaw::errors::{self, ErrorResponse, HandlerResult};
use crate::openclaw::wire::answers::{Done, ResultPublished};
use crate::openclaw::wire::error::{Code, Failure};
use crate::openclaw::wire::request::{ApproveBody, CancelBody};
use crate::openclaw::wire::{self, CollaborationResult, Message, Response, ResultOutcome};
use crate::openclaw::{ID, MEMBERS_BYTES_MAX, collaboration, translate};

/// `POST /collaborations/{id}/response`.
pub async fn post_response(
    State(context): State<OpenclawContext>,
    known: KnownCaller,
    PathUuid(id): PathUuid,
    BodyBytes(body): BodyBytes,
) -> HandlerResult {
    let message: Message<Response> =
        wire::read(&body).map_err(|bad| ErrorResponse::new(&context, bad))?;
    let id = named(&context, id, message.correlation_id)?;
    handle_response(&context, known, id, &message).await
}

/// `POST /collaborations/{id}/result`.
pub async fn post_result(
    State(context): State<OpenclawContext>,
    known: KnownCaller,
    PathUuid(id): PathUuid,
    BodyBytes(body): BodyBytes,
) -> HandlerResult {
    let message: Message<CollaborationResult> =
        wire::read(&body).map_err(|bad| ErrorResponse::new(&context, bad))?;
    let id = named(&context, id, message.correlation_id)?;
    handle_result(&context, known, id, &message).await
}

/// The collaboration id of the path; 404 if it is not a UUID.
fn named(
    context: &OpenclawContext,
    id: Option<Uuid>,
    about_id: Option<Uuid>,
) -> Result<Uuid, ErrorResponse> {
    id.ok_or_else(|| about(context, Failure::not_found("collaboration"), about_id))
}

/// The collaboration and its responder, if the responder calls. For others it does not exist (R61).
async fn worked_on(
    context: &OpenclawContext,
    known: KnownCaller,
    by: Uuid,
    id: Uuid,
) -> Result<(Arc<Job>, AgentId), Failure> {
    let agent = context.engine.with_world(|world| acting_agent(known, world, by))?;
    let job = find_collaboration(context, Some(agent), id).await?;
    match job.filter(|job| collaboration::is_responder(job, agent)) {
        Some(job) => Ok((job, agent)),
        None => Err(Failure::not_found("collaboration")),
    }
}

/// Handles the response of an agent that accepts or rejects requests itself.
pub async fn handle_response(
    context: &OpenclawContext,
    known: KnownCaller,
    id: Uuid,
    message: &Message<Response>,
) -> HandlerResult {
    let (said, correlation_id) = (&message.body, message.correlation_id);
    let refuse = |failure| about(context, failure, correlation_id);
    let found = worked_on(context, known, said.responder_agent_id, id).await;
    let (job, agent) = found.map_err(refuse)?;
    belongs(&job, said.request_id, said.correlation_id).map_err(refuse)?;
    has(&job, agent).map_err(refuse)?;
    let command = translate::respond(said, &job, agent);
    let ran = context.engine.run_once(command, known.0.idempotency).await;
    ran.map_err(|failure| match failure {
        // The collaboration id that the agent chose is already in use.
        EngineFailure::Refused(Refusal::IdTaken) => {
            let wrong = "collaboration_id is taken; choose another or use the one it came with";
            refuse(Failure::with_violations(vec![wrong.to_owned()]))
        }
        EngineFailure::Refused(Refusal::DeadlineTooSoon) => {
            let wrong = "deferred_until must be in the future".to_owned();
            refuse(Failure::with_violations(vec![wrong]))
        }
        failure => failed(context, &failure, correlation_id),
    })?;
    let common = errors::common_members(context, correlation_id);
    Ok(errors::json_response(200, &Done::new(common, Done::DELIVERED.to_owned())))
}

/// Checks that a message belongs to this job's request (R55, R59).
fn belongs(job: &Job, request_id: Uuid, correlation_id: Uuid) -> Result<(), Failure> {
    let ids = collaboration::ids(job);
    wire::check_belongs_to((ids.request_id, ids.correlation_id), request_id, correlation_id)
}

/// Checks that the job is or was assigned to the agent. A job that it still waits for, or that was
/// never assigned to it, does not allow messages.
fn has(job: &Job, agent: AgentId) -> Result<(), Failure> {
    if job.worker() != Some(agent) {
        return Err(errors::from_refusal(&Refusal::WrongState { state: job.state }));
    }
    Ok(())
}

/// Handles the result of a collaboration.
pub async fn handle_result(
    context: &OpenclawContext,
    known: KnownCaller,
    id: Uuid,
    message: &Message<CollaborationResult>,
) -> HandlerResult {
    let (said, correlation_id) = (&message.body, message.correlation_id);
    let refuse = |failure| about(context, failure, correlation_id);
    let found = worked_on(context, known, said.responder_agent_id, id).await;
    let (job, agent) = found.map_err(refuse)?;
    belongs(&job, said.request_id, said.correlation_id).map_err(refuse)?;
    if ![job.uuid, collaboration::ids(&job).collaboration_id].contains(&said.collaboration_id) {
        let wrong = "collaboration_id must be the one in the path".to_owned();
        return Err(refuse(Failure::with_violations(vec![wrong])));
    }
    has(&job, agent).map_err(refuse)?;
    let output = match &said.outcome {
        ResultOutcome::Completed { output_data } => output_data.len(),
        ResultOutcome::Failed(_) | ResultOutcome::Cancelled { .. } => 0,
    };
    if message.raw.len() - output > MEMBERS_BYTES_MAX {
        let wrong =
            format!("members besides output_data must have at most {MEMBERS_BYTES_MAX} bytes");
        return Err(refuse(Failure::with_violations(vec![wrong])));
    }
    let unfit = unfit(context, &job, agent, &said.outcome).await;
    // A repeated cancellation succeeds and changes nothing (R61).
    let repeated =
        job.state == JobState::Cancelled && matches!(said.outcome, ResultOutcome::Cancelled { .. });
    if !repeated {
        let command = translate::report_result(message, &job, agent, &unfit);
        let ran = context.engine.run_once(command, known.0.idempotency).await;
        ran.map_err(|failure| failed(context, &failure, correlation_id))?;
    }
    let common = errors::common_members(context, correlation_id);
    let (status, id) = (ResultPublished::STATUS.to_owned(), said.collaboration_id.to_string());
    Ok(errors::json_response(200, &ResultPublished::new(common, status, id, unfit.is_empty())))
}

/// The violations of the capability's output schema (R60).
async fn unfit(
    context: &OpenclawContext,
    job: &Job,
    agent: AgentId,
    outcome: &ResultOutcome,
) -> Vec<String> {
    let ResultOutcome::Completed { output_data } = outcome else { return Vec::new() };
    let agent = context.engine.with_world(|world| world.agent(agent).cloned());
    let skill = collaboration::capability_id(context, job);
    let (context, output) = (context.clone(), output_data.clone());
    let checked = run_blocking_limited(move || {
        let identity = context.state.identity(&agent?)?;
        let schema = identity.capability(&skill)?.output.as_ref()?;
        schema.check(&output).err()
    });
    let violations = checked.await.flatten().unwrap_or_default();
    violations.iter().map(ToString::to_string).collect()
}

/// `POST /collaborations/{id}/approve`: for the responder and the operator (R73).
pub async fn approve(
    State(context): State<OpenclawContext>,
    known: KnownCaller,
    PathUuid(id): PathUuid,
    BodyBytes(body): BodyBytes,
) -> HandlerResult {
    let ApproveBody { approved, correlation_id } =
        ApproveBody::read(&body).map_err(|bad| ErrorResponse::new(&context, bad))?;
    let refuse = |failure| about(&context, failure, correlation_id);
    let id = named(&context, id, correlation_id)?;
    let (job, own) = seen(&context, known, id).await.map_err(refuse)?;
    let by = match (own, collaboration::responder_agent(&job)) {
        (Some(agent), responder) if responder != Some(agent) => {
            return Err(refuse(Failure::not_found("collaboration")));
        }
        (Some(agent), _) => Approver::Agent(agent),
        (None, _) if known.0.caller == Caller::Operator => Approver::Operator,
        // An open hub trusts a caller without a key to act for agents of this protocol.
        (None, Some(worker)) if is_native(&context, worker) => Approver::Agent(worker),
        (None, _) => return Err(refuse(Failure::not_found("collaboration"))),
    };
    if job.state.is_final() {
        return Err(refuse(errors::from_refusal(&Refusal::WrongState { state: job.state })));
    }
    let command = Command::Approve { job: JobRef::Id(job.id), by, approved };
    let ran = context.engine.run_once(command, known.0.idempotency).await;
    ran.map_err(|failure| failed(&context, &failure, correlation_id))?;
    let status = if approved { Done::APPROVED } else { Done::REFUSED };
    let common = errors::common_members(&context, correlation_id);
    Ok(errors::json_response(200, &Done::new(common, status.to_owned())))
}

/// A collaboration that the caller may see, and the agent of the caller's key.
async fn seen(
    context: &OpenclawContext,
    known: KnownCaller,
    id: Uuid,
) -> Result<(Arc<Job>, Option<AgentId>), Failure> {
    let own = match known.0.caller {
        Caller::Agent(agent) => Some(agent),
        _ => None,
    };
    let job = find_collaboration(context, own, id)
        .await?
        .ok_or_else(|| Failure::not_found("collaboration"))?;
    Ok((job, own))
}

fn is_native(context: &OpenclawContext, agent: AgentId) -> bool {
    context.engine.with_world(|world| world.agent(agent).is_some_and(|agent| agent.home == ID))
}

/// `POST /collaborations/{id}/cancel`: for either party, until there is a result (R89).
pub async fn cancel(
    State(context): State<OpenclawContext>,
    known: KnownCaller,
    PathUuid(id): PathUuid,
    BodyBytes(body): BodyBytes,
) -> HandlerResult {
    let CancelBody { reason, correlation_id } =
        CancelBody::read(&body).map_err(|bad| ErrorResponse::new(&context, bad))?;
    let refuse = |failure| about(&context, failure, correlation_id);
    let id = named(&context, id, correlation_id)?;
    let (job, _) = seen(&context, known, id).await.map_err(refuse)?;
    let by = match (known.0.caller, &job.request.requester) {
        (Caller::Agent(agent), _) => Canceller::Agent(agent),
        // An operator cancels with the hub's own API, which logs it.
        (Caller::Operator, _) => return Err(refuse(Failure::not_found("collaboration"))),
        (_, Requester::Agent(agent)) if is_native(&context, *agent) => Canceller::Agent(*agent),
        (_, Requester::Guest(_)) => Canceller::Guest,
        _ => return Err(refuse(Failure::not_found("collaboration"))),
    };
    let command = Command::Cancel { job: JobRef::Id(job.id), by, reason };
    let ran = context.engine.run_once(command, known.0.idempotency).await;
    let ran = ran.map_err(|failure| match failure {
        // The caller is a party, but the requester's protocol allows only the requester to cancel.
        EngineFailure::Refused(Refusal::NotFound) => {
            let text = "only the requester may cancel this collaboration";
            refuse(Failure::new(Code::Conflict, text))
        }
        failure => failed(&context, &failure, correlation_id),
    })?;
    let shown = match ran.answer {
        Answer::Job { job, .. } => collaboration::result(&context, &job),
        _ => None,
    };
    shown
        .map(|result| errors::text_response(200, result))
        .ok_or_else(|| refuse(errors::from_refusal(&Refusal::NotFound)))
}

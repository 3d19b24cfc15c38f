//! Operations that request a collaboration: the checks in order, and the answer in time.

use std::sync::Arc;

use axum::extract::State;
use rialto_core::alias::{Digest, claim};
use rialto_core::job::{Job, Requester};
use rialto_core::refusal::Refusal;
use rialto_engine::{Failure as EngineFailure, Idempotency};
use uuid::Uuid;

use super::offering::{self, AskOutcome};
use super::{about, choice, failed, repeat, settle};
use crate::adapter::{HubContext, bridge};
use crate::kit::ijson;
use crate::openclaw::failure::Failure;
use crate::openclaw::message::{self, Message, Rejection, Request};
use crate::openclaw::proof::{BodyBytes, KnownCaller, PathParam};
use crate::openclaw::say::{ErrorResponse, HandlerResult};
use crate::openclaw::{ID, MEMBERS_BYTES_MAX, refusals, translate};

/// The most retries under one idempotency key after retryable rejections.
const TRIES_MAX: usize = 1_000;

/// `POST /collaborations`.
pub async fn post_request(
    State(context): State<HubContext>,
    known: KnownCaller,
    BodyBytes(body): BodyBytes,
) -> HandlerResult {
    let message = message::read(&body).map_err(|bad| ErrorResponse::new(&context, bad))?;
    handle_request(&context, known, message, None).await
}

/// `POST /agents/{agent_id}/collaborations`.
pub async fn post_request_to_agent(
    State(context): State<HubContext>,
    known: KnownCaller,
    PathParam(responder): PathParam,
    BodyBytes(body): BodyBytes,
) -> HandlerResult {
    let message = message::read(&body).map_err(|bad| ErrorResponse::new(&context, bad))?;
    let responder = responder
        .ok_or_else(|| about(&context, Failure::not_found("agent"), message.correlation_id))?;
    handle_request(&context, known, message, Some(responder)).await
}

/// Whether the request has the member that marks a request as written by the hub for another agent.
fn is_marked(raw: &str) -> bool {
    raw.contains(bridge::MEMBER)
        && ijson::read(raw.as_bytes()).is_ok_and(|json| json.get(bridge::MEMBER).is_some())
}

/// A request that is being handled.
pub struct PendingRequest {
    pub message: Arc<Message<Request>>,
    pub requester: Requester,
    pub idempotency: Idempotency,
    /// The requester's name for the job.
    pub name: String,
}

/// The outcome of a request.
pub enum RequestOutcome {
    /// There is a collaboration, from this request or an earlier one.
    Job(Arc<Job>),
    /// There is none: why, and who rejected it.
    Rejected(Rejection, Option<Uuid>),
}

/// Handles a request and answers it.
pub async fn handle_request(
    context: &HubContext,
    known: KnownCaller,
    mut message: Message<Request>,
    path: Option<Uuid>,
) -> HandlerResult {
    let id = message.correlation_id;
    let said = &message.body;
    if let (Some(path), Some(named)) = (path, said.responder_agent_id)
        && path != named
    {
        let wrong = "responder_agent_id must be the agent in the path".to_owned();
        return Err(about(context, Failure::with_violations(vec![wrong]), id));
    }
    if message.raw.len() - said.input_data.len() > MEMBERS_BYTES_MAX {
        let wrong =
            format!("members besides input_data must have at most {MEMBERS_BYTES_MAX} bytes");
        return Err(about(context, Failure::with_violations(vec![wrong]), id));
    }
    if is_marked(&message.raw) {
        let wrong = format!("{} is reserved for the hub; remove it", bridge::MEMBER);
        return Err(about(context, Failure::with_violations(vec![wrong]), id));
    }
    let named = said.requester_agent_id;
    let requester = context.engine.with_world(|world| known.requester(world, named));
    let requester = requester.map_err(|bad| about(context, bad, id))?;
    message.body.responder_agent_id = message.body.responder_agent_id.or(path);
    let content = translate::request_digest(&message.body);
    let keyed = message.body.idempotency_key.is_some();
    let mut scope = repeat::idempotency_scope(&requester, &message.body);
    let mut asking = PendingRequest {
        idempotency: Idempotency { scope, request: content, principal: known.0.principal },
        name: format!("{named}/{}", message.body.request_id),
        requester,
        message: Arc::new(message),
    };
    for turn in 0..TRIES_MAX {
        asking.idempotency.scope = scope;
        let kept = context
            .engine
            .load_idempotency_record(scope)
            .await
            .map_err(|bad| failed(context, &bad, id))?;
        let (reply, before) = match kept {
            Some(memory) => (repeat::saved_outcome(context, &memory, id).await?, Some(memory)),
            None => match repeat::find_earlier_job(context, &asking, keyed || turn > 0).await? {
                Some(job) if job.content != content => {
                    let failure = refusals::from_refusal(&Refusal::SameIdOtherContent);
                    return Err(about(context, failure, id));
                }
                Some(job) => (Some(RequestOutcome::Job(job)), None),
                None => (None, None),
            },
        };
        let other = before.is_some_and(|memory| memory.request != content);
        if other && !keyed {
            let failure = refusals::from_refusal(&Refusal::SameIdOtherContent);
            return Err(about(context, failure, id));
        }
        let reply = match reply {
            // A retryable rejection is tried again, under a scope derived from the earlier one.
            Some(RequestOutcome::Job(job)) if repeat::is_retryable(&job) => {
                scope = Digest::of(&[b"again", &scope.0, job.uuid.as_bytes()]);
                continue;
            }
            Some(reply) => reply,
            None => match named_anew(context, &asking).await? {
                Some(reply) => reply,
                // Another request with the same key was faster.
                None => continue,
            },
        };
        return settle::request_response(context, &asking, reply, other).await;
    }
    Err(failed(context, &EngineFailure::StillRunning, id))
}

/// Asks under the request's own name. If that was used before, under a new name derived from it.
async fn named_anew(
    context: &HubContext,
    asking: &PendingRequest,
) -> Result<Option<RequestOutcome>, ErrorResponse> {
    let id = asking.message.correlation_id;
    let used = context.engine.claim_target(claim::job(ID, &asking.name)).await;
    match used.map_err(|bad| failed(context, &bad, id))? {
        None => fresh(context, asking).await,
        Some(_) => {
            let name = format!("{}#{}", asking.name, context.engine.random().new_uuid());
            let asking = PendingRequest {
                message: asking.message.clone(),
                requester: asking.requester.clone(),
                idempotency: asking.idempotency,
                name,
            };
            fresh(context, &asking).await
        }
    }
}

/// Asks the named agent, or one that the hub chooses. `None` when the same was asked meanwhile.
async fn fresh(
    context: &HubContext,
    asking: &PendingRequest,
) -> Result<Option<RequestOutcome>, ErrorResponse> {
    let id = asking.message.correlation_id;
    let tried = match asking.message.body.responder_agent_id {
        Some(responder) => offering::ask_named_agent(context, asking, responder).await,
        None => choice::ask_best_agent(context, asking).await,
    };
    match tried {
        Ok(AskOutcome::Job(job)) => Ok(Some(RequestOutcome::Job(job))),
        Ok(AskOutcome::Rejected(rejection, by)) => {
            // A final rejection is repeated for a day; a retryable one is not (D12).
            if !rejection.code.retryable() {
                repeat::save_rejection(context, asking, &rejection, by).await;
            }
            Ok(Some(RequestOutcome::Rejected(rejection, by)))
        }
        Ok(AskOutcome::AlreadyAsked) => Ok(None),
        Err(failure) => Err(about(context, failure, id)),
    }
}

//! Operations that request a collaboration: the checks in order, which requests are repeats with the
//! saved answer (R64–R66), and the answer within 10 seconds.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::HeaderValue;
use axum::response::Response as Http;
use rialto_core::alias::{Digest, claim};
use rialto_core::command::JobRef;
use rialto_core::id::AgentId;
use rialto_core::idempotency::{IdempotencyRecord, Receipt, SavedAnswer};
use rialto_core::job::{Job, Requester};
use rialto_core::refusal::Refusal;
use rialto_core::time::Timestamp;
use rialto_engine::{Failure as EngineFailure, Idempotency};
use tokio::time::Instant;
use uuid::Uuid;

use super::{about, failed};
use crate::adapter::bridge;
use crate::adapter::caller::KnownCaller;
use crate::adapter::open_job::set_job_header;
use crate::adapter::request::BodyBytes;
use crate::kit::ijson;
use crate::kit::object::ObjectWriter;
use crate::openclaw::OpenclawContext;
use crate::openclaw::auth::{self, PathUuid};
use crate::openclaw::errors::{self, ErrorResponse, HandlerResult, RejectionContext};
use crate::openclaw::matching::{self, AskOutcome};
use crate::openclaw::wire::error::Failure;
use crate::openclaw::wire::words::State as Stands;
use crate::openclaw::wire::{self, Message, Rejection, Request, Response, ResponseAnswer};
use crate::openclaw::{ID, MEMBERS_BYTES_MAX, collaboration, translate};

/// The most retries under one idempotency key after retryable rejections.
const TRIES_MAX: usize = 1_000;
/// An agent that responds itself has 9 s, and the requester gets its answer within 10 s (R63).
const ANSWER_WAIT: Duration = Duration::from_millis(9_700);
/// The longest delay caused by a missed notification.
const LOOK_AGAIN: Duration = Duration::from_millis(250);
/// Signals that the idempotency key was used before with another body (R65).
const MISMATCH: &str = "idempotency-mismatch";

/// `POST /collaborations`.
pub async fn post_request(
    State(context): State<OpenclawContext>,
    known: KnownCaller,
    BodyBytes(body): BodyBytes,
) -> HandlerResult {
    let message = wire::read(&body).map_err(|bad| ErrorResponse::new(&context, bad))?;
    handle_request(&context, known, message, None).await
}

/// `POST /agents/{agent_id}/collaborations`.
pub async fn post_request_to_agent(
    State(context): State<OpenclawContext>,
    known: KnownCaller,
    PathUuid(responder): PathUuid,
    BodyBytes(body): BodyBytes,
) -> HandlerResult {
    let message = wire::read(&body).map_err(|bad| ErrorResponse::new(&context, bad))?;
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
enum RequestOutcome {
    /// There is a collaboration, from this request or an earlier one.
    Job(Arc<Job>),
    /// There is none: why, and who rejected it.
    Rejected(Rejection, Option<Uuid>),
}

/// Handles a request and answers it.
pub async fn handle_request(
    context: &OpenclawContext,
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
    let requester = context.engine.with_world(|world| auth::requester(known, world, named));
    let requester = requester.map_err(|bad| about(context, bad, id))?;
    message.body.responder_agent_id = message.body.responder_agent_id.or(path);
    let content = translate::request_digest(&message.body);
    let keyed = message.body.idempotency_key.is_some();
    let mut scope = idempotency_scope(&requester, &message.body);
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
            Some(memory) => (saved_outcome(context, &memory, id).await?, Some(memory)),
            None => match find_earlier_job(context, &asking, keyed || turn > 0).await? {
                Some(job) if job.request.content != content => {
                    let failure = errors::from_refusal(&Refusal::SameIdOtherContent);
                    return Err(about(context, failure, id));
                }
                Some(job) => (Some(RequestOutcome::Job(job)), None),
                None => (None, None),
            },
        };
        let other = before.is_some_and(|memory| memory.request != content);
        if other && !keyed {
            let failure = errors::from_refusal(&Refusal::SameIdOtherContent);
            return Err(about(context, failure, id));
        }
        let reply = match reply {
            // A retryable rejection is tried again, under a scope derived from the earlier one.
            Some(RequestOutcome::Job(job)) if is_retryable(&job) => {
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
        return request_response(context, &asking, reply, other).await;
    }
    Err(failed(context, &EngineFailure::StillRunning, id))
}

/// Asks under the request's own name. If that was used before, under a new name derived from it.
async fn named_anew(
    context: &OpenclawContext,
    asking: &PendingRequest,
) -> Result<Option<RequestOutcome>, ErrorResponse> {
    let id = asking.message.correlation_id;
    let used = context.engine.claim_target(claim::job(ID, &asking.name)).await;
    match used.map_err(|bad| failed(context, &bad, id))? {
        None => ask(context, asking).await,
        Some(_) => {
            let name = format!("{}#{}", asking.name, context.engine.random().new_uuid());
            let asking = PendingRequest {
                message: asking.message.clone(),
                requester: asking.requester.clone(),
                idempotency: asking.idempotency,
                name,
            };
            ask(context, &asking).await
        }
    }
}

/// Asks the named agent, or one that the hub chooses. `None` when the same was asked meanwhile.
async fn ask(
    context: &OpenclawContext,
    asking: &PendingRequest,
) -> Result<Option<RequestOutcome>, ErrorResponse> {
    let id = asking.message.correlation_id;
    let tried = match asking.message.body.responder_agent_id {
        Some(responder) => matching::ask_named_agent(context, asking, responder).await,
        None => matching::ask_best_agent(context, asking).await,
    };
    match tried {
        Ok(AskOutcome::Job(job)) => Ok(Some(RequestOutcome::Job(job))),
        Ok(AskOutcome::Rejected(rejection, by)) => {
            // A final rejection is repeated for a day; a retryable one is not (D12).
            if !rejection.code.retryable() {
                save_rejection(context, asking, &rejection, by).await;
            }
            Ok(Some(RequestOutcome::Rejected(rejection, by)))
        }
        Ok(AskOutcome::AlreadyAsked) => Ok(None),
        Err(failure) => Err(about(context, failure, id)),
    }
}

/// The idempotency scope: the key, or without a key the request's own id (R64, R66).
fn idempotency_scope(requester: &Requester, said: &Request) -> Digest {
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
fn is_retryable(job: &Job) -> bool {
    collaboration::state(job) == Stands::Rejected && collaboration::rejection(job).code.retryable()
}

/// The saved outcome; `None` if it can no longer be produced.
async fn saved_outcome(
    context: &OpenclawContext,
    memory: &IdempotencyRecord,
    id: Option<Uuid>,
) -> Result<Option<RequestOutcome>, ErrorResponse> {
    Ok(match &memory.answer {
        SavedAnswer::Answer { body, .. } => read_saved_rejection(body),
        SavedAnswer::Done(Receipt::Job(job)) => {
            let job =
                context.engine.load_job(*job).await.map_err(|bad| failed(context, &bad, id))?;
            job.map(RequestOutcome::Job)
        }
        SavedAnswer::Done(Receipt::Refused(refusal)) => {
            let now = context.engine.now();
            let rejection = context.engine.with_world(|world| {
                errors::rejection(refusal, RejectionContext { world, agent: None, now })
            });
            Some(RequestOutcome::Rejected(rejection.map_err(|bad| about(context, bad, id))?, None))
        }
        SavedAnswer::Done(_) => None,
    })
}

/// A job under the request's own id that is older than the idempotency records.
async fn find_earlier_job(
    context: &OpenclawContext,
    asking: &PendingRequest,
    by_key: bool,
) -> Result<Option<Arc<Job>>, ErrorResponse> {
    if by_key {
        return Ok(None);
    }
    let wanted = JobRef::Foreign { origin: ID, id: asking.name.clone() };
    let found = context.engine.find_job(&wanted).await;
    let found = found.map_err(|bad| failed(context, &bad, asking.message.correlation_id))?;
    Ok(found.filter(|job| job.request.requester == asking.requester))
}

/// Saves a rejection for repeats. A rejected request has no effect, so losing the record is
/// harmless.
async fn save_rejection(
    context: &OpenclawContext,
    asking: &PendingRequest,
    rejection: &Rejection,
    by: Option<Uuid>,
) {
    let body = ObjectWriter::new()
        .raw("rejection_reason", &rejection.write())
        .maybe_uuid("by", by)
        .finish();
    let order = asking.idempotency.save(SavedAnswer::Answer { status: 200, body });
    if let Err(failure) = context.engine.run(order).await {
        tracing::warn!(%failure, "storing a rejection failed");
    }
}

fn read_saved_rejection(body: &str) -> Option<RequestOutcome> {
    let json = ijson::read(body.as_bytes()).ok()?;
    let rejection = Rejection::read(json.get("rejection_reason")?.raw())?;
    let by = json.get("by").and_then(wire::read_uuid);
    Some(RequestOutcome::Rejected(rejection, by))
}

/// The response, with the ids of the repeat, and with the result once there is one.
async fn request_response(
    context: &OpenclawContext,
    asking: &PendingRequest,
    reply: RequestOutcome,
    other: bool,
) -> HandlerResult {
    let said = &asking.message.body;
    let now = context.engine.now();
    let (response, job) = match reply {
        RequestOutcome::Rejected(rejection, by) => {
            let response = Response {
                request_id: said.request_id,
                responder_agent_id: by.or(said.responder_agent_id).unwrap_or(context.state.hub_id),
                answer: ResponseAnswer::Rejected(rejection),
                correlation_id: said.correlation_id,
                timestamp: now,
                result: None,
            };
            (response, None)
        }
        RequestOutcome::Job(job) => {
            let job = wait_for_response(context, job, &asking.requester).await;
            let job = job.map_err(|bad| failed(context, &bad, Some(said.correlation_id)))?;
            (response_for_job(context, said, &job, context.engine.now()), Some(job.uuid))
        }
    };
    let mut answer = errors::text_response(200, response.write());
    add_headers(&mut answer, job, other);
    Ok(answer)
}

fn response_for_job(
    context: &OpenclawContext,
    said: &Request,
    job: &Job,
    now: Timestamp,
) -> Response {
    let silent = || Response {
        request_id: said.request_id,
        responder_agent_id: collaboration::responder_id(context, job),
        answer: ResponseAnswer::Rejected(collaboration::rejection(job)),
        correlation_id: said.correlation_id,
        timestamp: now,
        result: None,
    };
    let response = collaboration::response(context, job, now).unwrap_or_else(silent);
    let accepted = matches!(response.answer, ResponseAnswer::Accepted { .. });
    Response {
        request_id: said.request_id,
        correlation_id: said.correlation_id,
        result: accepted.then(|| collaboration::result(context, job)).flatten().map(Into::into),
        ..response
    }
}

fn add_headers(answer: &mut Http, job: Option<Uuid>, other: bool) {
    set_job_header(answer, job);
    if other {
        answer.headers_mut().insert(MISMATCH, HeaderValue::from_static("true"));
    }
}

/// Waits for an agent that responds itself. The core ends the wait after 9 s.
async fn wait_for_response(
    context: &OpenclawContext,
    mut job: Arc<Job>,
    requester: &Requester,
) -> Result<Arc<Job>, EngineFailure> {
    let listener = match requester {
        Requester::Agent(agent) => Some(*agent),
        Requester::Guest(_) => job.worker(),
    };
    let until = Instant::now() + ANSWER_WAIT;
    while collaboration::state(&job) == Stands::AwaitingResponse && Instant::now() < until {
        let bell = context.engine.subscribe_agent(listener.unwrap_or(AgentId(0)));
        let told = bell.notified();
        tokio::pin!(told);
        // From here on no notification is missed, so the state is checked after this.
        told.as_mut().enable();
        job = context.engine.load_job(job.id).await?.unwrap_or(job);
        if collaboration::state(&job) == Stands::AwaitingResponse {
            let _ = tokio::time::timeout(LOOK_AGAIN, told).await;
            job = context.engine.load_job(job.id).await?.unwrap_or(job);
        }
    }
    Ok(job)
}

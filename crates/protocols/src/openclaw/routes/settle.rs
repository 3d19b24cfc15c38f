//! Answers a request within 10 seconds: from the job's state, or with the rejection.

use std::sync::Arc;
use std::time::Duration;

use axum::http::HeaderValue;
use axum::response::Response as Http;
use rialto_core::id::AgentId;
use rialto_core::job::{Job, Requester};
use rialto_core::time::Timestamp;
use rialto_engine::Failure as EngineFailure;
use tokio::time::Instant;
use uuid::Uuid;

use super::ask::{PendingRequest, RequestOutcome};
use super::failed;
use crate::adapter::HubContext;
use crate::openclaw::message::{Request, Response, ResponseAnswer};
use crate::openclaw::say::{self, HandlerResult};
use crate::openclaw::state::State as Stands;
use crate::openclaw::view;

/// An agent that responds itself has 9 s, and the requester gets its answer within 10 s (R63).
const ANSWER_WAIT: Duration = Duration::from_millis(9_700);
/// The longest delay caused by a missed notification.
const LOOK_AGAIN: Duration = Duration::from_millis(250);
/// Signals that the idempotency key was used before with another body (R65).
const MISMATCH: &str = "idempotency-mismatch";

/// The response, with the ids of the repeat, and with the result once there is one.
pub async fn request_response(
    context: &HubContext,
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
                responder_agent_id: by
                    .or(said.responder_agent_id)
                    .unwrap_or(context.openclaw.hub_id),
                answer: ResponseAnswer::Rejected(rejection),
                correlation_id: said.correlation_id,
                timestamp: now,
                result: None,
            };
            (response, None)
        }
        RequestOutcome::Job(job) => {
            let job = settled(context, job, &asking.requester).await;
            let job = job.map_err(|bad| failed(context, &bad, Some(said.correlation_id)))?;
            (of_job(context, said, &job, context.engine.now()), Some(job.uuid))
        }
    };
    let mut answer = say::text_response(200, response.write());
    mark(&mut answer, job, other);
    Ok(answer)
}

fn of_job(context: &HubContext, said: &Request, job: &Job, now: Timestamp) -> Response {
    let silent = || Response {
        request_id: said.request_id,
        responder_agent_id: view::responder_id(context, job),
        answer: ResponseAnswer::Rejected(view::rejection(job)),
        correlation_id: said.correlation_id,
        timestamp: now,
        result: None,
    };
    let response = view::response(context, job, now).unwrap_or_else(silent);
    let accepted = matches!(response.answer, ResponseAnswer::Accepted { .. });
    Response {
        request_id: said.request_id,
        correlation_id: said.correlation_id,
        result: accepted.then(|| view::result(context, job)).flatten().map(Into::into),
        ..response
    }
}

fn mark(answer: &mut Http, job: Option<Uuid>, other: bool) {
    let headers = answer.headers_mut();
    if let Some(value) = job.and_then(|job| HeaderValue::from_str(&job.to_string()).ok()) {
        headers.insert(say::JOB_HEADER, value);
    }
    if other {
        headers.insert(MISMATCH, HeaderValue::from_static("true"));
    }
}

/// Waits for an agent that responds itself. The core ends the wait after 9 s.
async fn settled(
    context: &HubContext,
    mut job: Arc<Job>,
    requester: &Requester,
) -> Result<Arc<Job>, EngineFailure> {
    let listener = match requester {
        Requester::Agent(agent) => Some(*agent),
        Requester::Guest(_) => job.worker(),
    };
    let until = Instant::now() + ANSWER_WAIT;
    while view::collaboration_state(&job) == Stands::AwaitingResponse && Instant::now() < until {
        let bell = context.engine.subscribe_agent(listener.unwrap_or(AgentId(0)));
        let told = bell.notified();
        tokio::pin!(told);
        // From here on no notification is missed, so the state is checked after this.
        told.as_mut().enable();
        job = context.engine.load_job(job.id).await?.unwrap_or(job);
        if view::collaboration_state(&job) == Stands::AwaitingResponse {
            let _ = tokio::time::timeout(LOOK_AGAIN, told).await;
            job = context.engine.load_job(job.id).await?.unwrap_or(job);
        }
    }
    Ok(job)
}

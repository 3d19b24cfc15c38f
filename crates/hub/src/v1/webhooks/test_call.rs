//! `POST /v1/webhooks/test`: one signed test call to the caller's endpoint, without retries.

use std::sync::PoisonError;

use axum::extract::State;
use rialto_core::id::AgentId;
use rialto_engine::delivery::egress::{HttpResponse, SendError};
use rialto_engine::delivery::{OutboundRequest, RESPONSE_BYTES_MAX, send_signed};
use rialto_protocols::adapter::HubContext;
use rialto_protocols::kit::api_doc::Time;
use schemars::JsonSchema;
use serde::Serialize;

use crate::v1::auth::AgentCaller;
use crate::v1::errors;
use crate::v1::problem::Problem;
use crate::v1::response::{HandlerResult, format_time, ok_response};

/// The body that is sent.
#[derive(Serialize, JsonSchema)]
pub struct TestBody {
    r#type: &'static str,
    agent: u64,
    at: Time,
}

/// The result.
#[derive(Serialize, JsonSchema)]
pub struct TestResult {
    /// The response had status 2xx.
    delivered: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
}

impl TestResult {
    fn of(answer: Result<HttpResponse, SendError>) -> Self {
        let failed = |why: &str| Self { delivered: false, status: None, why: Some(why.to_owned()) };
        match answer {
            Ok(HttpResponse { status, .. }) => {
                let delivered = (200..300).contains(&status);
                let why = (!delivered).then(|| format!("answered HTTP {status}"));
                Self { delivered, status: Some(status), why }
            }
            Err(SendError::TimedOut) => failed("no answer in time"),
            Err(SendError::InvalidResponse(_)) => failed("the answer could not be read"),
            // One text for both, so that a caller cannot probe what the hub's resolver sees.
            Err(SendError::Blocked(_) | SendError::Unreachable(_)) => failed("could not connect"),
        }
    }
}

/// One running test. Each agent may have one at a time: a receiver that hangs must not block
/// others.
struct TestPermit<'a> {
    context: &'a HubContext,
    agent: AgentId,
}

impl<'a> TestPermit<'a> {
    fn acquire(context: &'a HubContext, agent: AgentId) -> Result<Self, Problem> {
        match context.endpoint_checks.lock().unwrap_or_else(PoisonError::into_inner).insert(agent) {
            true => Ok(Self { context, agent }),
            false => {
                let text = "a test of this endpoint is already running";
                Err(Problem::new(&errors::RATE_LIMITED, text).with_retry_after(5))
            }
        }
    }
}

impl Drop for TestPermit<'_> {
    fn drop(&mut self) {
        self.context
            .endpoint_checks
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&self.agent);
    }
}

/// Sends the test, signed like every delivery.
pub async fn send_test(State(context): State<HubContext>, by: AgentCaller) -> HandlerResult {
    let endpoint = context
        .engine
        .with_world(|world| world.agent(by.id).and_then(|agent| agent.endpoint.clone()));
    let callable = |url: &String| url.starts_with("http://") || url.starts_with("https://");
    let url = endpoint.filter(callable).ok_or_else(|| {
        let text = "the agent has no http or https endpoint; register it again with one";
        Problem::new(&errors::WRONG_STATE, text)
    })?;
    let body =
        TestBody { r#type: "webhook.test", agent: by.id.0, at: format_time(context.engine.now()) };
    let envelope = OutboundRequest {
        url,
        body: serde_json::to_vec(&body).unwrap_or_default().into(),
        id: format!("test-{}", context.engine.random().new_uuid()),
        headers: Vec::new(),
        response_max: RESPONSE_BYTES_MAX,
    };
    let _trying = TestPermit::acquire(&context, by.id)?;
    context.egress.try_acquire_call(&envelope.url, context.engine.now()).map_err(|wait| {
        let text = "the endpoint's host has reached the limit of calls per minute; retry later";
        Problem::new(&errors::RATE_LIMITED, text)
            .with_retry_after(wait.0.unsigned_abs().div_ceil(1_000))
    })?;
    let answer = send_signed(&context.engine, &context.egress, Some(by.id), envelope).await;
    Ok(ok_response(&TestResult::of(answer)))
}

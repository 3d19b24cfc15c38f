//! What all operations of `/v1` have in common.
//!
//! The key is checked first, so that no body is read without one. Then a repeated request gets its
//! saved answer. On the way out the request id is added to errors.

use std::sync::Arc;

use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use http::Method;
use http::header::CONTENT_TYPE;
use http::request::Parts;
use rialto_core::refusal::Refusal;
use rialto_protocols::adapter::api::ServedOperation;
use rialto_protocols::adapter::caller::Caller;
use rialto_protocols::adapter::idempotency::{IdempotencyResponses, call_at_most_once};
use rialto_protocols::adapter::operation::ResponseFuture;
use rialto_protocols::adapter::{Access, Api, EdgeError, HubContext, Operation};
use serde_json::value::RawValue;

use super::auth::{AuthenticatedCaller, ReadOnlyCaller, VerifiedKey};
use super::jobs::trace;
use super::problem::{MEDIA_TYPE, Problem};
use super::work::Instances;
use super::{errors, operations};
use crate::edge::RequestId;

/// Marks a saved answer that is sent again.
const REPLAYED_HEADER: &str = "idempotency-replayed";
/// Members that hold a secret, in the responses to rotations.
const SECRET_MEMBERS: [&str; 2] = ["key", "webhook_secret"];

/// The API under `/v1`.
pub struct V1Api {
    context: HubContext,
    instances: Instances,
}

impl V1Api {
    pub fn new(context: &HubContext) -> Self {
        let instances = Instances::default();
        context.engine.set_call_handler(instances.call_handler());
        Self { context: context.clone(), instances }
    }
}

impl Api for V1Api {
    fn prefix(&self) -> &str {
        "v1"
    }

    fn operations(&self) -> Vec<Operation<()>> {
        let bind = |operation: Operation<HubContext>| operation.with_state(self.context.clone());
        operations().into_iter().map(bind).collect()
    }

    fn error_response(&self, error: EdgeError) -> Response {
        Problem::from(error).into_response()
    }

    fn unreadable_path(&self) -> Option<Response> {
        Some(Problem::not_found().into_response())
    }

    fn call(&self, operation: &Arc<ServedOperation>, mut request: Request) -> ResponseFuture {
        request.extensions_mut().insert(self.instances.clone());
        let (responses, operation) = (V1Responses(self.context.clone()), operation.clone());
        Box::pin(async move {
            let id = request.extensions().get::<RequestId>().cloned();
            let answer = call(&responses, &operation, request).await;
            add_request_id(answer, id.as_ref())
        })
    }
}

async fn call(responses: &V1Responses, operation: &ServedOperation, request: Request) -> Response {
    let context = &responses.0;
    let (mut parts, body) = request.into_parts();
    let key = match authenticate(context, operation, &mut parts) {
        Ok(key) => key,
        Err(problem) => return problem.into_response(),
    };
    let request = Request::from_parts(parts, body);
    let caller = match key.map(|key| key.caller) {
        None => return operation.call_handler(request).await,
        Some(AuthenticatedCaller::Agent(id)) => Caller::Agent(id),
        Some(AuthenticatedCaller::Operator) => Caller::Operator,
    };
    if operation.info.takes_idempotency_key {
        call_at_most_once(operation, responses, caller, request).await
    } else {
        operation.call_handler(request).await
    }
}

/// Checks the key and leaves it in the request. Without one, only reads go on.
fn authenticate(
    context: &HubContext,
    operation: &ServedOperation,
    parts: &mut Parts,
) -> Result<Option<VerifiedKey>, Problem> {
    let reads = matches!(parts.method, Method::GET | Method::HEAD);
    // The error for a refused key names the kind of key that the operation needs.
    let refuse = |problem: Problem| {
        let for_operator = operation.info.access == Access::Operator;
        if problem.kind == &errors::UNAUTHORIZED && for_operator {
            Problem::operator_unauthorized()
        } else {
            problem
        }
    };
    match VerifiedKey::of(&context.engine, parts) {
        Ok(Some(key)) => {
            parts.extensions.insert(key);
            Ok(Some(key))
        }
        Ok(None) if reads => Ok(None),
        // Without a key nothing can be changed.
        Ok(None) => Err(refuse(Problem::unauthorized())),
        Err(problem) => {
            let is_trace = operation.info.path == trace::PATH;
            let reader = is_trace.then(|| context.authenticate_reader(&parts.headers)).flatten();
            let agent = reader.ok_or_else(|| refuse(problem))?;
            parts.extensions.insert(ReadOnlyCaller(AuthenticatedCaller::Agent(agent)));
            Ok(None)
        }
    }
}

fn add_request_id(mut answer: Response, id: Option<&RequestId>) -> Response {
    let problem = answer.extensions_mut().remove::<Problem>();
    if let (Some(problem), Some(id)) = (problem, id) {
        let problem = Problem { request_id: Some(id.as_str().into()), ..problem };
        let mut answer = problem.into_response();
        answer.extensions_mut().remove::<Problem>();
        return answer;
    }
    if answer.headers().contains_key(REPLAYED_HEADER) && answer.status().as_u16() >= 400 {
        answer.headers_mut().insert(CONTENT_TYPE, MEDIA_TYPE);
    }
    answer
}

/// The `/v1` responses for repeated requests.
struct V1Responses(HubContext);

impl IdempotencyResponses for V1Responses {
    fn context(&self) -> &HubContext {
        &self.0
    }

    fn invalid_key(&self) -> Response {
        let text = "Idempotency-Key must have 1 to 256 characters";
        Problem::invalid_field("Idempotency-Key", text).into_response()
    }

    fn body_mismatch(&self, _: &[u8]) -> Response {
        let text = "this Idempotency-Key was used with another body";
        let problem = Problem::new(&errors::OTHER_CONTENT, text);
        Problem { field: Some("Idempotency-Key".to_owned()), ..problem }.into_response()
    }

    fn storage_full(&self, refusal: &Refusal) -> Response {
        let problem = Problem::from(refusal.clone());
        Problem { field: Some("Idempotency-Key".to_owned()), ..problem }.into_response()
    }

    fn redact_secrets(&self, body: &str) -> String {
        redact_secrets(body)
    }
}

fn redact_secrets(body: &str) -> String {
    // Raw members keep every digit of every amount.
    type Members = std::collections::BTreeMap<String, Box<RawValue>>;
    let Ok(mut members) = serde_json::from_str::<Members>(body) else { return body.to_owned() };
    let removed = SECRET_MEMBERS.map(|secret| members.remove(secret).is_some());
    if removed.contains(&true) {
        serde_json::to_string(&members).unwrap_or_default()
    } else {
        body.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_of_an_answer_has_no_key_and_all_its_digits() {
        let kept = redact_secrets(r#"{"amount":0.10,"key":"rk_secret","n":1}"#);
        assert_eq!(kept, r#"{"amount":0.10,"n":1}"#);
        assert_eq!(redact_secrets(r#"{"webhook_secret":"whsec_","n":1}"#), r#"{"n":1}"#);
        for body in [r#"{"amount":0.100,"a":{"key":1}}"#, "[1]", ""] {
            assert_eq!(redact_secrets(body), body);
        }
    }
}

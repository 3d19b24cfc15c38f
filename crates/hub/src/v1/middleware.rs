//! Middleware for every request of `/v1`.
//!
//! The key is checked first, so that no body is read without one. Then a repeated request gets its
//! saved answer. On the way out the request id is added to errors.

use axum::Router;
use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use http::Method;
use http::header::CONTENT_TYPE;
use rialto_core::id::AgentId;
use rialto_core::refusal::Refusal;
use rialto_protocols::adapter::caller::Caller;
use rialto_protocols::adapter::idempotency::{IdempotencyResponses, run_at_most_once};
use rialto_protocols::adapter::{EdgeError, HubContext};
use serde_json::value::RawValue;

use super::auth::{AuthenticatedCaller, ReadOnlyCaller, VerifiedKey};
use super::errors;
use super::jobs::trace::is_trace_path;
use super::problem::{MEDIA_TYPE, Problem};
use crate::edge::RequestId;

/// Marks a saved answer that is sent again.
const REPLAYED_HEADER: &str = "idempotency-replayed";
/// Members that hold a secret, in the responses to rotations.
const SECRET_MEMBERS: [&str; 2] = ["key", "webhook_secret"];

/// Wraps every route in the middleware.
pub fn wrap(router: Router, context: &HubContext) -> Router {
    let context = context.clone();
    router.layer(from_fn(move |request: Request, next: Next| {
        let context = context.clone();
        async move {
            let id = request.extensions().get::<RequestId>().cloned();
            let answer = handle(&context, request, next).await;
            add_request_id(answer, id.as_ref())
        }
    }))
}

async fn handle(context: &HubContext, mut request: Request, next: Next) -> Response {
    let reads = matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS);
    let proven =
        match VerifiedKey::from_headers(&context.engine, request.headers(), request.extensions()) {
            Ok(proven) => proven,
            Err(problem) => match read_only_caller(context, &request).filter(|_| reads) {
                Some(agent) => {
                    request
                        .extensions_mut()
                        .insert(ReadOnlyCaller(AuthenticatedCaller::Agent(agent)));
                    None
                }
                None => return for_route(problem, &request).into_response(),
            },
        };
    let Some(proven) = proven else {
        return match reads {
            true => next.run(request).await,
            // Without a key nothing can be changed.
            false => for_route(Problem::unauthorized(), &request).into_response(),
        };
    };
    request.extensions_mut().insert(proven);
    let caller = match proven.caller {
        AuthenticatedCaller::Agent(id) => Caller::Agent(id),
        AuthenticatedCaller::Operator => Caller::Operator,
    };
    run_at_most_once(context, &V1Responses, caller, request, next).await
}

/// The error for a refused key; it names the kind of key that the route needs.
fn for_route(problem: Problem, request: &Request) -> Problem {
    match problem.kind == &errors::UNAUTHORIZED && request.uri().path().contains("/operator/") {
        true => Problem::operator_unauthorized(),
        false => problem,
    }
}

/// The agent of a read-only credential, where the path accepts one.
fn read_only_caller(context: &HubContext, request: &Request) -> Option<AgentId> {
    is_trace_path(request.uri().path())
        .then(|| context.authenticate_reader(request.headers()))
        .flatten()
}

fn add_request_id(mut answer: Response, id: Option<&RequestId>) -> Response {
    let problem = answer.extensions_mut().remove::<Problem>();
    if let (Some(problem), Some(id)) = (problem, id) {
        let told = Problem { request_id: Some(id.as_str().to_owned()), ..problem };
        let mut answer = told.into_response();
        answer.extensions_mut().remove::<Problem>();
        return answer;
    }
    if answer.headers().contains_key(REPLAYED_HEADER) && answer.status().as_u16() >= 400 {
        answer.headers_mut().insert(CONTENT_TYPE, MEDIA_TYPE);
    }
    answer
}

/// The `/v1` responses for repeated requests.
struct V1Responses;

impl IdempotencyResponses for V1Responses {
    fn namespace(&self) -> &'static str {
        "v1"
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

    fn edge_error(&self, error: EdgeError) -> Response {
        Problem::from(error).into_response()
    }

    fn redact_secrets(&self, body: &str) -> String {
        // Raw members keep every digit of every amount.
        type Members = std::collections::BTreeMap<String, Box<RawValue>>;
        let Ok(mut members) = serde_json::from_str::<Members>(body) else { return body.to_owned() };
        let had = SECRET_MEMBERS.map(|secret| members.remove(secret).is_some());
        match had.contains(&true) {
            true => serde_json::to_string(&members).unwrap_or_default(),
            false => body.to_owned(),
        }
    }

    fn claimed_caller(&self, _: &[u8]) -> Option<String> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_of_an_answer_has_no_key_and_all_its_digits() {
        let kept = V1Responses.redact_secrets(r#"{"amount":0.10,"key":"rk_secret","n":1}"#);
        assert_eq!(kept, r#"{"amount":0.10,"n":1}"#);
        assert_eq!(
            V1Responses.redact_secrets(r#"{"webhook_secret":"whsec_","n":1}"#),
            r#"{"n":1}"#
        );
        for body in [r#"{"amount":0.100,"a":{"key":1}}"#, "[1]", ""] {
            assert_eq!(V1Responses.redact_secrets(body), body);
        }
    }
}

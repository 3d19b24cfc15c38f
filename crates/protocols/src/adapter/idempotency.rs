//! `Idempotency-Key`: the same request sent twice has one effect and one answer.
//!
//! The command's own record commits with its effect; the whole answer is stored afterwards. So a
//! repeat gets the first answer byte for byte, and after a crash in between it still gets the first
//! effect.
//!
//! A public read stores nothing: it has no effect to repeat, and any caller may make it. A stored
//! answer counts against its caller's quota. Without room for it the request is refused before it
//! runs.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{ConnectInfo, Request};
use axum::http::header::RETRY_AFTER;
use axum::http::{Extensions, HeaderValue, StatusCode};
use axum::response::Response;
use rialto_core::alias::Digest;
use rialto_core::idempotency::{Principal, SavedAnswer};
use rialto_core::refusal::Refusal;
use rialto_engine::Idempotency;

use super::api::ServedOperation;
use super::caller::Caller;
use super::peer::client_network;
use super::request::read_body;
use super::{EdgeError, HubContext};

/// The header.
pub const HEADER: &str = "idempotency-key";
/// Marks a repeated answer.
pub const REPLAYED: &str = "idempotency-replayed";
/// The longest key.
const KEY_MAX: usize = 256;
/// The longest answer that is stored.
const ANSWER_MAX: usize = 2 << 20;

/// A request extension: the command of this request must leave an idempotency record.
#[derive(Clone, Copy, Debug)]
pub struct RequestIdempotency(pub Idempotency);

/// A request extension: the epoch in which this node writes, and so decides without looking at the log
/// first.
#[derive(Clone, Copy, Debug, Default)]
pub struct WriterEpoch(pub Option<u64>);

/// Requests that are running now, by scope.
#[derive(Clone, Debug, Default)]
pub struct RunningRequests(Arc<std::sync::Mutex<HashMap<Digest, Arc<tokio::sync::Mutex<()>>>>>);

/// What an API adds: the caller where there is no credential, its refusals, and what must not be
/// stored.
pub trait IdempotencyResponses: Send + Sync {
    fn context(&self) -> &HubContext;

    fn invalid_key(&self) -> Response;
    /// The key was used with a body other than this one.
    fn body_mismatch(&self, body: &[u8]) -> Response;
    /// The answer could not be stored, so nothing was done.
    fn storage_full(&self, refusal: &Refusal) -> Response;
    /// The answer without its secrets.
    fn redact_secrets(&self, body: &str) -> String;
    /// The caller a body names, for hubs that accept it without proof.
    fn claimed_caller(&self, _body: &[u8]) -> Option<String> {
        None
    }
}

/// Calls an operation at most once for the idempotency key of the request.
pub async fn call_with_key(operation: Arc<ServedOperation>, request: Request) -> Response {
    let Some(responses) = operation.api.idempotency() else {
        return operation.call_handler(request).await;
    };
    let (mut parts, body) = request.into_parts();
    let caller = Caller::authenticate(&responses.context().engine, &mut parts);
    let request = Request::from_parts(parts, body);
    // A credential that is no longer valid gets its refusal, not an earlier answer.
    match caller {
        Err(_) | Ok(Caller::FormerAgent(_)) => operation.call_handler(request).await,
        Ok(caller) => call_at_most_once(&operation, responses, caller, request).await,
    }
}

/// The same, where the caller is known already.
pub async fn call_at_most_once(
    operation: &ServedOperation,
    responses: &dyn IdempotencyResponses,
    caller: Caller,
    request: Request,
) -> Response {
    let context = responses.context();
    let Some(key) = request.headers().get(HEADER).cloned() else {
        return operation.call_handler(request).await;
    };
    if key.is_empty() || key.len() > KEY_MAX {
        return responses.invalid_key();
    }
    let (mut parts, body) = request.into_parts();
    let body = match read_body(body).await {
        Ok(body) => body,
        Err(error) => return operation.api.error_response(error),
    };
    let principal = principal(caller, &parts.extensions);
    let caller = name(caller).or_else(|| responses.claimed_caller(&body)).unwrap_or_default();
    let path = operation.relative_path(parts.uri.path()).as_bytes();
    let query = parts.uri.query().unwrap_or_default().as_bytes();
    // A key used for the same path of another API is a new key here.
    let api = operation.api.prefix().as_bytes();
    let scope = Digest::of(&[b"once", api, caller.as_bytes(), path, key.as_bytes()]);
    let once = Idempotency { scope, request: Digest::of(&[&body, query]), principal };

    let _turn = context.running_requests.wait_for_turn(scope).await;
    match context.engine.saved_answer(once).await {
        Err(failure) => {
            tracing::warn!(%failure, "reading an idempotency record failed");
            operation.api.error_response(EdgeError::Overloaded)
        }
        Ok(Some(Ok((status, body)))) => replay(status, body),
        Ok(Some(Err(()))) => responses.body_mismatch(&body),
        Ok(None) => {
            // A request that has its record already has its room.
            if !context.engine.has_idempotency_record(scope)
                && let Err(refusal) = context.engine.check_record_capacity(principal)
            {
                return responses.storage_full(&refusal);
            }
            let WriterEpoch(epoch) = parts.extensions.get().copied().unwrap_or_default();
            parts.extensions.insert(RequestIdempotency(once));
            let request = Request::from_parts(parts, Body::from(body));
            let answer = operation.call_handler(request).await;
            if !is_still_running(&answer) {
                // A refusal of a node that does not write any more must not become the answer.
                if answer.status().is_client_error() && !context.engine.still_writes(epoch).await {
                    return operation.api.error_response(EdgeError::NotCurrent);
                }
                return save_answer(operation, responses, once, answer).await;
            }
            // Another node has run the first request meanwhile, and may have stored its answer.
            match context.engine.saved_answer(once).await {
                Ok(Some(Ok((status, body)))) => replay(status, body),
                _ => answer,
            }
        }
    }
}

/// Removes the request from the queue when it ends, also when the client disconnects.
struct QueueGuard {
    running: RunningRequests,
    scope: Digest,
}

/// The turn of a request among those with its scope. The next one has it when this is dropped.
pub struct Turn {
    // In this order: the guard looks whether another request holds the lock.
    _first_in_line: tokio::sync::OwnedMutexGuard<()>,
    _leaving: QueueGuard,
}

impl Drop for QueueGuard {
    fn drop(&mut self) {
        let mut running = self.running.lock();
        // Only the map still holds it: no other request waits.
        if running.get(&self.scope).is_some_and(|turn| Arc::strong_count(turn) == 1) {
            running.remove(&self.scope);
        }
    }
}

/// The caller by name and not by key: a rotated key is still the same caller.
fn name(caller: Caller) -> Option<String> {
    match caller {
        Caller::Agent(id) | Caller::FormerAgent(id) => Some(format!("agent {id}")),
        Caller::Operator => Some("operator".to_owned()),
        Caller::Anonymous => None,
    }
}

/// The principal whose quota an answer counts against. A caller that a body names without proof
/// counts by address, so that it cannot use up another caller's quota.
pub fn principal(caller: Caller, extensions: &Extensions) -> Principal {
    match caller {
        Caller::Agent(id) | Caller::FormerAgent(id) => Principal::Agent(id),
        Caller::Operator => Principal::Operator,
        Caller::Anonymous => {
            let address = extensions.get::<ConnectInfo<SocketAddr>>();
            Principal::Anonymous(
                match address.map(|ConnectInfo(address)| client_network(*address)) {
                    Some(IpAddr::V4(ip)) => Digest::of(&[b"address", &ip.octets()]),
                    Some(IpAddr::V6(ip)) => Digest::of(&[b"address", &ip.octets()]),
                    None => Digest::of(&[b"address"]),
                },
            )
        }
    }
}

fn replay(status: u16, body: String) -> Response {
    let mut answer = Response::new(Body::from(body));
    *answer.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::OK);
    let headers = answer.headers_mut();
    headers.insert("content-type", HeaderValue::from_static("application/json"));
    headers.insert(REPLAYED, HeaderValue::from_static("true"));
    answer
}

/// Stores the answer, unless a repeat is meant to get a new one.
async fn save_answer(
    operation: &ServedOperation,
    responses: &dyn IdempotencyResponses,
    once: Idempotency,
    answer: Response,
) -> Response {
    let status = answer.status().as_u16();
    // Without a key, a caller can repeat requests for missing or forbidden things without limit.
    let stranger = matches!(once.principal, Principal::Anonymous(_));
    let nothing_done = matches!(status, 400 | 401 | 413 | 415 | 429 | 500..)
        || stranger && matches!(status, 403..=405);
    if nothing_done || is_stream(&answer) {
        return answer;
    }
    let (parts, body) = answer.into_parts();
    let Ok(bytes) = axum::body::to_bytes(body, ANSWER_MAX).await else {
        return operation.api.error_response(EdgeError::Overloaded);
    };
    let text = String::from_utf8_lossy(&bytes);
    let saved = SavedAnswer::Answer { status, body: responses.redact_secrets(&text) };
    if let Err(failure) = responses.context().engine.run(once.save(saved)).await {
        // The effect has its own record, so a repeat is still harmless.
        tracing::warn!(%failure, "storing an idempotency record failed");
    }
    Response::from_parts(parts, Body::from(bytes))
}

/// Whether the first request with this key is still running: a repeat is meant to get its answer.
fn is_still_running(answer: &Response) -> bool {
    answer.status() == StatusCode::CONFLICT && answer.headers().contains_key(RETRY_AFTER)
}

/// A stream is passed on as it comes. Its subject has its own record, so a repeat gets the current
/// state.
fn is_stream(answer: &Response) -> bool {
    let kind = answer.headers().get(axum::http::header::CONTENT_TYPE);
    kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"))
}

impl RunningRequests {
    /// Waits until no other request with this scope runs.
    pub async fn wait_for_turn(&self, scope: Digest) -> Turn {
        let leaving = QueueGuard { running: self.clone(), scope };
        let first_in_line = self.turn(scope).lock_owned().await;
        Turn { _first_in_line: first_in_line, _leaving: leaving }
    }

    fn turn(&self, scope: Digest) -> Arc<tokio::sync::Mutex<()>> {
        self.lock().entry(scope).or_default().clone()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<Digest, Arc<tokio::sync::Mutex<()>>>> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One request from its place in the queue to its end.
    fn passes(running: &RunningRequests, scope: Digest) {
        let _leaving = QueueGuard { running: running.clone(), scope };
        let _turn = running.turn(scope);
    }

    #[test]
    fn the_last_waiting_request_leaves_no_entry() {
        let (running, scope) = (RunningRequests::default(), Digest::of(&[b"scope"]));
        let other = Digest::of(&[b"other"]);
        let waits = running.turn(scope);
        passes(&running, other);
        passes(&running, scope);
        assert!(Arc::ptr_eq(&waits, &running.turn(scope)), "another request still waits for it");
        assert_eq!(running.lock().len(), 1);
        drop(waits);
        passes(&running, scope);
        assert_eq!(running.lock().len(), 0);
    }

    #[test]
    fn only_a_stream_is_a_stream() {
        let mut answer = Response::new(Body::empty());
        assert!(!is_stream(&answer));
        for (kind, streams) in [("application/json", false), ("text/event-stream", true)] {
            let value = HeaderValue::from_static(kind);
            answer.headers_mut().insert(axum::http::header::CONTENT_TYPE, value);
            assert_eq!(is_stream(&answer), streams, "{kind}");
        }
    }
}

//! The openclaw endpoint: routes requests and parses their bodies.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::Method;
use http::request::Parts;
use rialto_protocols::kit::fields::Fields;
use rialto_protocols::kit::ijson;
use rialto_protocols::kit::query::Query;
use rialto_protocols::openclaw::wire::{self, AnyMessage, Message, Request};
use rialto_protocols::openclaw::{Code, Failure, TEXT_MAX};
use uuid::Uuid;
use uuid::fmt::Hyphenated;

use super::node::Node;
use super::service::CollaborationService;
use crate::agent::direct::{OpenedJournal, PeerIdentity, ProtocolEndpoint, ResponseFuture};
use crate::call::CallError;
use crate::http_server::{BodyError, HttpResponse, has_content_encoding};
use crate::worker::pool::WorkerPool;
use crate::{clock, ids};

/// The node's base path.
const PATH: &str = "/openclaw";
/// The longest wait of a poll, in seconds.
const WAIT_MAX_S: i64 = 30;
/// Header for a key that was used before with another body (R65).
const MISMATCH: (&str, &str) = ("idempotency-mismatch", "true");

/// The openclaw endpoint of a node that its peers call.
struct CollaborationEndpoint {
    node: Node,
    service: Arc<CollaborationService>,
}

type RouteResult = Result<HttpResponse, Failure>;

/// Creates the openclaw endpoint for these handlers; fails if their skills cannot be announced.
pub(crate) fn endpoint(
    identity: &PeerIdentity,
    pool: &Arc<WorkerPool>,
    journal: OpenedJournal,
) -> Result<impl ProtocolEndpoint + use<>, CallError> {
    let node = Node::new(identity, pool)?;
    let service = CollaborationService::open(node.id(), Arc::clone(pool), journal);
    Ok(CollaborationEndpoint { node, service })
}

impl ProtocolEndpoint for CollaborationEndpoint {
    fn name(&self) -> &'static str {
        "openclaw"
    }

    fn path(&self) -> &'static str {
        PATH
    }

    fn handle<'a>(&'a self, head: &'a Parts, body: Result<Bytes, BodyError>) -> ResponseFuture<'a> {
        Box::pin(
            async move { self.route(head, body).await.unwrap_or_else(|bad| error_response(&bad)) },
        )
    }
}

impl CollaborationEndpoint {
    async fn route(&self, head: &Parts, body: Result<Bytes, BodyError>) -> RouteResult {
        let below = head.uri.path().strip_prefix(PATH).unwrap_or_default();
        let path: Vec<_> = below.split('/').filter(|name| !name.is_empty()).collect();
        match (&head.method, path.as_slice()) {
            (&Method::POST, [] | ["messages"] | ["collaborations"]) => {
                let request =
                    read_request(&read(head, body)?, path.first() == Some(&"collaborations"))?;
                let id = request.body.correlation_id;
                let about = |bad| Failure { correlation_id: Some(id), ..bad };
                let (response, differs) = self.service.handle_request(request).map_err(about)?;
                let header = differs.then_some(MISMATCH);
                Ok(HttpResponse { header, ..HttpResponse::new(200, response.write()) })
            }
            (&Method::GET, ["identity"]) => ok_response(self.node.identity()),
            (&Method::GET, ["status"]) => ok_response(self.node.status()),
            (&Method::GET, ["reputation"]) => {
                ok_response(self.service.with_history(|record| self.node.reputation(record)))
            }
            (&Method::GET, ["health"]) => ok_response(self.node.health()),
            (&Method::GET, ["collaborations", id]) => {
                let query = Query::read(head.uri.query().unwrap_or_default())?;
                let wait = query.integer("wait", 0..=WAIT_MAX_S)?.unwrap_or(0).unsigned_abs();
                let wait = Duration::from_secs(wait);
                let collaboration = self.service.wait_for(parse_id(id)?, wait).await?;
                Ok(HttpResponse::new(200, collaboration.view()))
            }
            (&Method::POST, ["collaborations", id, "cancel"]) => {
                let reason = reason(&read(head, body)?)?;
                let end = self.service.cancel(parse_id(id)?, reason)?;
                Ok(HttpResponse::new(200, end.message.as_bytes()))
            }
            (_, path) => Err(unknown_route(path)),
        }
    }
}

/// Parses a body as a request. Other messages are refused: a node keeps no directory of agents.
fn read_request(body: &[u8], is_request: bool) -> Result<Message<Request>, Failure> {
    if is_request {
        return wire::read(body);
    }
    match AnyMessage::read(body)? {
        AnyMessage::Request(request) => Ok(request),
        _ => Err(Failure::invalid(
            "a node takes collaboration requests only; send other messages to a hub",
        )),
    }
}

/// The reason for a cancellation, if there is one.
fn reason(body: &[u8]) -> Result<Option<String>, Failure> {
    if body.is_empty() {
        return Ok(None);
    }
    let json = ijson::read(body)?;
    let fields = Fields::read(&json, "")?;
    let text = fields.text("reason")?;
    if text.is_some_and(|text| text.chars().count() > TEXT_MAX) {
        let problem = format!("has more than {TEXT_MAX} characters");
        return Err(Failure::from(fields.malformed("reason", problem)).in_answer_to(&json));
    }
    Ok(text.map(str::to_owned))
}

fn read(head: &Parts, body: Result<Bytes, BodyError>) -> Result<Bytes, Failure> {
    match body {
        Ok(_) if has_content_encoding(&head.headers) => Err(Failure::encoded_body()),
        Ok(body) => Ok(body),
        Err(BodyError::TooLong) => Err(Failure::too_large()),
        Err(BodyError::Incomplete) => Err(Failure::invalid("the body is incomplete")),
        Err(BodyError::TimedOut) => {
            Err(Failure { http_status: 408, ..Failure::invalid("the body took too long") })
        }
    }
}

fn parse_id(id: &str) -> Result<Uuid, Failure> {
    let id = id.parse::<Hyphenated>().map(Hyphenated::into_uuid);
    id.map_err(|_| Failure::not_found("collaboration"))
}

/// The error for an unknown path or a wrong method.
fn unknown_route(path: &[&str]) -> Failure {
    let known = matches!(
        path,
        [] | ["messages" | "collaborations" | "identity" | "status" | "reputation" | "health"]
            | ["collaborations", _]
            | ["collaborations", _, "cancel"]
    );
    if known {
        return Failure::new(Code::MethodNotAllowed, "method not allowed on this path");
    }
    Failure::not_found("path")
}

fn ok_response(text: Result<impl Into<Vec<u8>>, CallError>) -> RouteResult {
    text.map(|text| HttpResponse::new(200, text))
        .map_err(|_| Failure::internal("the random number generator failed"))
}

/// A refusal in the protocol's format.
fn error_response(failure: &Failure) -> HttpResponse {
    // Without randomness the response has no id of its own.
    let made = ids::random_id().unwrap_or_default();
    let retry_after_seconds = failure.retry_after_seconds;
    let body = failure.write(made, clock::now());
    let allow = (failure.code == Code::MethodNotAllowed).then_some("GET, POST");
    HttpResponse { retry_after_seconds, allow, ..HttpResponse::new(failure.http_status, body) }
}

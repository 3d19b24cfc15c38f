//! The openclaw endpoint: routes requests and parses their bodies.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::Method;
use http::request::Parts;
use rialto_protocols::kit::fields::Fields;
use rialto_protocols::kit::ijson;
use rialto_protocols::kit::query::Query;
use rialto_protocols::openclaw::message::{self, Any, Message, Request};
use rialto_protocols::openclaw::{Code, Failure, TEXT_MAX};
use uuid::Uuid;
use uuid::fmt::Hyphenated;

use super::service::Desk;
use super::node::Node;
use crate::agent::direct::Identity;
use crate::agent::direct::worker_pool::Bench;
use crate::agent::direct::router::{Answering, Endpoint};
use crate::agent::direct::journal::{Entry, Journal};
use crate::call::CallError;
use crate::http_server::{Answer, NoBody, is_encoded};
use crate::{clock, ids};

/// The node's base path.
const PATH: &str = "/openclaw";
/// The longest wait of a poll, in seconds.
const WAIT_MAX_S: i64 = 30;
/// Header for a key that was used before with another body (R65).
const MISMATCH: (&str, &str) = ("idempotency-mismatch", "true");

/// The openclaw endpoint of a node that its peers call.
pub(crate) struct Works {
    node: Node,
    desk: Arc<Desk>,
}

type Answered = Result<Answer, Failure>;

/// Creates the openclaw endpoint for these handlers; fails if their skills cannot be announced.
pub(crate) fn endpoint(
    identity: &Identity,
    bench: &Arc<Bench>,
    before: (Journal, Vec<Entry>),
) -> Result<impl Endpoint + use<>, CallError> {
    let node = Node::new(identity, bench)?;
    let desk = Desk::open(node.id(), Arc::clone(bench), before);
    Ok(Works { node, desk })
}

impl Endpoint for Works {
    fn name(&self) -> &'static str {
        "openclaw"
    }

    fn path(&self) -> &'static str {
        PATH
    }

    fn answer<'a>(&'a self, head: &'a Parts, body: Result<Bytes, NoBody>) -> Answering<'a> {
        Box::pin(async move { self.route(head, body).await.unwrap_or_else(|bad| refused(&bad)) })
    }
}

impl Works {
    async fn route(&self, head: &Parts, body: Result<Bytes, NoBody>) -> Answered {
        let below = head.uri.path().strip_prefix(PATH).unwrap_or_default();
        let path: Vec<_> = below.split('/').filter(|name| !name.is_empty()).collect();
        match (&head.method, path.as_slice()) {
            (&Method::POST, [] | ["messages"] | ["collaborations"]) => {
                let request = asked(&read(head, body)?, path.first() == Some(&"collaborations"))?;
                let id = request.said.correlation_id;
                let about = |bad| Failure { correlation_id: Some(id), ..bad };
                let (response, other) = self.desk.take(request).map_err(about)?;
                let header = other.then_some(MISMATCH);
                Ok(Answer { header, ..Answer::new(200, response.write()) })
            }
            (&Method::GET, ["identity"]) => said(self.node.identity()),
            (&Method::GET, ["status"]) => said(self.node.status()),
            (&Method::GET, ["reputation"]) => {
                said(self.desk.with_record(|record| self.node.reputation(record)))
            }
            (&Method::GET, ["health"]) => said(self.node.health()),
            (&Method::GET, ["collaborations", id]) => {
                let query = Query::read(head.uri.query().unwrap_or_default())?;
                let wait = query.integer("wait", 0..=WAIT_MAX_S)?.unwrap_or(0).unsigned_abs();
                let seen = self.desk.look(named(id)?, Duration::from_secs(wait)).await?;
                Ok(Answer::new(200, seen.view()))
            }
            (&Method::POST, ["collaborations", id, "cancel"]) => {
                let reason = reason(&read(head, body)?)?;
                let over = self.desk.cancel(named(id)?, reason)?;
                Ok(Answer::new(200, over.message.as_bytes()))
            }
            (_, path) => Err(misplaced(path)),
        }
    }
}

/// Parses a body as a request. Other messages are refused: a node keeps no directory of agents.
fn asked(body: &[u8], is_request: bool) -> Result<Message<Request>, Failure> {
    if is_request {
        return message::read(body);
    }
    match Any::read(body)? {
        Any::Request(request) => Ok(request),
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
    let fields = Fields::of(&json, "")?;
    let text = fields.text("reason")?;
    match text.filter(|text| text.chars().count() > TEXT_MAX) {
        Some(_) => {
            let says = format!("has more than {TEXT_MAX} characters");
            Err(Failure::from(fields.fail("reason", says)).about(&json))
        }
        None => Ok(text.map(str::to_owned)),
    }
}

fn read(head: &Parts, body: Result<Bytes, NoBody>) -> Result<Bytes, Failure> {
    match body {
        Ok(_) if is_encoded(&head.headers) => Err(Failure::encoded()),
        Ok(body) => Ok(body),
        Err(NoBody::TooLong) => Err(Failure::too_large()),
        Err(NoBody::BrokeOff) => Err(Failure::invalid("the body is incomplete")),
        Err(NoBody::TooSlow) => {
            Err(Failure { http: 408, ..Failure::invalid("the body took too long") })
        }
    }
}

fn named(id: &str) -> Result<Uuid, Failure> {
    let id = id.parse::<Hyphenated>().map(Hyphenated::into_uuid);
    id.map_err(|_| Failure::not_found("collaboration"))
}

/// The error for an unknown path or a wrong method.
fn misplaced(path: &[&str]) -> Failure {
    let known = matches!(
        path,
        [] | ["messages" | "collaborations" | "identity" | "status" | "reputation" | "health"]
            | ["collaborations", _]
            | ["collaborations", _, "cancel"]
    );
    match known {
        true => Failure::new(Code::MethodNotAllowed, "method not allowed on this path"),
        false => Failure::not_found("path"),
    }
}

fn said(text: Result<impl Into<Vec<u8>>, CallError>) -> Answered {
    text.map(|text| Answer::new(200, text))
        .map_err(|_| Failure::fault("the random number generator failed"))
}

/// A refusal in the protocol's format.
fn refused(failure: &Failure) -> Answer {
    // Without randomness the response has no id of its own.
    let made = ids::id().unwrap_or_default();
    let retry_after_seconds = failure.retry_after_seconds;
    let body = failure.write(made, clock::now());
    let allow = (failure.code == Code::MethodNotAllowed).then_some("GET, POST");
    Answer { retry_after_seconds, allow, ..Answer::new(failure.http, body) }
}

//! Routes the requests of one listener to the protocol endpoints by path.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use http::Method;
use http::header::ORIGIN;
use http::request::Parts;
use rialto_protocols::kit::object::ObjectWriter;

use super::identity::PeerIdentity;
use super::worker_pool::WorkerPool;
use crate::http_server::{BodyError, HttpResponse};

/// The future of an endpoint's response.
pub(crate) type ResponseFuture<'a> = Pin<Box<dyn Future<Output = HttpResponse> + Send + 'a>>;

/// One protocol's endpoint.
pub(crate) trait ProtocolEndpoint: Send + Sync {
    /// The protocol's name.
    fn name(&self) -> &'static str;

    /// The endpoint's base path: this path and all paths below it.
    fn path(&self) -> &'static str;

    /// Handles a request to one of these paths.
    fn handle<'a>(&'a self, head: &'a Parts, body: Result<Bytes, BodyError>) -> ResponseFuture<'a>;
}

/// All endpoints of one agent.
pub(super) struct EndpointRouter {
    identity: PeerIdentity,
    pool: Arc<WorkerPool>,
    endpoints: Vec<Box<dyn ProtocolEndpoint>>,
}

impl EndpointRouter {
    pub(super) fn new(
        identity: PeerIdentity,
        bench: Arc<WorkerPool>,
        endpoints: Vec<Box<dyn ProtocolEndpoint>>,
    ) -> Self {
        Self { identity, pool: bench, endpoints }
    }

    /// Handles one request.
    pub(super) async fn answer(
        &self,
        head: &Parts,
        body: Result<Bytes, BodyError>,
    ) -> HttpResponse {
        // Only browsers send `Origin`, and no peer is a browser. A web page open on this machine
        // must not be able to give the agent work.
        if head.headers.contains_key(ORIGIN) {
            return refuse(403, "forbidden", "requests from browser pages are refused");
        }
        let path = head.uri.path();
        match self.endpoints.iter().find(|endpoint| is_below(path, endpoint.path())) {
            Some(endpoint) => endpoint.handle(head, body).await,
            None if path != "/" => {
                let places: Vec<_> = self.endpoints.iter().map(|one| one.path()).collect();
                let said = format!("unknown path; the endpoints are {}", places.join(", "));
                refuse(404, "not_found", &said)
            }
            None if head.method == Method::GET => HttpResponse::new(200, self.about()),
            None => {
                let refused = refuse(405, "method_not_allowed", "only GET is allowed here");
                HttpResponse { allow: Some("GET"), ..refused }
            }
        }
    }

    /// The agent's name, its skills, and its endpoints.
    fn about(&self) -> String {
        let endpoints = self.endpoints.iter();
        let endpoints =
            endpoints.fold(ObjectWriter::new(), |all, one| all.text(one.name(), one.path()));
        let skills = self.pool.handlers().skills().map(|skill| {
            let object =
                ObjectWriter::new().text("name", &skill.name).text("about", &skill.description);
            object.raw("price", &skill.price.to_text(2)).finish()
        });
        let skills = format!("[{}]", skills.collect::<Vec<_>>().join(","));
        ObjectWriter::new()
            .text("name", self.identity.name())
            .uuid("agent_id", self.identity.id())
            .text("did", self.identity.signer().did())
            .raw("skills", &skills)
            .raw("endpoints", &endpoints.finish())
            .finish()
    }
}

fn is_below(path: &str, place: &str) -> bool {
    path.strip_prefix(place).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// A refusal that is not specific to a protocol.
fn refuse(status: u16, code: &str, message: &str) -> HttpResponse {
    let error = ObjectWriter::new().text("code", code).text("message", message).finish();
    HttpResponse::new(status, ObjectWriter::new().raw("error", &error).finish())
}

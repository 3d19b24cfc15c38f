//! Routes the requests of one listener to the protocol endpoints by path.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use http::Method;
use http::header::ORIGIN;
use http::request::Parts;
use rialto_protocols::kit::object::Object;

use super::worker_pool::Bench;
use super::identity::Identity;
use crate::http_server::{Answer, NoBody};

/// The future of an endpoint's response.
pub(crate) type Answering<'a> = Pin<Box<dyn Future<Output = Answer> + Send + 'a>>;

/// One protocol's endpoint.
pub(crate) trait Endpoint: Send + Sync {
    /// The protocol's name.
    fn name(&self) -> &'static str;

    /// The endpoint's base path: this path and all paths below it.
    fn path(&self) -> &'static str;

    /// Handles a request to one of these paths.
    fn answer<'a>(&'a self, head: &'a Parts, body: Result<Bytes, NoBody>) -> Answering<'a>;
}

/// All endpoints of one agent.
pub(super) struct Door {
    identity: Identity,
    bench: Arc<Bench>,
    endpoints: Vec<Box<dyn Endpoint>>,
}

impl Door {
    pub(super) fn new(
        identity: Identity,
        bench: Arc<Bench>,
        endpoints: Vec<Box<dyn Endpoint>>,
    ) -> Self {
        Self { identity, bench, endpoints }
    }

    /// Handles one request.
    pub(super) async fn answer(&self, head: &Parts, body: Result<Bytes, NoBody>) -> Answer {
        // Only browsers send `Origin`, and no peer is a browser. A web page open on this machine
        // must not be able to give the agent work.
        if head.headers.contains_key(ORIGIN) {
            return refuse(403, "forbidden", "requests from browser pages are refused");
        }
        let path = head.uri.path();
        match self.endpoints.iter().find(|endpoint| is_below(path, endpoint.path())) {
            Some(endpoint) => endpoint.answer(head, body).await,
            None if path != "/" => {
                let places: Vec<_> = self.endpoints.iter().map(|one| one.path()).collect();
                let said = format!("unknown path; the endpoints are {}", places.join(", "));
                refuse(404, "not_found", &said)
            }
            None if head.method == Method::GET => Answer::new(200, self.about()),
            None => {
                let refused = refuse(405, "method_not_allowed", "only GET is allowed here");
                Answer { allow: Some("GET"), ..refused }
            }
        }
    }

    /// The agent's name, its skills, and its endpoints.
    fn about(&self) -> String {
        let endpoints = self.endpoints.iter();
        let endpoints = endpoints.fold(Object::new(), |all, one| all.text(one.name(), one.path()));
        let skills = self.bench.shop().skills().map(|skill| {
            let object = Object::new().text("name", &skill.name).text("about", &skill.about);
            object.raw("price", &skill.price.text(2)).finish()
        });
        let skills = format!("[{}]", skills.collect::<Vec<_>>().join(","));
        Object::new()
            .text("name", self.identity.name())
            .id("agent_id", self.identity.id())
            .text("did", self.identity.signs().did())
            .raw("skills", &skills)
            .raw("endpoints", &endpoints.finish())
            .finish()
    }
}

fn is_below(path: &str, place: &str) -> bool {
    path.strip_prefix(place).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// A refusal that is not specific to a protocol.
fn refuse(status: u16, code: &str, message: &str) -> Answer {
    let error = Object::new().text("code", code).text("message", message).finish();
    Answer::new(status, Object::new().raw("error", &error).finish())
}

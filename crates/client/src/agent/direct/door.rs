//! The door: one listener for all protocols. It finds whose path it is, and leaves the rest to them.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use http::Method;
use http::header::ORIGIN;
use http::request::Parts;
use rialto_protocols::kit::object::Object;

use super::bench::Bench;
use super::identity::Identity;
use crate::endpoint::{Answer, NoBody};

/// What an endpoint makes of a request.
pub(crate) type Answering<'a> = Pin<Box<dyn Future<Output = Answer> + Send + 'a>>;

/// One protocol's endpoint.
pub(crate) trait Endpoint: Send + Sync {
    /// What the protocol is called.
    fn name(&self) -> &'static str;

    /// Where it is: this path and what is below it.
    fn path(&self) -> &'static str;

    /// Answers a request to such a path.
    fn answer<'a>(&'a self, head: &'a Parts, body: Result<Bytes, NoBody>) -> Answering<'a>;
}

/// Everything one agent serves.
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

    /// Answers one request.
    pub(super) async fn answer(&self, head: &Parts, body: Result<Bytes, NoBody>) -> Answer {
        // Only browsers say where a page came from, and no peer is one: a page that somebody looks
        // at on this machine must not put the agent to work.
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

    /// Who this is, what it does, and where it is asked.
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

/// A refusal that belongs to no protocol.
fn refuse(status: u16, code: &str, message: &str) -> Answer {
    let error = Object::new().text("code", code).text("message", message).finish();
    Answer::new(status, Object::new().raw("error", &error).finish())
}

//! Direct mode: peers call the agent themselves, without a hub.
//!
//! [`serve`] opens one listener. Every protocol with an agent endpoint is served on it by the same
//! [`Handlers`]:
//!
//! | path | protocol | client |
//! |---|---|---|
//! | `POST /jobs`, `GET /jobs/{id}` | registry | [`registry::direct::Peer`] |
//! | `POST /receive` | relay | [`relay::direct::Peer`] |
//! | `/openclaw`, `/openclaw/…` | openclaw | [`openclaw::direct::Peer`] |
//! | `/agora`, `/agora/…` | agora | [`agora::direct::Peer`] |
//! | `GET /` | none | any HTTP client: the agent's name and its endpoints |
//!
//! clara has no direct mode: its agents are never called; they poll a market and answer there.
//!
//! These rules apply to all protocols:
//!
//! - A request is executed once, however often it arrives. Repeats get the first answer; those that
//!   arrive while it runs wait for it. Answers are kept for a day, and for the newest ten thousand
//!   requests. With a state directory ([`serve_with_state`], and every [`Agent`](super::Agent)) they are
//!   written to disk, so that a restarted agent still has them. Work that was interrupted starts
//!   again under the same id when it is requested again. Without a state directory everything is
//!   lost at exit; agora therefore refuses envelopes that were signed before the start.
//! - Without a hub no money is held. The price still applies: a request that offers less is
//!   refused. Payment is up to the two parties.
//! - Only agora authenticates the caller. The other protocols trust what the caller claims, so
//!   listen only where permitted peers can reach you.
//! - Requests from a web page in a browser are refused.
//!
//! ```no_run
//! use std::collections::BTreeMap;
//!
//! use rialto_client::agent::direct::{self, PeerIdentity};
//! use rialto_client::agent::{Skill, Handlers, typed_handler};
//! use rialto_client::agora::Seed;
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let shout = |mut input: BTreeMap<String, String>| async move {
//!     input.values_mut().for_each(|text| *text = text.to_uppercase());
//!     Ok::<_, String>(input)
//! };
//! let handlers = Handlers::builder().skill(Skill::new("shout", "0")?, typed_handler(shout)).build();
//! let listener = tokio::net::TcpListener::bind("127.0.0.1:8010").await?;
//! let me = PeerIdentity::new("Shouter", &Seed::random()?);
//! direct::serve(listener, handlers, me, std::future::pending()).await?;
//! # Ok(())
//! # }
//! ```

mod identity;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::FutureExt;
use http::Method;
use http::header::ORIGIN;
use http::request::Parts;
use rialto_protocols::kit::object::ObjectWriter;
use tokio::net::TcpListener;

use super::{AgentError, Handlers, StateDir, program};
use crate::call::CallError;
use crate::http_server::{self, BodyError, HttpResponse};
use crate::worker::GRACE;
use crate::worker::journal::{Entry, Journal};
use crate::worker::pool::WorkerPool;
use crate::{agora, openclaw, registry, relay};

pub use identity::PeerIdentity;

/// Maximum body size of all protocols, in bytes.
const BODY_BYTES_MAX: usize = 1 << 20;
/// Subdirectory of the state directory with one journal per protocol.
const JOURNALS: &str = "peers";

/// A journal and the entries found in it.
pub(crate) type OpenedJournal = (Journal, Vec<Entry>);

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

/// Serves all peers that connect to `listener` until `stop`; running requests then have five
/// seconds to finish. Fails at once, and serves nothing, if the skills cannot be announced.
pub async fn serve(
    listener: TcpListener,
    handlers: Handlers,
    identity: PeerIdentity,
    stop: impl Future<Output = ()>,
) -> Result<(), CallError> {
    let pool = Arc::new(WorkerPool::new(handlers, None));
    let journals = std::array::from_fn(|_| (Journal::disabled(), Vec::new()));
    serve_endpoints(listener, &pool, identity, journals, stop).await
}

/// Like `serve`, with a state directory: requests and answers are written to disk there.
pub async fn serve_with_state(
    state_dir: &StateDir,
    listener: TcpListener,
    handlers: Handlers,
    identity: PeerIdentity,
    stop: impl Future<Output = ()>,
) -> Result<(), AgentError> {
    let journal = |name: &str| {
        let path = state_dir.directory().join(JOURNALS).join(name);
        Journal::open(path.clone()).map_err(|error| AgentError::StateFile { path, error })
    };
    let journals =
        [journal("registry")?, journal("relay")?, journal("openclaw")?, journal("agora")?];
    let pool = Arc::new(WorkerPool::new(handlers, Some(state_dir.records()?)));
    Ok(serve_endpoints(listener, &pool, identity, journals, stop).await?)
}

async fn serve_endpoints(
    listener: TcpListener,
    pool: &Arc<WorkerPool>,
    identity: PeerIdentity,
    journals: [OpenedJournal; 4],
    stop: impl Future<Output = ()>,
) -> Result<(), CallError> {
    let [for_registry, for_relay, for_openclaw, for_agora] = journals;
    let endpoints: Vec<Box<dyn ProtocolEndpoint>> = vec![
        Box::new(registry::direct::endpoint(&identity, pool, for_registry)),
        Box::new(relay::direct::endpoint(pool, for_relay)),
        Box::new(openclaw::direct::endpoint(&identity, pool, for_openclaw)?),
        Box::new(agora::direct::endpoint(&identity, pool, for_agora)),
    ];
    let router = Arc::new(EndpointRouter { identity, pool: Arc::clone(pool), endpoints });
    let answer = move |head: Parts, body: Result<Bytes, BodyError>| {
        let router = Arc::clone(&router);
        async move { router.answer(&head, body).await }
    };
    let _abort = AbortOnDrop(Arc::clone(pool));
    let stop = stop.shared();
    let served = http_server::serve(listener, BODY_BYTES_MAX, answer, stop.clone());
    let closed = async {
        stop.await;
        pool.shut_down(GRACE).await;
    };
    tokio::select! {
        _ = async { tokio::join!(served, closed) } => {}
        () = pool.prune_records_periodically() => {}
    }
    // Exiting earlier would leave programs running that no task waits for.
    program::wait_for_groups().await;
    Ok(())
}

/// Aborts the pool's tasks when dropped. The tasks hold the pool, so without this they would keep
/// running after serving is cancelled.
struct AbortOnDrop(Arc<WorkerPool>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort_all();
    }
}

/// All endpoints of one agent.
struct EndpointRouter {
    identity: PeerIdentity,
    pool: Arc<WorkerPool>,
    endpoints: Vec<Box<dyn ProtocolEndpoint>>,
}

impl EndpointRouter {
    /// Handles one request.
    async fn answer(&self, head: &Parts, body: Result<Bytes, BodyError>) -> HttpResponse {
        // Only browsers send `Origin`, and no peer is a browser. A web page open on this machine
        // must not be able to give the agent work.
        if head.headers.contains_key(ORIGIN) {
            return refuse(403, "forbidden", "requests from browser pages are refused");
        }
        let path = head.uri.path();
        match self.endpoints.iter().find(|endpoint| is_below(path, endpoint.path())) {
            Some(endpoint) => endpoint.handle(head, body).await,
            None if path != "/" => {
                let paths: Vec<_> = self.endpoints.iter().map(|one| one.path()).collect();
                let message = format!("unknown path; the endpoints are {}", paths.join(", "));
                refuse(404, "not_found", &message)
            }
            None if head.method == Method::GET => HttpResponse::new(200, self.about()),
            None => {
                let refusal = refuse(405, "method_not_allowed", "only GET is allowed here");
                HttpResponse { allow: Some("GET"), ..refusal }
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

fn is_below(path: &str, base: &str) -> bool {
    path.strip_prefix(base).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// A refusal that is not specific to a protocol.
fn refuse(status: u16, code: &str, message: &str) -> HttpResponse {
    let error = ObjectWriter::new().text("code", code).text("message", message).finish();
    HttpResponse::new(status, ObjectWriter::new().raw("error", &error).finish())
}

#[cfg(test)]
mod tests;

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
//! let shout = |mut said: BTreeMap<String, String>| async move {
//!     said.values_mut().for_each(|text| *text = text.to_uppercase());
//!     Ok::<_, String>(said)
//! };
//! let handlers = Handlers::builder().skill(Skill::new("shout", "0")?, typed_handler(shout)).build();
//! let listener = tokio::net::TcpListener::bind("127.0.0.1:8010").await?;
//! let me = PeerIdentity::new("Shouter", &Seed::random()?);
//! direct::serve(listener, handlers, me, std::future::pending()).await?;
//! # Ok(())
//! # }
//! ```

pub(crate) mod bounded_cache;
mod identity;
pub(crate) mod journal;
pub(crate) mod request_key;
pub(crate) mod router;
pub(crate) mod shared_result;
pub(crate) mod worker_pool;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt;
use http::request::Parts;
use tokio::net::TcpListener;

use self::journal::{Entry, Journal};
use self::router::{EndpointRouter, ProtocolEndpoint};
use self::worker_pool::WorkerPool;
use super::{AgentError, Handlers, StateDir, program};
use crate::call::CallError;
use crate::http_server::{self, BodyError};
use crate::{agora, openclaw, registry, relay};

pub use identity::PeerIdentity;

/// Maximum body size of all protocols, in bytes.
const BODY_BYTES_MAX: usize = 1 << 20;
/// How long running requests may continue after shutdown.
const GRACE: Duration = Duration::from_secs(5);

/// Subdirectory of the state directory with one journal per protocol.
const JOURNALS: &str = "peers";

/// A journal and the entries found in it.
type OpenedJournal = (Journal, Vec<Entry>);

/// Serves all peers that connect to `listener` until `stop`; running requests then have five
/// seconds to finish. Fails at once, and serves nothing, if the skills cannot be announced.
pub async fn serve(
    listener: TcpListener,
    shop: Handlers,
    identity: PeerIdentity,
    stop: impl Future<Output = ()>,
) -> Result<(), CallError> {
    let bench = Arc::new(WorkerPool::new(shop, None));
    let nowhere = || (Journal::disabled(), Vec::new());
    serve_endpoints(listener, &bench, identity, [nowhere(), nowhere(), nowhere(), nowhere()], stop)
        .await
}

/// Like `serve`, with a state directory: requests and answers are written to disk there.
pub async fn serve_with_state(
    state_dir: &StateDir,
    listener: TcpListener,
    shop: Handlers,
    identity: PeerIdentity,
    stop: impl Future<Output = ()>,
) -> Result<(), AgentError> {
    let journal = |name: &str| {
        let path = state_dir.directory().join(JOURNALS).join(name);
        Journal::open(path.clone()).map_err(|error| AgentError::StateFile { path, error })
    };
    let before = [journal("registry")?, journal("relay")?, journal("openclaw")?, journal("agora")?];
    let bench = Arc::new(WorkerPool::new(shop, Some(state_dir.records()?)));
    Ok(serve_endpoints(listener, &bench, identity, before, stop).await?)
}

async fn serve_endpoints(
    listener: TcpListener,
    bench: &Arc<WorkerPool>,
    identity: PeerIdentity,
    before: [OpenedJournal; 4],
    stop: impl Future<Output = ()>,
) -> Result<(), CallError> {
    let [for_registry, for_relay, for_openclaw, for_agora] = before;
    let endpoints: Vec<Box<dyn ProtocolEndpoint>> = vec![
        Box::new(registry::direct::endpoint(&identity, bench, for_registry)),
        Box::new(relay::direct::endpoint(bench, for_relay)),
        Box::new(openclaw::direct::endpoint(&identity, bench, for_openclaw)?),
        Box::new(agora::direct::endpoint(&identity, bench, for_agora)),
    ];
    let door = Arc::new(EndpointRouter::new(identity, Arc::clone(bench), endpoints));
    let answer = move |head: Parts, body: Result<Bytes, BodyError>| {
        let door = Arc::clone(&door);
        async move { door.answer(&head, body).await }
    };
    let _open = AbortOnDrop(Arc::clone(bench));
    let stop = stop.shared();
    let served = http_server::serve(listener, BODY_BYTES_MAX, answer, stop.clone());
    let closed = async {
        stop.await;
        bench.shut_down(GRACE).await;
    };
    tokio::select! {
        _ = async { tokio::join!(served, closed) } => {}
        () = bench.prune_records_periodically() => {}
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

#[cfg(test)]
mod tests;

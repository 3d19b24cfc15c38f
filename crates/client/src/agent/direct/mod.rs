//! Direct mode: an agent that its peers call themselves, with no hub between them.
//!
//! [`serve`] opens one listener on which every protocol with an agent endpoint of its own is
//! answered by the same [`Workshop`]:
//!
//! | path | protocol | who asks there |
//! |---|---|---|
//! | `POST /jobs`, `GET /jobs/{id}` | registry | [`registry::direct::Peer`] |
//! | `POST /receive` | relay | [`relay::direct::Peer`] |
//! | `/openclaw`, `/openclaw/…` | openclaw | [`openclaw::direct::Peer`] |
//! | `/agora`, `/agora/…` | agora | [`agora::direct::Peer`] |
//! | `GET /` | none | anybody: who this is, and where it is asked |
//!
//! clara has no place here: its agents are never called, they read a board and answer on it.
//!
//! What holds for all of them:
//!
//! - The same order is done once, however often it arrives: repeats get the first answer, and those
//!   that come while it runs wait for it. What was answered is remembered for a day, and for the
//!   newest ten thousand orders. In a seat ([`serve_in`], and every [`Agent`](super::Agent)) it is
//!   written down there, so that an agent that is killed and started again knows it, too. What was
//!   begun and not finished then is begun again under the same id when it is asked for again.
//!   Without a seat everything is forgotten at the end; agora's envelopes that were signed before the
//!   start are refused for that.
//! - Nobody holds money without a hub. A price is still a price: an order that offers less is
//!   refused, and settling what was promised is between the two.
//! - Only agora proves who asks. Everybody else's word is taken for it, so listen where only peers
//!   that may ask can reach you.
//! - Requests that come from a page in a browser are refused.
//!
//! ```no_run
//! use std::collections::BTreeMap;
//!
//! use rialto_client::agent::direct::{self, Identity};
//! use rialto_client::agent::{Skill, Workshop, typed};
//! use rialto_client::agora::Seed;
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let shout = |mut said: BTreeMap<String, String>| async move {
//!     said.values_mut().for_each(|text| *text = text.to_uppercase());
//!     Ok::<_, String>(said)
//! };
//! let shop = Workshop::setup().skill(Skill::new("shout", "0")?, typed(shout)).open();
//! let listener = tokio::net::TcpListener::bind("127.0.0.1:8010").await?;
//! let me = Identity::new("Shouter", &Seed::random()?);
//! direct::serve(listener, shop, me, std::future::pending()).await?;
//! # Ok(())
//! # }
//! ```

pub(crate) mod bench;
pub(crate) mod door;
mod identity;
pub(crate) mod journal;
pub(crate) mod ongoing;
pub(crate) mod scope;
pub(crate) mod shelf;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt;
use http::request::Parts;
use tokio::net::TcpListener;

use self::bench::Bench;
use self::door::{Door, Endpoint};
use self::journal::{Entry, Journal};
use super::{AgentError, Seat, Workshop, program};
use crate::call::CallError;
use crate::endpoint::{self, NoBody};
use crate::{agora, openclaw, registry, relay};

pub use identity::Identity;

/// The longest body any of the protocols takes.
const BODY_BYTES_MAX: usize = 1 << 20;
/// How long what runs may go on after the end.
const GRACE: Duration = Duration::from_secs(5);

/// Where the journals are in a seat, one for each protocol.
const JOURNALS: &str = "peers";

/// What was written down before, and where to write on.
type Before = (Journal, Vec<Entry>);

/// Answers every peer that comes to `listener` until `stop`; then what runs has five seconds to
/// finish. It fails at once if the skills cannot be announced, and nothing is served then.
pub async fn serve(
    listener: TcpListener,
    shop: Workshop,
    identity: Identity,
    stop: impl Future<Output = ()>,
) -> Result<(), CallError> {
    let bench = Arc::new(Bench::new(shop, None));
    let nowhere = || (Journal::nowhere(), Vec::new());
    answer_at(listener, &bench, identity, [nowhere(), nowhere(), nowhere(), nowhere()], stop).await
}

/// The same in a seat: what was asked and answered is written down there.
pub async fn serve_in(
    seat: &Seat,
    listener: TcpListener,
    shop: Workshop,
    identity: Identity,
    stop: impl Future<Output = ()>,
) -> Result<(), AgentError> {
    let journal = |name: &str| {
        let path = seat.directory().join(JOURNALS).join(name);
        Journal::open(path.clone()).map_err(|error| AgentError::State { path, error })
    };
    let before = [journal("registry")?, journal("relay")?, journal("openclaw")?, journal("agora")?];
    let bench = Arc::new(Bench::new(shop, Some(seat.records()?)));
    Ok(answer_at(listener, &bench, identity, before, stop).await?)
}

async fn answer_at(
    listener: TcpListener,
    bench: &Arc<Bench>,
    identity: Identity,
    before: [Before; 4],
    stop: impl Future<Output = ()>,
) -> Result<(), CallError> {
    let [for_registry, for_relay, for_openclaw, for_agora] = before;
    let endpoints: Vec<Box<dyn Endpoint>> = vec![
        Box::new(registry::direct::endpoint(&identity, bench, for_registry)),
        Box::new(relay::direct::endpoint(bench, for_relay)),
        Box::new(openclaw::direct::endpoint(&identity, bench, for_openclaw)?),
        Box::new(agora::direct::endpoint(&identity, bench, for_agora)),
    ];
    let door = Arc::new(Door::new(identity, Arc::clone(bench), endpoints));
    let answer = move |head: Parts, body: Result<Bytes, NoBody>| {
        let door = Arc::clone(&door);
        async move { door.answer(&head, body).await }
    };
    let _open = Open(Arc::clone(bench));
    let stop = stop.shared();
    let served = endpoint::serve(listener, BODY_BYTES_MAX, answer, stop.clone());
    let closed = async {
        stop.await;
        bench.close(GRACE).await;
    };
    tokio::select! {
        _ = async { tokio::join!(served, closed) } => {}
        () = bench.tidy() => {}
    }
    // Whoever ended before would leave programs running that nobody waits for.
    program::all_ended().await;
    Ok(())
}

/// A bench at which peers are served. Whoever stops serving in the middle stops the work, too: it holds
/// on to the bench, and would go on without anybody.
struct Open(Arc<Bench>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.abandon();
    }
}

#[cfg(test)]
mod tests;

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
//!   that come while it runs wait for it. What was answered is remembered in memory for a day, and
//!   for the newest ten thousand orders.
//! - Nobody holds money without a hub. A price is still a price: an order that offers less is
//!   refused, and settling what was promised is between the two.
//! - Only agora proves who asks. Everybody else's word is taken for it, so listen where only peers
//!   that may ask can reach you.
//! - Requests that come from a page in a browser are refused.
//!
//! ```no_run
//! use rialto_client::agent::direct::{self, Identity};
//! use rialto_client::agent::{Job, Outcome, Skill, Workshop};
//! use rialto_client::agora::Seed;
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let shout = |job: Job| async move { Outcome::Done(job.input.to_uppercase()) };
//! let shop = Workshop::setup().skill(Skill::new("shout", "0")?, shout).open();
//! let listener = tokio::net::TcpListener::bind("127.0.0.1:8010").await?;
//! let me = Identity::new("Shouter", &Seed::random()?);
//! direct::serve(listener, shop, me, std::future::pending()).await?;
//! # Ok(())
//! # }
//! ```

pub(crate) mod bench;
pub(crate) mod door;
mod identity;
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
use super::Workshop;
use crate::call::CallError;
use crate::endpoint::{self, NoBody};
use crate::{agora, openclaw, registry, relay};

pub use identity::Identity;

/// The longest body any of the protocols takes.
const BODY_BYTES_MAX: usize = 1 << 20;
/// How long what runs may go on after the end.
const GRACE: Duration = Duration::from_secs(5);

/// Answers every peer that comes to `listener` until `stop`; then what runs has five seconds to
/// finish. It fails at once if the skills cannot be announced, and nothing is served then.
pub async fn serve(
    listener: TcpListener,
    shop: Workshop,
    identity: Identity,
    stop: impl Future<Output = ()>,
) -> Result<(), CallError> {
    let bench = Arc::new(Bench::new(shop));
    let endpoints: Vec<Box<dyn Endpoint>> = vec![
        Box::new(registry::direct::endpoint(&identity, &bench)),
        Box::new(relay::direct::endpoint(&bench)),
        Box::new(openclaw::direct::endpoint(&identity, &bench)?),
        Box::new(agora::direct::endpoint(&identity, &bench)),
    ];
    let door = Arc::new(Door::new(identity, Arc::clone(&bench), endpoints));
    let answer = move |head: Parts, body: Result<Bytes, NoBody>| {
        let door = Arc::clone(&door);
        async move { door.answer(&head, body).await }
    };
    let stop = stop.shared();
    let served = endpoint::serve(listener, BODY_BYTES_MAX, answer, stop.clone());
    let closed = async {
        stop.await;
        bench.close(GRACE).await;
    };
    tokio::join!(served, closed);
    Ok(())
}

#[cfg(test)]
mod tests;

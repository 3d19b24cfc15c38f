//! A protocol's face: what it shows the hub, and what the hub gives it.

pub mod caller;
pub mod naming;
pub mod once;
pub mod route;
pub mod sent;
pub mod stopping;

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;

use axum::Router;
use axum::http::HeaderMap;
use axum::response::Response;
use bytes::Bytes;
use rialto_core::alias::Protocol;
use rialto_engine::Engine;
use rialto_engine::delivery::Courier;
use rialto_engine::delivery::egress::Egress;

use crate::{registry, relay};
pub use route::{Listed, Reach, Route};

/// What every protocol stands on. Shared by everybody, so cloning it costs nothing.
#[derive(Clone)]
pub struct Floor(Arc<Ground>);

/// The floor's own parts.
pub struct Ground {
    pub engine: Engine,
    pub egress: Arc<Egress>,
    /// The hub's own base URL, without a slash at the end.
    pub hub_url: String,
    pub body_limit: usize,
    pub settings: Settings,
    pub relay: relay::Room,
    /// Requests with an idempotency key that are running now.
    pub running: once::Running,
}

impl Floor {
    pub fn new(ground: Ground) -> Self {
        Self(Arc::new(ground))
    }
}

impl std::ops::Deref for Floor {
    type Target = Ground;

    fn deref(&self) -> &Ground {
        &self.0
    }
}

/// The protocols' own settings.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    pub registry: registry::Settings,
}

/// What the edge may refuse before a protocol sees the request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trouble {
    NotFound,
    MethodNotAllowed,
    WrongHost,
    ForeignOrigin,
    Encoded,
    TooLarge { limit: usize },
    TooManyRequests { retry_after_seconds: u64 },
    Overloaded,
    Malformed { what: &'static str },
    TooSlow,
    Broken,
}

/// A route that comes by the thousand, and its handler without router or layers before it.
pub struct Express {
    pub method: &'static str,
    pub path: &'static str,
    /// Requests with one of these headers take the usual way.
    pub unless: &'static [&'static str],
    pub handler: fn(Floor, HeaderMap, Reading) -> Answering,
}

/// A body that is read once somebody waits for it: a caller without a good key is refused first.
pub type Reading = Pin<Box<dyn Future<Output = Result<Bytes, Trouble>> + Send>>;

/// An answer in the making.
pub type Answering = Pin<Box<dyn Future<Output = Response> + Send>>;

/// One protocol, as the hub sees it.
pub trait Face: Send + Sync {
    /// Its id: prefix, folder and name.
    fn id(&self) -> Protocol;

    /// Its routes, relative to its prefix.
    fn routes(&self, floor: &Floor) -> Router;

    /// Those of its routes that are also served at the root.
    fn root_routes(&self, floor: &Floor) -> Router;

    /// Every route, for documents and tests.
    fn listed(&self) -> Vec<Listed>;

    /// How it words what is pushed to its agents.
    fn courier(&self, floor: &Floor) -> Arc<dyn Courier>;

    /// A refusal by the edge in its own shape.
    fn trouble(&self, trouble: Trouble) -> Response;

    /// Whether a registration posted at the root is meant for it.
    fn claims_registration(&self, body: &crate::kit::ijson::Json<'_>) -> bool;

    /// A registration that succeeds as it is, shown to who posted one that fits nobody.
    fn registration_example(&self) -> &'static str;

    /// Its own names for a new agent of any protocol.
    fn alias(&self, home: Protocol, native: &str, name: &str) -> Option<String>;

    /// The longest body it reads, where others read `general` bytes.
    fn body_limit(&self, general: usize) -> usize {
        general
    }

    /// Routes that are worth a shorter way, relative to its prefix and at the root alike.
    fn express(&self) -> &'static [Express] {
        &[]
    }

    /// Whether paths that belong to nobody are refused in its shape.
    fn owns_the_rest(&self) -> bool {
        false
    }
}

/// Couriers of all protocols.
pub fn couriers(floor: &Floor) -> HashMap<Protocol, Arc<dyn Courier>> {
    crate::ALL.iter().map(|face| (face.id(), face.courier(floor))).collect()
}

/// The names of a new agent in all protocols but its own.
pub fn aliases(home: Protocol, native: &str, name: &str) -> Vec<(Protocol, String)> {
    let others = crate::ALL.iter().filter(|face| face.id() != home);
    others.filter_map(|face| Some((face.id(), face.alias(home, native, name)?))).collect()
}

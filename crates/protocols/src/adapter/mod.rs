//! Protocol adapters: what a protocol implements for the hub, and the hub context it gets.

pub mod delivery_result;
pub mod caller;
pub mod inbox_stream;
pub mod fidelity;
pub mod input_check;
pub mod bridge;
pub mod naming;
pub mod idempotency;
pub mod peer;
pub mod operation;
pub mod body;
pub mod shown_jobs;
pub mod shutdown;

use std::collections::HashMap;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::http::{Extensions, HeaderMap};
use axum::response::Response;
use bytes::Bytes;
use rialto_core::agent::Agent;
use rialto_core::alias::Protocol;
use rialto_core::command::Command;
use rialto_core::id::AgentId;
use rialto_core::confusables::Likeness;
use rialto_core::notice::Notice;
use rialto_core::time::Timestamp;
use rialto_engine::delivery::Courier;
use rialto_engine::delivery::egress::Egress;
use rialto_engine::secret::HubSecret;
use rialto_engine::{Engine, Failure};

use crate::{agora, clara, openclaw, registry, relay};
pub use operation::{Listed, Reach, Route};

/// What adapters may use of the hub. Cheap to clone: all clones share one value.
#[derive(Clone)]
pub struct Floor(Arc<Ground>);

/// The parts of a [`Floor`].
pub struct Ground {
    pub engine: Engine,
    pub egress: Arc<Egress>,
    /// The hub's own base URL, without a trailing slash.
    pub hub_url: String,
    pub body_limit: usize,
    pub settings: Settings,
    pub relay: relay::Room,
    pub agora: agora::Room,
    pub openclaw: openclaw::Room,
    pub clara: clara::Settings,
    /// Rate limits for writes whose credential only the protocol can read.
    pub writes: Arc<dyn Writes>,
    /// Requests with an idempotency key that are running now.
    pub running: idempotency::Running,
    /// How many answers each agent waits for.
    pub waits: Mutex<BTreeMap<AgentId, u32>>,
    /// Agents whose endpoint is being checked.
    pub trying: Mutex<BTreeSet<AgentId>>,
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

/// Counts the writes of callers that authenticate by signing what they write.
pub trait Writes: Send + Sync {
    /// Counts one write, or refuses it when there were too many.
    fn count(&self, who: Signer<'_>) -> Result<(), Trouble>;

    /// Counts a signature check by client address.
    fn count_check(&self, from: Option<SocketAddr>) -> Result<(), Trouble>;

    /// Counts a sender the hub has not seen before, by client address.
    fn count_newcomer(&self, from: Option<SocketAddr>) -> Result<(), Trouble>;
}

/// A caller that signs what it writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Signer<'a> {
    /// An agent, counted together with its writes by other means.
    Agent(AgentId),
    /// A key or an account that is not registered as an agent.
    Name(&'a [u8]),
}

/// How many rows were read for an answer. Carried in the response's extensions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowsRead(pub usize);

/// No limit.
pub struct Unlimited;

impl Writes for Unlimited {
    fn count(&self, _: Signer<'_>) -> Result<(), Trouble> {
        Ok(())
    }

    fn count_check(&self, _: Option<SocketAddr>) -> Result<(), Trouble> {
        Ok(())
    }

    fn count_newcomer(&self, _: Option<SocketAddr>) -> Result<(), Trouble> {
        Ok(())
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

/// A hot operation whose handler is called directly, without router and middleware.
pub struct Express {
    pub method: &'static str,
    pub path: &'static str,
    /// Requests with one of these headers use the router instead.
    pub unless: &'static [&'static str],
    pub handler: fn(Floor, Head, Reading) -> Answering,
}

/// A request without its body.
#[derive(Debug)]
pub struct Head {
    pub headers: HeaderMap,
    /// What the hub has found out about the request so far.
    pub extensions: Extensions,
    /// The client's address.
    pub peer: Option<SocketAddr>,
}

/// A body that is read when polled, so that a caller without a valid key is refused first.
pub type Reading = Pin<Box<dyn Future<Output = Result<Bytes, Trouble>> + Send>>;

/// A response being computed.
pub type Answering = Pin<Box<dyn Future<Output = Response> + Send>>;

/// A task that runs until the hub stops and drops it.
pub type Background = Pin<Box<dyn Future<Output = ()> + Send>>;

/// One protocol, as the hub sees it.
pub trait Face: Send + Sync {
    /// Its id: prefix, folder and name.
    fn id(&self) -> Protocol;

    /// Its routes, relative to its prefix.
    fn routes(&self, floor: &Floor) -> Router;

    /// Those of its routes that are also served at the root.
    fn root_routes(&self, floor: &Floor) -> Router;

    /// Every operation, for the API document and tests.
    fn listed(&self) -> Vec<Listed>;

    /// Encodes the deliveries to its agents.
    fn courier(&self, floor: &Floor) -> Arc<dyn Courier>;

    /// What it runs in the background. Most protocols run nothing.
    fn background(&self, _: &Floor) -> Background {
        Box::pin(std::future::ready(()))
    }

    /// A refusal by the edge in the shape of this protocol.
    fn trouble(&self, floor: &Floor, trouble: Trouble) -> Response;

    /// Whether a registration posted at the root is meant for it.
    fn claims_registration(&self, body: &crate::kit::ijson::Json<'_>) -> bool;

    /// A registration that succeeds as it is, shown to a caller whose registration no protocol
    /// recognizes; `None` where agents do not register.
    fn registration_example(&self) -> Option<&'static str>;

    /// The alias it gives a new agent of any protocol; a different one if the first is taken.
    fn alias(&self, secret: &HubSecret, new: &Newcomer<'_>, taken: bool) -> Option<String>;

    /// The skeletons of one of its ids, where the hub must keep confusable ids of two owners apart.
    /// Empty where ids cannot be confused, or where the protocol checks that itself.
    fn looks(&self, _native: &str) -> Vec<String> {
        Vec::new()
    }

    /// Until when a message of this protocol is held back from its reader, if that is in the
    /// future.
    fn held_until(&self, _: &Notice, _now: Timestamp) -> Option<Timestamp> {
        None
    }

    /// How a job looks to its requesters and to its workers.
    fn sides(&self) -> &'static dyn fidelity::Sides;

    /// The agent behind a credential of this protocol that permits reading and nothing else.
    fn reader(&self, _: &Floor, _: &HeaderMap) -> Option<AgentId> {
        None
    }

    /// Whether its agents declare input schemas that the hub enforces for requesters of other
    /// protocols.
    fn checks_input(&self) -> bool {
        false
    }

    /// What is wrong with an input, by the schema of one of its agents; may be slow.
    fn misfit(&self, _: &Floor, _: &Arc<Agent>, _skill: &str, _input: &str) -> Option<String> {
        None
    }

    /// The longest body it reads, where others read `general` bytes.
    fn body_limit(&self, general: usize) -> usize {
        general
    }

    /// Operations served without the router, relative to its prefix and at the root alike.
    fn express(&self) -> &'static [Express] {
        &[]
    }

    /// Whether web pages of any origin may call all of it where the hub is published, and extra
    /// slashes in its paths are ignored: for protocols that trust only signatures.
    fn is_open_to_pages(&self) -> bool {
        false
    }

    /// Whether unknown paths are answered in its shape.
    fn owns_the_rest(&self) -> bool {
        false
    }
}

/// Which names are confusable, by the rules of all protocols.
pub fn likeness() -> Likeness {
    Likeness {
        owner: registry::owners::looks,
        native: |home, native| {
            let face = crate::ALL.iter().find(|face| face.id() == home);
            face.map_or_else(Vec::new, |face| face.looks(native))
        },
    }
}

/// The delivery encoders of all protocols.
pub fn couriers(floor: &Floor) -> HashMap<Protocol, Arc<dyn Courier>> {
    crate::ALL.iter().map(|face| (face.id(), face.courier(floor))).collect()
}

/// The background tasks of all protocols.
pub fn background(floor: &Floor) -> impl Future<Output = ()> + Send + use<> {
    let all = futures_util::future::join_all(crate::ALL.iter().map(|face| face.background(floor)));
    async { drop(all.await) }
}

/// An agent that has no aliases yet.
#[derive(Clone, Copy, Debug)]
pub struct Newcomer<'a> {
    pub home: Protocol,
    pub native: &'a str,
    /// Its display name.
    pub name: &'a str,
}

/// The aliases of a new agent in all protocols but its own.
pub fn aliases(engine: &Engine, new: Newcomer<'_>) -> Vec<(Protocol, String)> {
    let others = crate::ALL.iter().filter(|face| face.id() != new.home);
    let free =
        |protocol, name: &String| engine.look(|world| world.agent_named(protocol, name).is_none());
    let named = others.filter_map(|face| {
        let name = |long| face.alias(engine.secret(), &new, long);
        let name = name(false).filter(|name| free(face.id(), name)).or_else(|| name(true))?;
        Some((face.id(), name))
    });
    named.collect()
}

/// Gives agents aliases in protocols that the hub did not speak when they registered.
pub async fn complete_aliases(engine: &Engine) -> Result<(), Failure> {
    let missing: Vec<(AgentId, Protocol, String, String)> = engine.look(|world| {
        let complete = |face: &&dyn Face| world.names_in(face.id()) >= world.agents().len();
        if crate::ALL.iter().all(complete) {
            return Vec::new();
        }
        let lacks = |id| crate::ALL.iter().any(|face| world.name_of(id, face.id()).is_none());
        let lacking = world.agents().filter(|agent| lacks(agent.id));
        let shown =
            |agent: &Arc<Agent>| (agent.id, agent.home, agent.native.clone(), agent.name.clone());
        lacking.map(shown).collect()
    });
    for (agent, home, native, name) in missing {
        let aliases = aliases(engine, Newcomer { home, native: &native, name: &name });
        engine.run(Command::Name { agent, aliases }).await?;
    }
    Ok(())
}

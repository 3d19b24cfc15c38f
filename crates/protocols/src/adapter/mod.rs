//! Protocol adapters: what a protocol implements for the hub, and the hub context it gets.

pub mod api;
pub mod bridge;
pub mod caller;
pub mod context;
pub mod delivery_result;
mod edge_error;
pub mod fidelity;
pub mod guest;
pub mod idempotency;
pub mod inbox_stream;
pub mod input_check;
pub mod naming;
pub mod open_job;
pub mod operation;
pub mod own_server;
pub mod peer;
pub mod profile;
pub mod question_view;
pub mod rank;
pub mod request;
pub mod resume;
pub mod settings;
pub mod shown_jobs;
pub mod shutdown;
pub mod skill_schema;

use std::collections::HashMap;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;

use axum::http::HeaderMap;
use rialto_config::Layers;
use rialto_core::agent::{Agent, AgentState};
use rialto_core::alias::Protocol;
use rialto_core::command::Command;
use rialto_core::confusables::Confusables;
use rialto_core::id::AgentId;
use rialto_core::job::Cause;
use rialto_core::market::{MarketRecorder, Markets};
use rialto_core::notice::Notice;
use rialto_core::time::Timestamp;
use rialto_engine::delivery::DeliveryEncoder;
use rialto_engine::secret::HubSecret;
use rialto_engine::{Engine, Failure};
use serde_json::value::RawValue;

use crate::kit::fields::Malformed;
use crate::kit::ijson;

pub use api::{AllowedOrigins, Api};
pub use context::{HubContext, HubContextParts, ProtocolContext};
pub use edge_error::{EdgeError, NOT_CURRENT};
pub use operation::{Access, Freshness, Operation, OperationInfo, RateClass};
use profile::{ChangedProfile, ProfileChange};
use settings::ProtocolSettings;

/// The member of an agent's stored card that has the media types which it takes as input, in every
/// protocol that lets agents state them.
pub const INPUT_MODES: &str = "input_modes";

/// Counts the writes of callers that authenticate by signing what they write.
pub trait WriteLimiter: Send + Sync {
    /// Counts one write, or refuses it when there were too many.
    fn count_write(&self, signer: Signer<'_>) -> Result<(), EdgeError>;

    /// Counts a signature check by client address.
    fn count_signature_check(&self, from: Option<SocketAddr>) -> Result<(), EdgeError>;

    /// Counts a sender the hub has not seen before, by client address.
    fn count_new_sender(&self, from: Option<SocketAddr>) -> Result<(), EdgeError>;
}

/// A caller that signs what it writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Signer<'a> {
    /// An agent, counted together with its writes by other means.
    Agent(AgentId),
    /// A key or an account that is not registered as an agent.
    Unregistered(&'a [u8]),
}

/// How many rows were read for an answer. Carried in the response's extensions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowsRead(pub usize);

/// No limit.
pub struct Unlimited;

impl WriteLimiter for Unlimited {
    fn count_write(&self, _: Signer<'_>) -> Result<(), EdgeError> {
        Ok(())
    }

    fn count_signature_check(&self, _: Option<SocketAddr>) -> Result<(), EdgeError> {
        Ok(())
    }

    fn count_new_sender(&self, _: Option<SocketAddr>) -> Result<(), EdgeError> {
        Ok(())
    }
}

/// A task that runs until the hub stops and drops it.
pub type BackgroundTask = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A score being loaded.
pub type ScoreFuture<'a> =
    Pin<Box<dyn Future<Output = Result<Option<Box<RawValue>>, Failure>> + Send + 'a>>;

/// One protocol: what is known of it without a running hub.
pub trait ProtocolAdapter: Send + Sync {
    /// Its id: prefix, folder and name.
    fn id(&self) -> Protocol;

    /// Reads its settings. Together with [`settings::ProtocolSettings::open`] this is how a
    /// protocol gets its own state.
    fn read_settings(&self, layers: &mut Layers<'_>) -> Arc<dyn ProtocolSettings>;

    /// How its operations answer errors.
    fn errors(&self) -> operation::ErrorInfo;

    /// What writes the public records of its steps, if it is a market.
    fn market_recorder(&self) -> Option<Arc<dyn MarketRecorder>> {
        None
    }

    /// Its operations, for the API document and tests.
    fn operations(&self) -> Vec<OperationInfo>;

    /// Whether jobs that are opened at the hub's own API are jobs of this protocol. One is.
    fn is_api_protocol(&self) -> bool {
        false
    }

    /// Whether agents of all protocols are shown to models by their address in this one. One is.
    fn is_address_protocol(&self) -> bool {
        false
    }

    /// What a failure code of its workers means; an unknown code is an execution error.
    fn cause_of_code(&self, _code: &str) -> Cause {
        Cause::Execution
    }

    /// The alias it gives a new agent of any protocol; a different one if the first is taken.
    fn alias(&self, secret: &HubSecret, new: &NewAgent<'_>, taken: bool) -> Option<String>;

    /// The skeletons of one of its ids, where the hub must keep confusable ids of two owners apart.
    /// Empty where ids cannot be confused, or where the protocol checks that itself.
    fn agent_skeletons(&self, _native: &str) -> Vec<String> {
        Vec::new()
    }

    /// The skeletons of an owner's name, where its callers name owners.
    fn owner_skeletons(&self, _name: &str) -> Vec<String> {
        Vec::new()
    }

    /// Until when a message of this protocol is held back from its reader, if that is in the
    /// future.
    fn held_until(&self, _: &Notice, _now: Timestamp) -> Option<Timestamp> {
        None
    }

    /// What a stored message of this protocol says, if it is text and not the JSON itself.
    fn message_text(&self, _body: &str) -> Option<String> {
        None
    }

    /// What a change makes of the profile of one of its agents, or why its protocol does not allow
    /// that change.
    fn change_profile(
        &self,
        agent: &Agent,
        change: &ProfileChange,
    ) -> Result<ChangedProfile, Malformed> {
        Err(change.refuse(agent))
    }

    /// What the fields of its messages are about.
    fn field_map(&self) -> &'static dyn fidelity::FieldMap;

    /// Whether its agents declare input schemas that the hub enforces for requesters of other
    /// protocols.
    fn checks_input(&self) -> bool {
        false
    }

    /// How the score that it publishes comes about, in a sentence, if it publishes one.
    fn score_rule(&self) -> Option<&'static str> {
        None
    }

    /// The server of one of its agents, if the hub calls it there by itself.
    fn own_server(&self, _: &Agent) -> Option<own_server::OwnServerView> {
        None
    }
}

/// A protocol at a running hub: its settings, its keys and what it keeps in memory.
///
/// It does not hold the hub context, which holds it; a method that needs the context gets it.
pub trait OpenProtocol: Send + Sync {
    /// The protocol that was opened.
    fn adapter(&self) -> &'static dyn ProtocolAdapter;

    /// Its API: operations, error format and limits.
    fn api(self: Arc<Self>, context: &HubContext) -> Arc<dyn Api>;

    /// Encodes the deliveries to its agents.
    fn delivery_encoder(self: Arc<Self>, context: &HubContext) -> Arc<dyn DeliveryEncoder>;

    /// What it runs in the background. Most protocols run nothing.
    fn run_background_tasks(self: Arc<Self>, _: &HubContext) -> BackgroundTask {
        Box::pin(std::future::ready(()))
    }

    /// The messages that its agents saw of a job.
    fn job_messages(self: Arc<Self>, context: &HubContext) -> Box<dyn fidelity::JobMessages>;

    /// The agent behind a credential of this protocol that permits reading and nothing else.
    fn authenticate_reader(self: Arc<Self>, _: &HubContext, _: &HeaderMap) -> Option<AgentId> {
        None
    }

    /// The score it publishes of an agent, with every number needed to recompute it: a JSON object.
    fn published_score<'a>(&'a self, _: &'a Engine, _: &'a AgentState) -> ScoreFuture<'a> {
        Box::pin(std::future::ready(Ok(None)))
    }

    /// What is wrong with an input, by the schema of one of its agents; may be slow.
    fn input_error(&self, _: &Arc<Agent>, _skill: &str, _input: &str) -> Option<String> {
        None
    }
}

/// Which names are confusable, by the rules of all protocols.
pub fn confusables() -> Confusables {
    Confusables {
        owner_skeletons: |name| {
            crate::ALL.iter().flat_map(|adapter| adapter.owner_skeletons(name)).collect()
        },
        agent_skeletons: |home, native| {
            let adapter = crate::ALL.iter().find(|adapter| adapter.id() == home);
            adapter.map_or_else(Vec::new, |adapter| adapter.agent_skeletons(native))
        },
    }
}

/// The protocols that are markets.
pub fn markets() -> Markets {
    let recorder =
        |adapter: &&dyn ProtocolAdapter| Some((adapter.id(), adapter.market_recorder()?));
    crate::ALL.iter().filter_map(recorder).collect()
}

/// The protocol of jobs that are opened at the hub's own API.
pub fn api_protocol() -> &'static dyn ProtocolAdapter {
    let mut all = crate::ALL.iter().copied();
    all.find(|adapter| adapter.is_api_protocol()).expect("one protocol of the list says so")
}

/// The protocol with this id, if the hub speaks it.
pub fn protocol_by_id(id: Protocol) -> Option<&'static dyn ProtocolAdapter> {
    crate::ALL.iter().copied().find(|adapter| adapter.id() == id)
}

/// What a message says: its text where its protocol has one, a JSON string's text, else the JSON.
pub fn message_text(protocol: Protocol, body: &str) -> String {
    let own = protocol_by_id(protocol).and_then(|adapter| adapter.message_text(body));
    own.unwrap_or_else(|| match ijson::read(body.as_bytes()).as_ref().map(ijson::Json::value) {
        Ok(ijson::JsonValue::String(text)) => text.to_string(),
        _ => body.to_owned(),
    })
}

/// What a change makes of an agent's profile, by its home protocol.
pub fn change_profile(agent: &Agent, change: &ProfileChange) -> Result<ChangedProfile, Malformed> {
    match protocol_by_id(agent.home) {
        Some(adapter) => adapter.change_profile(agent, change),
        None => Err(change.refuse(agent)),
    }
}

/// The protocol whose addresses show models the agents of all protocols.
pub fn address_protocol() -> &'static dyn ProtocolAdapter {
    let mut all = crate::ALL.iter().copied();
    all.find(|adapter| adapter.is_address_protocol()).expect("one protocol of the list says so")
}

/// The delivery encoders of all protocols.
pub fn delivery_encoders(context: &HubContext) -> HashMap<Protocol, Arc<dyn DeliveryEncoder>> {
    let encoder = |protocol: &Arc<dyn OpenProtocol>| {
        (protocol.adapter().id(), protocol.clone().delivery_encoder(context))
    };
    context.protocols.iter().map(encoder).collect()
}

/// The background tasks of all protocols. Of several nodes, the one that writes runs them.
pub fn background(context: &HubContext) -> impl Future<Output = ()> + Send + use<> {
    let context = context.clone();
    // They see everything from now on, and not only from when they are first polled.
    let mut first = context.engine.is_writer().then(|| all_background_tasks(&context));
    async move {
        loop {
            context.engine.until_writer().await;
            let tasks = first.take().unwrap_or_else(|| all_background_tasks(&context));
            tokio::select! {
                () = tasks => return,
                () = context.engine.until_follower() => {}
            }
        }
    }
}

fn all_background_tasks(context: &HubContext) -> BackgroundTask {
    let begin = |protocol: &Arc<dyn OpenProtocol>| protocol.clone().run_background_tasks(context);
    let all = futures_util::future::join_all(context.protocols.iter().map(begin));
    Box::pin(async { drop(all.await) })
}

/// An agent that has no aliases yet.
#[derive(Clone, Copy, Debug)]
pub struct NewAgent<'a> {
    pub home: Protocol,
    pub native: &'a str,
    /// Its display name.
    pub name: &'a str,
}

/// The aliases of a new agent in all protocols but its own.
pub fn make_aliases(engine: &Engine, new: NewAgent<'_>) -> Vec<(Protocol, String)> {
    let others = crate::ALL.iter().filter(|adapter| adapter.id() != new.home);
    let free = |protocol, name: &String| {
        engine.with_world(|world| world.agent_by_alias(protocol, name).is_none())
    };
    let named = others.filter_map(|adapter| {
        let name = |long| adapter.alias(engine.hub_secret(), &new, long);
        let name = name(false).filter(|name| free(adapter.id(), name)).or_else(|| name(true))?;
        Some((adapter.id(), name))
    });
    named.collect()
}

/// Gives agents aliases in protocols that the hub did not speak when they registered.
pub async fn add_missing_aliases(engine: &Engine) -> Result<(), Failure> {
    let missing: Vec<(AgentId, Protocol, String, String)> = engine.with_world(|world| {
        let complete = |adapter: &&dyn ProtocolAdapter| {
            world.alias_count(adapter.id()) >= world.agents().len()
        };
        if crate::ALL.iter().all(complete) {
            return Vec::new();
        }
        let lacks =
            |id| crate::ALL.iter().any(|adapter| world.alias_of(id, adapter.id()).is_none());
        let lacking = world.agents().filter(|agent| lacks(agent.id));
        let shown = |agent: &Arc<Agent>| {
            (agent.id, agent.home, agent.native_id.clone(), agent.name.clone())
        };
        lacking.map(shown).collect()
    });
    for (agent, home, native, name) in missing {
        let aliases = make_aliases(engine, NewAgent { home, native: &native, name: &name });
        engine.run(Command::AddAliases { agent, aliases }).await?;
    }
    Ok(())
}

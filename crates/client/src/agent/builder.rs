//! The agent: its skills, its state directory, and the hub or listener it works for.

use std::fmt::Display;
use std::future::Future;
use std::path::PathBuf;
use std::sync::Arc;

use futures_util::FutureExt;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::net::TcpListener;

use super::direct::{self, PeerIdentity};
use super::error::AgentError;
use super::handler::{Handler, typed_handler};
use super::handlers::{Concurrency, Handlers, HandlersBuilder};
use super::hub::{AgentEvent, EventCallback, HubWorker};
use super::hub_registration::{HubRegistration, slug};
use super::program;
use super::record::JobRecords;
use super::skill::Skill;
use super::state_dir::StateDir;
use crate::call::{CallError, Hub};

/// The default parent of state directories.
const STATE: &str = ".rialto";

/// An agent: skills with handlers, working for a hub, for peers, or for both.
///
/// ```no_run
/// use rialto_client::Agent;
/// use rialto_client::agent::{Skill, shutdown_signal};
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Serialize, Deserialize)]
/// struct Text {
///     text: String,
/// }
///
/// async fn shout(input: Text) -> Result<Text, String> {
///     if input.text.is_empty() {
///         return Err("there is nothing to shout".to_owned());
///     }
///     Ok(Text { text: input.text.to_uppercase() })
/// }
///
/// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
/// Agent::new("shout")
///     .typed_skill(Skill::new("shout", "0.05")?, shout)
///     .hub("http://127.0.0.1:7425")
///     .run(shutdown_signal())
///     .await?;
/// # Ok(())
/// # }
/// ```
///
/// - It registers by itself and keeps its id and key in its state directory, so a restarted agent
///   is the same agent. It waits for a hub that is not reachable yet. If the hub was set up again,
///   the agent registers again. It is an error if the hub knows the agent and rejects its key, has
///   removed it, or has another program working with the same key.
/// - Each job is written to disk before it starts, and its outcome before it is reported, so the
///   program can be killed at any time. Only one program can use a state directory at a time.
/// - On `stop` it finishes what it can within seconds, returns the rest, and unregisters.
pub struct Agent {
    name: String,
    owner: Option<String>,
    accepts: Vec<String>,
    handlers: HandlersBuilder,
    /// Handlers that were built elsewhere, used instead.
    built: Option<Handlers>,
    state: StateLocation,
    key: Option<PathBuf>,
    hub: Option<String>,
    listener: Option<TcpListener>,
    on_event: EventCallback,
}

/// Where an agent's state is.
enum StateLocation {
    Path(PathBuf),
    Opened(StateDir),
}

impl Agent {
    /// An agent with this name and no skills yet.
    pub fn new(name: impl Into<String>) -> Self {
        let name = name.into();
        let state = StateLocation::Path(PathBuf::from(STATE).join(slug(&name)));
        Self {
            name,
            owner: None,
            accepts: Vec::new(),
            handlers: Handlers::builder(),
            built: None,
            state,
            key: None,
            hub: None,
            listener: None,
            on_event: Arc::new(|_| {}),
        }
    }

    /// Adds a media type that the agent takes as input, such as `text/*` or `*/*`. Protocols that have
    /// media types show them; without any the agent takes JSON and plain text.
    pub fn accepts(mut self, media_type: impl Into<String>) -> Self {
        self.accepts.push(media_type.into());
        self
    }

    /// Adds a skill and its handler.
    pub fn skill(mut self, skill: Skill, handler: impl Handler) -> Self {
        self.handlers = self.handlers.skill(skill, handler);
        self
    }

    /// Adds a skill and a function over your own types that handles it: see
    /// [`typed_handler`].
    pub fn typed_skill<T, U, E, W, F>(self, skill: Skill, work: F) -> Self
    where
        T: DeserializeOwned + 'static,
        U: Serialize + 'static,
        E: Display + 'static,
        W: Future<Output = Result<U, E>> + Send + 'static,
        F: Fn(T) -> W + Send + Sync + 'static,
    {
        self.skill(skill, typed_handler(work))
    }

    /// Uses these handlers instead of skills that were added one by one. Their skills may be replaced
    /// while the agent runs; then it registers again.
    pub fn handlers(mut self, handlers: Handlers) -> Self {
        self.built = Some(handlers);
        self
    }

    /// Sets how many jobs run at a time; others wait.
    pub fn concurrency(mut self, concurrency: Concurrency) -> Self {
        self.handlers = self.handlers.concurrency(concurrency);
        self
    }

    /// Sets the owner that receives the earnings. The default is the previous owner, or a new owner
    /// with its own account.
    pub fn owner(mut self, owner: impl Into<String>) -> Self {
        self.owner = Some(owner.into());
        self
    }

    /// Sets the state directory. The default is `.rialto/NAME` below the working directory.
    pub fn state_path(mut self, directory: impl Into<PathBuf>) -> Self {
        self.state = StateLocation::Path(directory.into());
        self
    }

    /// Uses a state directory that is already open, for handlers that need its records.
    pub fn state_dir(mut self, state_dir: StateDir) -> Self {
        self.state = StateLocation::Opened(state_dir);
        self
    }

    /// Sets the key file, which is written if it does not exist: see [`KeyFile`](crate::KeyFile).
    pub fn key_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.key = Some(path.into());
        self
    }

    /// Works for the hub at this URL.
    pub fn hub(mut self, url: impl Into<String>) -> Self {
        self.hub = Some(url.into());
        self
    }

    /// Serves peers that connect to this listener: see [`direct`](super::direct).
    pub fn listener(mut self, listener: TcpListener) -> Self {
        self.listener = Some(listener);
        self
    }

    /// Sets a callback for the agent's events. It must not block.
    pub fn on_event(mut self, callback: impl Fn(AgentEvent) + Send + Sync + 'static) -> Self {
        self.on_event = Arc::new(callback);
        self
    }

    /// Works until `stop`. An error stops the whole agent; unfinished jobs continue at the next
    /// start.
    pub async fn run(self, stop: impl Future<Output = ()>) -> Result<(), AgentError> {
        let hub = self.hub.as_deref().map(Hub::new).transpose()?;
        if hub.is_none() && self.listener.is_none() {
            return Err(AgentError::NoHubOrListener);
        }
        let state_dir = match self.state {
            StateLocation::Path(directory) => StateDir::open(directory)?,
            StateLocation::Opened(state_dir) => state_dir,
        };
        let state_dir = match self.key {
            Some(path) => state_dir.with_key_file(path),
            None => state_dir,
        };
        let records = state_dir.records()?;
        let handlers = self.built.unwrap_or_else(|| self.handlers.build());
        let stop = stop.shared();
        let (name, on_event) = (self.name.as_str(), &self.on_event);
        let for_peers = async {
            let Some(listener) = self.listener else { return Ok(()) };
            let identity = PeerIdentity::from_state_dir(name, &state_dir, hub.as_ref())?;
            if let Ok(address) = listener.local_addr() {
                let (agent, url) = (name.to_owned(), format!("http://{address}"));
                on_event(AgentEvent::ServingPeers { agent, url });
            }
            let (handlers, stop) = (handlers.clone(), stop.clone());
            direct::serve_with_state(&state_dir, listener, handlers, identity, stop).await
        };
        let for_hub = async {
            let Some(hub) = &hub else { return Ok(()) };
            let registration = HubRegistration {
                hub,
                state_dir: &state_dir,
                name,
                owner: self.owner.as_deref(),
                accepts: &self.accepts,
                handlers: &handlers,
                on_event,
                instance: &state_dir.instance()?,
            };
            work(&registration, &records, stop.clone()).await
        };
        let result = tokio::try_join!(for_peers, for_hub).map(|_| ());
        // Exiting before the programs would leave them running.
        handlers.close_handlers().await;
        program::wait_for_groups().await;
        result
    }
}

/// Works for the hub until `stop`.
async fn work(
    registration: &HubRegistration<'_>,
    records: &JobRecords,
    stop: impl Future<Output = ()> + Clone,
) -> Result<(), AgentError> {
    let HubRegistration { hub, name, handlers, on_event, instance, .. } = *registration;
    loop {
        let changes = handlers.watch_skills();
        let registered = tokio::select! {
            () = stop.clone() => return Ok(()),
            registered = registration.register() => registered?,
        };
        let with_key = hub.with_key(&registered.key);
        let renew = registration.renew_on_change(&registered, changes);
        let started = AgentEvent::Started {
            agent: name.to_owned(),
            agent_id: registered.agent_id.clone(),
            owner: registered.owner.clone(),
            hub: hub.base().to_owned(),
        };
        let worker =
            HubWorker::new(with_key, handlers.clone(), records.clone(), Arc::clone(on_event));
        let run = worker.start_event(started).instance(instance).run(stop.clone());
        let result = tokio::select! {
            result = run => result,
            never = renew => match never {},
        };
        match result {
            Ok(()) => return Ok(()),
            // A hub that was set up again does not know the key. The next registration checks once
            // whether it knows the agent; if it does, the key is really invalid.
            Err(CallError::Refused { status: 401, .. }) => on_event(AgentEvent::Reregistering),
            Err(error) => return Err(error.into()),
        }
    }
}

impl std::fmt::Debug for Agent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { name, hub, listener, .. } = self;
        f.debug_struct("Agent")
            .field("name", name)
            .field("hub", hub)
            .field("listener", listener)
            .finish_non_exhaustive()
    }
}

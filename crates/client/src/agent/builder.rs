//! The agent: its skills, its state directory, and the hub or listener it works for.

use std::fmt::Display;
use std::future::Future;
use std::path::PathBuf;
use std::sync::Arc;

use futures_util::FutureExt;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::net::TcpListener;

use super::direct::{self, Identity};
use super::hub_registration::{Enrolment, plain};
use super::handler::Handler;
use super::hub::{Post, Tell, Told};
use super::program;
use super::record::Records;
use super::state_dir::Seat;
use super::skill::Skill;
use super::error::AgentError;
use super::typed_handler::typed;
use super::handlers::{Room, Setup, Workshop};
use crate::call::{CallError, Hub};

/// The default parent of state directories.
const STATE: &str = ".rialto";

/// An agent: skills with handlers, working for a hub, for peers, or for both.
///
/// ```no_run
/// use rialto_client::Agent;
/// use rialto_client::agent::{Skill, told_to_stop};
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Serialize, Deserialize)]
/// struct Text {
///     text: String,
/// }
///
/// async fn shout(input: Text) -> Result<Text, String> {
///     match input.text.is_empty() {
///         true => Err("there is nothing to shout".to_owned()),
///         false => Ok(Text { text: input.text.to_uppercase() }),
///     }
/// }
///
/// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
/// Agent::named("shout")
///     .on(Skill::new("shout", "0.05")?, shout)
///     .at_hub("http://127.0.0.1:7425")
///     .run(told_to_stop())
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
    shop: Setup,
    place: Place,
    key: Option<PathBuf>,
    hub: Option<String>,
    listener: Option<TcpListener>,
    tell: Tell,
}

/// Where an agent's state is.
enum Place {
    At(PathBuf),
    Taken(Seat),
}

impl Agent {
    /// An agent with this name and no skills yet.
    pub fn named(name: impl Into<String>) -> Self {
        let name = name.into();
        let place = Place::At(PathBuf::from(STATE).join(plain(&name)));
        Self {
            name,
            owner: None,
            shop: Workshop::setup(),
            place,
            key: None,
            hub: None,
            listener: None,
            tell: Arc::new(|_| {}),
        }
    }

    /// Adds a skill and its handler.
    pub fn skill(mut self, skill: Skill, handler: impl Handler) -> Self {
        self.shop = self.shop.skill(skill, handler);
        self
    }

    /// Adds a skill and a function over your own types that handles it: see
    /// [`typed`](super::typed).
    pub fn on<T, U, E, W, F>(self, skill: Skill, work: F) -> Self
    where
        T: DeserializeOwned + 'static,
        U: Serialize + 'static,
        E: Display + 'static,
        W: Future<Output = Result<U, E>> + Send + 'static,
        F: Fn(T) -> W + Send + Sync + 'static,
    {
        self.skill(skill, typed(work))
    }

    /// Sets how many jobs run at a time; others wait.
    pub fn room(mut self, room: Room) -> Self {
        self.shop = self.shop.room(room);
        self
    }

    /// Sets the owner that receives the earnings. The default is the previous owner, or a new owner
    /// with its own account.
    pub fn owner(mut self, owner: impl Into<String>) -> Self {
        self.owner = Some(owner.into());
        self
    }

    /// Sets the state directory. The default is `.rialto/NAME` below the working directory.
    pub fn state(mut self, directory: impl Into<PathBuf>) -> Self {
        self.place = Place::At(directory.into());
        self
    }

    /// Uses a state directory that is already open, for handlers that need its records.
    pub fn seat(mut self, seat: Seat) -> Self {
        self.place = Place::Taken(seat);
        self
    }

    /// Sets the key file, which is written if it does not exist: see [`KeyFile`](crate::KeyFile).
    pub fn key_from(mut self, path: impl Into<PathBuf>) -> Self {
        self.key = Some(path.into());
        self
    }

    /// Works for the hub at this URL.
    pub fn at_hub(mut self, url: impl Into<String>) -> Self {
        self.hub = Some(url.into());
        self
    }

    /// Serves peers that connect to this listener: see [`direct`](super::direct).
    pub fn direct(mut self, listener: TcpListener) -> Self {
        self.listener = Some(listener);
        self
    }

    /// Sets a callback for the agent's events. It must not block.
    pub fn tell(mut self, tell: impl Fn(Told) + Send + Sync + 'static) -> Self {
        self.tell = Arc::new(tell);
        self
    }

    /// Works until `stop`. An error stops the whole agent; unfinished jobs continue at the next
    /// start.
    pub async fn run(self, stop: impl Future<Output = ()>) -> Result<(), AgentError> {
        let hub = self.hub.as_deref().map(Hub::new).transpose()?;
        if hub.is_none() && self.listener.is_none() {
            return Err(AgentError::Nowhere);
        }
        let seat = match self.place {
            Place::At(directory) => Seat::take(directory)?,
            Place::Taken(seat) => seat,
        };
        let seat = match self.key {
            Some(path) => seat.key_from(path),
            None => seat,
        };
        let records = seat.records()?;
        let shop = self.shop.open();
        let stop = stop.shared();
        let (name, tell, owner) = (self.name.as_str(), &self.tell, self.owner.as_deref());
        let for_peers = async {
            match self.listener {
                Some(listener) => {
                    let identity = Identity::of_seat(name, &seat, hub.as_ref())?;
                    serve(listener, identity, &seat, &shop, tell, stop.clone()).await
                }
                None => Ok(()),
            }
        };
        let for_hub = async {
            let Some(hub) = &hub else { return Ok(()) };
            let instance = &seat.instance()?;
            let enrolment =
                Enrolment { hub, seat: &seat, name, owner, shop: &shop, tell, instance };
            work(&enrolment, &records, stop.clone()).await
        };
        let ended = tokio::try_join!(for_peers, for_hub).map(|_| ());
        // Exiting before the programs would leave them running.
        shop.dismiss().await;
        program::all_ended().await;
        ended
    }
}

/// Serves peers until `stop`.
async fn serve(
    listener: TcpListener,
    identity: Identity,
    seat: &Seat,
    shop: &Workshop,
    tell: &Tell,
    stop: impl Future<Output = ()>,
) -> Result<(), AgentError> {
    if let Ok(address) = listener.local_addr() {
        let agent = identity.name().to_owned();
        tell(Told::ServesPeers { agent, url: format!("http://{address}") });
    }
    direct::serve_in(seat, listener, shop.clone(), identity, stop).await
}

/// Works for the hub until `stop`.
async fn work(
    enrolment: &Enrolment<'_>,
    records: &Records,
    stop: impl Future<Output = ()> + Clone,
) -> Result<(), AgentError> {
    let Enrolment { hub, name, shop, tell, .. } = enrolment;
    loop {
        let known = tokio::select! {
            () = stop.clone() => return Ok(()),
            known = enrolment.done() => known?,
        };
        let with_key = hub.with_key(&known.key);
        let at_work = Told::AtWork {
            agent: (*name).to_owned(),
            agent_id: known.agent_id,
            owner: known.owner,
            hub: hub.base().to_owned(),
        };
        let post = Post::new(with_key, (*shop).clone(), records.clone(), Arc::clone(tell));
        let post = post.greeting(at_work).instance(enrolment.instance);
        match post.work(stop.clone()).await {
            Ok(()) => return Ok(()),
            // A hub that was set up again does not know the key. The next registration checks once
            // whether it knows the agent; if it does, the key is really invalid.
            Err(CallError::Refused { status: 401, .. }) => tell(Told::Forgotten),
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

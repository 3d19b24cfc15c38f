//! The seat of an agent on this machine: its key, its records, and that nobody else sits there.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rialto_client::agent::Workshop;
use rialto_client::agent::post::{Entry, enrol};
use rialto_client::agora::Seed;
use rialto_client::{CallError, Hub};
use rialto_core::alias::Digest;
use serde_json::Value;
use tokio::time::sleep;

use super::super::super::access::{Access, Origin};
use super::super::super::context::{Context, home};
use super::super::super::key_file::KeyFile;
use super::super::super::trouble::Trouble;
use super::super::super::{keep, newcomer};
use super::flags::Args;
use super::plan::Plan;
use super::tell::Teller;

/// How many agents of one name are tried before somebody has to choose a name.
const SEATS_MAX: usize = 64;
/// How often a hub that is not there yet is looked for.
const LOOK: Duration = Duration::from_millis(500);

/// Where an agent sits.
pub struct Seat {
    name: String,
    directory: PathBuf,
    key: PathBuf,
    /// A key that somebody else keeps.
    lent: Option<KeyFile>,
    /// Held as long as the agent runs.
    _lock: File,
}

/// An agent that is registered.
pub struct Enrolled {
    pub agent_id: String,
    pub key: String,
    pub owner: String,
}

impl Seat {
    /// Takes the seat of a name, or the next one that is free if the name was not asked for.
    pub fn take(access: &Access, args: &Args, plan: &Plan) -> Result<Self, Trouble> {
        let lent = match access.origin()? {
            Origin::Variable => access.keys()?,
            Origin::File(_) | Origin::Context(_) => None,
        };
        let context = access.context()?;
        let base = place(&plan.name, access.key_file.as_deref(), lent.as_ref());
        for number in 1..=SEATS_MAX {
            let place = if number == 1 { base.clone() } else { format!("{base}-{number}") };
            let directory = context.agent_dir(&place)?;
            if let Some(lock) = locked(&directory)? {
                let key = access.key_file.clone().unwrap_or_else(|| directory.join("agent.key"));
                let name = if number == 1 { plan.name.clone() } else { place };
                return Ok(Self { name, directory, key, lent, _lock: lock });
            }
            if args.name.is_some() || access.key_file.is_some() || lent.is_some() {
                return Err(taken(&plan.name, &context));
            }
        }
        Err(taken(&plan.name, &context))
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// Where the records of its work are.
    pub fn jobs(&self) -> PathBuf {
        self.directory.join("jobs")
    }

    /// The hub it works for.
    pub fn hub<'a>(&self, access: &'a Access) -> &'a str {
        access.hub_url(None)
    }

    /// The seed of the key it signs with, made when it is first needed.
    pub fn seed(&self) -> Result<Seed, Trouble> {
        let path = self.directory.join("agora.key");
        if let Some(seed) = std::fs::read_to_string(&path).ok().and_then(|text| Seed::read(&text)) {
            return Ok(seed);
        }
        let seed = Seed::random()?;
        keep::file(&path, &format!("{}\n", seed.reveal()))
            .map_err(|error| home::unwritable(&path, &error))?;
        Ok(seed)
    }

    pub fn unwritable(&self, error: &io::Error) -> Trouble {
        home::unwritable(&self.directory, error)
    }

    /// Registers the agent, or what has changed of it. A hub that is not there yet is waited for.
    pub async fn enrol(
        &self,
        hub: &Hub,
        plan: &Plan,
        shop: &Workshop,
        teller: &Teller,
    ) -> Result<Enrolled, Trouble> {
        loop {
            match self.enrol_once(hub, plan, shop).await {
                Err(CallError::Unreachable { .. } | CallError::TimedOut { .. }) => {
                    teller.waits_for(hub);
                    sleep(LOOK).await;
                }
                Ok(enrolled) => return self.keep(hub, enrolled),
                Err(error) => return Err(error.into()),
            }
        }
    }

    async fn enrol_once(
        &self,
        hub: &Hub,
        plan: &Plan,
        shop: &Workshop,
    ) -> Result<Enrolled, CallError> {
        let known = match &self.lent {
            Some(lent) => Some(known_as(hub, lent).await?),
            None => KeyFile::load(&self.key).ok(),
        };
        let id = known.as_ref().and_then(|known| known.agent_id.as_deref());
        let listed = match id {
            Some(id) => owner_at(hub, id).await?,
            None => None,
        };
        let owner = match plan.owner.clone().or_else(|| listed.clone()).or_else(|| self.owner()) {
            Some(owner) => owner,
            None => newcomer::owner_of(&plain(&self.name))
                .map_err(|trouble| CallError::Unreadable(trouble.message))?,
        };
        let entry = Entry { name: &self.name, owner: &owner, id };
        let with_key = known.as_ref().map(|known| hub.with_key(known.key.reveal()));
        let done = match with_key {
            None => enrol(hub, &entry, shop).await,
            Some(with_key) => match enrol(&with_key, &entry, shop).await {
                // A hub that was set up anew: it never knew the agent.
                Err(CallError::Refused { status: 401, .. }) if listed.is_none() => {
                    enrol(hub, &entry, shop).await
                }
                done => done,
            },
        }?;
        Ok(Enrolled { agent_id: done.agent_id, key: done.api_key, owner })
    }

    fn keep(&self, hub: &Hub, enrolled: Enrolled) -> Result<Enrolled, Trouble> {
        if self.lent.is_none() {
            let keys = KeyFile {
                agent_id: Some(enrolled.agent_id.clone()),
                hub: Some(hub.base().to_owned()),
                ..KeyFile::of(&enrolled.key)
            };
            keys.replace(&self.key).map_err(|error| home::unwritable(&self.key, &error))?;
        }
        let owner = self.directory.join("owner");
        keep::file(&owner, &format!("{}\n", enrolled.owner))
            .map_err(|error| home::unwritable(&owner, &error))?;
        Ok(enrolled)
    }

    /// The owner it had here before.
    fn owner(&self) -> Option<String> {
        let text = std::fs::read_to_string(self.directory.join("owner")).ok()?;
        Some(text.trim().to_owned()).filter(|owner| !owner.is_empty())
    }
}

/// Whose key was lent, as the registry calls it.
async fn known_as(hub: &Hub, lent: &KeyFile) -> Result<KeyFile, CallError> {
    let me = hub.with_key(lent.key.reveal()).get("/v1/me").await?;
    let id = me.pointer("/agent/names/registry").and_then(Value::as_str).map(str::to_owned);
    Ok(KeyFile { agent_id: id, ..lent.clone() })
}

/// The owner of an agent that the hub lists.
async fn owner_at(hub: &Hub, id: &str) -> Result<Option<String>, CallError> {
    match hub.get(&format!("/registry/agents/{id}")).await {
        Ok(agent) => Ok(agent.get("owner_id").and_then(Value::as_str).map(str::to_owned)),
        Err(CallError::Refused { status: 404, .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// A directory of its own for each agent: those with keys of their own are told apart by these.
fn place(name: &str, key_file: Option<&Path>, lent: Option<&KeyFile>) -> String {
    let apart = match (key_file, lent) {
        (Some(path), _) => std::path::absolute(path).unwrap_or_else(|_| path.to_owned()).display().to_string(),
        (None, Some(lent)) => lent.key.reveal().to_owned(),
        (None, None) => return plain(name),
    };
    let digest = Digest::of(&[b"seat", apart.as_bytes()]);
    let number = digest.0.iter().take(4).map(|byte| format!("{byte:02x}")).collect::<String>();
    format!("{}-{number}", plain(name))
}

/// A name as directories have it.
fn plain(name: &str) -> String {
    let plain: String = name
        .to_lowercase()
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' })
        .take(40)
        .collect();
    let plain = plain.trim_matches('-');
    if plain.is_empty() { "agent".to_owned() } else { plain.to_owned() }
}

/// The seat, if nobody sits there. Whoever is killed leaves it.
fn locked(directory: &Path) -> Result<Option<File>, Trouble> {
    let path = directory.join("lock");
    let file = OpenOptions::new().create(true).append(true).open(&path);
    let file = file.map_err(|error| home::unwritable(&path, &error))?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(std::fs::TryLockError::WouldBlock) => Ok(None),
        Err(std::fs::TryLockError::Error(error)) => Err(home::unwritable(&path, &error)),
    }
}

fn taken(name: &str, context: &Context) -> Trouble {
    let message = format!("agent {name} of context {} runs already", context.name());
    Trouble::conflict(message, "give this one another name with --name")
}

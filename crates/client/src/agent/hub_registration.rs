//! Registration at a hub: under the agent's earlier id and key, or as a new agent.

use std::time::Duration;

use serde_json::Value;
use tokio::time::sleep;

use super::hub::{Enrolled, Entry, Tell, Told, enrol, is_ours, may_pass, pause};
use super::state_dir::Seat;
use super::error::{AgentError, OTHER_INSTANCE};
use super::handlers::Workshop;
use crate::call::{CallError, Hub};
use crate::key_file::KeyFile;

/// How often to check for a hub that is not reachable yet.
const LOOK: Duration = Duration::from_millis(500);
/// Maximum length of the agent name's part in a generated owner name.
const NAME_MAX: usize = 40;

/// An agent that registers at a hub.
pub(super) struct Enrolment<'a> {
    pub(super) hub: &'a Hub,
    pub(super) seat: &'a Seat,
    pub(super) name: &'a str,
    /// The owner that receives its earnings, if set.
    pub(super) owner: Option<&'a str>,
    pub(super) shop: &'a Workshop,
    pub(super) tell: &'a Tell,
    /// The instance id of this program.
    pub(super) instance: &'a str,
}

/// A registered agent.
pub(super) struct Known {
    pub(super) agent_id: String,
    pub(super) key: String,
    pub(super) owner: String,
}

impl Enrolment<'_> {
    /// Registers the agent or updates its registration, and saves its key. Waits for a hub that is
    /// not reachable yet.
    pub(super) async fn done(&self) -> Result<Known, AgentError> {
        loop {
            match self.once().await {
                Err(AgentError::Call(error)) if may_pass(&error) => {
                    (self.tell)(match &error {
                        CallError::Refused { code, .. }
                            if code == OTHER_INSTANCE || error.is_suspended() =>
                        {
                            Told::trouble("cannot go online", &error)
                        }
                        _ => Told::Waiting { hub: self.hub.base().to_owned() },
                    });
                    sleep(pause(&error, 1).max(LOOK)).await;
                }
                Ok(known) => return self.keep(known),
                Err(error) => return Err(error),
            }
        }
    }

    async fn once(&self) -> Result<Known, AgentError> {
        let keys = match self.seat.lent_key() {
            Some(lent) => Some(self.named(KeyFile::of(lent.reveal())).await?),
            None => self.seat.own_key()?,
        };
        let id = keys.as_ref().and_then(|keys| keys.agent_id.as_deref());
        let listed = match id {
            Some(id) => self.owner_of(id).await?,
            None => None,
        };
        let said = self.owner.map(str::to_owned);
        let owner = match said.or_else(|| listed.clone()).or_else(|| self.seat.owner()) {
            Some(owner) => owner,
            None => new_owner(self.name)?,
        };
        let entry = Entry { name: self.name, owner: &owner, id };
        let with_key = keys.as_ref().map(|keys| self.hub.with_key(keys.key.reveal()));
        // Checked first: registering would change the registration of an agent that runs elsewhere.
        if let Some(with_key) = &with_key {
            is_ours(with_key, self.instance).await?;
        }
        let done = match with_key {
            None => enrol(self.hub, &entry, self.shop).await,
            Some(with_key) => match enrol(&with_key, &entry, self.shop).await {
                Err(CallError::Refused { status: 401, .. }) => {
                    match self.known_before(&entry).await? {
                        Some(done) => Ok(done),
                        // A newly set up hub never knew the agent. A key without a known agent id
                        // could belong to anyone, and is not replaced.
                        None if listed.is_none() && id.is_some() => {
                            enrol(self.hub, &entry, self.shop).await
                        }
                        None => Err(refused()),
                    }
                }
                done => done,
            },
        }?;
        Ok(Known { agent_id: done.agent_id, key: done.api_key, owner })
    }

    /// Tries the archived keys. They were replaced while another hub was at this address.
    async fn known_before(&self, entry: &Entry<'_>) -> Result<Option<Enrolled>, CallError> {
        for keys in self.seat.keys_before() {
            let entry = Entry { id: keys.agent_id.as_deref(), ..entry.clone() };
            match enrol(&self.hub.with_key(keys.key.reveal()), &entry, self.shop).await {
                Err(CallError::Refused { status: 401 | 409, .. }) => {}
                done => return done.map(Some),
            }
        }
        Ok(None)
    }

    /// Adds the agent id that the hub reports for an external key.
    async fn named(&self, lent: KeyFile) -> Result<KeyFile, CallError> {
        let me = self.hub.with_key(lent.key.reveal()).get("/v1/me").await?;
        let id = me.pointer("/agent/names/registry").and_then(Value::as_str).map(str::to_owned);
        Ok(KeyFile { agent_id: id, ..lent })
    }

    /// The owner of an agent registered at the hub.
    async fn owner_of(&self, id: &str) -> Result<Option<String>, CallError> {
        match self.hub.get(&format!("/registry/agents/{id}")).await {
            Ok(agent) => Ok(agent.get("owner_id").and_then(Value::as_str).map(str::to_owned)),
            Err(CallError::Refused { status: 404, .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn keep(&self, known: Known) -> Result<Known, AgentError> {
        // Keep other data stored with the same key, such as a webhook secret.
        let before = self.seat.own_key()?.filter(|before| before.key.reveal() == known.key);
        let keys = KeyFile {
            agent_id: Some(known.agent_id.clone()),
            hub: Some(self.hub.base().to_owned()),
            ..before.unwrap_or_else(|| KeyFile::of(&known.key))
        };
        self.seat.keep_key(&keys)?;
        self.seat.keep_owner(&known.owner)?;
        Ok(known)
    }
}

/// The error for a key that the hub rejects.
fn refused() -> CallError {
    CallError::Refused {
        status: 401,
        code: "unauthorized".to_owned(),
        message: "the hub knows the agent but rejects its key".to_owned(),
        retryable: false,
        hint: None,
        retry_after: None,
    }
}

/// A new owner name for this agent; the digits make it unique.
fn new_owner(name: &str) -> Result<String, CallError> {
    let number = getrandom::u32().map_err(|error| {
        CallError::Unreadable(format!("the system's random number generator failed: {error}"))
    })?;
    Ok(format!("{}-{number:08x}", plain(name)))
}

/// Turns a name into one that is valid for a directory and an owner: lowercase letters, digits, `_`
/// and `-`. Returns `agent` if nothing is left.
pub fn plain(name: &str) -> String {
    let small = name.to_lowercase();
    let kept = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' };
    let plain: String = small.chars().map(kept).take(NAME_MAX).collect();
    let plain = plain.trim_matches('-');
    if plain.is_empty() { "agent".to_owned() } else { plain.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_plain() {
        for (name, wanted) in
            [("Shout It!", "shout-it"), ("a_b-1", "a_b-1"), ("../..", "agent"), ("", "agent")]
        {
            assert_eq!(plain(name), wanted);
        }
        assert_eq!(plain(&"x".repeat(99)).len(), NAME_MAX);
        assert!(new_owner("A b").expect("randomness").starts_with("a-b-"));
    }
}

//! Registration at a hub: under the agent's earlier id and key, or as a new agent.

use std::convert::Infallible;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::watch;
use tokio::time::sleep;

use super::error::{AgentError, OTHER_INSTANCE};
use super::handlers::Handlers;
use super::hub::{
    AgentEvent, AgentRegistration, EventCallback, RegistrationResponse, check_instance,
    register_agent, retry_delay,
};
use super::state_dir::StateDir;
use crate::call::{CallError, Hub};
use crate::key::KeyFile;
use crate::worker::retry_until_answered;

/// How often to check for a hub that is not reachable yet.
const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// Maximum length of the agent name's part in a generated owner name.
const NAME_MAX: usize = 40;

/// An agent that registers at a hub.
pub(super) struct HubRegistration<'a> {
    pub(super) hub: &'a Hub,
    pub(super) state_dir: &'a StateDir,
    pub(super) name: &'a str,
    /// The owner that receives its earnings, if set.
    pub(super) owner: Option<&'a str>,
    /// The media types that it takes as input, if set.
    pub(super) accepts: &'a [String],
    pub(super) handlers: &'a Handlers,
    pub(super) on_event: &'a EventCallback,
    /// The instance id of this program.
    pub(super) instance: &'a str,
}

/// A registered agent.
pub(super) struct RegisteredAgent {
    pub(super) agent_id: String,
    pub(super) key: String,
    pub(super) owner: String,
}

impl HubRegistration<'_> {
    /// Registers the agent or updates its registration, and saves its key. Waits for a hub that is
    /// not reachable yet.
    pub(super) async fn register(&self) -> Result<RegisteredAgent, AgentError> {
        loop {
            let error = match self.try_register().await {
                Err(AgentError::Call(error)) => error,
                Ok(registered) => return self.save(registered),
                Err(error) => return Err(error),
            };
            let Some(delay) = retry_delay(&error, 1) else { return Err(error.into()) };
            (self.on_event)(match &error {
                CallError::Refused { code, .. }
                    if code == OTHER_INSTANCE || error.is_suspended() =>
                {
                    AgentEvent::from_error("cannot go online", &error)
                }
                _ => AgentEvent::WaitingForHub { hub: self.hub.base().to_owned() },
            });
            sleep(delay.max(POLL_INTERVAL)).await;
        }
    }

    /// Registers the skills again whenever they were replaced.
    pub(super) async fn renew_on_change(
        &self,
        registered: &RegisteredAgent,
        mut changes: watch::Receiver<u64>,
    ) -> Infallible {
        let hub = self.hub.with_key(&registered.key);
        loop {
            if changes.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
            let entry = AgentRegistration {
                name: self.name,
                owner: &registered.owner,
                id: Some(&registered.agent_id),
                accepts: self.accepts,
            };
            let action = "cannot register the changed skills";
            let report = |error: &CallError| (self.on_event)(AgentEvent::from_error(action, error));
            let register = || register_agent(&hub, &entry, self.handlers);
            match retry_until_answered(retry_delay, report, register).await {
                Ok(_) => {
                    let skills = self.handlers.skills().map(|skill| skill.name.clone()).collect();
                    (self.on_event)(AgentEvent::SkillsChanged { skills });
                }
                Err(error) => report(&error),
            }
        }
    }

    async fn try_register(&self) -> Result<RegisteredAgent, AgentError> {
        let keys = match self.state_dir.external_key() {
            Some(key) => Some(self.identify_key(KeyFile::from_key(key.reveal())).await?),
            None => self.state_dir.load_key()?,
        };
        let id = keys.as_ref().and_then(|keys| keys.agent_id.as_deref());
        let listed = match id {
            Some(id) => self.owner_of(id).await?,
            None => None,
        };
        let given = self.owner.map(str::to_owned);
        let owner = match given.or_else(|| listed.clone()).or_else(|| self.state_dir.saved_owner())
        {
            Some(owner) => owner,
            None => generate_owner_name(self.name)?,
        };
        let accepts = self.accepts;
        let entry = AgentRegistration { name: self.name, owner: &owner, id, accepts };
        let with_key = keys.as_ref().map(|keys| self.hub.with_key(keys.key.reveal()));
        // Checked first: registering would change the registration of an agent that runs elsewhere.
        if let Some(with_key) = &with_key {
            check_instance(with_key, self.instance).await?;
        }
        let response = match with_key {
            None => register_agent(self.hub, &entry, self.handlers).await,
            Some(with_key) => match register_agent(&with_key, &entry, self.handlers).await {
                Err(CallError::Refused { status: 401, .. }) => {
                    match self.try_previous_keys(&entry).await? {
                        Some(response) => Ok(response),
                        // A newly set up hub never knew the agent. A key without a known agent id
                        // could belong to anyone, and is not replaced.
                        None if listed.is_none() && id.is_some() => {
                            register_agent(self.hub, &entry, self.handlers).await
                        }
                        None => Err(key_refused()),
                    }
                }
                response => response,
            },
        }?;
        Ok(RegisteredAgent { agent_id: response.agent_id, key: response.api_key, owner })
    }

    /// Tries the archived keys. They were replaced while another hub was at this address.
    async fn try_previous_keys(
        &self,
        entry: &AgentRegistration<'_>,
    ) -> Result<Option<RegistrationResponse>, CallError> {
        for keys in self.state_dir.previous_keys() {
            let entry = AgentRegistration { id: keys.agent_id.as_deref(), ..entry.clone() };
            match register_agent(&self.hub.with_key(keys.key.reveal()), &entry, self.handlers).await
            {
                Err(CallError::Refused { status: 401 | 409, .. }) => {}
                response => return response.map(Some),
            }
        }
        Ok(None)
    }

    /// Adds the agent id that the hub reports for an external key.
    async fn identify_key(&self, keys: KeyFile) -> Result<KeyFile, CallError> {
        let me = self.hub.with_key(keys.key.reveal()).get("/v1/me").await?;
        let id = me.pointer("/agent/names/registry").and_then(Value::as_str).map(str::to_owned);
        Ok(KeyFile { agent_id: id, ..keys })
    }

    /// The owner of an agent registered at the hub.
    async fn owner_of(&self, id: &str) -> Result<Option<String>, CallError> {
        match self.hub.get(&format!("/registry/agents/{id}")).await {
            Ok(agent) => Ok(agent.get("owner_id").and_then(Value::as_str).map(str::to_owned)),
            Err(CallError::Refused { status: 404, .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn save(&self, registered: RegisteredAgent) -> Result<RegisteredAgent, AgentError> {
        // Keep other data stored with the same key, such as a webhook secret.
        let before =
            self.state_dir.load_key()?.filter(|before| before.key.reveal() == registered.key);
        let keys = KeyFile {
            agent_id: Some(registered.agent_id.clone()),
            hub: Some(self.hub.base().to_owned()),
            ..before.unwrap_or_else(|| KeyFile::from_key(&registered.key))
        };
        self.state_dir.save_key(&keys)?;
        self.state_dir.save_owner(&registered.owner)?;
        Ok(registered)
    }
}

/// The error for a key that the hub rejects.
fn key_refused() -> CallError {
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
fn generate_owner_name(name: &str) -> Result<String, CallError> {
    let number = getrandom::u32().map_err(|error| {
        CallError::Unreadable(format!("the system's random number generator failed: {error}"))
    })?;
    Ok(format!("{}-{number:08x}", slug(name)))
}

/// Turns a name into one that is valid for a directory and an owner: lowercase letters, digits, `_`
/// and `-`. Returns `agent` if nothing is left.
pub fn slug(name: &str) -> String {
    let lower = name.to_lowercase();
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' };
    let slug: String = lower.chars().map(plain).take(NAME_MAX).collect();
    let slug = slug.trim_matches('-');
    if slug.is_empty() { "agent".to_owned() } else { slug.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_slugs() {
        for (name, expected) in
            [("Shout It!", "shout-it"), ("a_b-1", "a_b-1"), ("../..", "agent"), ("", "agent")]
        {
            assert_eq!(slug(name), expected);
        }
        assert_eq!(slug(&"x".repeat(99)).len(), NAME_MAX);
        assert!(generate_owner_name("A b").expect("randomness").starts_with("a-b-"));
    }
}

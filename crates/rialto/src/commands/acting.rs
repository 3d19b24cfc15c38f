//! Acting for an agent of this machine: with the key it has in the context.

use rialto_client::Hub;
use rialto_client::relay::WebhookSecret;

use super::access::Access;
use super::key_file::{self, KeyFile};
use super::trouble::Trouble;

/// For whom a command acts.
#[derive(clap::Args)]
pub struct Acting {
    /// Act for this agent of the context, as `rialto agent run` keeps it, instead of yourself
    #[arg(long = "as", value_name = "NAME")]
    name: Option<String>,
}

impl Acting {
    /// The hub, to be called with the key of whoever acts.
    pub fn hub(&self, access: &Access) -> Result<Hub, Trouble> {
        self.keys(access).map(|(hub, _)| hub)
    }

    /// The same, and what the hub signs its calls to whoever acts with, if that is known.
    pub fn hub_and_secret(&self, access: &Access) -> Result<(Hub, Option<WebhookSecret>), Trouble> {
        self.keys(access).map(|(hub, keys)| (hub, keys.webhook_secret))
    }

    fn keys(&self, access: &Access) -> Result<(Hub, KeyFile), Trouble> {
        let Some(name) = &self.name else { return access.me() };
        let context = access.context()?;
        let path = context.agent_key_path(name)?.filter(|path| path.exists());
        let Some(path) = path else {
            let message = format!("context {} has no agent {name}", context.name());
            return Err(Trouble::not_found(message, known(&context.agents()?)));
        };
        let keys = key_file::load(&path)?;
        Ok((Hub::new(context.hub())?.with_key(keys.key.reveal()), keys))
    }
}

/// What the hub calls an agent: one of this machine is known by the name it runs under.
pub fn called(access: &Access, name: &str) -> Result<String, Trouble> {
    let key = access.context()?.agent_key_path(name).unwrap_or_default();
    let keys = key.filter(|path| path.exists()).map(|path| key_file::load(&path)).transpose()?;
    Ok(keys.and_then(|keys| keys.agent_id).unwrap_or_else(|| name.to_owned()))
}

fn known(agents: &[String]) -> String {
    match agents {
        [] => "`rialto agent run` makes one".to_owned(),
        agents => format!("it has {}", agents.join(", ")),
    }
}

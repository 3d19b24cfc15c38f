//! Names of agents: agents of this machine by their local name, others by their name at the hub.

use std::collections::HashMap;

use rialto_client::CallError;

use super::context::Context;
use super::{CliError, CliResult, HubOptions, V1, key_file};

/// Pages of the hub's list searched for a name.
const PAGES_MAX: usize = 10;
/// Agents looked up per command; others are shown by their number.
const LOOKED_UP_MAX: usize = 50;

/// The hub's name of an agent. An agent of this machine is known by the name it runs under; others
/// by any alias in a protocol, or by their display name if it is unique.
pub async fn resolve_agent(options: &HubOptions, api: &V1, name: &str) -> CliResult<String> {
    let key = options.context()?.agent_key_path(name)?.filter(|path| path.exists());
    let keys = key.map(|path| key_file::load(&path)).transpose()?;
    if let Some(id) = keys.and_then(|keys| keys.agent_id) {
        return Ok(id);
    }
    if is_alias(api, name).await? {
        return Ok(name.to_owned());
    }
    let mut pages = api.agents(vec![("q", Some(name.to_owned()))]);
    let agents = pages.search(PAGES_MAX, usize::MAX, |agent| agent.name == name).await?;
    let numbers: Vec<u64> = agents.iter().map(|agent| agent.id).collect();
    single_number(name, &numbers, u64::to_string)
}

/// The number of the only agent with a name. If there is none, the name stays, and the hub reports
/// that it does not exist.
pub fn single_number(
    name: &str,
    numbers: &[u64],
    describe: impl Fn(&u64) -> String,
) -> CliResult<String> {
    match numbers {
        [] => Ok(name.to_owned()),
        [number] => Ok(number.to_string()),
        several => {
            let message = format!("{} agents have the name {name}", several.len());
            let numbers: Vec<String> = several.iter().map(describe).collect();
            let next = format!("use one of their numbers: {}", numbers.join(", "));
            Err(CliError::conflict(message, next))
        }
    }
}

/// Whether a name is a number or an alias, not a display name.
pub async fn is_alias(api: &V1, name: &str) -> Result<bool, CallError> {
    let is_number = name.bytes().all(|byte| byte.is_ascii_digit());
    if is_number || name.contains([':', '@']) || name.parse::<uuid::Uuid>().is_ok() {
        return Ok(true);
    }
    match api.agent(name).await {
        Err(CallError::Refused { status: 404, .. }) => Ok(false),
        // The command itself reports any other error.
        Err(CallError::Refused { .. }) | Ok(_) => Ok(true),
        Err(error) => Err(error),
    }
}

/// The error for an agent that does not exist in the context.
pub fn unknown_agent(context: &Context, name: &str) -> CliError {
    let message = format!("agent {name} not found in context {}", context.name());
    let next = match context.agents().unwrap_or_default().as_slice() {
        [] => "`rialto agent run` starts one".to_owned(),
        agents => format!("its agents are {}", agents.join(", ")),
    };
    CliError::not_found(message, next)
}

/// Names of agents by their number, each fetched once.
#[derive(Debug, Default)]
pub struct AgentNameCache(HashMap<u64, String>);

impl AgentNameCache {
    /// An agent's name, or its number with a mark if the hub no longer lists it.
    pub async fn get(&mut self, api: &V1, agent: Option<u64>) -> Option<String> {
        let agent = agent?;
        if let Some(name) = self.0.get(&agent) {
            return Some(name.clone());
        }
        let number = format!("#{agent}");
        if self.0.len() == LOOKED_UP_MAX {
            return Some(number);
        }
        let shown = api.agent(&agent.to_string()).await.and_then(|answer| answer.parse()).ok();
        let name = shown.map(|agent| agent.name).filter(|name| !name.is_empty());
        Some(self.0.entry(agent).or_insert(name.unwrap_or(number)).clone())
    }
}

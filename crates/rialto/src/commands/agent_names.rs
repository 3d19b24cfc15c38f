//! Resolves agent names: agents of this machine by their local name, others by their name at the
//! hub.

use rialto_client::{CallError, Hub};

use super::context::Context;
use super::error::CliError;
use super::hub_options::HubOptions;
use super::key_file;
use super::uri;
use super::views::{AgentView, Pages, get_text, parse_json};

/// Pages of the hub's list searched for a name, and agents per page.
const PAGES_MAX: usize = 10;
const PAGE_SIZE: usize = 200;

/// The hub's name of an agent. An agent of this machine is known by the name it runs under; others
/// by any alias in a protocol, or by their display name if it is unique.
pub async fn resolve_agent(access: &HubOptions, hub: &Hub, name: &str) -> Result<String, CliError> {
    let key = access.context()?.agent_key_path(name)?.filter(|path| path.exists());
    let keys = key.map(|path| key_file::load(&path)).transpose()?;
    if let Some(id) = keys.and_then(|keys| keys.agent_id) {
        return Ok(id);
    }
    if is_exact(name) || is_known(hub, name).await? {
        return Ok(name.to_owned());
    }
    let found = find_by_name(hub, name).await?;
    match found.as_slice() {
        // The hub reports that it does not exist.
        [] => Ok(name.to_owned()),
        [id] => Ok(id.to_string()),
        several => {
            let message = format!("{} agents have the name {name}", several.len());
            let numbers: Vec<String> = several.iter().map(u64::to_string).collect();
            let next = format!("use one of their numbers: {}", numbers.join(", "));
            Err(CliError::conflict(message, next))
        }
    }
}

/// Whether the name can only be a number or an alias, never a display name.
pub fn is_exact(name: &str) -> bool {
    let is_number = name.bytes().all(|byte| byte.is_ascii_digit());
    is_number || name.contains([':', '@']) || name.parse::<uuid::Uuid>().is_ok()
}

/// Whether the hub knows an agent by this alias.
pub async fn is_known(hub: &Hub, name: &str) -> Result<bool, CallError> {
    match get_text(hub, &format!("/v1/agents/{}", uri::encode_part(name))).await {
        Err(CallError::Refused { status: 404, .. }) => Ok(false),
        // The command itself reports any other error.
        Err(CallError::Refused { .. }) | Ok(_) => Ok(true),
        Err(error) => Err(error),
    }
}

/// The numbers of the agents with this display name.
async fn find_by_name(hub: &Hub, name: &str) -> Result<Vec<u64>, CallError> {
    let mut pages = Pages::new(hub, "/v1/agents", vec![("q", Some(name.to_owned()))]);
    let mut found = Vec::new();
    for _ in 0..PAGES_MAX {
        let Some(agents) = pages.next_page(PAGE_SIZE).await? else { break };
        for agent in agents {
            let agent: AgentView = parse_json(agent.get())?;
            if agent.name == name {
                found.push(agent.id);
            }
        }
    }
    Ok(found)
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

//! Agents by their names: those of this machine as they run here, others as their hub knows them.

use rialto_client::{CallError, Hub};

use super::access::Access;
use super::context::Context;
use super::key_file;
use super::trouble::Trouble;
use super::uri;
use super::views::{Agent, Pages, get, read};

/// Parts of the hub's list that are looked through for a name, and agents in each.
const PARTS_MAX: usize = 10;
const PART: usize = 200;

/// What the hub calls an agent. One of this machine is known by the name it runs under; others by
/// any of their names in a protocol, or by what they call themselves if only one does.
pub async fn called(access: &Access, hub: &Hub, name: &str) -> Result<String, Trouble> {
    let key = access.context()?.agent_key_path(name)?.filter(|path| path.exists());
    let keys = key.map(|path| key_file::load(&path)).transpose()?;
    if let Some(id) = keys.and_then(|keys| keys.agent_id) {
        return Ok(id);
    }
    if is_exact(name) || is_known(hub, name).await? {
        return Ok(name.to_owned());
    }
    let found = of_that_name(hub, name).await?;
    match found.as_slice() {
        // Whoever is asked for it says that there is none.
        [] => Ok(name.to_owned()),
        [id] => Ok(id.to_string()),
        several => {
            let message = format!("{} agents have the name {name}", several.len());
            let numbers: Vec<String> = several.iter().map(u64::to_string).collect();
            let next = format!("use one of their numbers: {}", numbers.join(", "));
            Err(Trouble::conflict(message, next))
        }
    }
}

/// Whether it can only be a number or a protocol's own name, which nobody calls itself.
pub fn is_exact(name: &str) -> bool {
    let is_number = name.bytes().all(|byte| byte.is_ascii_digit());
    is_number || name.contains([':', '@']) || name.parse::<uuid::Uuid>().is_ok()
}

/// Whether the hub knows an agent by this name in a protocol.
pub async fn is_known(hub: &Hub, name: &str) -> Result<bool, CallError> {
    match get(hub, &format!("/v1/agents/{}", uri::part(name))).await {
        Err(CallError::Refused { status: 404, .. }) => Ok(false),
        // What else is wrong with it, the command itself will say.
        Err(CallError::Refused { .. }) | Ok(_) => Ok(true),
        Err(error) => Err(error),
    }
}

/// The numbers of the agents that call themselves so.
async fn of_that_name(hub: &Hub, name: &str) -> Result<Vec<u64>, CallError> {
    let mut pages = Pages::new(hub, "/v1/agents", vec![("q", Some(name.to_owned()))]);
    let mut found = Vec::new();
    for _ in 0..PARTS_MAX {
        let Some(agents) = pages.more(PART).await? else { break };
        for agent in agents {
            let agent: Agent = read(agent.get())?;
            if agent.name == name {
                found.push(agent.id);
            }
        }
    }
    Ok(found)
}

/// There is no agent of this name here.
pub fn unknown(context: &Context, name: &str) -> Trouble {
    let message = format!("agent {name} not found in context {}", context.name());
    let next = match context.agents().unwrap_or_default().as_slice() {
        [] => "`rialto agent run` starts one".to_owned(),
        agents => format!("its agents are {}", agents.join(", ")),
    };
    Trouble::not_found(message, next)
}

//! `rialto operator revoke`, `suspend` and `resume`: revoke keys, suspend and resume agents and
//! owners.

use rialto_client::{CallError, Hub, Method};
use serde::Deserialize;

use super::super::agent_names::{is_exact, is_known};
use super::super::error::CliError;
use super::super::hub_options::HubOptions;
use super::super::output::{self, escape_line};
use super::super::uri;
use super::super::views::{Pages, parse_json};
use super::operator_client;
use crate::exit::Exit;

/// Pages of the list searched for a name, and agents per page.
const PAGES_MAX: usize = 50;
const PAGE: usize = 200;
/// The state of an unregistered agent.
const REMOVED: &str = "removed";

/// An agent as `GET /v1/operator/agents` lists it.
#[derive(Deserialize)]
struct ListedAgent {
    id: u64,
    name: String,
    owner: String,
    state: String,
}

#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  rialto operator revoke alice\n  rialto operator revoke 7\n\nAll keys of the agent stop working at once. `rialto operator suspend` can be undone."
)]
pub struct RevokeArgs {
    /// Agent: its number, its name as `operator agents` shows it, or a name in any protocol
    agent: String,
}

#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  rialto operator suspend alice\n  rialto operator suspend --owner acme\n\nIts key is refused with the reason, it gets no jobs, and others see it as offline. Inbox, credits,\nnames and keys stay unchanged until `rialto operator resume`. Running jobs end when their lease\nexpires."
)]
pub struct SuspendArgs {
    #[command(flatten)]
    whom: SuspendTarget,
}

#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  rialto operator resume alice\n  rialto operator resume --owner acme\n\nResuming an owner does not resume an agent that was suspended individually."
)]
pub struct ResumeArgs {
    #[command(flatten)]
    whom: SuspendTarget,
}

#[derive(clap::Args)]
#[group(required = true, multiple = false)]
struct SuspendTarget {
    /// Agent: its number, its name as `operator agents` shows it, or a name in any protocol
    agent: Option<String>,
    /// Owner, with all its agents
    #[arg(long, value_name = "NAME")]
    owner: Option<String>,
}

pub async fn revoke(access: &HubOptions, args: &RevokeArgs) -> Result<Exit, CliError> {
    let hub = operator_client(access)?;
    let path = format!("{}/revoke-keys", agent_path(&hub, &args.agent).await?);
    let done = format!("all keys of {} are revoked", escape_line(&args.agent));
    change(access, &hub, &path, done).await
}

pub async fn suspend(access: &HubOptions, args: &SuspendArgs) -> Result<Exit, CliError> {
    let hub = operator_client(access)?;
    let (path, name) = args.whom.path_and_name(&hub).await?;
    change(access, &hub, &format!("{path}/suspend"), format!("{name} is suspended")).await
}

pub async fn resume(access: &HubOptions, args: &ResumeArgs) -> Result<Exit, CliError> {
    let hub = operator_client(access)?;
    let (path, name) = args.whom.path_and_name(&hub).await?;
    change(access, &hub, &format!("{path}/resume"), format!("{name} is resumed")).await
}

impl SuspendTarget {
    async fn path_and_name(&self, hub: &Hub) -> Result<(String, String), CliError> {
        match (&self.agent, &self.owner) {
            (_, Some(owner)) => {
                Ok((format!("/v1/operator/owners/{}", uri::encode_part(owner)), escape_line(owner)))
            }
            (agent, None) => {
                let agent = agent.as_deref().unwrap_or_default();
                Ok((agent_path(hub, agent).await?, escape_line(agent)))
            }
        }
    }
}

/// The path of an agent: by its number, by an alias, or by the name that `operator agents` shows if
/// it is unique.
async fn agent_path(hub: &Hub, name: &str) -> Result<String, CliError> {
    let path = |name: &str| format!("/v1/operator/agents/{}", uri::encode_part(name));
    if is_exact(name) || is_known(hub, name).await? {
        return Ok(path(name));
    }
    let mut found = find_by_name(hub, name).await?;
    // An unregistered agent counts only if no other has the name.
    if found.iter().any(|agent| agent.state != REMOVED) {
        found.retain(|agent| agent.state != REMOVED);
    }
    match found.as_slice() {
        // The hub reports that it does not exist.
        [] => Ok(path(name)),
        [agent] => Ok(path(&agent.id.to_string())),
        several => {
            let shown = several.iter().map(|agent| format!("{} of {}", agent.id, agent.owner));
            let shown: Vec<String> = shown.collect();
            let message = format!("{} agents have the name {name}", several.len());
            let next = format!("use one of their numbers: {}", shown.join(", "));
            Err(CliError::conflict(message, next))
        }
    }
}

async fn find_by_name(hub: &Hub, name: &str) -> Result<Vec<ListedAgent>, CallError> {
    let mut pages = Pages::new(hub, "/v1/operator/agents", Vec::new());
    let mut found = Vec::new();
    for _ in 0..PAGES_MAX {
        let Some(agents) = pages.next_page(PAGE).await? else { break };
        for agent in agents {
            let agent: ListedAgent = parse_json(agent.get())?;
            if agent.name == name {
                found.push(agent);
            }
        }
    }
    Ok(found)
}

async fn change(
    access: &HubOptions,
    hub: &Hub,
    path: &str,
    done: String,
) -> Result<Exit, CliError> {
    let (_, answer) = hub.call_text(Method::POST, path, None).await.map_err(|error| {
        let next = "`rialto operator agents` lists agents and their owners";
        CliError::from(error).with_hint_on(Exit::NotFound, next)
    })?;
    let _ = output::print_line(if access.json { &answer } else { &done });
    Ok(Exit::Ok)
}

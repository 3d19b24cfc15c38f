//! `rialto agent show`: shows one agent.

use std::collections::BTreeMap;

use rialto_client::relay::ListedAgent;
use rialto_client::{CallError, Hub};
use serde_json::value::RawValue;

use super::super::agent_names::resolve_agent;
use super::super::error::CliError;
use super::super::hub_options::HubOptions;
use super::super::output::{self, escape_line};
use super::super::uri;
use super::super::views::{AgentView, get_text, parse_json};
use crate::exit::Exit;

/// The protocol whose agents a relay server knows.
const RELAY: &str = "relay";

#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  rialto agent show alice\n  rialto agent show alice@chorus --json\n  rialto agent show 7\n  rialto agent show registry:6f1c1f0e-4b0f-4c55-9a5e-1d2f3a4b5c6d\n\nAgents of this machine go by the name they run under, others by any name in any protocol or by\ntheir display name. If several agents share a name, write it as protocol:name. The --json document\nis the agent's record as the hub shows it. Needs no key."
)]
pub struct Args {
    /// The agent's number at the hub, or any of its names
    id: String,
}

/// An agent's record at the hub, and at the relay if it is a relay agent.
struct AgentDetails {
    known: Option<(String, AgentView)>,
    record: Option<ListedAgent>,
}

pub async fn run(access: &HubOptions, args: &Args) -> Result<Exit, CliError> {
    let (hub, _) = access.client()?;
    let id = resolve_agent(access, &hub, &args.id).await?;
    let found = find(access, &hub, &id).await?;
    let _ = match access.json {
        true => output::print_line(&found.document()?),
        false => output::print_line(&found.describe()),
    };
    Ok(Exit::Ok)
}

/// By any name first. A relay server may know more about its own agents, and may not be a hub.
async fn find(access: &HubOptions, hub: &Hub, id: &str) -> Result<AgentDetails, CliError> {
    let known = fetch_agent(hub, id).await?;
    if known.as_ref().is_some_and(|(_, agent)| agent.protocol != RELAY) {
        return Ok(AgentDetails { known, record: None });
    }
    let name = known.as_ref().and_then(|(_, agent)| agent.names.get(RELAY));
    let keys = access.load_key()?;
    let record =
        access.relay_server(keys.as_ref()).await?.agent(name.map_or(id, |name| name)).await?;
    let known = match known {
        Some(known) => Some(known),
        None => fetch_agent(hub, &format!("{RELAY}:{}", record.agent_id)).await?,
    };
    Ok(AgentDetails { known, record: Some(record) })
}

async fn fetch_agent(hub: &Hub, id: &str) -> Result<Option<(String, AgentView)>, CallError> {
    match get_text(hub, &format!("/v1/agents/{}", uri::encode_part(id))).await {
        Ok(text) => parse_json(&text).map(|agent| Some((text, agent))),
        Err(CallError::Refused { status: 404, .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

impl AgentDetails {
    /// One document: the relay's record and what the hub adds to it.
    fn document(&self) -> Result<String, CallError> {
        let texts = self.known.iter().map(|(text, _)| text.as_str());
        let records = self.record.iter().map(|record| record.raw().get());
        let mut whole = BTreeMap::new();
        for text in texts.chain(records) {
            let members: BTreeMap<String, Box<RawValue>> = parse_json(text)?;
            whole.extend(members);
        }
        serde_json::to_string(&whole).map_err(|error| CallError::Unreadable(error.to_string()))
    }

    fn describe(&self) -> String {
        let mut lines = Vec::new();
        if let Some(record) = &self.record {
            let registered = record.registered_at.as_deref();
            let details = [("registered", registered), ("endpoint", record.endpoint.as_deref())];
            lines.push(super::agent_line(record));
            let details = details.into_iter().filter_map(|(name, value)| Some((name, value?)));
            lines.extend(details.map(|(name, value)| format!("{name} {}", escape_line(value))));
        }
        if let Some((_, agent)) = &self.known {
            lines.extend(told(agent, self.record.is_none()));
        }
        lines.join("\n")
    }
}

/// The hub's record as lines. The first line is left out if the relay's record is shown above.
fn told(agent: &AgentView, alone: bool) -> Vec<String> {
    let state = if agent.online { "online" } else { "offline" };
    let mut lines = Vec::new();
    if alone {
        let (name, owner) = (escape_line(&agent.name), escape_line(&agent.owner));
        lines.push(format!("{name}  {}  {state}  owner {owner}", agent.protocol));
        lines.push(format!("registered {}", escape_line(&agent.registered_at)));
    }
    lines.push(format!("number {}", agent.id));
    lines.push(format!("score {} after {} jobs", agent.score.get(), agent.jobs_settled));
    lines.extend(agent.rank_text());
    let names = agent.names.iter();
    lines.extend(names.map(|(protocol, name)| format!("name {protocol}:{}", escape_line(name))));
    for skill in &agent.skills {
        let about = if skill.description.is_empty() { "" } else { "  " };
        let (name, price) = (escape_line(&skill.name), skill.price_text());
        lines.push(format!("skill {name}  {price}{about}{}", escape_line(&skill.description)));
        for (name, schema) in [("input", &skill.input_schema), ("output", &skill.output_schema)] {
            let schema = schema.as_deref().map(RawValue::get).filter(|schema| *schema != "{}");
            lines.extend(schema.map(|schema| format!("  {name} {}", escape_line(schema))));
        }
    }
    lines
}

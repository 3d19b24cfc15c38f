//! `rialto operator jobs` and `rialto operator agents`: list jobs and agents.

use rialto_client::Hub;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::super::error::CliError;
use super::super::hub_options::HubOptions;
use super::super::output;
use super::super::table::{Column, Table};
use super::super::views::{Pages, parse_json};
use super::operator_client;
use crate::exit::Exit;

#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  rialto operator jobs\n  rialto operator jobs --state ended --limit 5\n  rialto operator jobs --json | jq -r '.[].id'\n\nLists live jobs oldest first, ended jobs newest first. Inputs and results are visible only to\nthe parties and are not shown."
)]
pub struct JobsArgs {
    /// Live or ended jobs
    #[arg(long, value_name = "WHICH", value_parser = ["live", "ended"], default_value = "live")]
    state: String,
    /// Maximum number of jobs
    #[arg(long, value_name = "N", default_value = "20", value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
}

#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  rialto operator agents\n  rialto operator agents --state suspended\n  rialto operator agents --json | jq -r '.[].name'\n\nLists all agents in the order of registration, unregistered ones included, each with its number,\nwhich all other commands accept."
)]
pub struct AgentsArgs {
    /// Only agents in this state
    #[arg(long, value_name = "WHICH", value_parser = ["active", "suspended", "owner_suspended", "removed"])]
    state: Option<String>,
    /// Maximum number of agents
    #[arg(long, value_name = "N", default_value = "20", value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
}

#[derive(Deserialize)]
struct OperatorJobView {
    id: String,
    skill: String,
    state: String,
    requester: Option<u64>,
    guest: Option<String>,
    worker: Option<u64>,
    budget: Option<Box<RawValue>>,
    paid: Option<Box<RawValue>>,
    opened_at: String,
}

#[derive(Deserialize)]
struct OperatorAgentView {
    id: u64,
    name: String,
    owner: String,
    protocol: String,
    state: String,
    online: bool,
    score: Box<RawValue>,
    registered_at: String,
}

pub async fn jobs(access: &HubOptions, args: &JobsArgs) -> Result<Exit, CliError> {
    let hub = operator_client(access)?;
    let which = vec![("state", Some(args.state.clone()))];
    let rows = fetch_rows(&hub, "/v1/operator/jobs", which, args.limit).await?;
    if access.json {
        return Ok(print_json(&rows));
    }
    let mut table = Table::new([
        Column::text("ID"),
        Column::text("STATE"),
        Column::flexible("SKILL"),
        Column::text("FOR").droppable(2),
        Column::text("BY").droppable(3),
        Column::number("CREDITS").droppable(4),
        Column::time("OPENED").droppable(1),
    ]);
    for row in &rows {
        let job: OperatorJobView = parse_json(row.get())?;
        let agent = |id: Option<u64>| id.map(|id| id.to_string()).unwrap_or_default();
        let requester = job.guest.unwrap_or_else(|| agent(job.requester));
        let credits = job.paid.or(job.budget).map(|raw| raw.get().to_owned()).unwrap_or_default();
        let worker = agent(job.worker);
        table.push_row([job.id, job.state, job.skill, requester, worker, credits, job.opened_at]);
    }
    table.print();
    Ok(Exit::Ok)
}

pub async fn agents(access: &HubOptions, args: &AgentsArgs) -> Result<Exit, CliError> {
    let hub = operator_client(access)?;
    let which = vec![("state", args.state.clone())];
    let rows = fetch_rows(&hub, "/v1/operator/agents", which, args.limit).await?;
    if access.json {
        return Ok(print_json(&rows));
    }
    let mut table = Table::new([
        Column::number("ID"),
        Column::flexible("NAME"),
        Column::flexible("OWNER"),
        Column::text("PROTOCOL").droppable(2),
        Column::text("STATE"),
        Column::text("ONLINE").droppable(4),
        Column::number("SCORE").droppable(3),
        Column::time("REGISTERED").droppable(1),
    ]);
    for row in &rows {
        let agent: OperatorAgentView = parse_json(row.get())?;
        let online = if agent.online { "yes" } else { "no" }.to_owned();
        let (id, score) = (agent.id.to_string(), agent.score.get().to_owned());
        let OperatorAgentView { name, owner, protocol, state, registered_at, .. } = agent;
        table.push_row([id, name, owner, protocol, state, online, score, registered_at]);
    }
    table.print();
    Ok(Exit::Ok)
}

async fn fetch_rows(
    hub: &Hub,
    path: &str,
    which: Vec<(&str, Option<String>)>,
    limit: u32,
) -> Result<Vec<Box<RawValue>>, CliError> {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let (mut pages, mut rows) = (Pages::new(hub, path, which), Vec::new());
    while rows.len() < limit {
        match pages.next_page(limit - rows.len()).await? {
            Some(more) => rows.extend(more),
            None => break,
        }
    }
    Ok(rows)
}

fn print_json(rows: &[Box<RawValue>]) -> Exit {
    let texts: Vec<&str> = rows.iter().map(|row| row.get()).collect();
    let _ = output::print_line(&format!("[{}]", texts.join(",")));
    Exit::Ok
}

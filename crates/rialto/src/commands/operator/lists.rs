//! `rialto operator jobs` and `rialto operator agents`: list jobs and agents.

use rialto_client::Hub;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::super::hub_options::Access;
use super::super::output;
use super::super::table::{Column, Table};
use super::super::error::Trouble;
use super::super::views::{Pages, read};
use super::caller;
use crate::exit::Exit;

#[derive(clap::Args)]
#[command(
    before_help = "Examples:\n  rialto operator jobs\n  rialto operator jobs --state ended --limit 5\n  rialto operator jobs --json | jq -r '.[].id'\n\nLists live jobs oldest first, ended jobs newest first. Inputs and results are visible only to\nthe parties and are not shown."
)]
pub struct Jobs {
    /// Live or ended jobs
    #[arg(long, value_name = "WHICH", value_parser = ["live", "ended"], default_value = "live")]
    state: String,
    /// Maximum number of jobs
    #[arg(long, value_name = "N", default_value = "20", value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
}

#[derive(clap::Args)]
#[command(
    before_help = "Examples:\n  rialto operator agents\n  rialto operator agents --state suspended\n  rialto operator agents --json | jq -r '.[].name'\n\nLists all agents in the order of registration, unregistered ones included, each with its number,\nwhich all other commands accept."
)]
pub struct Agents {
    /// Only agents in this state
    #[arg(long, value_name = "WHICH", value_parser = ["active", "suspended", "owner_suspended", "removed"])]
    state: Option<String>,
    /// Maximum number of agents
    #[arg(long, value_name = "N", default_value = "20", value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
}

#[derive(Deserialize)]
struct Job {
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
struct Agent {
    id: u64,
    name: String,
    owner: String,
    protocol: String,
    state: String,
    online: bool,
    score: Box<RawValue>,
    registered_at: String,
}

pub async fn jobs(access: &Access, args: &Jobs) -> Result<Exit, Trouble> {
    let hub = caller(access)?;
    let which = vec![("state", Some(args.state.clone()))];
    let rows = listed(&hub, "/v1/operator/jobs", which, args.limit).await?;
    if access.json {
        return Ok(as_json(&rows));
    }
    let mut table = Table::new([
        Column::text("ID"),
        Column::text("STATE"),
        Column::free("SKILL"),
        Column::text("FOR").left_out(2),
        Column::text("BY").left_out(3),
        Column::number("CREDITS").left_out(4),
        Column::time("OPENED").left_out(1),
    ]);
    for row in &rows {
        let job: Job = read(row.get())?;
        let agent = |id: Option<u64>| id.map(|id| id.to_string()).unwrap_or_default();
        let requester = job.guest.unwrap_or_else(|| agent(job.requester));
        let credits = job.paid.or(job.budget).map(|raw| raw.get().to_owned()).unwrap_or_default();
        let worker = agent(job.worker);
        table.row([job.id, job.state, job.skill, requester, worker, credits, job.opened_at]);
    }
    table.print();
    Ok(Exit::Ok)
}

pub async fn agents(access: &Access, args: &Agents) -> Result<Exit, Trouble> {
    let hub = caller(access)?;
    let which = vec![("state", args.state.clone())];
    let rows = listed(&hub, "/v1/operator/agents", which, args.limit).await?;
    if access.json {
        return Ok(as_json(&rows));
    }
    let mut table = Table::new([
        Column::number("ID"),
        Column::free("NAME"),
        Column::free("OWNER"),
        Column::text("PROTOCOL").left_out(2),
        Column::text("STATE"),
        Column::text("ONLINE").left_out(4),
        Column::number("SCORE").left_out(3),
        Column::time("REGISTERED").left_out(1),
    ]);
    for row in &rows {
        let agent: Agent = read(row.get())?;
        let online = if agent.online { "yes" } else { "no" }.to_owned();
        let (id, score) = (agent.id.to_string(), agent.score.get().to_owned());
        let Agent { name, owner, protocol, state, registered_at, .. } = agent;
        table.row([id, name, owner, protocol, state, online, score, registered_at]);
    }
    table.print();
    Ok(Exit::Ok)
}

async fn listed(
    hub: &Hub,
    path: &str,
    which: Vec<(&str, Option<String>)>,
    limit: u32,
) -> Result<Vec<Box<RawValue>>, Trouble> {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let (mut pages, mut rows) = (Pages::new(hub, path, which), Vec::new());
    while rows.len() < limit {
        match pages.more(limit - rows.len()).await? {
            Some(more) => rows.extend(more),
            None => break,
        }
    }
    Ok(rows)
}

fn as_json(rows: &[Box<RawValue>]) -> Exit {
    let texts: Vec<&str> = rows.iter().map(|row| row.get()).collect();
    let _ = output::line(&format!("[{}]", texts.join(",")));
    Exit::Ok
}

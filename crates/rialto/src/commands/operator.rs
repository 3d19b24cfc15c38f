//! `rialto operator`: administers a hub with the operator key.

use std::path::{Path, PathBuf};

use clap::Subcommand;
use rialto_core::agent::key::Holder;
use rialto_core::command::Command;
use rialto_engine::clock::{Clock, SystemClock};
use rialto_engine::keys::{Key, KeyPrefix};
use rialto_engine::offline;
use rialto_engine::random::{OsRandom, RandomSource};
use rialto_engine::store::StoreError;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::agent_names::{is_alias, single_number};
use super::v1::{JobView, OperatorAgentView, parse_json};
use super::{
    CliError, CliResult, Column, Exit, HubOptions, Table, V1, escape_line, output, wallet,
};

/// Variables for the operator key, the specific one first.
pub const VARIABLES: [&str; 2] = ["RIALTO_OPERATOR_KEY", "RIALTO_KEY"];
/// Pages of the list searched for a name.
const PAGES_MAX: usize = 50;
/// The state of an unregistered agent.
const REMOVED: &str = "removed";

#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    verb: Verb,
    #[command(flatten)]
    options: HubOptions,
}

#[derive(Subcommand)]
enum Verb {
    /// Show statistics of the hub
    Stats,
    /// List all jobs, without input and output
    Jobs {
        /// Live or ended jobs
        #[arg(long, value_name = "WHICH", value_parser = ["live", "ended"], default_value = "live")]
        state: String,
        /// Maximum number of jobs
        #[arg(long, value_name = "N", default_value = "20", value_parser = clap::value_parser!(u32).range(1..))]
        limit: u32,
    },
    /// List all agents that ever registered
    Agents {
        /// Only agents in this state
        #[arg(long, value_name = "WHICH", value_parser = ["active", "suspended", "owner_suspended", "removed"])]
        state: Option<String>,
        /// Maximum number of agents
        #[arg(long, value_name = "N", default_value = "20", value_parser = clap::value_parser!(u32).range(1..))]
        limit: u32,
    },
    /// Grant credits to an owner
    Grant(wallet::GrantArgs),
    /// Remove credits of an owner from circulation
    Burn {
        /// Name of the owner in the ledger
        owner: String,
        /// Credits, like 100.00
        #[arg(allow_negative_numbers = true)]
        amount: String,
    },
    /// Revoke all keys of an agent
    Revoke {
        /// Agent: its number, its name as `operator agents` shows it, or a name in any protocol
        agent: String,
    },
    /// Suspend an agent or an owner: no work and no calls until resumed
    Suspend(SuspendTarget),
    /// Resume a suspended agent or owner
    Resume(SuspendTarget),
    /// Create operator keys
    Key(KeyArgs),
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

#[derive(clap::Args)]
struct KeyArgs {
    #[command(subcommand)]
    verb: KeyVerb,
    /// Work on the data directory of a stopped hub, without a key
    #[arg(long, global = true, value_name = "DIR")]
    data: Option<PathBuf>,
}

#[derive(Subcommand)]
enum KeyVerb {
    /// Create another key; the existing keys stay valid
    New,
    /// Create a new key; all others stop working at once
    Rotate,
}

pub fn run(args: &Args) -> Exit {
    let options = &args.options;
    options.run(async {
        let done = match &args.verb {
            Verb::Stats => stats(options).await,
            Verb::Jobs { state, limit } => jobs(options, state, *limit).await,
            Verb::Agents { state, limit } => agents(options, state.as_deref(), *limit).await,
            Verb::Grant(args) => wallet::grant(options, args).await,
            Verb::Burn { owner, amount } => burn(options, owner, amount).await,
            Verb::Revoke { agent } => {
                let done = |name: &str| format!("all keys of {name} are revoked");
                moderate(options, Some(agent), None, "revoke-keys", done).await
            }
            Verb::Suspend(SuspendTarget { agent, owner }) => {
                let done = |name: &str| format!("{name} is suspended");
                moderate(options, agent.as_deref(), owner.as_deref(), "suspend", done).await
            }
            Verb::Resume(SuspendTarget { agent, owner }) => {
                let done = |name: &str| format!("{name} is resumed");
                moderate(options, agent.as_deref(), owner.as_deref(), "resume", done).await
            }
            Verb::Key(args) => create_key(options, args).await,
        };
        done.map_err(CliError::with_operator_hint)
    })
}

/// A client with the operator key. An agent's key is not sent.
pub fn client(options: &HubOptions) -> CliResult<V1> {
    let (api, keys) = options.client_from(&VARIABLES)?;
    let next = "set RIALTO_OPERATOR_KEY or pass a file with --key-file; a lost key is replaced with \
                `rialto operator key rotate --data DIR` while the hub is stopped";
    let no = |message: &str| CliError { exit: Exit::Auth, ..CliError::usage(message, next) };
    match keys {
        Some(keys) if keys.key.reveal().starts_with("ro_") => Ok(api),
        Some(_) => Err(no("this is not an operator key, which begins with ro_")),
        None => Err(no("no operator key given")),
    }
}

async fn stats(options: &HubOptions) -> CliResult {
    let answer = client(options)?.stats().await?;
    if options.json {
        return Ok(output::print_data(answer.text));
    }
    for (name, value) in &answer.parse()? {
        let text = if name == "memory" {
            parse_json::<MemoryUse>(value.get())?.describe()
        } else {
            describe_count(value)
        };
        if output::print_line(&format!("{}: {text}", name.replace('_', " "))).is_err() {
            break;
        }
    }
    Ok(Exit::Ok)
}

/// One number, or several by their state. Raw, so that amounts keep their digits.
fn describe_count(value: &RawValue) -> String {
    match serde_json::from_str::<Map<String, Value>>(value.get()) {
        Ok(counts) if counts.is_empty() => "none".to_owned(),
        Ok(counts) => {
            let each = counts.iter().map(|(state, count)| format!("{count} {state}"));
            each.collect::<Vec<_>>().join(", ")
        }
        Err(_) => value.get().to_owned(),
    }
}

/// Memory used by rows, in bytes.
#[derive(Deserialize)]
struct MemoryUse {
    used: u64,
    limit: u64,
    limit_per_owner: u64,
}

impl MemoryUse {
    fn describe(&self) -> String {
        let [used, limit, one] = [self.used, self.limit, self.limit_per_owner].map(format_bytes);
        format!("{used} of {limit} used, at most {one} by one owner; --json lists the owners")
    }
}

/// A number of bytes as text.
fn format_bytes(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    let (mut tenths, mut unit) = (bytes.saturating_mul(10), "B");
    for larger in UNITS {
        if tenths < 10 * 1_024 {
            break;
        }
        (tenths, unit) = (tenths / 1_024, larger);
    }
    match unit {
        "B" => format!("{bytes} B"),
        unit => format!("{}.{} {unit}", tenths / 10, tenths % 10),
    }
}

async fn jobs(options: &HubOptions, state: &str, limit: u32) -> CliResult {
    let jobs = client(options)?.operator_jobs(state).take(limit).await?;
    if options.json {
        return Ok(output::print_list(jobs.iter().map(|job| job.text.as_str())));
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
    for job in &jobs {
        let JobView { id, state, skill, requester, guest, worker, paid, budget, opened_at, .. } =
            job.parse()?;
        let number = |id: Option<u64>| id.map(|id| id.to_string()).unwrap_or_default();
        let requester = guest.unwrap_or_else(|| number(requester));
        let credits = paid.or(budget).map(|raw| raw.get().to_owned()).unwrap_or_default();
        table.push_row([id, state, skill, requester, number(worker), credits, opened_at]);
    }
    Ok(table.print())
}

async fn agents(options: &HubOptions, state: Option<&str>, limit: u32) -> CliResult {
    let agents = client(options)?.operator_agents(state).take(limit).await?;
    if options.json {
        return Ok(output::print_list(agents.iter().map(|agent| agent.text.as_str())));
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
    for agent in &agents {
        let OperatorAgentView { id, name, owner, protocol, state, online, score, registered_at } =
            agent.parse()?;
        let online = if online { "yes" } else { "no" }.to_owned();
        let (id, score) = (id.to_string(), score.get().to_owned());
        table.push_row([id, name, owner, protocol, state, online, score, registered_at]);
    }
    Ok(table.print())
}

async fn burn(options: &HubOptions, owner: &str, amount: &str) -> CliResult {
    let amount = wallet::parse_amount(amount, 6)?;
    wallet::print_account(options, &client(options)?.burn(owner, amount).await?)
}

/// Revokes the keys of an agent, or suspends or resumes an agent or an owner.
async fn moderate(
    options: &HubOptions,
    agent: Option<&str>,
    owner: Option<&str>,
    action: &str,
    describe: impl Fn(&str) -> String,
) -> CliResult {
    let api = client(options)?;
    let (kind, name, id) = match (owner, agent.unwrap_or_default()) {
        (Some(owner), _) => ("owners", owner, owner.to_owned()),
        (None, agent) => ("agents", agent, find_agent(&api, agent).await?),
    };
    let answer = api.moderate(kind, &id, action).await.map_err(|error| {
        let next = "`rialto operator agents` lists agents and their owners";
        CliError::from(error).with_hint_on(Exit::NotFound, next)
    })?;
    Ok(output::print(options.json, answer.text, || describe(&escape_line(name))))
}

/// The hub's name of an agent: its number, an alias, or the name that `operator agents` shows if it
/// is unique.
async fn find_agent(api: &V1, name: &str) -> CliResult<String> {
    if is_alias(api, name).await? {
        return Ok(name.to_owned());
    }
    let mut agents =
        api.operator_agents(None).search(PAGES_MAX, usize::MAX, |agent| agent.name == name).await?;
    // An unregistered agent counts only if no other has the name.
    if agents.iter().any(|agent| agent.state != REMOVED) {
        agents.retain(|agent| agent.state != REMOVED);
    }
    let numbers: Vec<u64> = agents.iter().map(|agent| agent.id).collect();
    single_number(name, &numbers, |number| {
        let owner = agents.iter().find(|agent| agent.id == *number).map(|agent| &*agent.owner);
        format!("{number} of {}", owner.unwrap_or_default())
    })
}

async fn create_key(options: &HubOptions, args: &KeyArgs) -> CliResult {
    let retire_others = matches!(args.verb, KeyVerb::Rotate);
    let key = match &args.data {
        Some(dir) => create_key_offline(dir, retire_others)?,
        None => client(options)?.issue_operator_key(retire_others).await?.key()?.to_owned(),
    };
    let document = json!({"key": key, "others_retired": retire_others});
    Ok(output::print(options.json, document, || {
        format!("operator key (shown only once): {}", escape_line(&key))
    }))
}

/// Write access to the data directory is sufficient proof.
fn create_key_offline(dir: &Path, retire_others: bool) -> CliResult<String> {
    let key = Key::from_random(KeyPrefix::OPERATOR, OsRandom.new_key_bytes());
    let (holder, hash) = (Holder::Operator, key.hash());
    let command = Command::IssueKey { holder, hash, retire_others, by_operator: true };
    let ran = offline::run_command(dir, command, SystemClock::start().wall_time());
    ran.map_err(|error| match error {
        StoreError::InUse(_) => CliError::conflict(
            error.to_string(),
            "stop the hub, or leave out --data and use its key",
        ),
        StoreError::Missing(_) => {
            CliError::not_found(error.to_string(), "name a hub's data directory with --data")
        }
        error => CliError::failed(error.to_string(), "`rialto audit --data DIR` shows the details"),
    })?;
    Ok(key.expose().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_told_in_the_largest_unit_that_fits() {
        let sizes = [0, 1_023, 1_536, 512 << 20, u64::MAX].map(format_bytes);
        assert_eq!(sizes, ["0 B", "1023 B", "1.5 KiB", "512.0 MiB", "1677721.5 TiB"]);
    }
}

//! What must hold after every round, from the record of its clients and from what the nodes show.

mod jobs;
mod messages;
mod money;
mod order;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::client::{Client, cents};
use super::history::{CommandHistory, Operation, Outcome, Read, Seen};
use super::traffic::cast::Cast;
use crate::kit::{Agent, operator_key};
use order::{Observation, find_stale};

/// How long the nodes may take to answer after everything is healed.
const READ_DEADLINE: Duration = Duration::from_secs(60);
/// A node answers with a state that is at most this old.
const STALENESS_MAX: Duration = Duration::from_secs(1);

/// What was counted in a round.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    pub acknowledged: usize,
    pub unknown: usize,
    pub refused: usize,
    pub reads: usize,
    pub stream_events: usize,
}

/// What a round leaves behind, to be found again at the end of the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leftovers {
    /// Owners and their available and held cents.
    pub accounts: BTreeMap<String, (u64, u64)>,
    /// Keys of agents and the newest position of their inboxes.
    pub inboxes: BTreeMap<String, u64>,
}

/// All checks of a round. Returns what was counted and every violation.
pub async fn check_round(client: &mut Client, cast: &Cast) -> (Counts, Leftovers, Vec<String>) {
    let history = client.round.history.clone();
    let (commands, reads) = (history.commands(), history.reads());
    let mut found = history.violations();
    found.extend(check_answers(&commands));
    let node = client.any_node();
    found.extend(messages::check(client, node, cast, &commands, &reads).await);
    found.extend(money::check(client, node, cast, &commands, &reads).await);
    found.extend(jobs::check(client, node, cast, &commands, &reads).await);
    found.extend(check_statistics(cast, &commands, &reads));
    let leftovers = check_agreement(client, cast, &mut found).await;
    let answered = |which: fn(&CommandHistory) -> bool| {
        commands.values().filter(|command| which(command)).count()
    };
    let counts = Counts {
        acknowledged: answered(|command| command.done().is_some()),
        unknown: answered(|command| command.answers.is_empty()),
        refused: answered(CommandHistory::is_refused),
        reads: reads.len(),
        stream_events: history.streams().values().map(Vec::len).sum(),
    };
    (counts, leftovers, found)
}

/// Statistics count every job that was acknowledged over a second before (G22).
fn check_statistics(
    cast: &Cast,
    commands: &BTreeMap<String, CommandHistory>,
    reads: &[Read],
) -> Vec<String> {
    let mut seen = Vec::new();
    for read in reads {
        if let Seen::Statistics { jobs: version } = read.seen {
            let by = format!("client {} at node {}", read.client, read.node);
            seen.push(Observation { begin: read.begin, end: read.end, version, by });
        }
    }
    let is_posted = |command: &&CommandHistory| {
        matches!(command.operation, Operation::PostJob { .. }) && command.done().is_some()
    };
    let posted = commands.values().filter(is_posted);
    let mut posted: Vec<_> = posted.filter_map(|post| Some((post.end?, post.begin))).collect();
    posted.sort_unstable();
    let counted = posted.into_iter().zip(cast.jobs_before + 1..);
    let mut earlier: Vec<Observation> = counted
        .map(|((end, begin), version)| Observation { begin, end, version, by: "a post".to_owned() })
        .collect();
    earlier.extend(seen.iter().cloned());
    find_stale("the number of jobs", &earlier, &seen, STALENESS_MAX)
}

/// One key, any number of nodes: one answer (G3).
fn check_answers(commands: &BTreeMap<String, CommandHistory>) -> Vec<String> {
    let mut found = Vec::new();
    for (key, command) in commands {
        let done = command.answers.iter().filter(|(_, one)| matches!(one, Outcome::Done(_)));
        let done: Vec<_> = done.collect();
        if !done.is_empty() && done.len() < command.answers.len() {
            found.push(format!("{key} was done and refused: {:?}", command.answers));
        }
        let is_plain =
            matches!(command.operation, Operation::Send { .. } | Operation::Transfer { .. });
        if is_plain && done.windows(2).any(|pair| essence(&pair[0].1) != essence(&pair[1].1)) {
            found.push(format!("{key} has two answers: {:?}", command.answers));
        }
    }
    found
}

/// An answer without what belongs to the single request.
fn essence(outcome: &Outcome) -> Value {
    let Outcome::Done(text) = outcome else { return Value::Null };
    let mut body: Value = serde_json::from_str(text).unwrap_or_default();
    if let Some(members) = body.as_object_mut() {
        members.remove("metadata");
    }
    // The relay says whether a message was read at once, which a repeat may find otherwise.
    if let Some(data) = body.get_mut("data").and_then(Value::as_object_mut) {
        data.retain(|name, _| name == "trace_id");
    }
    body
}

/// All nodes show the same.
async fn check_agreement(client: &mut Client, cast: &Cast, found: &mut Vec<String>) -> Leftovers {
    let mut shown = Vec::new();
    for node in 0..client.round.urls.len() {
        shown.push(read_leftovers(client, node, &cast.owners(), cast.agents()).await);
    }
    for (node, one) in shown.iter().enumerate().filter(|(_, one)| **one != shown[0]) {
        found.push(format!("node {node} shows {one:?}, node 0 {:?}", shown[0]));
    }
    shown.swap_remove(0)
}

async fn read_leftovers(
    client: &Client,
    node: usize,
    owners: &[String],
    agents: impl Iterator<Item = &Agent>,
) -> Leftovers {
    let mut accounts = BTreeMap::new();
    for owner in owners {
        accounts.insert(owner.clone(), account(client, node, owner).await);
    }
    let mut inboxes = BTreeMap::new();
    for agent in agents {
        inboxes.insert(agent.key.clone(), inbox_head(client, node, &agent.key).await);
    }
    Leftovers { accounts, inboxes }
}

/// Whether a round's accounts and inboxes are still what they were.
pub async fn check_leftovers(client: &Client, node: usize, kept: &Leftovers) -> Option<String> {
    let mut now = Leftovers { accounts: BTreeMap::new(), inboxes: BTreeMap::new() };
    for owner in kept.accounts.keys() {
        now.accounts.insert(owner.clone(), account(client, node, owner).await);
    }
    for key in kept.inboxes.keys() {
        now.inboxes.insert(key.clone(), inbox_head(client, node, key).await);
    }
    (now != *kept).then(|| format!("a round left {kept:?}, and later there is {now:?}"))
}

async fn account(client: &Client, node: usize, owner: &str) -> (u64, u64) {
    let path = format!("/v1/accounts/{}", owner.replace(' ', "%20"));
    let seen = read(client, node, &path, &operator_key()).await;
    (cents(&seen["available"]), cents(&seen["held"]))
}

async fn inbox_head(client: &Client, node: usize, key: &str) -> u64 {
    let seen = read(client, node, "/v1/inbox?after=0&limit=1", key).await;
    seen["head"].as_u64().unwrap_or_default()
}

/// Reads until the node answers 200.
async fn read(client: &Client, node: usize, path: &str, key: &str) -> Value {
    let deadline = Instant::now() + READ_DEADLINE;
    loop {
        match client.get(node, path, Some(key)).await {
            Some((200, text)) => return serde_json::from_str(&text).expect("JSON"),
            other => assert!(Instant::now() < deadline, "{path} at {node}: {other:?}"),
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

//! Money: every payment and grant is in the ledger once, as it was told; balances are those of one
//! ledger at every moment; nothing is made or lost (G1, G2, G3, G8, G9, G10).

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use serde_json::Value;

use super::order::{Observation, find_regressions};
use crate::cluster::client::{Client, cents};
use crate::cluster::history::{CommandHistory, Operation, Read, Seen};
use crate::cluster::traffic::cast::Cast;
use crate::kit::operator_key;

/// One entry of the ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerEntry {
    pub id: u64,
    pub kind: String,
    /// Owner, and whether it is the held part.
    pub from: (String, bool),
    pub to: (String, bool),
    pub cents: u64,
    pub transfer: Option<String>,
    pub job: Option<String>,
}

/// A state of an account, when the command that made it began and when the one that ended it was
/// answered.
#[derive(Clone, Debug)]
struct AccountState {
    available: u64,
    held: u64,
    begin: Duration,
}

/// All entries of an owner, oldest first.
pub async fn read_ledger(client: &Client, node: usize, owner: &str) -> Vec<LedgerEntry> {
    let (mut entries, mut cursor) = (Vec::new(), String::new());
    loop {
        let owner = owner.replace(' ', "%20");
        let path = format!("/v1/ledger?owner={owner}&limit=200{cursor}");
        let page = super::read(client, node, &path, &operator_key()).await;
        for item in page["items"].as_array().into_iter().flatten() {
            let word = |value: &Value| value.as_str().map(str::to_owned);
            let side =
                |side: &Value| (word(&side["owner"]).unwrap_or_default(), side["held"] == true);
            entries.push(LedgerEntry {
                id: item["id"].as_u64().expect("a number"),
                kind: word(&item["kind"]).unwrap_or_default(),
                from: side(&item["from"]),
                to: side(&item["to"]),
                cents: cents(&item["amount"]),
                transfer: word(&item["transfer"]),
                job: word(&item["job"]),
            });
        }
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    entries.reverse();
    entries
}

pub async fn check(
    client: &Client,
    node: usize,
    cast: &Cast,
    commands: &BTreeMap<String, CommandHistory>,
    reads: &[Read],
) -> Vec<String> {
    let mut found = Vec::new();
    let mut ledgers = BTreeMap::new();
    let mut all: BTreeMap<u64, LedgerEntry> = BTreeMap::new();
    for owner in cast.owners() {
        let entries = read_ledger(client, node, &owner).await;
        all.extend(entries.iter().map(|entry| (entry.id, entry.clone())));
        ledgers.insert(owner, entries);
    }
    let mut observations = Vec::new();
    let mut commands_of: HashMap<u64, &CommandHistory> = HashMap::new();
    let grants =
        index(&all, |entry| (entry.kind == "grant").then(|| (entry.to.0.clone(), entry.cents)));
    let transfers = index(&all, |entry| entry.transfer.clone());
    for (key, command) in commands {
        let there = match &command.operation {
            Operation::Transfer { .. } => transfers.get(key),
            Operation::Grant { owner, cents } if ledgers.contains_key(owner) => {
                grants.get(&(owner.clone(), *cents))
            }
            _ => continue,
        };
        let there: &[&LedgerEntry] = there.map(Vec::as_slice).unwrap_or_default();
        let ids: Vec<u64> = there.iter().map(|entry| entry.id).collect();
        match (command.done(), there) {
            (Some(answer), [entry]) => {
                if let Some(wrong) = compare(command, entry) {
                    found.push(format!("{key}: {wrong}"));
                }
                commands_of.insert(entry.id, command);
                if let Some(end) = command.end {
                    let (begin, version, by) = (command.begin, entry.id, format!("payment {key}"));
                    observations.push(Observation { begin, end, version, by });
                }
                found.extend(check_told_balance(key, command, answer, entry, &ledgers));
            }
            (Some(_), []) => found.push(format!("{key} was acknowledged and is lost: {command:?}")),
            (Some(_), _) => found.push(format!("{key} was acknowledged and is in {ids:?}")),
            (None, []) => {}
            (None, _) if command.is_refused() => {
                found.push(format!("{key} was refused and is in {ids:?}: {command:?}"));
            }
            (None, [entry]) => drop(commands_of.insert(entry.id, command)),
            (None, _) => found.push(format!("{key} without an answer is in {ids:?}")),
        }
    }
    for read in reads {
        if let Seen::Ledger { newest } = read.seen {
            let by = format!("client {} at node {}", read.client, read.node);
            let (begin, end, version) = (read.begin, read.end, newest);
            observations.push(Observation { begin, end, version, by });
        }
    }
    found.extend(find_regressions("the ledger", &observations));
    for (owner, entries) in &ledgers {
        let states = states_of(owner, entries, &commands_of, &mut found);
        found.extend(check_reads(owner, &states, reads));
        let last = states.last().map(|state| (state.available, state.held));
        let shown = super::account(client, node, owner).await;
        if last != Some(shown) {
            found.push(format!("{owner} has {shown:?}, and the ledger says {last:?}"));
        }
    }
    found
}

fn index<K: std::hash::Hash + Eq>(
    all: &BTreeMap<u64, LedgerEntry>,
    key: impl Fn(&LedgerEntry) -> Option<K>,
) -> HashMap<K, Vec<&LedgerEntry>> {
    let mut found: HashMap<K, Vec<&LedgerEntry>> = HashMap::new();
    for entry in all.values() {
        if let Some(key) = key(entry) {
            found.entry(key).or_default().push(entry);
        }
    }
    found
}

fn compare(command: &CommandHistory, entry: &LedgerEntry) -> Option<String> {
    let is_as_sent = match &command.operation {
        Operation::Transfer { from, to, cents } => {
            (&entry.from.0, &entry.to.0, entry.cents) == (from, to, *cents)
        }
        Operation::Grant { owner, cents } => (&entry.to.0, entry.cents) == (owner, *cents),
        _ => true,
    };
    (!is_as_sent).then(|| format!("sent {:?}, and there is {entry:?}", command.operation))
}

/// A transfer tells its payer what is left.
fn check_told_balance(
    key: &str,
    command: &CommandHistory,
    answer: &str,
    entry: &LedgerEntry,
    ledgers: &BTreeMap<String, Vec<LedgerEntry>>,
) -> Option<String> {
    let Operation::Transfer { from, .. } = &command.operation else { return None };
    let answer: Value = serde_json::from_str(answer).ok()?;
    let told = cents(&answer["sender_balance"]);
    let mut left = 0_i64;
    for earlier in ledgers.get(from)?.iter().take_while(|earlier| earlier.id <= entry.id) {
        left += change(earlier, &(from.clone(), false));
    }
    (left != told as i64).then(|| format!("{key} told {told} as what is left of {left}"))
}

/// What an entry adds to one part of an account.
fn change(entry: &LedgerEntry, part: &(String, bool)) -> i64 {
    let cents = entry.cents as i64;
    let gained = if entry.to == *part { cents } else { 0 };
    gained - if entry.from == *part { cents } else { 0 }
}

/// The states of an account, from its first.
fn states_of(
    owner: &str,
    entries: &[LedgerEntry],
    commands: &HashMap<u64, &CommandHistory>,
    found: &mut Vec<String>,
) -> Vec<AccountState> {
    let (mut available, mut held) = (0_i64, 0_i64);
    let mut states = vec![AccountState { available: 0, held: 0, begin: Duration::ZERO }];
    for entry in entries {
        available += change(entry, &(owner.to_owned(), false));
        held += change(entry, &(owner.to_owned(), true));
        let begin = commands.get(&entry.id).map_or(Duration::ZERO, |command| command.begin);
        match (u64::try_from(available), u64::try_from(held)) {
            (Ok(available), Ok(held)) => states.push(AccountState { available, held, begin }),
            _ => found.push(format!("{owner} is overdrawn by entry {}", entry.id)),
        }
    }
    states
}

/// Every read shows one state of the account, none older than what was seen before it began, and
/// none from later than its end.
fn check_reads(owner: &str, states: &[AccountState], reads: &[Read]) -> Vec<String> {
    let mut own: Vec<(&Read, u64, u64)> = Vec::new();
    for read in reads {
        if let Seen::Account { owner: of, available, held } = &read.seen
            && of == owner
        {
            own.push((read, *available, *held));
        }
    }
    own.sort_by_key(|(read, ..)| read.end);
    let mut found = Vec::new();
    let mut placed: Vec<(Duration, usize)> = Vec::new();
    for (read, available, held) in own {
        let before = placed.iter().filter(|(end, _)| *end < read.begin);
        let oldest = before.map(|(_, place)| *place).max().unwrap_or(0);
        let fits = |state: &AccountState| {
            (state.available, state.held) == (available, held) && state.begin <= read.end
        };
        // The oldest state that fits leaves the most to later reads.
        match (oldest..states.len()).find(|place| fits(&states[*place])) {
            Some(place) => placed.push((read.end, place)),
            None => found.push(format!(
                "{owner}: client {} saw {available} and {held} at node {} at {:?}, which is no state after place {oldest} of {}",
                read.client, read.node, read.begin, states.len()
            )),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(id: u64, from: &str, to: &str, cents: u64) -> LedgerEntry {
        let side = |owner: &str| (owner.to_owned(), false);
        LedgerEntry {
            id,
            kind: "transfer".to_owned(),
            from: side(from),
            to: side(to),
            cents,
            transfer: None,
            job: None,
        }
    }

    fn read(at: u64, available: u64) -> Read {
        let seen = Seen::Account { owner: "ann".to_owned(), available, held: 0 };
        let (begin, end) = (Duration::from_millis(at), Duration::from_millis(at + 1));
        Read { client: 1, node: 0, begin, end, seen }
    }

    #[test]
    fn balances_that_never_were_or_went_back_are_found() {
        let entries = [entry(1, "bob", "ann", 10), entry(2, "ann", "bob", 3)];
        let mut found = Vec::new();
        let states = states_of("ann", &entries, &HashMap::new(), &mut found);
        assert!(found.is_empty(), "{found:?}");
        let count = |reads: &[Read]| check_reads("ann", &states, reads).len();
        assert_eq!(count(&[read(1, 0), read(3, 10), read(5, 7), read(7, 7)]), 0);
        assert_eq!(count(&[read(1, 8)]), 1, "never");
        assert_eq!(count(&[read(1, 7), read(3, 10)]), 1, "back");
        assert_eq!(count(&[read(1, 10), read(3, 0)]), 1, "back");
    }

    #[test]
    fn an_overdraft_is_found() {
        let mut found = Vec::new();
        states_of("ann", &[entry(1, "ann", "bob", 3)], &HashMap::new(), &mut found);
        assert_eq!(found.len(), 1);
    }
}

//! Jobs: posted ones are there, each assignment has one worker, each job one result and one payment,
//! and its state never goes back (G13, G14, G15).

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use serde_json::Value;

use super::money::{LedgerEntry, read_ledger};
use super::order::{Observation, find_regressions};
use crate::cluster::client::Client;
use crate::cluster::history::{CommandHistory, Operation, Read, Seen};
use crate::cluster::traffic::cast::{BUDGET, Cast, PRICE};

/// The states of one epoch in their order. A job that was declined waits under the same epoch.
const ORDER: [(&str, u64); 7] = [
    ("deferred", 1),
    ("assigned", 2),
    ("running", 3),
    ("asking", 3),
    ("open", 4),
    ("queued", 4),
    ("negotiating", 4),
];
/// After all others.
const ENDED: u64 = 5;

/// A report that was acknowledged.
struct SeenReport {
    epoch: u64,
    worker: String,
    begin: Duration,
    end: Option<Duration>,
}

/// A state of a job as a number that only grows.
fn version(epoch: u64, state: &str) -> u64 {
    let place = ORDER.iter().find(|(name, _)| *name == state).map_or(ENDED, |(_, place)| *place);
    epoch * 8 + place
}

pub async fn check(
    client: &Client,
    node: usize,
    cast: &Cast,
    commands: &BTreeMap<String, CommandHistory>,
    reads: &[Read],
) -> Vec<String> {
    let mut found = Vec::new();
    let mut observations: HashMap<String, Vec<Observation>> = HashMap::new();
    let mut workers: BTreeMap<(String, u64), BTreeSet<String>> = BTreeMap::new();
    for read in reads {
        match &read.seen {
            Seen::Job { job, epoch, state } => {
                let by = format!("client {} at node {}", read.client, read.node);
                let (begin, end, version) = (read.begin, read.end, version(*epoch, state));
                let seen = Observation { begin, end, version, by };
                observations.entry(job.clone()).or_default().push(seen);
            }
            Seen::Assignment { job, epoch, worker } => {
                workers.entry((job.clone(), *epoch)).or_default().insert(worker.clone());
            }
            _ => {}
        }
    }
    for ((job, epoch), workers) in workers.iter().filter(|(_, workers)| workers.len() > 1) {
        found.push(format!("job {job} has in epoch {epoch} the workers {workers:?}"));
    }
    let mut reports: HashMap<String, Vec<SeenReport>> = HashMap::new();
    for command in commands.values().filter(|command| command.done().is_some()) {
        if let Operation::Report { job, epoch, worker } = &command.operation {
            let (epoch, worker, begin, end) = (*epoch, worker.clone(), command.begin, command.end);
            let seen = SeenReport { epoch, worker, begin, end };
            reports.entry(job.clone()).or_default().push(seen);
        }
    }
    let ledger = read_ledger(client, node, &cast.requester.owner).await;
    for (key, command) in commands {
        let Operation::PostJob { .. } = command.operation else { continue };
        let path = format!("/v1/jobs/{key}");
        let answer = shown_job(client, node, &path, &cast.requester.key).await;
        let Some(job) = answer else {
            if command.done().is_some() {
                found.push(format!("job {key} was acknowledged and is lost"));
            }
            continue;
        };
        if command.is_refused() {
            found.push(format!("job {key} was refused and is there: {job}"));
        }
        let id = job["id"].as_str().unwrap_or_default().to_owned();
        let reported = reports.get(&id).map(Vec::as_slice).unwrap_or_default();
        found.extend(check_result(key, &job, reported));
        found.extend(check_payment(&id, &job, &ledger));
        for SeenReport { epoch, worker, begin, end } in reported {
            let seen = Observation {
                begin: *begin,
                end: end.unwrap_or(Duration::MAX),
                version: version(*epoch, "completed"),
                by: format!("the report of {worker}"),
            };
            observations.entry(id.clone()).or_default().push(seen);
        }
    }
    for (job, seen) in &observations {
        found.extend(find_regressions(&format!("job {job}"), seen));
    }
    found
}

/// A job as its requester sees it; `None` if there is none.
async fn shown_job(client: &Client, node: usize, path: &str, key: &str) -> Option<Value> {
    loop {
        match client.get(node, path, Some(key)).await {
            Some((200, text)) => return serde_json::from_str(&text).ok(),
            Some((404, _)) => return None,
            _ => tokio::time::sleep(Duration::from_millis(20)).await,
        }
    }
}

/// A reported job is completed by that worker in that epoch, with that result.
fn check_result(key: &str, job: &Value, reports: &[SeenReport]) -> Option<String> {
    let mut turns: Vec<(u64, &str)> =
        reports.iter().map(|one| (one.epoch, one.worker.as_str())).collect();
    turns.dedup();
    match turns.as_slice() {
        [] => None,
        [(epoch, _)] => {
            let is_as_told = job["state"] == "completed"
                && job["epoch"].as_u64() == Some(*epoch)
                && job["result"]["output"]["echo"] == key;
            (!is_as_told).then(|| format!("job {key} was reported in {turns:?} and is {job}"))
        }
        _ => Some(format!("job {key} was reported more than once: {turns:?}")),
    }
}

/// One hold, and after the end one payment and nothing left of the hold.
fn check_payment(id: &str, job: &Value, ledger: &[LedgerEntry]) -> Option<String> {
    let own = ledger.iter().filter(|entry| entry.job.as_deref() == Some(id));
    let own: Vec<&LedgerEntry> = own.collect();
    let sum = |kind: &str| -> (usize, u64) {
        let all = own.iter().filter(|entry| entry.kind == kind);
        (all.clone().count(), all.map(|entry| entry.cents).sum())
    };
    let (held, captured, released) = (sum("hold"), sum("capture"), sum("release"));
    let is_as_it_should = match job["state"].as_str() {
        Some("completed") => {
            held == (1, BUDGET) && captured == (1, PRICE) && released.1 == BUDGET - PRICE
        }
        Some("failed" | "expired" | "cancelled" | "withdrawn") => {
            held.1 == released.1 && captured.0 == 0
        }
        _ => held.0 <= 1 && captured.0 == 0,
    };
    (!is_as_it_should).then(|| format!("job {id}: {job} was paid by {own:?}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn entry(kind: &str, cents: u64) -> LedgerEntry {
        let side = || (String::new(), false);
        let (kind, job) = (kind.to_owned(), Some("j".to_owned()));
        LedgerEntry { id: 1, kind, from: side(), to: side(), cents, transfer: None, job }
    }

    #[test]
    fn a_second_payment_a_second_report_and_another_result_are_found() {
        let job = json!({"state": "completed", "epoch": 2, "result": {"output": {"echo": "k"}}});
        let paid =
            [entry("hold", BUDGET), entry("capture", PRICE), entry("release", BUDGET - PRICE)];
        assert_eq!(check_payment("j", &job, &paid), None);
        let twice = [&paid[..], &[entry("capture", PRICE)]].concat();
        assert!(check_payment("j", &job, &twice).is_some());
        assert!(check_payment("j", &job, &paid[..2]).is_some(), "some is still held");
        let report = |epoch: u64| SeenReport {
            epoch,
            worker: "w".to_owned(),
            begin: Duration::ZERO,
            end: None,
        };
        assert_eq!(check_result("k", &job, &[report(2)]), None);
        assert!(check_result("k", &job, &[report(1)]).is_some());
        assert!(check_result("k", &job, &[report(1), report(2)]).is_some());
        assert!(check_result("other", &job, &[report(2)]).is_some());
    }

    #[test]
    fn a_job_goes_on_only_from_state_to_state_and_from_epoch_to_epoch() {
        let states =
            [(0, "queued"), (1, "assigned"), (1, "running"), (1, "queued"), (2, "assigned")];
        let versions: Vec<u64> = states.map(|(epoch, state)| version(epoch, state)).to_vec();
        assert!(versions.is_sorted_by(|one, next| one < next), "{versions:?}");
        assert!(version(2, "completed") > version(2, "running"));
    }
}

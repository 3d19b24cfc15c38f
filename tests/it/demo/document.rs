//! The document of `rialto demo --json`, checked independently of the demo.

use std::collections::{BTreeMap, BTreeSet};

use rialto_core::money::Credits;
use serde::Deserialize;
use serde_json::value::RawValue;
use tempfile::TempDir;

use super::{demo, ran};

#[derive(Deserialize)]
struct Document {
    events: Vec<Event>,
    payments: Vec<Payment>,
    balances: Vec<Balance>,
    sum: Box<RawValue>,
    scores: Vec<Score>,
    hops: Vec<Hop>,
    checks: Vec<Check>,
}

#[derive(Deserialize)]
struct Event {
    at_ms: u64,
    who: String,
    protocol: String,
    beat: String,
}

#[derive(Deserialize)]
struct Payment {
    from: String,
    to: String,
    amount: Box<RawValue>,
}

#[derive(Deserialize)]
struct Balance {
    owner: String,
    agent: Option<String>,
    available: Box<RawValue>,
    held: Box<RawValue>,
}

#[derive(Deserialize)]
struct Score {
    agent: String,
    registry_before: f64,
    registry: f64,
    openclaw_before: Option<f64>,
    openclaw: Option<f64>,
}

#[derive(Deserialize)]
struct Hop {
    what: String,
    from: String,
    to: String,
    fields: BTreeMap<String, u64>,
}

#[derive(Deserialize)]
struct Check {
    name: String,
    holds: bool,
}

/// Millionths of a credit; the issuing account is below zero.
fn micros(digits: &RawValue) -> i64 {
    let (sign, digits) = match digits.get().strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, digits.get()),
    };
    sign * Credits::parse(digits, 6).expect(digits).micros()
}

#[test]
fn the_document_tells_of_one_job_and_all_its_money() {
    let place = TempDir::new().expect("a directory");
    let (code, told, error) = ran(demo(place.path(), &["--json", "--check"]));
    assert_eq!((code, error.as_str()), (0, ""), "{told}");
    let document: Document = serde_json::from_str(&told).expect("one document");
    told_once(&document.events);
    counted(&document);
    judged(&document.scores);
    let hops: Vec<_> = document.hops.iter().map(|hop| (&*hop.what, &*hop.from, &*hop.to)).collect();
    assert_eq!(hops, [("request", "a2a", "openclaw"), ("result", "openclaw", "a2a")]);
    assert!(document.hops.iter().all(|hop| hop.fields.values().sum::<u64>() > 0));
    let broken: Vec<_> = document.checks.iter().filter(|check| !check.holds).collect();
    assert!(broken.is_empty(), "{:?}", broken.iter().map(|check| &check.name).collect::<Vec<_>>());
}

fn told_once(events: &[Event]) {
    assert!(events.is_sorted_by_key(|event| event.at_ms));
    let spoken: BTreeSet<&str> = events.iter().map(|event| event.protocol.as_str()).collect();
    assert_eq!(spoken, ["a2a", "agora", "clara", "openclaw", "registry", "relay"].into());
    for (who, beat) in [
        ("Editor", "defers"),
        ("Scout", "is_taken"),
        ("Newsstand", "auctions"),
        ("Crier", "declines"),
        ("Courier", "is_taken"),
        ("Checker", "fails"),
        ("Editor", "is_refunded"),
    ] {
        let told = events.iter().filter(|event| (&*event.who, &*event.beat) == (who, beat));
        assert_eq!(told.count(), 1, "{who} {beat}");
    }
}

/// Every balance equals grants plus income minus payments.
fn counted(document: &Document) {
    let mut accounts: BTreeMap<&str, i64> =
        [("Reader", 100_000_000), ("Editor", 20_000_000), ("Newsstand", 6_000_000)].into();
    for Payment { from, to, amount } in &document.payments {
        *accounts.entry(from).or_default() -= micros(amount);
        *accounts.entry(to).or_default() += micros(amount);
    }
    let mut sum = 0;
    for Balance { owner, agent, available, held } in &document.balances {
        assert_eq!(micros(held), 0, "{owner}");
        sum += micros(available);
        match agent {
            Some(agent) => {
                let should = accounts.get(agent.as_str()).copied().unwrap_or(0);
                assert_eq!(micros(available), should, "{agent}");
            }
            None => assert_eq!((&**owner, micros(available)), ("hub:issuance", -126_000_000)),
        }
    }
    assert_eq!((sum, document.sum.get()), (0, "0.00"));
    assert_eq!(accounts["Scout"], 3_141_593);
    assert_eq!(document.payments.len(), 5);
}

fn judged(scores: &[Score]) {
    let judged: BTreeSet<&str> = scores.iter().map(|score| score.agent.as_str()).collect();
    let workers = ["Editor", "Scout", "Checker", "Verifier", "Polyglot", "Newsstand", "Courier"];
    assert_eq!(judged, workers.into());
    for Score { agent, registry_before, registry, openclaw_before, openclaw } in scores {
        assert_eq!((*registry_before, *openclaw_before), (50.0, None), "{agent}");
        let by_openclaw = openclaw.expect("a score");
        match agent.as_str() {
            "Checker" => assert!(*registry < 50.0 && by_openclaw < 0.5),
            _ => assert!(*registry > 50.0 && by_openclaw > 0.5, "{agent}"),
        }
    }
}

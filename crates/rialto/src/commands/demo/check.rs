//! The checks: every planned step happened exactly once, and the hub's records agree.

use std::collections::BTreeSet;

use rialto_core::money::Credits;
use serde::Serialize;

use super::balance::{self, Amount};
use super::demo_agent::Scores;
use super::event::ActionKind;
use super::history::FactKind;
use super::plan;
use super::report::DemoReport;
use super::role::{self, Role};

/// One condition that must hold.
#[derive(Clone, Debug, Serialize)]
pub struct Check {
    pub name: String,
    pub holds: bool,
    /// What was found instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub found: Option<String>,
}

type CheckResult = Result<(), String>;

/// All checks of a demo run.
pub fn run_all(report: &DemoReport) -> Vec<Check> {
    let mut checks = steps(report);
    checks.push(check("nothing happens that is not planned", check_no_extra_events(report)));
    checks.extend(facts(report));
    checks.push(check("five protocols take part", protocols(report)));
    checks.push(check("the failed check is refunded in full", refund(report)));
    checks.push(check("every payment is exact to the micro-credit", payments(report)));
    checks.push(check("every agent has exactly the expected credits", check_balances(report)));
    checks.push(check("no credits are held at the end", nothing_held(report)));
    checks.push(check("every account equals the sum of its movements", check_recount(report)));
    checks.push(check("all accounts add up to zero", sum(report)));
    checks.push(check("both reputations of every worker move the right way", reputations(report)));
    checks.push(check("the Reader's job is traced there and back", hops(report)));
    checks.push(check("the bulletin contains every contribution", bulletin(report)));
    checks.push(check("the audit of the hub's data finds nothing", audit(report)));
    checks
}

fn check(name: impl Into<String>, found: CheckResult) -> Check {
    Check { name: name.into(), holds: found.is_ok(), found: found.err() }
}

/// Compares a value with the expected one.
fn same<T: PartialEq + std::fmt::Debug>(is: &T, should: &T) -> CheckResult {
    if is == should { Ok(()) } else { Err(format!("{is:?} instead of {should:?}")) }
}

/// Every planned step was reported once, with its exact amount.
fn steps(report: &DemoReport) -> Vec<Check> {
    let step = |step: &plan::Step| {
        let told: Vec<_> = report.events.iter().filter(|event| step.matches(event)).collect();
        let found = match told.as_slice() {
            [event] => same(&event.amount, &step.amount.map(Amount)),
            others => Err(format!("{} times instead of once", others.len())),
        };
        check(step.describe(), found)
    };
    plan::STEPS.iter().map(step).collect()
}

fn check_no_extra_events(report: &DemoReport) -> CheckResult {
    let planned = |event: &&_| !plan::STEPS.iter().any(|step| step.matches(event));
    match report.events.iter().find(planned) {
        None => Ok(()),
        Some(event) => Err(format!("{} {}", event.role, event.text)),
    }
}

/// The hub's history contains what the agents reported, and nothing else.
fn facts(report: &DemoReport) -> Vec<Check> {
    let history = &report.records.history;
    let once = plan::FACTS.iter().map(|planned| {
        let count = history.iter().filter(|fact| planned.is(fact)).count();
        let found = same(&count, &1).map_err(|_| format!("{count} times instead of once"));
        check(format!("the hub's history: {}", planned.name), found)
    });
    let mut checks: Vec<Check> = once.collect();
    let other = history.iter().find(|fact| !plan::FACTS.iter().any(|planned| planned.is(fact)));
    let other = other.map_or(Ok(()), |fact| Err(format!("{fact:?}")));
    checks.push(check("the hub's history: nothing else", other));
    checks
}

fn protocols(report: &DemoReport) -> CheckResult {
    let done = report.records.history.iter().filter(|fact| fact.kind == FactKind::Completed);
    let parties = done.flat_map(|fact| [Some(fact.requester), fact.by]).flatten();
    let spoken: BTreeSet<String> = parties.map(|who| who.protocol().to_owned()).collect();
    same(&spoken, &rialto_protocols::ALL.iter().map(|adapter| adapter.id().to_string()).collect())
}

fn refund(report: &DemoReport) -> CheckResult {
    let ledger = &report.records.ledger;
    let failed = report.records.history.iter().find(|fact| fact.kind == FactKind::Failed);
    let job = &failed.ok_or("nothing failed")?.job;
    let moved = ["hold", "release", "capture"].map(|kind| ledger.sum_moved(kind, job));
    same(&moved, &[role::CHECK_PRICE, role::CHECK_PRICE, Credits::ZERO])
}

/// The planned payments, in order: payer, payee, amount.
fn planned_payments() -> Vec<(Option<Role>, Option<Role>, Credits)> {
    let pays = plan::STEPS.iter().filter(|step| step.beat == ActionKind::Pays);
    let pays = pays.filter_map(|step| Some((Some(step.who), step.with, step.amount?)));
    pays.filter(|(_, _, amount)| !amount.is_zero()).collect()
}

fn payments(report: &DemoReport) -> CheckResult {
    same(&report.records.ledger.payments(), &planned_payments())
}

fn check_balances(report: &DemoReport) -> CheckResult {
    for (who, person) in &report.after {
        let mut micros = who.initial_credits().micros();
        for (from, to, amount) in planned_payments() {
            micros -= i64::from(from == Some(*who)) * amount.micros();
            micros += i64::from(to == Some(*who)) * amount.micros();
        }
        let (has, should) = (person.balance.total(), Credits::from_micros(micros));
        same(&balance::format_amount(has), &balance::format_amount(should))
            .map_err(|why| format!("{who} has {why}"))?;
    }
    Ok(())
}

fn nothing_held(report: &DemoReport) -> CheckResult {
    let held =
        report.records.ledger.accounts.iter().find(|account| !account.balance.held.is_zero());
    held.map_or(Ok(()), |account| Err(format!("{}: {}", account.owner, account.balance.describe())))
}

fn check_recount(report: &DemoReport) -> CheckResult {
    let ledger = &report.records.ledger;
    for account in &ledger.accounts {
        let (has, moved) = (account.balance, ledger.recount(&account.owner));
        same(&has, &moved).map_err(|why| format!("{}: {why}", account.owner))?;
    }
    Ok(())
}

fn sum(report: &DemoReport) -> CheckResult {
    same(
        &balance::format_amount(report.records.ledger.sum()),
        &balance::format_amount(Credits::ZERO),
    )
}

/// The scores of successful workers rise by both formulas, those of failed workers fall.
fn reputations(report: &DemoReport) -> CheckResult {
    let ended = |what: FactKind| {
        let ended = report.records.history.iter().filter(move |fact| fact.kind == what);
        ended.filter_map(|fact| fact.by)
    };
    let (done, failed) = (ended(FactKind::Completed), ended(FactKind::Failed));
    let workers = done.map(|who| (who, true)).chain(failed.map(|who| (who, false)));
    for (who, well) in workers {
        let (before, after) = (report.before.get(&who), report.after.get(&who));
        let (before, after) = before.zip(after).ok_or_else(|| format!("{who} is missing"))?;
        moved(&before.scores, &after.scores, well).map_err(|why| format!("{who}: {why}"))?;
    }
    Ok(())
}

fn moved(before: &Scores, after: &Scores, well: bool) -> CheckResult {
    let number = |text: &str| text.parse::<f64>().map_err(|error| format!("{text}: {error}"));
    let (from, to) = (number(&before.registry)?, number(&after.registry)?);
    if (to > from) != well || to == from {
        return Err(format!("registry {from} -> {to}"));
    }
    let first = after.openclaw.as_deref().ok_or("openclaw has no score")?;
    if before.openclaw.is_some() || (number(first)? > 0.5) != well {
        return Err(format!("openclaw {:?} -> {first}", before.openclaw));
    }
    Ok(())
}

fn hops(report: &DemoReport) -> CheckResult {
    let hops = &report.records.hops;
    let crossed: Vec<_> = hops.iter().map(|hop| (&*hop.what, &*hop.from, &*hop.to)).collect();
    let there = ("request", "registry", "openclaw");
    same(&crossed, &vec![there, ("result", "openclaw", "registry")])
}

fn bulletin(report: &DemoReport) -> CheckResult {
    let should = serde_json::json!({"headline": "the bridge is open", "is_so": true,
        "in_french": "le pont est ouvert", "cried_by": Role::Courier.name()});
    same(&report.bulletin, &should)
}

fn audit(report: &DemoReport) -> CheckResult {
    same(&report.breaches, &Vec::new())
}

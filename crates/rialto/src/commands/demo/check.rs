//! The checks: every planned step happened exactly once, and the hub's records agree.

use std::collections::BTreeSet;

use rialto_core::money::Credits;
use serde::Serialize;

use super::plan::{self, ActionKind, Role, STEPS};
use super::report::FactKind::{self, Completed, Declined, Deferred, Failed, Offered};
use super::report::{DemoReport, Fact, Payment, Scores, describe};
use crate::commands::v1::{Amount, format_amount};

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
/// A check by its name.
type NamedCheck = (&'static str, fn(&DemoReport) -> CheckResult);

/// One event that the hub's history must contain.
#[derive(Clone, Copy, Debug)]
struct PlannedFact {
    name: &'static str,
    requester: Role,
    kind: FactKind,
    by: Role,
    paid: Option<Credits>,
}

impl PlannedFact {
    /// Whether a fact is this event.
    fn matches(&self, fact: &Fact) -> bool {
        (self.requester, self.kind, Some(self.by)) == (fact.requester, fact.kind, fact.by)
            && self.paid == fact.paid.map(|paid| paid.0)
    }
}

const fn fact(name: &'static str, requester: Role, kind: FactKind, by: Role) -> PlannedFact {
    PlannedFact { name, requester, kind, by, paid: None }
}

const fn end(
    name: &'static str,
    requester: Role,
    kind: FactKind,
    by: Role,
    paid: Credits,
) -> PlannedFact {
    PlannedFact { paid: Some(paid), ..fact(name, requester, kind, by) }
}

/// The deferral, the accepted offer, the decline, the bids and their winner, the failure, and the
/// payments.
const FACTS: [PlannedFact; 12] = {
    use Role::*;
    [
        fact("one deferral", Reader, Deferred, Editor),
        fact("one offer on a hire", Editor, Offered, Scout),
        end("the offer is accepted and paid", Editor, Completed, Scout, plan::NEWS_PRICE),
        end("one failure", Editor, Failed, Checker, Credits::ZERO),
        end("the second check", Editor, Completed, Verifier, plan::SECOND_CHECK_PRICE),
        end("the reply counts as work", Editor, Completed, Polyglot, Credits::ZERO),
        fact("one decline", Newsstand, Declined, Crier),
        fact("one bid from clara", Newsstand, Offered, Herald),
        fact("one bid from agora", Newsstand, Offered, Courier),
        end("the lowest bid wins", Newsstand, Completed, Courier, plan::COURIER_SHOWN_PRICE),
        end("the announcement", Editor, Completed, Newsstand, plan::ANNOUNCEMENT_PRICE),
        end("the bulletin", Reader, Completed, Editor, plan::BULLETIN_PRICE),
    ]
};

/// All checks of a demo run.
pub fn run_all(report: &DemoReport) -> Vec<Check> {
    let mut checks = steps(report);
    checks.push(check("nothing happens that is not planned", no_extra_events(report)));
    checks.extend(facts(report));
    let others: [NamedCheck; 11] = [
        ("six protocols take part", protocols),
        ("the failed check is refunded in full", refund),
        ("every payment is exact to the micro-credit", payments),
        ("every agent has exactly the expected credits", balances),
        ("no credits are held at the end", nothing_held),
        ("every account equals the sum of its movements", recount),
        ("all accounts add up to zero", sum),
        ("both reputations of every worker move the right way", reputations),
        ("the Reader's job is traced there and back", hops),
        ("the bulletin contains every contribution", bulletin),
        ("the audit of the hub's data finds nothing", audit),
    ];
    checks.extend(others.map(|(name, run)| check(name, run(report))));
    checks
}

fn check(name: impl Into<String>, result: CheckResult) -> Check {
    Check { name: name.into(), holds: result.is_ok(), found: result.err() }
}

/// Compares a value with the expected one.
fn same<T: PartialEq + std::fmt::Debug>(is: &T, should: &T) -> CheckResult {
    if is == should { Ok(()) } else { Err(format!("{is:?} instead of {should:?}")) }
}

/// Every planned step was reported once, with its exact amount.
fn steps(report: &DemoReport) -> Vec<Check> {
    let step = |step: &plan::Step| {
        let events: Vec<_> = report.events.iter().filter(|event| step.matches(event)).collect();
        let result = match events.as_slice() {
            [event] => same(&event.amount, &step.amount.map(Amount)),
            others => Err(format!("{} times instead of once", others.len())),
        };
        check(step.describe(), result)
    };
    STEPS.iter().map(step).collect()
}

fn no_extra_events(report: &DemoReport) -> CheckResult {
    let is_extra = |event: &&_| !STEPS.iter().any(|step| step.matches(event));
    let extra = report.events.iter().find(is_extra);
    extra.map_or(Ok(()), |event| Err(format!("{} {}", event.role, event.text)))
}

/// The hub's history contains what the agents reported, and nothing else.
fn facts(report: &DemoReport) -> Vec<Check> {
    let history = &report.records.history;
    let once = FACTS.iter().map(|planned| {
        let count = history.iter().filter(|fact| planned.matches(fact)).count();
        let result = same(&count, &1).map_err(|_| format!("{count} times instead of once"));
        check(format!("the hub's history: {}", planned.name), result)
    });
    let mut checks: Vec<Check> = once.collect();
    let other = history.iter().find(|fact| !FACTS.iter().any(|planned| planned.matches(fact)));
    let other = other.map_or(Ok(()), |fact| Err(format!("{fact:?}")));
    checks.push(check("the hub's history: nothing else", other));
    checks
}

fn protocols(report: &DemoReport) -> CheckResult {
    let done = report.records.history.iter().filter(|fact| fact.kind == Completed);
    let parties = done.flat_map(|fact| [Some(fact.requester), fact.by]).flatten();
    let protocols: BTreeSet<String> = parties.map(|role| role.protocol().to_owned()).collect();
    same(
        &protocols,
        &rialto_protocols::ALL.iter().map(|adapter| adapter.id().to_string()).collect(),
    )
}

fn refund(report: &DemoReport) -> CheckResult {
    let ledger = &report.records.ledger;
    let failed = report.records.history.iter().find(|fact| fact.kind == Failed);
    let job = &failed.ok_or("nothing failed")?.job;
    let moved = ["hold", "release", "capture"].map(|kind| ledger.sum_moved(kind, job).ok());
    let planned = [plan::CHECK_PRICE, plan::CHECK_PRICE, Credits::ZERO];
    same(&moved, &planned.map(Some))
}

/// The planned payments, in order.
fn planned_payments() -> Vec<Payment> {
    let pays = STEPS.iter().filter(|step| step.kind == ActionKind::Pays);
    let payments = pays.filter_map(|step| {
        Some(Payment { from: Some(step.role), to: step.with, amount: step.amount? })
    });
    payments.filter(|payment| !payment.amount.is_zero()).collect()
}

fn payments(report: &DemoReport) -> CheckResult {
    let payments = report.records.ledger.payments().map_err(|error| error.to_string())?;
    same(&payments, &planned_payments())
}

fn balances(report: &DemoReport) -> CheckResult {
    for (role, agent) in &report.after {
        let mut micros = role.initial_credits().micros();
        for Payment { from, to, amount } in planned_payments() {
            micros -= i64::from(from == Some(*role)) * amount.micros();
            micros += i64::from(to == Some(*role)) * amount.micros();
        }
        let (has, should) = (agent.balance.total(), Credits::from_micros(micros));
        same(&format_amount(has), &format_amount(should))
            .map_err(|why| format!("{role} has {why}"))?;
    }
    Ok(())
}

fn nothing_held(report: &DemoReport) -> CheckResult {
    let held =
        report.records.ledger.accounts.iter().find(|account| !account.balance.held.is_zero());
    held.map_or(Ok(()), |account| Err(format!("{}: {}", account.owner, describe(account.balance))))
}

fn recount(report: &DemoReport) -> CheckResult {
    let ledger = &report.records.ledger;
    for account in &ledger.accounts {
        let moved = ledger.recount(&account.owner).map_err(|error| error.to_string())?;
        same(&account.balance, &moved).map_err(|why| format!("{}: {why}", account.owner))?;
    }
    Ok(())
}

fn sum(report: &DemoReport) -> CheckResult {
    same(&format_amount(report.records.ledger.sum()), &format_amount(Credits::ZERO))
}

/// The scores of successful workers rise by both formulas, those of failed workers fall.
fn reputations(report: &DemoReport) -> CheckResult {
    for fact in &report.records.history {
        let (Some(role), Completed | Failed) = (fact.by, fact.kind) else { continue };
        let (before, after) = (report.before.get(&role), report.after.get(&role));
        let (before, after) = before.zip(after).ok_or_else(|| format!("{role} is missing"))?;
        let result = moved(&before.scores, &after.scores, fact.kind == Completed);
        result.map_err(|why| format!("{role}: {why}"))?;
    }
    Ok(())
}

fn moved(before: &Scores, after: &Scores, up: bool) -> CheckResult {
    let number = |text: &str| text.parse::<f64>().map_err(|error| format!("{text}: {error}"));
    let (from, to) = (number(&before.registry)?, number(&after.registry)?);
    if (to > from) != up || to == from {
        return Err(format!("registry {from} -> {to}"));
    }
    let first = after.openclaw.as_deref().ok_or("openclaw has no score")?;
    if before.openclaw.is_some() || (number(first)? > 0.5) != up {
        return Err(format!("openclaw {:?} -> {first}", before.openclaw));
    }
    Ok(())
}

fn hops(report: &DemoReport) -> CheckResult {
    let hops = &report.records.hops;
    let crossed: Vec<_> = hops.iter().map(|hop| (&*hop.what, &*hop.from, &*hop.to)).collect();
    let there = ("request", "a2a", "openclaw");
    same(&crossed, &vec![there, ("result", "openclaw", "a2a")])
}

fn bulletin(report: &DemoReport) -> CheckResult {
    let should = serde_json::json!({"headline": "the bridge is open", "is_so": true,
        "in_french": "le pont est ouvert", "cried_by": Role::Courier.name()});
    same(&report.bulletin, &should)
}

fn audit(report: &DemoReport) -> CheckResult {
    same(&report.breaches, &Vec::new())
}

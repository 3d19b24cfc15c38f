//! The demo's report: all results, for people and for programs.

use std::fmt::Write as _;

use rialto_core::money::Credits;
use rialto_protocols::kit::raw_json;
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::balance::{self, Amount};
use super::check::Check;
use super::demo_agent::DemoAgents;
use super::event::Event;
use super::history::Fact;
use super::hops::Hop;
use super::hub_records::HubRecords;
use super::role::Role;

/// All results.
#[derive(Clone, Debug)]
pub struct DemoReport {
    /// The Reader's own id of the job.
    pub job: String,
    pub events: Vec<Event>,
    pub bulletin: Value,
    /// All agents before the first step and after the last.
    pub before: DemoAgents,
    pub after: DemoAgents,
    pub records: HubRecords,
    /// Breaches found by the audit of the hub's data.
    pub breaches: Vec<String>,
}

/// The same for programs.
#[derive(Serialize)]
struct Document<'a> {
    job: &'a str,
    bulletin: &'a Value,
    events: &'a [Event],
    history: &'a [Fact],
    payments: Vec<Payment>,
    balances: Vec<BalanceRow<'a>>,
    /// Over all accounts, including holds and issuance.
    sum: Amount,
    scores: Vec<Score>,
    hops: &'a [Hop],
    checks: &'a [Check],
}

#[derive(Serialize)]
struct Payment {
    from: Option<Role>,
    to: Option<Role>,
    amount: Amount,
}

#[derive(Serialize)]
struct BalanceRow<'a> {
    owner: &'a str,
    agent: Option<Role>,
    available: Amount,
    held: Amount,
}

/// Numbers, with the digits the hub showed.
#[derive(Serialize)]
struct Score {
    agent: Role,
    protocol: &'static str,
    registry_before: Box<RawValue>,
    registry: Box<RawValue>,
    openclaw_before: Option<Box<RawValue>>,
    openclaw: Option<Box<RawValue>>,
}

impl DemoReport {
    /// The JSON document.
    pub fn to_json(&self, checks: &[Check]) -> serde_json::Result<String> {
        let payment = |(from, to, amount)| Payment { from, to, amount: Amount(amount) };
        serde_json::to_string_pretty(&Document {
            job: &self.job,
            bulletin: &self.bulletin,
            events: &self.events,
            history: &self.records.history,
            payments: self.records.ledger.payments().into_iter().map(payment).collect(),
            balances: self.balances(),
            sum: Amount(self.records.ledger.sum()),
            scores: self.scores(),
            hops: &self.records.hops,
            checks,
        })
    }

    fn balances(&self) -> Vec<BalanceRow<'_>> {
        let accounts = self.records.ledger.accounts.iter();
        let balance = accounts.map(|account| BalanceRow {
            owner: &account.owner,
            agent: account.role,
            available: Amount(account.balance.available),
            held: Amount(account.balance.held),
        });
        balance.collect()
    }

    fn scores(&self) -> Vec<Score> {
        let changed = self.after.iter().filter_map(|(who, after)| {
            let before = self.before.get(who)?;
            (before.scores != after.scores).then_some((*who, &before.scores, &after.scores))
        });
        let score = changed.map(|(agent, before, after)| Score {
            agent,
            protocol: agent.protocol(),
            registry_before: raw_json::verbatim(&before.registry),
            registry: raw_json::verbatim(&after.registry),
            openclaw_before: before.openclaw.as_deref().map(raw_json::verbatim),
            openclaw: after.openclaw.as_deref().map(raw_json::verbatim),
        });
        score.collect()
    }

    /// The closing text: bulletin, credits, reputations and translation.
    pub fn describe(&self) -> String {
        let mut out = String::new();
        self.tell(&mut out).expect("memory can be written to");
        out.trim_end().to_owned()
    }

    fn tell(&self, out: &mut String) -> std::fmt::Result {
        writeln!(out, "\nThe bulletin: {}", self.bulletin)?;
        writeln!(out, "\nBalances, in credits:")?;
        for account in &self.records.ledger.accounts {
            let name = account.role.map_or(account.owner.as_str(), |who| who.name());
            let (before, now) = (self.initial_total(account.role), account.balance);
            writeln!(out, "  {name:<13} {:>12}{}", now.describe(), change(before, now.total()))?;
        }
        writeln!(out, "  {:<13} {:>12}", "sum", balance::format_amount(self.records.ledger.sum()))?;
        writeln!(out, "\nReputations, by registry (0-100) and by openclaw (0-1):")?;
        for score in self.scores() {
            let Score { agent, registry_before, registry, openclaw_before, openclaw, .. } = score;
            let digits = |score: Option<&RawValue>| score.map_or("none", RawValue::get).to_owned();
            let (before, after) = (digits(openclaw_before.as_deref()), digits(openclaw.as_deref()));
            let (from, to) = (registry_before.get(), registry.get());
            writeln!(out, "  {agent:<13} {from} -> {to:<6} {before} -> {after}")?;
        }
        if !self.records.hops.is_empty() {
            writeln!(out, "\nHow the Reader's job was translated:")?;
        }
        for hop in &self.records.hops {
            writeln!(out, "  {}", hop.describe())?;
        }
        Ok(())
    }

    /// The total an account had at the start.
    fn initial_total(&self, who: Option<Role>) -> Option<Credits> {
        let person = self.before.get(&who?)?;
        Some(person.balance.total())
    }
}

/// The difference to the amount before.
fn change(before: Option<Credits>, now: Credits) -> String {
    let Some(before) = before.filter(|before| *before != now) else { return String::new() };
    let more = Credits::from_micros(now.micros() - before.micros());
    let sign = if more.micros() > 0 { "+" } else { "" };
    format!("  ({sign}{})", balance::format_amount(more))
}

//! The demo's report: all results, for people and for programs.

use rialto_client::CallError;
use rialto_core::money::Credits;
use rialto_protocols::kit::raw_json;
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::check::Check;
use super::plan::{Event, Role};
use super::records::{Account, DemoAgents, Fact, Hop, HubRecords, Payment, describe};
use crate::commands::v1::{Amount, format_amount, unreadable};

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
    balances: &'a [Account],
    /// Over all accounts, including holds and issuance.
    sum: Amount,
    scores: Vec<Score>,
    hops: &'a [Hop],
    checks: &'a [Check],
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
    pub fn to_json(&self, checks: &[Check]) -> Result<String, CallError> {
        let HubRecords { history, ledger, hops } = &self.records;
        let document = Document {
            job: &self.job,
            bulletin: &self.bulletin,
            events: &self.events,
            history,
            payments: ledger.payments()?,
            balances: &ledger.accounts,
            sum: Amount(ledger.sum()),
            scores: self.scores(),
            hops,
            checks,
        };
        serde_json::to_string_pretty(&document).map_err(unreadable)
    }

    /// The agents whose scores have changed.
    fn scores(&self) -> Vec<Score> {
        let scores = self.after.iter().filter_map(|(role, after)| {
            let (before, after) = (&self.before.get(role)?.scores, &after.scores);
            (before != after).then(|| Score {
                agent: *role,
                protocol: role.protocol(),
                registry_before: raw_json::verbatim(&before.registry),
                registry: raw_json::verbatim(&after.registry),
                openclaw_before: before.openclaw.as_deref().map(raw_json::verbatim),
                openclaw: after.openclaw.as_deref().map(raw_json::verbatim),
            })
        });
        scores.collect()
    }

    /// The closing text: bulletin, credits, reputations and translation.
    pub fn describe(&self) -> String {
        let HubRecords { ledger, hops, .. } = &self.records;
        let mut lines = vec![format!("\nThe bulletin: {}", self.bulletin)];
        lines.push("\nBalances, in credits:".to_owned());
        for account in &ledger.accounts {
            let name = account.role.map_or(account.owner.as_str(), |role| role.name());
            let before = account.role.and_then(|role| self.before.get(&role));
            let change = change(before.map(|agent| agent.balance.total()), account.balance.total());
            lines.push(format!("  {name:<13} {:>12}{change}", describe(account.balance)));
        }
        lines.push(format!("  {:<13} {:>12}", "sum", format_amount(ledger.sum())));
        lines.push("\nReputations, by registry (0-100) and by openclaw (0-1):".to_owned());
        for Score { agent, registry_before, registry, openclaw_before, openclaw, .. } in
            self.scores()
        {
            let digits = |score: Option<Box<RawValue>>| {
                score.map_or("none".to_owned(), |score| score.get().to_owned())
            };
            let (before, after) = (digits(openclaw_before), digits(openclaw));
            let (from, to) = (registry_before.get(), registry.get());
            lines.push(format!("  {agent:<13} {from} -> {to:<6} {before} -> {after}"));
        }
        if !hops.is_empty() {
            lines.push("\nHow the Reader's job was translated:".to_owned());
        }
        lines.extend(hops.iter().map(|hop| format!("  {}", hop.describe())));
        lines.join("\n").trim_end().to_owned()
    }
}

/// The difference to the amount before.
fn change(before: Option<Credits>, now: Credits) -> String {
    let Some(before) = before.filter(|before| *before != now) else { return String::new() };
    let more = Credits::from_micros(now.micros() - before.micros());
    let sign = if more.micros() > 0 { "+" } else { "" };
    format!("  ({sign}{})", format_amount(more))
}

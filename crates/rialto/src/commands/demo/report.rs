//! The demo's report: all results, for people and for programs, with the hub's own records: agents with both
//! kinds of reputation score, the ledger, the history of jobs, and how the Reader's job was translated.

use std::collections::{BTreeMap, BTreeSet};

use rialto_client::CallError;
use rialto_client::openclaw::Server;
use rialto_core::event::Event;
use rialto_core::id::{AgentId, EventId};
use rialto_core::job::{Requester, State};
use rialto_core::money::Credits;
use rialto_core::owner::Owner;
use rialto_engine::Engine;
use rialto_engine::store::{PageQuery, Row};
use rialto_protocols::kit::raw_json;
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::DemoHub;
use super::agents::AgentIds;
use super::check::Check;
use super::plan::{self, Role};
use super::requesters::Reader;
use crate::commands::v1::{
    self, Amount, Balance, LedgerEntry, SubAccount, format_amount, parse_amount, unreadable,
    write_amount,
};
use crate::commands::{Answer, V1};

/// Maximum number of history lines read; the demo has a few dozen.
const LINES_MAX: usize = 10_000;

/// All results.
#[derive(Clone, Debug)]
pub struct DemoReport {
    /// The Reader's task, which is the hub's id of the job.
    pub job: String,
    pub events: Vec<plan::Event>,
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
    events: &'a [plan::Event],
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

/// The account of this name; needs the operator key or its owner's key.
async fn balance_of(api: &V1, owner: &str) -> Result<Balance, CallError> {
    api.account(owner).await?.parse()?.balance()
}

/// A balance as text.
pub fn describe(balance: Balance) -> String {
    let available = format_amount(balance.available);
    if balance.held.is_zero() {
        return available;
    }
    format!("{available} + {} held", format_amount(balance.held))
}

/// An agent as the hub shows it now.
#[derive(Clone, Debug)]
pub struct DemoAgent {
    pub id: AgentId,
    /// The name of its account.
    pub owner: String,
    pub online: bool,
    pub balance: Balance,
    pub scores: Scores,
}

/// Reputation scores, with the digits the hub shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scores {
    /// Of registry: 0 to 100, one step per job.
    pub registry: String,
    /// Of openclaw: 0 to 1, none before the first job.
    pub openclaw: Option<String>,
}

/// All agents.
pub type DemoAgents = BTreeMap<Role, DemoAgent>;

/// Fetches all agents.
pub async fn fetch_agents(hub: &DemoHub, ids: &AgentIds) -> Result<DemoAgents, CallError> {
    let server = Server::new(&hub.url)?;
    let mut agents = DemoAgents::new();
    for (role, id) in ids {
        let shown = hub.operator.agent(id).await?.parse()?;
        let alias = shown.names.get("openclaw").and_then(|name| name.parse().ok());
        let alias = alias.ok_or_else(|| unreadable(format!("{id} has no alias")))?;
        let openclaw = server.reputation(alias).await?.by_hub;
        let openclaw = openclaw.map(|reputation| reputation.score.text());
        let agent = DemoAgent {
            id: AgentId(shown.id),
            balance: balance_of(&hub.operator, &shown.owner).await?,
            owner: shown.owner,
            online: shown.online,
            scores: Scores { registry: shown.score.get().to_owned(), openclaw },
        };
        agents.insert(*role, agent);
    }
    Ok(agents)
}

/// The current balances of all agents.
pub async fn fetch_balances(
    hub: &DemoHub,
    agents: &DemoAgents,
) -> Result<BTreeMap<Role, Balance>, CallError> {
    let mut balances = BTreeMap::new();
    for (role, agent) in agents {
        balances.insert(*role, balance_of(&hub.operator, &agent.owner).await?);
    }
    Ok(balances)
}

/// Everything the hub has recorded.
#[derive(Clone, Debug)]
pub struct HubRecords {
    /// What happened to jobs, independent of what the agents report.
    pub history: Vec<Fact>,
    pub ledger: Ledger,
    /// How the Reader's job was translated between protocols and back.
    pub hops: Vec<Hop>,
}

impl HubRecords {
    pub async fn read(
        hub: &DemoHub,
        reader: &Reader,
        job: &str,
        agents: &DemoAgents,
    ) -> Result<Self, CallError> {
        let trace = reader.api.trace(job).await?.parse()?;
        Ok(Self {
            history: read_history(&hub.engine, agents).await?,
            ledger: Ledger::read(&hub.operator, agents).await?,
            hops: trace.hops.iter().map(Hop::new).collect(),
        })
    }
}

/// One event in the life of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Fact {
    /// The hub's id of the job.
    pub job: String,
    #[serde(rename = "of")]
    pub requester: Role,
    #[serde(rename = "what")]
    pub kind: FactKind,
    /// The agent that did this, or the worker of a job that ended.
    pub by: Option<Role>,
    /// What was paid at the end.
    pub paid: Option<Amount>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FactKind {
    Deferred,
    Offered,
    Declined,
    Completed,
    Failed,
    /// Ended in a way that is not planned.
    #[serde(rename = "broken")]
    Unplanned,
}

/// The whole history, oldest first.
async fn read_history(engine: &Engine, agents: &DemoAgents) -> Result<Vec<Fact>, CallError> {
    let page = PageQuery::Lines { after: EventId(0), limit: LINES_MAX };
    let rows = engine.load_page(page).await;
    let rows = rows.map_err(|_| unreadable("the history cannot be read"))?;
    let mut facts = Vec::new();
    for row in rows {
        let Row::Line(line) = row else { continue };
        for event in &line.events {
            facts.extend(read_fact(engine, agents, event).await);
        }
    }
    Ok(facts)
}

async fn read_fact(engine: &Engine, agents: &DemoAgents, event: &Event) -> Option<Fact> {
    let (id, kind, by, paid) = match event {
        Event::JobDeferred { job, .. } => (*job, FactKind::Deferred, None, None),
        Event::JobOffered { job, by } => (*job, FactKind::Offered, Some(*by), None),
        Event::JobDeclined { job, worker } => (*job, FactKind::Declined, Some(*worker), None),
        Event::JobEnded { job, state, paid, .. } => {
            let kind = match state {
                State::Completed => FactKind::Completed,
                State::Failed => FactKind::Failed,
                _ => FactKind::Unplanned,
            };
            (*job, kind, None, Some(*paid))
        }
        _ => return None,
    };
    let role_of =
        |id: AgentId| agents.iter().find(|(_, agent)| agent.id == id).map(|(role, _)| *role);
    let job = engine.load_job(id).await.ok().flatten()?;
    let Requester::Agent(requester) = job.request.requester else { return None };
    Some(Fact {
        job: job.uuid.to_string(),
        requester: role_of(requester)?,
        kind,
        by: by.or_else(|| job.worker()).and_then(role_of),
        paid: paid.map(Amount),
    })
}

/// Every account, and every movement of credits to recount them from.
#[derive(Clone, Debug)]
pub struct Ledger {
    /// Oldest first.
    pub entries: Vec<LedgerEntry>,
    pub accounts: Vec<Account>,
}

/// An account, and its balance as the hub shows it.
#[derive(Clone, Debug, Serialize)]
pub struct Account {
    pub owner: String,
    /// The agent it belongs to; `None` for the account that issues credits.
    #[serde(rename = "agent")]
    pub role: Option<Role>,
    #[serde(flatten)]
    pub balance: Balance,
}

impl Ledger {
    /// Reads all of it with the operator key.
    async fn read(operator: &V1, agents: &DemoAgents) -> Result<Self, CallError> {
        let entries = operator.ledger().take(u32::MAX).await?;
        let entries: Vec<LedgerEntry> =
            entries.iter().rev().map(Answer::parse).collect::<Result<_, _>>()?;
        let roles: BTreeMap<&str, Role> =
            agents.iter().map(|(role, agent)| (agent.owner.as_str(), *role)).collect();
        let parts = entries.iter().flat_map(|entry| [&entry.from, &entry.to]);
        let mut owners: BTreeSet<&str> = parts.map(|part| part.owner.as_str()).collect();
        owners.extend(roles.keys());
        owners.insert(Owner::ISSUANCE_NAME);
        let mut accounts = Vec::new();
        for owner in owners {
            let balance = balance_of(operator, owner).await?;
            let role = roles.get(owner).copied();
            accounts.push(Account { owner: owner.to_owned(), role, balance });
        }
        accounts.sort_by_key(|account| (account.role.is_none(), account.role));
        Ok(Self { entries, accounts })
    }

    /// The total of all accounts, available and held. Credits are issued from an account that goes
    /// below zero, so this is zero.
    pub fn sum(&self) -> Credits {
        let micros = self.accounts.iter().map(|account| account.balance.total().micros()).sum();
        Credits::from_micros(micros)
    }

    /// All payments for jobs.
    pub fn payments(&self) -> Result<Vec<Payment>, CallError> {
        let captured = self.entries.iter().filter(|entry| entry.kind == "capture");
        let role = |part: &SubAccount| {
            let account = self.accounts.iter().find(|account| account.owner == part.owner);
            account.and_then(|account| account.role)
        };
        let payment = |entry: &LedgerEntry| {
            let (from, to) = (role(&entry.from), role(&entry.to));
            parse_amount(&entry.amount).map(|amount| Payment { from, to, amount })
        };
        captured.map(payment).collect()
    }

    /// The total of this kind of movement for a job.
    pub fn sum_moved(&self, kind: &str, job: &str) -> Result<Credits, CallError> {
        let is_meant =
            |entry: &&LedgerEntry| entry.kind == kind && entry.job.as_deref() == Some(job);
        let amounts = self.entries.iter().filter(is_meant).map(|entry| parse_amount(&entry.amount));
        let micros: Result<i64, _> = amounts.map(|amount| amount.map(Credits::micros)).sum();
        micros.map(Credits::from_micros)
    }

    /// An account's balance, recounted from all movements.
    pub fn recount(&self, owner: &str) -> Result<Balance, CallError> {
        self.entries.iter().try_fold(Balance::default(), |sum, entry| sum.after(entry, owner))
    }
}

/// A payment for a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Payment {
    pub from: Option<Role>,
    pub to: Option<Role>,
    #[serde(serialize_with = "write_amount")]
    pub amount: Credits,
}

/// One translation of a job between two protocols.
#[derive(Clone, Debug, Serialize)]
pub struct Hop {
    pub what: String,
    pub from: String,
    pub to: String,
    /// Number of fields by outcome: kept, renamed, defaulted, dropped.
    fields: BTreeMap<String, usize>,
}

impl Hop {
    fn new(shown: &v1::Hop) -> Self {
        let mut fields = BTreeMap::new();
        for note in &shown.notes {
            *fields.entry(note.fate.clone()).or_default() += 1;
        }
        let [what, from, to] = [&shown.what, &shown.from, &shown.to].map(String::clone);
        Self { what, from, to, fields }
    }

    /// One line of text.
    pub fn describe(&self) -> String {
        let fields: Vec<String> =
            self.fields.iter().map(|(fate, count)| format!("{count} {fate}")).collect();
        format!("{:<8} {} -> {}: fields {}", self.what, self.from, self.to, fields.join(", "))
    }
}

//! The ledger: every account, and every movement of credits to recount them from.

use std::collections::{BTreeMap, BTreeSet};

use rialto_client::{CallError, Hub, Method};
use rialto_core::money::Credits;
use rialto_core::owner::Owner;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::balance::{self, Balance, unreadable};
use super::demo_agent::DemoAgents;
use super::role::Role;

/// One movement of credits.
#[derive(Clone, Debug)]
pub struct Entry {
    pub kind: String,
    pub from: SubAccount,
    pub to: SubAccount,
    pub amount: Credits,
    /// The hub's id of the job it belongs to.
    pub job: Option<String>,
}

/// One of an account's two parts: available or held.
#[derive(Clone, Debug, Deserialize)]
pub struct SubAccount {
    pub owner: String,
    pub held: bool,
}

/// An account, and its balance as the hub shows it.
#[derive(Clone, Debug)]
pub struct Account {
    pub owner: String,
    /// The agent it belongs to; `None` for the account that issues credits.
    pub role: Option<Role>,
    pub balance: Balance,
}

#[derive(Clone, Debug)]
pub struct Ledger {
    /// Oldest first.
    pub entries: Vec<Entry>,
    pub accounts: Vec<Account>,
}

#[derive(Deserialize)]
struct Page {
    items: Vec<EntryView>,
    next_cursor: Option<String>,
}

#[derive(Deserialize)]
struct EntryView {
    kind: String,
    from: SubAccount,
    to: SubAccount,
    amount: Box<RawValue>,
    job: Option<String>,
}

impl Ledger {
    /// The total of all accounts, available and held. Credits are issued from an account that goes
    /// below zero, so this is zero.
    pub fn sum(&self) -> Credits {
        let micros = self.accounts.iter().map(|account| account.balance.total().micros()).sum();
        Credits::from_micros(micros)
    }

    /// All payments for jobs: payer, payee, amount.
    pub fn payments(&self) -> Vec<(Option<Role>, Option<Role>, Credits)> {
        let captured = self.entries.iter().filter(|entry| entry.kind == "capture");
        let who =
            |pocket: &SubAccount| self.account(&pocket.owner).and_then(|account| account.role);
        captured.map(|entry| (who(&entry.from), who(&entry.to), entry.amount)).collect()
    }

    /// The total of this kind of movement for a job.
    pub fn sum_moved(&self, kind: &str, job: &str) -> Credits {
        let about = |entry: &&Entry| entry.kind == kind && entry.job.as_deref() == Some(job);
        let micros = self.entries.iter().filter(about).map(|entry| entry.amount.micros()).sum();
        Credits::from_micros(micros)
    }

    /// An account's balance, recounted from all movements.
    pub fn recount(&self, owner: &str) -> Balance {
        let pocket = |held: bool| {
            let is = |pocket: &SubAccount| pocket.owner == owner && pocket.held == held;
            let micros = |entry: &Entry| {
                let amount = entry.amount.micros();
                i64::from(is(&entry.to)) * amount - i64::from(is(&entry.from)) * amount
            };
            Credits::from_micros(self.entries.iter().map(micros).sum())
        };
        Balance { available: pocket(false), held: pocket(true) }
    }

    fn account(&self, owner: &str) -> Option<&Account> {
        self.accounts.iter().find(|account| account.owner == owner)
    }
}

/// Reads all of it with the operator key.
pub async fn read_ledger(operator: &Hub, people: &DemoAgents) -> Result<Ledger, CallError> {
    let entries = fetch_entries(operator).await?;
    let whose: BTreeMap<&str, Role> =
        people.iter().map(|(who, person)| (person.owner.as_str(), *who)).collect();
    let pockets = entries.iter().flat_map(|entry| [&entry.from, &entry.to]);
    let mut owners: BTreeSet<&str> = pockets.map(|pocket| pocket.owner.as_str()).collect();
    owners.extend(whose.keys());
    owners.insert(Owner::ISSUANCE_NAME);
    let mut accounts = Vec::new();
    for owner in owners {
        accounts.push(Account {
            owner: owner.to_owned(),
            role: whose.get(owner).copied(),
            balance: Balance::of_owner(operator, owner).await?,
        });
    }
    accounts.sort_by_key(|account| (account.role.is_none(), account.role));
    Ok(Ledger { entries, accounts })
}

async fn fetch_entries(operator: &Hub) -> Result<Vec<Entry>, CallError> {
    let (mut entries, mut cursor) = (Vec::new(), String::new());
    loop {
        let path = format!("/v1/ledger{cursor}");
        let (_, text) = operator.call_text(Method::GET, &path, None).await?;
        let page: Page = serde_json::from_str(&text).map_err(unreadable)?;
        for EntryView { kind, from, to, amount, job } in page.items {
            entries.push(Entry {
                kind,
                from,
                to,
                amount: balance::parse_amount(amount.get())?,
                job,
            });
        }
        match page.next_cursor {
            Some(next) => cursor = format!("?cursor={next}"),
            None => break,
        }
    }
    entries.reverse();
    Ok(entries)
}

//! The ledger: every account, and every movement of credits to recount them from.

use std::collections::{BTreeMap, BTreeSet};

use rialto_client::{CallError, Hub, Method};
use rialto_core::money::Credits;
use rialto_core::owner::Owner;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::role::Who;
use super::demo_agent::People;
use super::balance::{self, Purse, unreadable};

/// One movement of credits.
#[derive(Clone, Debug)]
pub struct Entry {
    pub kind: String,
    pub from: Pocket,
    pub to: Pocket,
    pub amount: Credits,
    /// The hub's id of the job it belongs to.
    pub job: Option<String>,
}

/// One of an account's two parts: available or held.
#[derive(Clone, Debug, Deserialize)]
pub struct Pocket {
    pub owner: String,
    pub held: bool,
}

/// An account, and its balance as the hub shows it.
#[derive(Clone, Debug)]
pub struct Account {
    pub owner: String,
    /// The agent it belongs to; `None` for the account that issues credits.
    pub who: Option<Who>,
    pub purse: Purse,
}

#[derive(Clone, Debug)]
pub struct Ledger {
    /// Oldest first.
    pub entries: Vec<Entry>,
    pub accounts: Vec<Account>,
}

#[derive(Deserialize)]
struct Page {
    items: Vec<Shown>,
    next_cursor: Option<String>,
}

#[derive(Deserialize)]
struct Shown {
    kind: String,
    from: Pocket,
    to: Pocket,
    amount: Box<RawValue>,
    job: Option<String>,
}

impl Ledger {
    /// The total of all accounts, available and held. Credits are issued from an account that goes
    /// below zero, so this is zero.
    pub fn sum(&self) -> Credits {
        let micros = self.accounts.iter().map(|account| account.purse.whole().micros()).sum();
        Credits::from_micros(micros)
    }

    /// All payments for jobs: payer, payee, amount.
    pub fn payments(&self) -> Vec<(Option<Who>, Option<Who>, Credits)> {
        let captured = self.entries.iter().filter(|entry| entry.kind == "capture");
        let who = |pocket: &Pocket| self.account(&pocket.owner).and_then(|account| account.who);
        captured.map(|entry| (who(&entry.from), who(&entry.to), entry.amount)).collect()
    }

    /// The total of this kind of movement for a job.
    pub fn moved(&self, kind: &str, job: &str) -> Credits {
        let about = |entry: &&Entry| entry.kind == kind && entry.job.as_deref() == Some(job);
        let micros = self.entries.iter().filter(about).map(|entry| entry.amount.micros()).sum();
        Credits::from_micros(micros)
    }

    /// An account's balance, recounted from all movements.
    pub fn recount(&self, owner: &str) -> Purse {
        let pocket = |held: bool| {
            let is = |pocket: &Pocket| pocket.owner == owner && pocket.held == held;
            let micros = |entry: &Entry| {
                let amount = entry.amount.micros();
                i64::from(is(&entry.to)) * amount - i64::from(is(&entry.from)) * amount
            };
            Credits::from_micros(self.entries.iter().map(micros).sum())
        };
        Purse { available: pocket(false), held: pocket(true) }
    }

    fn account(&self, owner: &str) -> Option<&Account> {
        self.accounts.iter().find(|account| account.owner == owner)
    }
}

/// Reads all of it with the operator key.
pub async fn read(operator: &Hub, people: &People) -> Result<Ledger, CallError> {
    let entries = entries(operator).await?;
    let whose: BTreeMap<&str, Who> =
        people.iter().map(|(who, person)| (person.owner.as_str(), *who)).collect();
    let pockets = entries.iter().flat_map(|entry| [&entry.from, &entry.to]);
    let mut owners: BTreeSet<&str> = pockets.map(|pocket| pocket.owner.as_str()).collect();
    owners.extend(whose.keys());
    owners.insert(Owner::ISSUANCE_NAME);
    let mut accounts = Vec::new();
    for owner in owners {
        accounts.push(Account {
            owner: owner.to_owned(),
            who: whose.get(owner).copied(),
            purse: Purse::of(operator, owner).await?,
        });
    }
    accounts.sort_by_key(|account| (account.who.is_none(), account.who));
    Ok(Ledger { entries, accounts })
}

async fn entries(operator: &Hub) -> Result<Vec<Entry>, CallError> {
    let (mut entries, mut cursor) = (Vec::new(), String::new());
    loop {
        let path = format!("/v1/ledger{cursor}");
        let (_, text) = operator.call_text(Method::GET, &path, None).await?;
        let page: Page = serde_json::from_str(&text).map_err(unreadable)?;
        for Shown { kind, from, to, amount, job } in page.items {
            entries.push(Entry { kind, from, to, amount: balance::amount(amount.get())?, job });
        }
        match page.next_cursor {
            Some(next) => cursor = format!("?cursor={next}"),
            None => break,
        }
    }
    entries.reverse();
    Ok(entries)
}

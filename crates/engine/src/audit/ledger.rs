//! Ledger checks: the hash chain of entries, their sums, and the chain of entries of each owner.

use std::collections::HashMap;

use rialto_core::id::{EntryId, OwnerId};
use rialto_core::ledger::{Entry, EntryHash, EntryKind, SubAccount, Transfer};
use rialto_core::owner::Owner;
use rusqlite::Connection;

use super::Check;
use super::claims::IdSet;
use super::registrations::Registrations;
use super::scratch::{JobMovements, ScratchDb};
use super::tables::{IdRule, TableReader};
use crate::store::StoreError;
use crate::store::sqlite::row;

/// The results of the ledger checks, and what each job moved.
pub struct LedgerAudit {
    /// Chain, sums, history, transfers.
    pub checks: [Check; 4],
    pub holds: Check,
    pub movements: ScratchDb,
}

/// Sums kept while scanning the ledger.
struct LedgerScan {
    chain: Check,
    sums: Check,
    history: Check,
    transfers: Check,
    holds: Check,
    money: ScratchDb,
    last: EntryId,
    hash: EntryHash,
    pockets: HashMap<SubAccount, i128>,
    owners: HashMap<OwnerId, (EntryId, u64)>,
    payments: u64,
    volume: i128,
    paid: IdSet,
}

/// Scans the ledger once.
pub fn check(
    rows: &mut TableReader<'_>,
    people: &Registrations,
) -> Result<LedgerAudit, StoreError> {
    let mut walk = LedgerScan {
        chain: Check::new("ledger.chain"),
        sums: Check::new("ledger.sums"),
        history: Check::new("ledger.history"),
        transfers: Check::new("transfers"),
        holds: Check::new("holds"),
        money: ScratchDb::new()?,
        last: EntryId(0),
        hash: EntryHash::default(),
        pockets: HashMap::new(),
        owners: HashMap::new(),
        payments: 0,
        volume: 0,
        paid: IdSet::default(),
    };
    let next = rows.next;
    let ids = Some(IdRule::Contiguous(next.entry.0));
    rows.for_each(
        "entries",
        ids,
        |one: &Entry| one.id.0,
        |db, entry| walk.check_entry(db, &entry),
    )?;
    let (last, hash) = (walk.last, walk.hash);
    let head = last.next() == next.entry && hash == next.chain;
    walk.chain.require(head, || format!("the counters do not match the last ledger entry, {last}"));
    check_columns(rows.db, &mut walk)?;
    walk.check_accounts(people);
    let full = i128::from(i64::MAX).min(walk.volume);
    let totals = walk.payments == next.payments && full == i128::from(next.volume.micros());
    let (payments, volume) = (walk.payments, walk.volume);
    walk.history.require(totals, || {
        let (counted, sum) = (next.payments, next.volume.micros());
        format!("{payments} payments of {volume} in total, but the counters say {counted} of {sum}")
    });
    let ids = Some(IdRule::Contiguous(next.transfer.0));
    rows.for_each(
        "transfers",
        ids,
        |one: &Transfer| one.id.0,
        |_, transfer| {
            walk.transfers.rows += 1;
            let (id, moved) = (transfer.id, walk.paid.contains(transfer.id.0));
            walk.transfers.require(moved != transfer.settled_by_hold, || match moved {
                true => format!("transfer {id} moved credits that a hold had already paid"),
                false => format!("transfer {id} is not in the ledger"),
            });
            Ok(())
        },
    )?;
    let LedgerScan { chain, sums, history, transfers, holds, money, .. } = walk;
    Ok(LedgerAudit { checks: [chain, sums, history, transfers], holds, movements: money })
}

impl LedgerScan {
    fn check_entry(&mut self, db: &Connection, entry: &Entry) -> Result<(), StoreError> {
        let id = entry.id;
        self.chain.rows += 1;
        self.chain.require(id == self.last.next(), || format!("entry {id} follows {}", self.last));
        let chained = entry.hash == entry.chain_hash(self.hash);
        self.chain
            .require(chained, || format!("the hash of entry {id} does not continue the chain"));
        (self.last, self.hash) = (id, entry.hash);
        self.move_credits(entry);
        self.history.rows += 1;
        self.check_account_step(entry.from.owner, entry.before_from, id);
        if entry.to.owner == entry.from.owner {
            let same = entry.before_to == entry.before_from;
            self.history
                .require(same, || format!("entry {id} has two predecessors within one account"));
        } else {
            self.check_account_step(entry.to.owner, entry.before_to, id);
        }
        if entry.kind.is_payment() {
            self.payments += 1;
            self.volume += i128::from(entry.amount.micros());
            for owner in [entry.from.owner, entry.to.owner] {
                if let Some((_, movements)) = self.owners.get_mut(&owner) {
                    *movements += 1;
                }
                if entry.from.owner == entry.to.owner {
                    break;
                }
            }
        }
        match entry.kind {
            EntryKind::Transfer => self.check_transfer(db, entry),
            EntryKind::Hold | EntryKind::Capture | EntryKind::Release => {
                self.add_job_movement(entry)
            }
            EntryKind::Grant | EntryKind::Burn => Ok(()),
        }
    }

    /// Moves the amount, and checks that only the issuing account goes below zero.
    fn move_credits(&mut self, entry: &Entry) {
        let (id, amount) = (entry.id, i128::from(entry.amount.micros()));
        self.sums.rows += 1;
        self.sums.require(amount > 0, || format!("entry {id} has an amount of zero or less"));
        let left = self.pockets.entry(entry.from).or_default();
        *left -= amount;
        let covered = *left >= 0 || entry.from == SubAccount::available(Owner::ISSUANCE);
        self.sums.require(covered, || format!("entry {id} overdraws its account"));
        *self.pockets.entry(entry.to).or_default() += amount;
        let ends = [entry.from.owner, entry.to.owner];
        let issued = matches!(entry.kind, EntryKind::Grant | EntryKind::Burn);
        let right = ends.contains(&Owner::ISSUANCE) == issued;
        self.sums.require(right, || {
            format!("entry {id} moves credits to or from issuance, but is no grant or burn")
        });
    }

    /// One owner's chain: each entry names the previous one.
    fn check_account_step(&mut self, owner: OwnerId, before: Option<EntryId>, id: EntryId) {
        let known = self.owners.get(&owner).copied();
        let (last, movements) = known.map_or((None, 0), |(last, count)| (Some(last), count));
        self.history.require(before == last, || {
            format!("entry {id} follows {before:?} in the account of {owner}, not {last:?}")
        });
        self.owners.insert(owner, (id, movements));
    }

    /// A transfer's entry matches the transfer.
    fn check_transfer(&mut self, db: &Connection, entry: &Entry) -> Result<(), StoreError> {
        let id = entry.id;
        let Some(order) = entry.transfer else {
            self.transfers.add_breach(|| format!("entry {id} is a transfer without a transfer id"));
            return Ok(());
        };
        let first = self.paid.insert(order.0);
        self.transfers.require(first, || format!("entry {id} pays transfer {order} again"));
        let found: Option<Transfer> = row::load_by_id(db, "transfers", order.0)?;
        let same = found.is_some_and(|found| {
            let ends = entry.from == SubAccount::available(found.from)
                && entry.to == SubAccount::available(found.to);
            ends && entry.amount == found.amount
        });
        self.transfers.require(same, || format!("entry {id} does not match transfer {order}"));
        Ok(())
    }

    /// Credits that a job moves pass through its payer's held balance.
    fn add_job_movement(&mut self, entry: &Entry) -> Result<(), StoreError> {
        let (id, amount) = (entry.id, entry.amount.micros());
        let Some(job) = entry.job else {
            self.holds.add_breach(|| format!("entry {id} has no job"));
            return Ok(());
        };
        let payer = entry.from.owner;
        let (open, held) = (SubAccount::available(payer), SubAccount::held(payer));
        let none = JobMovements { payer: Some(row::sql_id(payer.0)), ..JobMovements::default() };
        let (right, moved) = match entry.kind {
            EntryKind::Hold => {
                let moved = JobMovements { held: amount, holds: 1, ..none };
                (entry.from == open && entry.to == held, moved)
            }
            EntryKind::Capture => {
                let payee = Some(row::sql_id(entry.to.owner.0));
                let moved = JobMovements { captured: amount, payee, ..none };
                (entry.from == held && !entry.to.held, moved)
            }
            _ => {
                let moved = JobMovements { released: amount, ..none };
                (entry.from == held && entry.to == open, moved)
            }
        };
        self.holds.require(right, || {
            format!("entry {id} of job {job} moves credits between the wrong balances")
        });
        self.money.add_movements(job.0, moved)
    }

    /// Every account's balance equals the sum of its entries.
    fn check_accounts(&mut self, people: &Registrations) {
        let mut total = 0;
        for owner in people.owners.values() {
            let name = &owner.name;
            for (pocket, said) in [
                (SubAccount::available(owner.id), owner.available),
                (SubAccount::held(owner.id), owner.held),
            ] {
                let sum = self.pockets.remove(&pocket).unwrap_or(0);
                let said = i128::from(said.micros());
                total += said;
                let what = if pocket.held { "held" } else { "available" };
                self.sums.require(said == sum, || {
                    format!(
                        "the {what} balance of {name} is {said}, but its entries add up to {sum}"
                    )
                });
                let may = said >= 0 || pocket == SubAccount::available(Owner::ISSUANCE);
                self.sums.require(may, || format!("{name} has {said} {what}"));
            }
            let (newest, movements) =
                self.owners.get(&owner.id).map_or((None, 0), |(id, count)| (Some(*id), *count));
            self.history.require(owner.newest_entry == newest, || {
                format!(
                    "the newest entry of {name} is {newest:?}, but the owner row says {:?}",
                    owner.newest_entry
                )
            });
            self.history.require(owner.payment_count == movements, || {
                format!("{name} took part in {movements} payments, not {}", owner.payment_count)
            });
        }
        for (pocket, sum) in self.pockets.iter().filter(|(_, sum)| **sum != 0) {
            self.sums.add_breach(|| {
                format!(
                    "{sum} micro-credits belong to owner {}, which does not exist",
                    pocket.owner
                )
            });
        }
        self.sums.require(total == 0, || format!("all balances together are {total}, not zero"));
    }
}

/// Columns match the JSON body.
fn check_columns(db: &Connection, walk: &mut LedgerScan) -> Result<(), StoreError> {
    let lines = "SELECT id FROM entries WHERE json_valid(body) AND (kind <> body ->> 'kind'
                 OR amount <> body ->> 'amount' OR payer <> body ->> '$.from.owner'
                 OR payee <> body ->> '$.to.owner') LIMIT 100";
    for id in super::query_ids(db, lines)? {
        walk.chain.add_breach(|| format!("the columns of entry {id} do not match its JSON body"));
    }
    let owners = "SELECT id FROM owners WHERE json_valid(body) AND
                  (available <> body ->> 'available' OR held <> body ->> 'held') LIMIT 100";
    for id in super::query_ids(db, owners)? {
        walk.sums.add_breach(|| format!("the columns of owner {id} do not match its JSON body"));
    }
    Ok(())
}

//! Ledger invariants: what every entry moves, between which owners, and the sums.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::changes::Changes;
use crate::id::{EntryId, JobId, OwnerId};
use crate::job::{Job, Requester, State};
use crate::ledger::{Entry, EntryHash, EntryKind, SubAccount, Transfer};
use crate::money::Credits;
use crate::owner::Owner;
use crate::world::World;

/// Records kept from the entries alone.
#[derive(Clone, Default)]
pub struct LedgerChecks {
    pockets: BTreeMap<SubAccount, i64>,
    newest: BTreeMap<OwnerId, EntryId>,
    last: EntryId,
    chain: EntryHash,
    deals: BTreeMap<JobId, JobPayments>,
}

/// What one job moved, in millionths, and between which owners.
#[derive(Clone, Debug, Default)]
struct JobPayments {
    held: i64,
    captured: i64,
    released: i64,
    /// Whose credits were held, released or paid.
    payers: BTreeSet<OwnerId>,
    /// Where payments went.
    payees: BTreeSet<SubAccount>,
}

impl LedgerChecks {
    pub fn check(&mut self, changes: &Changes, world: &World) {
        for entry in &changes.entries {
            self.entry(entry);
            let known = entry.job.is_none_or(|job| changes.jobs.contains_key(&job));
            assert!(known, "credits moved without a job change: {entry:?}");
        }
        ordered(changes);
        for job in changes.jobs.values() {
            self.job(job, world);
        }
    }

    /// The chain verifies, and each entry names the previous one of both owners.
    fn entry(&mut self, entry: &Entry) {
        assert!(entry.amount > Credits::ZERO, "every entry moves an amount");
        assert_eq!(entry.id, self.last.next(), "entries have no gaps");
        assert_eq!(entry.hash, entry.chain_hash(self.chain), "the chain verifies");
        (self.last, self.chain) = (entry.id, entry.hash);
        let issued = [entry.from.owner, entry.to.owner].contains(&Owner::ISSUANCE);
        let may = matches!(entry.kind, EntryKind::Grant | EntryKind::Burn);
        assert_eq!(issued, may, "credits come from grants alone");
        let before = |owner| self.newest.get(&owner).copied();
        assert_eq!(entry.before_from, before(entry.from.owner));
        assert_eq!(entry.before_to, before(entry.to.owner));
        self.newest.insert(entry.from.owner, entry.id);
        self.newest.insert(entry.to.owner, entry.id);
        *self.pockets.entry(entry.from).or_default() -= entry.amount.micros();
        *self.pockets.entry(entry.to).or_default() += entry.amount.micros();
        if let Some(job) = entry.job {
            self.deals.entry(job).or_default().moved(entry);
        }
    }

    /// A hold resolves once; its own payer funds it, and its worker is paid.
    fn job(&self, job: &Job, world: &World) {
        let none = JobPayments::default();
        let deal = self.deals.get(&job.id).unwrap_or(&none);
        let owner = |agent| world.agent(agent).map(|agent| agent.owner);
        let asks = match job.request.requester {
            Requester::Agent(agent) => owner(agent),
            Requester::Guest(_) => None,
        };
        assert_eq!(job.payment.payer, asks, "the requester pays: {job:?}");
        let own = deal.payers.iter().all(|payer| job.payment.payer == Some(*payer));
        assert!(own, "credits of {:?} were moved for {job:?}", deal.payers);
        assert_eq!(deal.held - deal.captured - deal.released, job.payment.held.micros());
        assert!(job.payment.held <= job.max_payment(), "no more is held than the budget");
        if !job.state.is_final() {
            assert!(deal.payees.is_empty(), "paid before its end: {job:?}");
            return;
        }
        let worker = job.assignment.and_then(|turn| owner(turn.worker)).map(SubAccount::available);
        let earned = deal.payees.iter().all(|payee| worker == Some(*payee));
        assert!(earned, "{:?} were paid for {job:?}", deal.payees);
        let paid = job.result.as_ref().map_or(0, |report| report.paid.micros());
        assert_eq!(job.payment.held, Credits::ZERO, "no hold outlives its job");
        assert_eq!(deal.captured, paid, "what was captured is what was reported paid");
        assert!(paid == 0 || job.state == State::Completed, "only success is paid");
        let price = job.assignment.map_or(0, |turn| turn.price.micros());
        assert!(paid <= price, "never more than the agreed price");
    }

    /// No credit is lost or created, no account is overdrawn, and holds belong to live jobs.
    pub fn check_balance(&self, world: &World) {
        let mut held: BTreeMap<OwnerId, i64> = BTreeMap::new();
        for job in world.live_jobs() {
            if let Some(payer) = job.payment.payer {
                *held.entry(payer).or_default() += job.payment.held.micros();
            }
        }
        let mut sum = 0_i128;
        for owner in world.owners() {
            let pocket = |pocket| self.pockets.get(&pocket).copied().unwrap_or(0);
            assert_eq!(
                owner.available.micros(),
                pocket(SubAccount::available(owner.id)),
                "{}",
                owner.name
            );
            assert_eq!(owner.held.micros(), pocket(SubAccount::held(owner.id)), "{}", owner.name);
            assert_eq!(owner.held.micros(), held.get(&owner.id).copied().unwrap_or(0));
            assert_eq!(owner.newest_entry, self.newest.get(&owner.id).copied());
            sum += i128::from(owner.available.micros()) + i128::from(owner.held.micros());
            let overdrawn = owner.available < Credits::ZERO || owner.held < Credits::ZERO;
            assert!(!overdrawn || owner.id == Owner::ISSUANCE, "{} is overdrawn", owner.name);
        }
        assert_eq!(sum, 0, "the sum over all sub-accounts is zero");
        assert_eq!(world.next.chain, self.chain);
        assert_eq!(world.next.entry, self.last.next());
    }
}

impl JobPayments {
    /// Everything a job moves goes through the payer's held sub-account.
    fn moved(&mut self, entry: &Entry) {
        let (payer, amount) = (entry.from.owner, entry.amount.micros());
        let (open, held) = (SubAccount::available(payer), SubAccount::held(payer));
        self.payers.insert(payer);
        match entry.kind {
            EntryKind::Hold => {
                assert_eq!((entry.from, entry.to), (open, held), "held elsewhere");
                self.held += amount;
            }
            EntryKind::Capture => {
                assert_eq!(entry.from, held, "paid from something other than the hold");
                self.payees.insert(entry.to);
                self.captured += amount;
            }
            EntryKind::Release => {
                assert_eq!((entry.from, entry.to), (held, open), "released to another owner");
                self.released += amount;
            }
            other => panic!("a job never causes a {other:?}"),
        }
    }
}

/// An ordered amount moves once, between the named owners, unless a hold had paid it.
fn ordered(changes: &Changes) {
    let lines = changes.entries.iter().filter(|entry| entry.kind == EntryKind::Transfer);
    let moved: Vec<_> = lines.map(|one| (one.transfer, one.from, one.to, one.amount)).collect();
    let orders = changes.transfers.iter().filter(|order| !order.settled_by_hold);
    let line = |order: &Arc<Transfer>| {
        let (from, to) = (SubAccount::available(order.from), SubAccount::available(order.to));
        (Some(order.id), from, to, order.amount)
    };
    assert_eq!(moved, orders.map(line).collect::<Vec<_>>(), "the ordered amounts are what moved");
}

//! Claims: every used id still points to what it was used for, whether indexed or not.

use std::collections::HashMap;

use rialto_core::alias::{Claim, ClaimTarget, Digest, claim};
use rialto_core::id::ClaimId;
use rialto_core::job::{Job, State};
use rusqlite::Connection;

use super::scratch::ScratchDb;
use super::tables::TableReader;
use super::{Check, negotiated};
use crate::store::StoreError;
use crate::store::sqlite::{claims as table, row, store_error};

/// What is known about used ids.
pub struct ClaimsAudit {
    pub check: Check,
    /// Claims the index does not have yet.
    unindexed: HashMap<Digest, Claim>,
}

/// Checks all claims.
pub fn check(rows: &mut TableReader<'_>) -> Result<ClaimsAudit, StoreError> {
    let mut check = Check::new("claims");
    let indexed = match table::last_indexed(rows.db) {
        Err(StoreError::Corrupt(why)) => {
            check.add_breach(|| why);
            ClaimId(0)
        }
        found => found?,
    };
    let scratch = ScratchDb::new()?;
    let mut tail: HashMap<Digest, Claim> = HashMap::new();
    let mut led_to = IdSet::default();
    rows.for_each_claim(|db, claim| {
        check.rows += 1;
        let there = match claim.target {
            ClaimTarget::Job(id) | ClaimTarget::SignedOrder { job: Some(id), .. } => {
                exists(db, "jobs", id.0)? || exists(db, "archive", id.0)?
            }
            ClaimTarget::Offer { job, index: place } => negotiated::has_offer(db, job, place)?,
            ClaimTarget::Transfer(id) | ClaimTarget::PaidElsewhere(id) => {
                exists(db, "transfers", id.0)?
            }
            ClaimTarget::Message { notice, .. } => exists(db, "notices", notice.0)?,
            ClaimTarget::MarketRecord(id) => exists(db, "postings", id.0)?,
            ClaimTarget::Released
            | ClaimTarget::Ambiguous
            | ClaimTarget::SignedOrder { job: None, .. } => true,
        };
        let Claim { id, target, .. } = claim;
        check.require(there, || format!("claim {id} points to {target:?}, which does not exist"));
        if let ClaimTarget::Transfer(transfer) = target {
            led_to.insert(transfer.0);
        }
        if target == ClaimTarget::Ambiguous {
            // Recorded even if the id has no other claim; the history check then reports it.
            record_claim_step(db, &scratch, claim, ClaimId(0))?;
        }
        let newest = newest_indexed(db, claim.digest)?;
        if claim.id <= indexed {
            match newest {
                Some(newest) if newest >= id && newest <= indexed => {
                    record_claim_step(db, &scratch, claim, newest)?;
                }
                _ => check.add_breach(|| {
                    format!("the index maps the digest of claim {id} to {newest:?}")
                }),
            }
        } else {
            if let Some(before) = tail.get(&claim.digest) {
                record_claim_step(db, &scratch, *before, id)?;
            } else if let Some(before) = newest.filter(|newest| *newest != id) {
                let before = Claim { id: before, ..claim };
                record_claim_step(db, &scratch, before, id)?;
            }
            tail.insert(claim.digest, claim);
        }
        Ok(())
    })?;
    check_index_rows(rows.db, indexed, &mut check)?;
    check_claim_histories(&scratch, &mut check)?;
    for transfer in led_to.missing_below(rows.next.transfer.0) {
        check.add_breach(|| format!("no claim points to transfer {transfer}"));
    }
    Ok(ClaimsAudit { check, unindexed: tail })
}

impl ClaimsAudit {
    /// Both ids of a job point to it, unless it was withdrawn and its name released.
    pub fn check_job(&mut self, db: &Connection, job: &Job) -> Result<(), StoreError> {
        let id = job.id;
        let own = self.target_of(db, claim::job_uuid(job.uuid))? == Some(ClaimTarget::Job(id));
        self.check.require(own, || {
            format!("the claim of the public id of job {id} does not point to it")
        });
        let named = self.target_of(db, claim::job(job.request.origin, &job.request.foreign_id))?;
        let led = named == Some(ClaimTarget::Job(id));
        let taken_back = job.state == State::Withdrawn && job.has_unique_name();
        self.check.require(led != taken_back, || match taken_back {
            true => format!("job {id} was withdrawn, but its claim still points to it"),
            false => format!("the claim of the requester's id of job {id} points to {named:?}"),
        });
        Ok(())
    }

    pub fn target_of(
        &self,
        db: &Connection,
        digest: Digest,
    ) -> Result<Option<ClaimTarget>, StoreError> {
        if let Some(claim) = self.unindexed.get(&digest) {
            return Ok(Some(claim.target));
        }
        match table::find_indexed(db, digest) {
            Ok(found) => Ok(found.map(|claim| claim.target)),
            // Reported where the claims themselves are read.
            Err(StoreError::Corrupt(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// The claim that the index has for a digest.
fn newest_indexed(db: &Connection, digest: Digest) -> Result<Option<ClaimId>, StoreError> {
    let sql = "SELECT claim FROM claim_index WHERE digest = ?1";
    let mut statement = db.prepare_cached(sql).map_err(store_error)?;
    let mut rows = statement.query([digest.0]).map_err(store_error)?;
    let Some(found) = rows.next().map_err(store_error)? else { return Ok(None) };
    Ok(Some(ClaimId(found.get::<_, i64>(0).map_err(store_error)?.unsigned_abs())))
}

fn exists(db: &Connection, table: &str, id: u64) -> Result<bool, StoreError> {
    let sql = format!("SELECT EXISTS (SELECT 1 FROM {table} WHERE id = ?1)");
    let mut statement = db.prepare_cached(&sql).map_err(store_error)?;
    statement.query_row([row::sql_id(id)], |row| row.get(0)).map_err(store_error)
}

/// Records both ends of a step from a claim to a later one of the same id.
fn record_claim_step(
    db: &Connection,
    scratch: &ScratchDb,
    from: Claim,
    to: ClaimId,
) -> Result<(), StoreError> {
    if from.id == to {
        return Ok(());
    }
    let mut statement =
        db.prepare_cached("SELECT target FROM claims WHERE id = ?1").map_err(store_error)?;
    for id in [from.id, to] {
        let mut rows = statement.query([row::sql_id(id.0)]).map_err(store_error)?;
        if let Some(found) = rows.next().map_err(store_error)? {
            let target: String = found.get(0).map_err(store_error)?;
            scratch.add_claim_step(&from.digest.0, id.0, &target)?;
        }
    }
    Ok(())
}

/// The index has nothing that is missing from the table.
fn check_index_rows(
    db: &Connection,
    indexed: ClaimId,
    check: &mut Check,
) -> Result<(), StoreError> {
    for claim in table::find_mismatches(db, indexed, 100)? {
        check.add_breach(|| table::describe_mismatch(claim));
    }
    Ok(())
}

/// An id is used again only after it was released.
fn check_claim_histories(scratch: &ScratchDb, check: &mut Check) -> Result<(), StoreError> {
    let mut before: Option<([u8; 16], ClaimTarget)> = None;
    scratch.for_each_claim_step(|digest, id, target| {
        let Ok(target) = serde_json::from_str::<ClaimTarget>(target) else { return Ok(()) };
        let last = before.filter(|(of, _)| *of == digest).map(|(_, target)| target);
        let allowed = match last {
            None => target != ClaimTarget::Ambiguous,
            Some(ClaimTarget::Job(_)) => matches!(target, ClaimTarget::Released | ClaimTarget::Ambiguous),
            Some(ClaimTarget::Released) => target != ClaimTarget::Released,
            Some(ClaimTarget::Offer { .. } | ClaimTarget::Ambiguous) => target == ClaimTarget::Ambiguous,
            Some(
                ClaimTarget::Transfer(_)
                | ClaimTarget::PaidElsewhere(_)
                | ClaimTarget::Message { .. }
                | ClaimTarget::MarketRecord(_)
                | ClaimTarget::SignedOrder { .. },
            ) => false,
        };
        check.require(allowed, || format!("claim {id} changes the target of an id from {last:?} to {target:?}, which is not allowed"));
        before = Some((digest, target));
        Ok(())
    })
}

/// One bit for each id that was seen.
#[derive(Default)]
pub struct IdSet(Vec<u64>);

impl IdSet {
    /// Inserts an id; false if it was there already.
    pub fn insert(&mut self, id: u64) -> bool {
        let (word, bit) = ((id / 64) as usize, 1 << (id % 64));
        // An absurdly large id is reported elsewhere, and must not exhaust the memory.
        if word >= self.0.len() && word < 1 << 28 {
            self.0.resize(word + 1, 0);
        }
        let Some(word) = self.0.get_mut(word) else { return true };
        let fresh = *word & bit == 0;
        *word |= bit;
        fresh
    }

    pub fn contains(&self, id: u64) -> bool {
        self.0.get((id / 64) as usize).is_some_and(|word| word & (1 << (id % 64)) != 0)
    }

    /// Ids from 1 to before `next` that were not inserted.
    fn missing_below(&self, next: u64) -> impl Iterator<Item = u64> {
        (1..next).filter(|id| !self.contains(*id))
    }
}

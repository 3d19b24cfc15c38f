//! Claims: every used id still points to what it was used for, whether indexed or not.

use std::collections::HashMap;

use rialto_core::alias::{Claim, Digest, Target, claim};
use rialto_core::id::ClaimId;
use rialto_core::job::{Job, State};
use rusqlite::Connection;

use super::tables::Rows;
use super::scratch::Scratch;
use super::{Check, negotiated};
use crate::store::StoreError;
use crate::store::sqlite::{claims as table, row, trouble};

/// What is known about used ids.
pub struct Claims {
    pub check: Check,
    /// Claims the index does not have yet.
    tail: HashMap<Digest, Claim>,
}

/// Checks all claims.
pub fn recount(rows: &mut Rows<'_>) -> Result<Claims, StoreError> {
    let mut check = Check::new("claims");
    let indexed = match table::indexed_to(rows.db) {
        Err(StoreError::Corrupt(why)) => {
            check.breach(|| why);
            ClaimId(0)
        }
        found => found?,
    };
    let scratch = Scratch::new()?;
    let mut tail: HashMap<Digest, Claim> = HashMap::new();
    let mut led_to = Marks::default();
    rows.claims(|db, claim| {
        check.rows += 1;
        let there = match claim.target {
            Target::Job(id) | Target::Heard { job: Some(id), .. } => {
                exists(db, "jobs", id.0)? || exists(db, "archive", id.0)?
            }
            Target::Offer { job, place } => negotiated::has_offer(db, job, place)?,
            Target::Transfer(id) | Target::PaidElsewhere(id) => exists(db, "transfers", id.0)?,
            Target::Message { notice, .. } => exists(db, "notices", notice.0)?,
            Target::Posting(id) => exists(db, "postings", id.0)?,
            Target::Free | Target::Several | Target::Heard { job: None, .. } => true,
        };
        let Claim { id, target, .. } = claim;
        check.holds(there, || format!("claim {id} points to {target:?}, which does not exist"));
        if let Target::Transfer(transfer) = target {
            led_to.set(transfer.0);
        }
        if target == Target::Several {
            // Recorded even if the id has no other claim; the history check then reports it.
            note(db, &scratch, claim, ClaimId(0))?;
        }
        let newest = newest(db, claim.digest)?;
        if claim.id <= indexed {
            match newest {
                Some(newest) if newest >= id && newest <= indexed => {
                    note(db, &scratch, claim, newest)?;
                }
                _ => check
                    .breach(|| format!("the index maps the digest of claim {id} to {newest:?}")),
            }
        } else {
            if let Some(before) = tail.get(&claim.digest) {
                note(db, &scratch, *before, id)?;
            } else if let Some(before) = newest.filter(|newest| *newest != id) {
                let before = Claim { id: before, ..claim };
                note(db, &scratch, before, id)?;
            }
            tail.insert(claim.digest, claim);
        }
        Ok(())
    })?;
    strays(rows.db, indexed, &mut check)?;
    histories(&scratch, &mut check)?;
    for transfer in led_to.missing(rows.next.transfer.0) {
        check.breach(|| format!("no claim points to transfer {transfer}"));
    }
    Ok(Claims { check, tail })
}

impl Claims {
    /// Both ids of a job point to it, unless it was withdrawn and its name released.
    pub fn of_job(&mut self, db: &Connection, job: &Job) -> Result<(), StoreError> {
        let id = job.id;
        let own = self.leads_to(db, claim::job_uuid(job.uuid))? == Some(Target::Job(id));
        self.check
            .holds(own, || format!("the claim of the public id of job {id} does not point to it"));
        let named = self.leads_to(db, claim::job(job.origin, &job.foreign))?;
        let led = named == Some(Target::Job(id));
        let taken_back = job.state == State::Withdrawn && job.has_its_own_name();
        self.check.holds(led != taken_back, || match taken_back {
            true => format!("job {id} was withdrawn, but its claim still points to it"),
            false => format!("the claim of the requester's id of job {id} points to {named:?}"),
        });
        Ok(())
    }

    pub fn leads_to(&self, db: &Connection, digest: Digest) -> Result<Option<Target>, StoreError> {
        if let Some(claim) = self.tail.get(&digest) {
            return Ok(Some(claim.target));
        }
        match table::indexed(db, digest) {
            Ok(found) => Ok(found.map(|claim| claim.target)),
            // Reported where the claims themselves are read.
            Err(StoreError::Corrupt(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// The claim that the index has for a digest.
fn newest(db: &Connection, digest: Digest) -> Result<Option<ClaimId>, StoreError> {
    let sql = "SELECT claim FROM claim_index WHERE digest = ?1";
    let mut statement = db.prepare_cached(sql).map_err(trouble)?;
    let mut rows = statement.query([digest.0]).map_err(trouble)?;
    let Some(found) = rows.next().map_err(trouble)? else { return Ok(None) };
    Ok(Some(ClaimId(found.get::<_, i64>(0).map_err(trouble)?.unsigned_abs())))
}

fn exists(db: &Connection, table: &str, id: u64) -> Result<bool, StoreError> {
    let sql = format!("SELECT EXISTS (SELECT 1 FROM {table} WHERE id = ?1)");
    let mut statement = db.prepare_cached(&sql).map_err(trouble)?;
    statement.query_row([row::key(id)], |row| row.get(0)).map_err(trouble)
}

/// Records both ends of a step from a claim to a later one of the same id.
fn note(db: &Connection, scratch: &Scratch, from: Claim, to: ClaimId) -> Result<(), StoreError> {
    if from.id == to {
        return Ok(());
    }
    let mut statement =
        db.prepare_cached("SELECT target FROM claims WHERE id = ?1").map_err(trouble)?;
    for id in [from.id, to] {
        let mut rows = statement.query([row::key(id.0)]).map_err(trouble)?;
        if let Some(found) = rows.next().map_err(trouble)? {
            let target: String = found.get(0).map_err(trouble)?;
            scratch.replaced(&from.digest.0, id.0, &target)?;
        }
    }
    Ok(())
}

/// The index has nothing that is missing from the table.
fn strays(db: &Connection, indexed: ClaimId, check: &mut Check) -> Result<(), StoreError> {
    let sql = "SELECT i.claim FROM claim_index i LEFT JOIN claims c ON c.id = i.claim
               WHERE c.id IS NULL OR c.digest <> i.digest OR i.claim > ?1 LIMIT 100";
    let mut statement = db.prepare(sql).map_err(trouble)?;
    let found = statement.query_map([row::key(indexed.0)], |row| row.get::<_, i64>(0));
    for stray in found.map_err(trouble)? {
        let stray = stray.map_err(trouble)?;
        check
            .breach(|| format!("the index entry of claim {stray} does not match the claims table"));
    }
    Ok(())
}

/// An id is used again only after it was released.
fn histories(scratch: &Scratch, check: &mut Check) -> Result<(), StoreError> {
    let mut before: Option<([u8; 16], Target)> = None;
    scratch.chains(|digest, id, target| {
        let Ok(target) = serde_json::from_str::<Target>(target) else { return Ok(()) };
        let last = before.filter(|(of, _)| *of == digest).map(|(_, target)| target);
        let allowed = match last {
            None => target != Target::Several,
            Some(Target::Job(_)) => matches!(target, Target::Free | Target::Several),
            Some(Target::Free) => target != Target::Free,
            Some(Target::Offer { .. } | Target::Several) => target == Target::Several,
            Some(
                Target::Transfer(_)
                | Target::PaidElsewhere(_)
                | Target::Message { .. }
                | Target::Posting(_)
                | Target::Heard { .. },
            ) => false,
        };
        check.holds(allowed, || format!("claim {id} changes the target of an id from {last:?} to {target:?}, which is not allowed"));
        before = Some((digest, target));
        Ok(())
    })
}

/// One bit for each id that was seen.
#[derive(Default)]
pub struct Marks(Vec<u64>);

impl Marks {
    /// Inserts an id; false if it was there already.
    pub fn set(&mut self, id: u64) -> bool {
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

    pub fn has(&self, id: u64) -> bool {
        self.0.get((id / 64) as usize).is_some_and(|word| word & (1 << (id % 64)) != 0)
    }

    /// Ids from 1 to before `next` that were not inserted.
    fn missing(&self, next: u64) -> impl Iterator<Item = u64> {
        (1..next).filter(|id| !self.has(*id))
    }
}

//! Negotiated jobs, whose requester named the agents it asks: claims point to them from all
//! parties, and they hold exactly what was agreed.

use rialto_core::alias::{ClaimTarget, claim};
use rialto_core::id::JobId;
use rialto_core::job::{Job, Requester, Selection, State};
use rusqlite::Connection;

use super::Check;
use super::claims::ClaimsAudit;
use super::registrations::Registrations;
use super::scratch::JobMovements;
use crate::store::StoreError;
use crate::store::sqlite::{row, store_error};

/// Whether the requester named the agents it asks.
pub fn is_negotiated(job: &Job) -> bool {
    matches!(job.selection, Selection::Invited { .. })
}

/// A listed price may be held first, and then released for the agreed one.
pub fn check_holds(check: &mut Check, job: &Job, moved: JobMovements) {
    let id = job.id;
    let (times, most) = (moved.holds, 1 + i64::from(!job.candidates.offers.is_empty()));
    check.require(times <= most, || format!("job {id} has {times} holds"));
    let agreed = job.assignment.map_or(0, |turn| turn.price.micros());
    let held = job.payment.held.micros();
    // A job deferred before its worker starts holds the price agreed with that worker.
    let waits = |by| job.candidates.pending_assignment.is_some_and(|waits| waits.worker == by);
    let put_off = job.assignment.is_none()
        && job
            .candidates
            .offers
            .iter()
            .any(|offer| waits(offer.by) && offer.price.micros() == held);
    let unbound = matches!(job.selection, Selection::Invited { offers_only: true, .. });
    let right = match job.state {
        State::Deferred { .. } if put_off => true,
        State::Open => {
            held == 0
                || job.candidates.offers.is_empty() && job.candidates.invited.len() == 1 && !unbound
        }
        State::Assigned | State::Running | State::Deferred { .. } => held == agreed,
        _ => held == 0,
    };
    let state = job.state;
    check.require(right, || {
        format!("job {id} is {state:?} with an agreed price of {agreed}, but holds {held}")
    });
    let offered = job.max_payment().micros();
    check.require(held <= offered, || {
        format!("job {id} holds {held}, more than its budget of {offered}")
    });
}

/// The worker is one of the agents that were asked, at a price it offered.
pub fn check_states(check: &mut Check, job: &Job) {
    let id = job.id;
    let waits = matches!(job.state, State::Open | State::Negotiating);
    check.require(!waits || !job.candidates.invited.is_empty(), || {
        format!("job {id} is open, but no agent was asked")
    });
    let negotiating = job.state == State::Negotiating;
    check.require(!negotiating || !job.candidates.offers.is_empty(), || {
        format!("job {id} is negotiating, but has no offer")
    });
    let twice = job.candidates.invited.iter().any(|one| job.candidates.declined.contains(one));
    check.require(!waits || !twice, || format!("job {id} still asks an agent that declined it"));
    if let Some(turn) = job.assignment {
        let worker = turn.worker;
        let asked = job.candidates.invited.contains(&worker);
        check.require(asked, || {
            format!("job {id} is assigned to agent {worker}, which was not asked")
        });
        let named = job
            .candidates
            .offers
            .iter()
            .any(|offer| offer.by == worker && offer.price == turn.price);
        check.require(named || job.candidates.offers.is_empty(), || {
            format!("the price of job {id} matches no offer of its worker")
        });
    }
}

impl ClaimsAudit {
    /// Claims point to the order that opened the job, every agent that was asked, and every offer.
    pub fn check_negotiated_job(
        &mut self,
        db: &Connection,
        job: &Job,
        people: &Registrations,
    ) -> Result<(), StoreError> {
        let id = job.id;
        let Requester::Agent(requester) = job.request.requester else {
            self.check
                .add_breach(|| format!("job {id} is negotiated, but its requester is a guest"));
            return Ok(());
        };
        // A missing agent is reported elsewhere.
        let Some(person) = people.agents.get(&requester) else { return Ok(()) };
        let own = job
            .request
            .foreign_id
            .strip_prefix(&person.native)
            .and_then(|own| own.strip_prefix('/'));
        let Some(own) = own else {
            self.check.add_breach(|| {
                format!("the requester's id of job {id} does not start with the requester's name")
            });
            return Ok(());
        };
        let signed = self.target_of(db, claim::signed_order(person.home, &person.native, own))?;
        let heard =
            matches!(signed, Some(ClaimTarget::SignedOrder { job: Some(to), .. }) if to == id);
        self.check.require(heard, || {
            format!("the claim of the order that opened job {id} points to {signed:?}")
        });
        for provider in job.candidates.invited.iter().chain(&job.candidates.declined) {
            let asked = self.target_of(db, claim::invited_job(*provider, own))?;
            let right = matches!(asked, Some(ClaimTarget::Ambiguous))
                || asked == Some(ClaimTarget::Job(id));
            self.check.require(right, || {
                format!("the claim of agent {provider} for job {id} points to {asked:?}")
            });
        }
        for (place, offer) in (0..).zip(&job.candidates.offers) {
            let target = Some(ClaimTarget::Offer { job: id, index: place });
            let made = self.target_of(db, claim::offer(requester, Some(offer.by), &offer.name))?;
            self.check.require(made == target, || {
                format!("the claim of offer {place} of job {id} points to {made:?}")
            });
            let any = self.target_of(db, claim::offer(requester, None, &offer.name))?;
            let right = any == target || any == Some(ClaimTarget::Ambiguous);
            self.check.require(right, || {
                format!("the claim by name of offer {place} of job {id} points to {any:?}")
            });
        }
        Ok(())
    }
}

/// Whether a job has an offer at that index.
pub fn has_offer(db: &Connection, job: JobId, place: u32) -> Result<bool, StoreError> {
    let sql = "SELECT EXISTS (SELECT 1 FROM (SELECT id, body FROM jobs UNION ALL
                                             SELECT id, body FROM archive)
               WHERE id = ?1 AND json_valid(body)
               AND json_array_length(body, '$.offers') > ?2)";
    let mut statement = db.prepare_cached(sql).map_err(store_error)?;
    let found = statement.query_row([row::sql_id(job.0), i64::from(place)], |row| row.get(0));
    found.map_err(store_error)
}

//! Jobs: each is in a valid state, and every hold ended once and with its job.

use std::collections::HashMap;

use rialto_core::id::{AgentId, JobId, OwnerId};
use rialto_core::job::{Job, Requester, State};
use rialto_core::money::Credits;
use rusqlite::Connection;

use super::claims::Claims;
use super::registrations::People;
use super::tables::{Ids, Rows};
use super::scratch::Scratch;
use super::{Check, negotiated};
use crate::store::StoreError;
use crate::store::sqlite::{row, trouble};

/// Sums kept while scanning all jobs.
struct Walk<'p> {
    people: &'p People,
    states: Check,
    holds: Check,
    money: &'p Scratch,
    claims: &'p mut Claims,
    held: HashMap<OwnerId, i128>,
    /// For each worker: the sum of the ids of its finished jobs, minus the ids named as
    /// predecessors. In an intact chain that leaves the newest.
    worked: HashMap<AgentId, i128>,
    before: Scratch,
}

/// Scans live and finished jobs, oldest first.
pub fn recount(
    rows: &mut Rows<'_>,
    people: &People,
    holds: Check,
    money: &Scratch,
    claims: &mut Claims,
) -> Result<(Check, Check), StoreError> {
    let states = Check::new("jobs.states");
    let (held, worked, before) = (HashMap::new(), HashMap::new(), Scratch::new()?);
    let mut walk = Walk { people, states, holds, money, claims, held, worked, before };
    let next = rows.next.job.0;
    let both = "SELECT count(*) FROM jobs JOIN archive USING (id)";
    for id in super::ids(rows.db, "SELECT id FROM jobs JOIN archive USING (id) LIMIT 100")? {
        walk.states.breach(|| format!("job {id} is both live and finished"));
    }
    let twice = super::ids(rows.db, both)?.first().copied().unwrap_or(0);
    let mut count = 0;
    rows.each(
        "archive",
        Some(Ids::Below(next)),
        |one: &Job| one.id.0,
        |db, job| {
            count += 1;
            walk.finished(&job)?;
            walk.any(db, &job)
        },
    )?;
    rows.each(
        "jobs",
        Some(Ids::Below(next)),
        |one: &Job| one.id.0,
        |db, job| {
            count += 1;
            walk.live(&job);
            walk.any(db, &job)
        },
    )?;
    rows.counted("jobs", count - twice, next);
    for job in walk.money.left()? {
        walk.holds.breach(|| format!("credits moved for job {job}, which does not exist"));
    }
    walk.asked(rows.db)?;
    walk.ends();
    Ok((walk.states, walk.holds))
}

impl Walk<'_> {
    /// Checks that apply to every job.
    fn any(&mut self, db: &Connection, job: &Job) -> Result<(), StoreError> {
        let id = job.id;
        self.states.rows += 1;
        let payer = match job.requester {
            Requester::Agent(agent) => {
                let person = self.people.agents.get(&agent);
                self.states.holds(person.is_some(), || {
                    format!("the requester of job {id} does not exist")
                });
                person.map(|person| person.owner)
            }
            Requester::Guest(_) => None,
        };
        self.states.holds(job.payer == payer, || format!("job {id} has the payer {:?}", job.payer));
        let turn = job.assignment.is_none_or(|turn| {
            let worker = self.people.agents.get(&turn.worker);
            worker.is_some_and(|worker| worker.owner == turn.owner) && job.epoch > 0
        });
        self.states
            .holds(turn, || format!("the worker of job {id} does not exist or has another owner"));
        self.claims.of_job(db, job)?;
        if negotiated::is(job) {
            negotiated::states(&mut self.states, job);
            self.claims.of_asked(db, job, self.people)?;
        }
        self.money(job)
    }

    /// Held once, by its payer and at most what was offered; captured what was reported, for the
    /// worker's owner; the rest released.
    fn money(&mut self, job: &Job) -> Result<(), StoreError> {
        self.holds.rows += 1;
        let (id, moved) = (job.id, self.money.take(job.id.0)?);
        let left = moved.held - moved.captured - moved.released;
        let payer = job.payer.map(|owner| row::key(owner.0));
        self.holds.holds(moved.payer.is_none() || moved.payer == payer, || {
            format!("job {id} moved credits of an owner other than its payer, {payer:?}")
        });
        let worker = job.assignment.map(|turn| row::key(turn.owner.0));
        self.holds.holds(moved.payee.is_none() || moved.payee == worker, || {
            format!("job {id} paid owner {:?}, but its worker belongs to {worker:?}", moved.payee)
        });
        if negotiated::is(job) {
            negotiated::money(&mut self.holds, job, moved);
        } else {
            let offered = if job.policy.unpaid { 0 } else { job.purse().micros() };
            let (times, held) = (moved.holds, moved.held);
            self.holds.holds(times <= 1, || format!("job {id} has {times} holds"));
            // A job that waits for an absent worker, and its result, may have no hold.
            let unpaid = held == 0 && job.policy.presence_first && job.assignment.is_none();
            self.holds.holds(held == offered || unpaid, || {
                format!("job {id} held {held}, but its budget is {offered}")
            });
        }
        self.holds.holds(moved.captured <= moved.held, || {
            format!("job {id} captured {} of {} held", moved.captured, moved.held)
        });
        self.holds.holds(left == job.held.micros(), || {
            format!("job {id} says it holds {}, but its entries leave {left}", job.held.micros())
        });
        if job.state.is_final() {
            self.holds.holds(left == 0, || format!("job {id} has ended, but still holds {left}"));
            let paid = job.report.as_ref().map_or(0, |report| report.paid.micros());
            self.holds.holds(moved.captured == paid, || {
                format!("job {id} captured {}, but {paid} were reported", moved.captured)
            });
        } else if let Some(payer) = job.payer {
            *self.held.entry(payer).or_default() += i128::from(job.held.micros());
        }
        Ok(())
    }

    fn live(&mut self, job: &Job) {
        let id = job.id;
        let live = !job.state.is_final() && (job.state != State::Open || negotiated::is(job));
        self.states.holds(live, || {
            format!("job {id} is {:?}, but is in the table of live jobs", job.state)
        });
        self.states.holds(job.state.is_final() || job.due().is_some(), || {
            format!("job {id} is live, but has no deadline")
        });
        let in_hand = match job.state {
            State::Assigned | State::Running => true,
            // Deferred by its worker, or for a worker that is not assigned yet.
            State::Deferred { .. } => job.waits_for.is_none(),
            _ => false,
        };
        self.states.holds(in_hand == job.assignment.is_some(), || {
            format!("job {id} is {:?} with worker {:?}", job.state, job.worker())
        });
        let willing = job.worker().is_none_or(|worker| !job.declined.contains(&worker));
        self.states.holds(willing, || format!("job {id} is assigned to an agent that declined it"));
        let unended = job.ended_at.is_none() && job.report.is_none();
        self.states.holds(unended, || format!("job {id} is live, but has an end time or a result"));
    }

    fn finished(&mut self, job: &Job) -> Result<(), StoreError> {
        let id = job.id;
        let last = job.state.is_final();
        self.states.holds(last, || {
            format!("job {id} is {:?}, but is in the table of finished jobs", job.state)
        });
        self.states
            .holds(job.ended_at.is_some(), || format!("job {id} has ended, but has no end time"));
        let told = job.report.is_some() == (job.state != State::Withdrawn);
        self.states.holds(told, || format!("job {id} is {:?} but has no result", job.state));
        let paid = job.report.as_ref().map_or(Credits::ZERO, |report| report.paid);
        let done = job.state == State::Completed;
        let ok = job.report.as_ref().is_some_and(|report| report.ok);
        self.states.holds(ok == done, || {
            format!("job {id} is {:?}, but its result says otherwise", job.state)
        });
        self.states
            .holds(done || paid.is_zero(), || format!("job {id} did not complete, but was paid"));
        let price = job.assignment.map_or(Credits::ZERO, |turn| turn.price);
        self.states.holds(paid <= price, || format!("job {id} was paid more than agreed"));
        let willing = job.worker().is_none_or(|worker| !job.declined.contains(&worker));
        self.states.holds(!done || willing, || {
            format!("job {id} was completed by an agent that declined it")
        });
        if let Some(worker) = job.worker().filter(|_| job.state != State::Withdrawn) {
            let before = job.before_worked.unwrap_or_default();
            *self.worked.entry(worker).or_default() += i128::from(id.0) - i128::from(before.0);
            let first = self.before.first(worker.0, before.0)?;
            self.states
                .holds(first, || format!("job {id} and another both follow {before} of {worker}"));
        }
        Ok(())
    }

    /// Each requester's jobs, oldest first, name the previous one.
    fn asked(&mut self, db: &Connection) -> Result<(), StoreError> {
        let sql = "SELECT id, body ->> '$.requester.Agent', body ->> 'before_asked'
                   FROM (SELECT id, body FROM jobs UNION ALL SELECT id, body FROM archive)
                   WHERE json_valid(body) ORDER BY id";
        let mut statement = db.prepare(sql).map_err(trouble)?;
        let mut rows = statement.query([]).map_err(trouble)?;
        let mut last: HashMap<i64, i64> = HashMap::new();
        while let Some(found) = rows.next().map_err(trouble)? {
            let number = |at| found.get::<_, Option<i64>>(at).unwrap_or_default();
            let (id, before) = (number(0).unwrap_or_default(), number(2));
            let Some(agent) = number(1) else { continue };
            let known = last.insert(agent, id);
            self.states.holds(before == known, || {
                format!("job {id} of agent {agent} follows {before:?}, not {known:?}")
            });
        }
        for desk in self.people.desks.values() {
            let newest = last.get(&row::key(desk.agent.0)).map(|id| JobId(id.unsigned_abs()));
            self.states.holds(desk.last_asked == newest, || {
                let said = desk.last_asked;
                format!("the newest request of agent {} is {newest:?}, not {said:?}", desk.agent)
            });
        }
        Ok(())
    }

    /// Checks that need all jobs.
    fn ends(&mut self) {
        for owner in self.people.owners.values() {
            let (name, said) = (&owner.name, i128::from(owner.held.micros()));
            let held = self.held.remove(&owner.id).unwrap_or(0);
            self.holds.holds(said == held, || {
                format!("{name} has {said} held, but its live jobs hold {held}")
            });
        }
        for desk in self.people.desks.values() {
            let newest = self.worked.get(&desk.agent).copied().unwrap_or(0);
            let said = desk.last_worked.unwrap_or_default();
            self.states.holds(i128::from(said.0) == newest, || {
                format!("the newest job finished by agent {} is {newest}, not {said}", desk.agent)
            });
        }
    }
}

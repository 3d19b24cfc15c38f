//! Jobs: each is in a valid state, and every hold ended once and with its job.

use std::collections::{HashMap, HashSet};

use rialto_core::id::{AgentId, JobId, NoticeId, OwnerId};
use rialto_core::job::log::Phase;
use rialto_core::job::{Job, Progress, Question, Requester, State};
use rialto_core::money::Credits;
use rusqlite::Connection;

use super::claims::ClaimsAudit;
use super::registrations::Registrations;
use super::scratch::ScratchDb;
use super::tables::{IdRule, TableReader};
use super::{Check, negotiated};
use crate::store::StoreError;
use crate::store::sqlite::{row, store_error};

/// The end of a job's log of reports and steps, as its row says it and as the log is recounted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogEnd {
    pub entries: u32,
    /// Entries that are steps.
    pub steps: u32,
    /// Parts of the result that were begun.
    pub parts: u32,
    /// Questions that were asked.
    pub questions: u32,
    pub bytes: u64,
    pub newest: Option<NoticeId>,
    pub phase: Option<Phase>,
}

impl LogEnd {
    /// As the row of a job says it.
    fn of(job: &Job) -> Self {
        let Progress { reports, steps, parts, bytes, newest, phase, .. } = job.progress;
        let phase = phase.map(|(phase, _)| phase);
        Self {
            entries: reports,
            steps,
            parts,
            questions: job.question_count(),
            bytes,
            newest,
            phase,
        }
    }
}

/// What the scan of all jobs found.
pub struct JobChecks {
    pub states: Check,
    pub holds: Check,
    /// Jobs that have reports.
    pub logs: HashMap<JobId, LogEnd>,
}

/// Sums kept while scanning all jobs.
struct JobScan<'p> {
    people: &'p Registrations,
    states: Check,
    holds: Check,
    money: &'p ScratchDb,
    claims: &'p mut ClaimsAudit,
    held: HashMap<OwnerId, i128>,
    /// For each worker: the sum of the ids of its finished jobs, minus the ids named as
    /// predecessors. In an intact chain that leaves the newest.
    worked: HashMap<AgentId, i128>,
    before: ScratchDb,
    logs: HashMap<JobId, LogEnd>,
}

/// Scans live and finished jobs, oldest first.
pub fn check(
    rows: &mut TableReader<'_>,
    people: &Registrations,
    holds: Check,
    money: &ScratchDb,
    claims: &mut ClaimsAudit,
) -> Result<JobChecks, StoreError> {
    let states = Check::new("jobs.states");
    let (held, worked, before) = (HashMap::new(), HashMap::new(), ScratchDb::new()?);
    let logs = HashMap::new();
    let mut walk = JobScan { people, states, holds, money, claims, held, worked, before, logs };
    let next = rows.next.job.0;
    let both = "SELECT count(*) FROM jobs JOIN archive USING (id)";
    for id in super::query_ids(rows.db, "SELECT id FROM jobs JOIN archive USING (id) LIMIT 100")? {
        walk.states.add_breach(|| format!("job {id} is both live and finished"));
    }
    let twice = super::query_ids(rows.db, both)?.first().copied().unwrap_or(0);
    let mut count = 0;
    rows.for_each(
        "archive",
        Some(IdRule::Below(next)),
        |one: &Job| one.id.0,
        |db, job| {
            count += 1;
            walk.check_finished(&job)?;
            walk.check_job(db, &job)
        },
    )?;
    rows.for_each(
        "jobs",
        Some(IdRule::Below(next)),
        |one: &Job| one.id.0,
        |db, job| {
            count += 1;
            walk.check_live(&job);
            walk.check_job(db, &job)
        },
    )?;
    rows.check_row_count("jobs", count - twice, next);
    for job in walk.money.remaining_jobs()? {
        walk.holds.add_breach(|| format!("credits moved for job {job}, which does not exist"));
    }
    walk.check_requester_chains(rows.db)?;
    walk.check_totals();
    Ok(JobChecks { states: walk.states, holds: walk.holds, logs: walk.logs })
}

impl JobScan<'_> {
    /// Checks that apply to every job.
    fn check_job(&mut self, db: &Connection, job: &Job) -> Result<(), StoreError> {
        let id = job.id;
        self.states.rows += 1;
        let payer = match job.request.requester {
            Requester::Agent(agent) => {
                let person = self.people.agents.get(&agent);
                self.states.require(person.is_some(), || {
                    format!("the requester of job {id} does not exist")
                });
                person.map(|person| person.owner)
            }
            Requester::Guest(_) => None,
        };
        self.states.require(job.payment.payer == payer, || {
            format!("job {id} has the payer {:?}", job.payment.payer)
        });
        let turn = job.assignment.is_none_or(|turn| {
            let worker = self.people.agents.get(&turn.worker);
            worker.is_some_and(|worker| worker.owner == turn.owner) && job.epoch > 0
        });
        self.states.require(turn, || {
            format!("the worker of job {id} does not exist or has another owner")
        });
        let handed = job.assignment.is_some_and(|turn| turn.handed_over);
        self.states.require(job.handover.is_none() || handed, || {
            format!("job {id} keeps a handover, but is handed over to no worker")
        });
        let log = LogEnd::of(job);
        if log != LogEnd::default() {
            self.logs.insert(id, log);
        }
        self.check_questions(job);
        self.check_messages(job);
        self.claims.check_job(db, job)?;
        if negotiated::is_negotiated(job) {
            negotiated::check_states(&mut self.states, job);
            self.claims.check_negotiated_job(db, job, self.people)?;
        }
        self.check_holds(job)
    }

    /// Every question but the last is answered, and a job waits exactly for an open one.
    fn check_questions(&mut self, job: &Job) {
        let id = job.id;
        // A sign-in never has an answer.
        let is_open = |question: &&Question| question.answer.is_none() && !question.signs_in;
        let open = job.questions.iter().filter(is_open).count();
        let is_last_open = job.questions.last().is_some_and(|last| last.answer.is_none());
        let waits = matches!(job.state, State::InputRequired { .. });
        self.states.require(!waits || is_last_open, || {
            format!("job {id} waits for an answer, but has no open question")
        });
        // A question stays open if the job ended or was reassigned before the answer.
        let of_each_worker = job.questions.iter().map(|question| question.epoch);
        self.states.require(open <= of_each_worker.collect::<HashSet<_>>().len(), || {
            format!("job {id} has {open} open questions, more than one of a worker")
        });
    }

    /// Messages are in the order of the log, and one that answers a question is its answer.
    fn check_messages(&mut self, job: &Job) {
        let (id, mut entries) = (job.id, 0);
        for (number, message) in (1..).zip(&job.messages) {
            let place = entries..=job.progress.reports;
            self.states.require(place.contains(&message.after), || {
                format!("message {number} of job {id} follows entry {} of its log", message.after)
            });
            entries = message.after;
            let Some(question) = message.answers else { continue };
            let asked = (1..).zip(&job.questions).find(|(asked, _)| *asked == question);
            let answer = asked.and_then(|(_, question)| question.answer.as_ref());
            self.states.require(answer == Some(&message.input), || {
                format!("message {number} of job {id} is not the answer to question {question}")
            });
        }
    }

    /// Held once, by its payer and at most what was offered; captured what was reported, for the
    /// worker's owner; the rest released.
    fn check_holds(&mut self, job: &Job) -> Result<(), StoreError> {
        self.holds.rows += 1;
        let (id, moved) = (job.id, self.money.take_movements(job.id.0)?);
        let left = moved.held - moved.captured - moved.released;
        let payer = job.payment.payer.map(|owner| row::sql_id(owner.0));
        self.holds.require(moved.payer.is_none() || moved.payer == payer, || {
            format!("job {id} moved credits of an owner other than its payer, {payer:?}")
        });
        let worker = job.assignment.map(|turn| row::sql_id(turn.owner.0));
        self.holds.require(moved.payee.is_none() || moved.payee == worker, || {
            format!("job {id} paid owner {:?}, but its worker belongs to {worker:?}", moved.payee)
        });
        if negotiated::is_negotiated(job) {
            negotiated::check_holds(&mut self.holds, job, moved);
        } else {
            let offered = if job.policy.requester.unpaid { 0 } else { job.max_payment().micros() };
            let (times, held) = (moved.holds, moved.held);
            self.holds.require(times <= 1, || format!("job {id} has {times} holds"));
            // A job that waits for an absent worker, and its result, may have no hold.
            let unpaid =
                held == 0 && job.policy.requester.answered_at_once && job.assignment.is_none();
            self.holds.require(held == offered || unpaid, || {
                format!("job {id} held {held}, but its budget is {offered}")
            });
        }
        self.holds.require(moved.captured <= moved.held, || {
            format!("job {id} captured {} of {} held", moved.captured, moved.held)
        });
        self.holds.require(left == job.payment.held.micros(), || {
            format!(
                "job {id} says it holds {}, but its entries leave {left}",
                job.payment.held.micros()
            )
        });
        if job.state.is_final() {
            self.holds.require(left == 0, || format!("job {id} has ended, but still holds {left}"));
            let paid = job.result.as_ref().map_or(0, |report| report.paid.micros());
            self.holds.require(moved.captured == paid, || {
                format!("job {id} captured {}, but {paid} were reported", moved.captured)
            });
        } else if let Some(payer) = job.payment.payer {
            *self.held.entry(payer).or_default() += i128::from(job.payment.held.micros());
        }
        Ok(())
    }

    fn check_live(&mut self, job: &Job) {
        let id = job.id;
        let live =
            !job.state.is_final() && (job.state != State::Open || negotiated::is_negotiated(job));
        self.states.require(live, || {
            format!("job {id} is {:?}, but is in the table of live jobs", job.state)
        });
        self.states.require(job.state.is_final() || job.due_at().is_some(), || {
            format!("job {id} is live, but has no deadline")
        });
        let in_hand = match job.state {
            State::Assigned | State::Running | State::InputRequired { .. } => true,
            // Deferred by its worker, or for a worker that is not assigned yet.
            State::Deferred { .. } => job.candidates.pending_assignment.is_none(),
            _ => false,
        };
        self.states.require(in_hand == job.assignment.is_some(), || {
            format!("job {id} is {:?} with worker {:?}", job.state, job.worker())
        });
        let willing = job.worker().is_none_or(|worker| !job.candidates.declined.contains(&worker));
        self.states
            .require(willing, || format!("job {id} is assigned to an agent that declined it"));
        let unended = job.ended_at.is_none() && job.result.is_none();
        self.states
            .require(unended, || format!("job {id} is live, but has an end time or a result"));
    }

    fn check_finished(&mut self, job: &Job) -> Result<(), StoreError> {
        let id = job.id;
        let last = job.state.is_final();
        self.states.require(last, || {
            format!("job {id} is {:?}, but is in the table of finished jobs", job.state)
        });
        self.states
            .require(job.ended_at.is_some(), || format!("job {id} has ended, but has no end time"));
        let told = job.result.is_some() == (job.state != State::Withdrawn);
        self.states.require(told, || format!("job {id} is {:?} but has no result", job.state));
        let paid = job.result.as_ref().map_or(Credits::ZERO, |report| report.paid);
        let done = job.state == State::Completed;
        let ok = job.result.as_ref().is_some_and(|report| report.ok);
        self.states.require(ok == done, || {
            format!("job {id} is {:?}, but its result says otherwise", job.state)
        });
        self.states
            .require(done || paid.is_zero(), || format!("job {id} did not complete, but was paid"));
        let price = job.assignment.map_or(Credits::ZERO, |turn| turn.price);
        self.states.require(paid <= price, || format!("job {id} was paid more than agreed"));
        let willing = job.worker().is_none_or(|worker| !job.candidates.declined.contains(&worker));
        self.states.require(!done || willing, || {
            format!("job {id} was completed by an agent that declined it")
        });
        if let Some(worker) = job.worker().filter(|_| job.state != State::Withdrawn) {
            let before = job.links.previous_worked.unwrap_or_default();
            *self.worked.entry(worker).or_default() += i128::from(id.0) - i128::from(before.0);
            let first = self.before.insert_pair(worker.0, before.0)?;
            self.states.require(first, || {
                format!("job {id} and another both follow {before} of {worker}")
            });
        }
        Ok(())
    }

    /// Each requester's jobs, oldest first, name the previous one.
    fn check_requester_chains(&mut self, db: &Connection) -> Result<(), StoreError> {
        let sql = "SELECT id, body ->> '$.requester.Agent', body ->> 'before_asked'
                   FROM (SELECT id, body FROM jobs UNION ALL SELECT id, body FROM archive)
                   WHERE json_valid(body) ORDER BY id";
        let mut statement = db.prepare(sql).map_err(store_error)?;
        let mut rows = statement.query([]).map_err(store_error)?;
        let mut last: HashMap<i64, i64> = HashMap::new();
        while let Some(found) = rows.next().map_err(store_error)? {
            let number = |at| found.get::<_, Option<i64>>(at).unwrap_or_default();
            let (id, before) = (number(0).unwrap_or_default(), number(2));
            let Some(agent) = number(1) else { continue };
            let known = last.insert(agent, id);
            self.states.require(before == known, || {
                format!("job {id} of agent {agent} follows {before:?}, not {known:?}")
            });
        }
        for agent_state in self.people.agent_states.values() {
            let newest =
                last.get(&row::sql_id(agent_state.agent.0)).map(|id| JobId(id.unsigned_abs()));
            self.states.require(agent_state.last_requested == newest, || {
                let said = agent_state.last_requested;
                format!(
                    "the newest request of agent {} is {newest:?}, not {said:?}",
                    agent_state.agent
                )
            });
        }
        Ok(())
    }

    /// Checks that need all jobs.
    fn check_totals(&mut self) {
        for owner in self.people.owners.values() {
            let (name, said) = (&owner.name, i128::from(owner.held.micros()));
            let held = self.held.remove(&owner.id).unwrap_or(0);
            self.holds.require(said == held, || {
                format!("{name} has {said} held, but its live jobs hold {held}")
            });
        }
        for agent_state in self.people.agent_states.values() {
            let newest = self.worked.get(&agent_state.agent).copied().unwrap_or(0);
            let said = agent_state.last_worked.unwrap_or_default();
            self.states.require(i128::from(said.0) == newest, || {
                format!(
                    "the newest job finished by agent {} is {newest}, not {said}",
                    agent_state.agent
                )
            });
        }
    }
}

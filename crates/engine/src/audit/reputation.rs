//! Reputation: recomputes every score from the outcomes, each of which must match its job.

use std::collections::HashMap;

use rialto_core::id::{AgentId, OutcomeId};
use rialto_core::job::{Cause, Job, Requester};
use rialto_core::reputation::customers::Customers;
use rialto_core::reputation::window::{Window, WindowOutcome};
use rialto_core::reputation::{Outcome, Score, Standing};
use rusqlite::Connection;

use super::Check;
use super::registrations::Registrations;
use super::scratch::ScratchDb;
use super::tables::{IdRule, TableReader};
use crate::store::StoreError;
use crate::store::sqlite::{row, store_error};

type Standings = HashMap<AgentId, (Standing, OutcomeId)>;
type Windows = HashMap<AgentId, Window>;
type WeightedStandings = HashMap<AgentId, Standing>;
type CustomersByAgent = HashMap<AgentId, Customers>;

/// Scans the outcomes in order.
pub fn check(rows: &mut TableReader<'_>, people: &Registrations) -> Result<Check, StoreError> {
    let mut check = Check::new("reputation");
    let mut standings = Standings::new();
    let mut windows = Windows::new();
    let mut weighed = WeightedStandings::new();
    let mut patronage = CustomersByAgent::new();
    let judged = ScratchDb::new()?;
    let ids = Some(IdRule::Contiguous(rows.next.outcome.0));
    rows.for_each(
        "outcomes",
        ids,
        |one: &Outcome| one.id.0,
        |db, outcome| {
            check.rows += 1;
            let (id, job, subject) = (outcome.id, outcome.job, outcome.subject);
            let first = judged.insert_pair(job.0, subject.0)?;
            check.require(first, || format!("outcome {id} judges {subject} twice for job {job}"));
            check_outcome(&mut check, &mut standings, &outcome);
            let weight = weighed.entry(subject).or_default();
            let counted = outcome.counted && outcome.counts_in_ranking;
            *weight = weight.after(outcome.ok, counted, outcome.hirer_score);
            if outcome.counted {
                windows.entry(subject).or_default().push(window_entry(&outcome));
            }
            let found = match row::load_by_id::<Job>(db, "archive", job.0)? {
                Some(finished) => Some(finished),
                None => row::load_by_id(db, "jobs", job.0)?,
            };
            match found {
                Some(job) => {
                    check_against_job(&mut check, people, &job, &outcome);
                    if outcome.counted && outcome.counts_in_ranking && outcome.ok {
                        patronage.entry(subject).or_default().add(job.payment.payer, outcome.paid);
                    }
                }
                None => check
                    .add_breach(|| format!("outcome {id} names job {job}, which does not exist")),
            }
            Ok(())
        },
    )?;
    for agent_state in people.agent_states.values() {
        let found = standings.remove(&agent_state.agent);
        let (standing, last) =
            found.map_or((Standing::default(), None), |(standing, last)| (standing, Some(last)));
        let agent = agent_state.agent;
        check.require(agent_state.standing == standing, || {
            format!(
                "the standing of agent {agent} is {:?}, but its outcomes give {standing:?}",
                agent_state.standing
            )
        });
        let weight = weighed.remove(&agent).unwrap_or_default();
        check.require(agent_state.ranking_standing() == weight, || {
            let said = agent_state.ranking_standing();
            format!("agent {agent} ranks as {said:?}, but its outcomes give {weight:?}")
        });
        let window = windows.remove(&agent).unwrap_or_default();
        check.require(*agent_state.window == window, || {
            format!("the newest outcomes of agent {agent} do not match its state row")
        });
        // The agent state lacks customers from before they were recorded, so it may have fewer,
        // never more.
        let patrons = patronage.remove(&agent).unwrap_or_default();
        let told = agent_state.customers.count() <= patrons.count()
            && agent_state.customers.paid() <= patrons.paid();
        check.require(told, || {
            format!("agent {agent} has fewer counterparties than its state row says")
        });
        check.require(agent_state.last_outcome == last, || {
            format!(
                "the last outcome of agent {agent} is {last:?}, not {:?}",
                agent_state.last_outcome
            )
        });
    }
    for agent in standings.keys() {
        check.add_breach(|| format!("agent {agent} has outcomes, but does not exist"));
    }
    check_all_judged(rows.db, &mut check, &judged)?;
    Ok(check)
}

fn window_entry(outcome: &Outcome) -> WindowOutcome {
    let Outcome { ok, on_time, ended_at, assigned_at, .. } = *outcome;
    WindowOutcome { ok, on_time, took: ended_at.since(assigned_at) }
}

/// Number, chain and score follow from the previous outcome.
fn check_outcome(check: &mut Check, standings: &mut Standings, outcome: &Outcome) {
    let Outcome { id, subject, ok, counted, hirer_score, .. } = *outcome;
    let known = standings.get(&subject).copied();
    let (before, last) =
        known.map_or((Standing::default(), None), |(standing, last)| (standing, Some(last)));
    let after = before.after(ok, counted, hirer_score);
    let hirer = outcome.hired_by.and_then(|hirer| standings.get(&hirer));
    let score = hirer.map_or(Score::START, |(standing, _)| standing.score);
    check.require(outcome.number == after.outcomes, || {
        format!("outcome {id} is number {} of {subject}, not {}", outcome.number, after.outcomes)
    });
    check.require(outcome.before == last, || {
        format!("outcome {id} of {subject} follows {:?}, not {last:?}", outcome.before)
    });
    check.require(hirer_score == score, || {
        format!("outcome {id} has {hirer_score:?} as the requester's score, but it was {score:?}")
    });
    check.require(outcome.score_after == after.score, || {
        format!("outcome {id} leaves a score of {:?}, not {:?}", outcome.score_after, after.score)
    });
    standings.insert(subject, (after, id));
}

/// The job was really assigned to the subject, and counts only between different owners.
fn check_against_job(check: &mut Check, people: &Registrations, job: &Job, outcome: &Outcome) {
    let Outcome { id, subject, .. } = *outcome;
    let ended_with = job.state.is_final() && job.worker() == Some(subject);
    let passed_on = job.candidates.declined.contains(&subject);
    check.require(ended_with || passed_on, || {
        format!("outcome {id} is about job {}, which {subject} never finished or lost", job.id)
    });
    let hirer = match job.request.requester {
        Requester::Agent(agent) => Some(agent),
        Requester::Guest(_) => None,
    };
    check.require(outcome.hired_by == hirer, || {
        format!("outcome {id} names an agent that is not the requester of its job")
    });
    let owner = people.agents.get(&subject).map(|person| person.owner);
    let blamed = outcome.ok || outcome.cause.is_some_and(Cause::is_worker_failure);
    let between_owners = job.payment.payer.is_none() || job.payment.payer != owner;
    check.require(outcome.counted == (blamed && between_owners), || match between_owners {
        true => format!("outcome {id}: counted is {}, against its cause", outcome.counted),
        false => format!("outcome {id} is counted within one owner"),
    });
    let paid = job.result.as_ref().map(|report| report.paid);
    let same = !outcome.ok || paid == Some(outcome.paid);
    check.require(same, || {
        format!("the paid amount of outcome {id} differs from the result of its job")
    });
}

/// Every finished job has an outcome.
fn check_all_judged(
    db: &Connection,
    check: &mut Check,
    judged: &ScratchDb,
) -> Result<(), StoreError> {
    let sql = "SELECT id, body ->> '$.assignment.worker' FROM archive WHERE json_valid(body)
               AND body ->> 'state' IN ('Completed', 'Failed', 'Expired')
               AND body ->> 'assignment' IS NOT NULL";
    let mut statement = db.prepare(sql).map_err(store_error)?;
    let mut rows = statement.query([]).map_err(store_error)?;
    while let Some(found) = rows.next().map_err(store_error)? {
        let (Ok(job), Ok(worker)) = (found.get::<_, i64>(0), found.get::<_, i64>(1)) else {
            continue;
        };
        let missing = judged.insert_pair(job.unsigned_abs(), worker.unsigned_abs())?;
        check.require(!missing, || format!("job {job} ended without an outcome for {worker}"));
    }
    Ok(())
}

//! Reputation: recomputes every score from the outcomes, each of which must match its job.

use std::collections::HashMap;

use rialto_core::id::{AgentId, OutcomeId};
use rialto_core::job::{Cause, Job, Requester};
use rialto_core::reputation::customers::Patrons;
use rialto_core::reputation::window::{Seen, Window};
use rialto_core::reputation::{Outcome, Score, Standing};
use rusqlite::Connection;

use super::Check;
use super::registrations::People;
use super::tables::{Ids, Rows};
use super::scratch::Scratch;
use crate::store::StoreError;
use crate::store::sqlite::{row, trouble};

type Standings = HashMap<AgentId, (Standing, OutcomeId)>;
type Windows = HashMap<AgentId, Window>;
type Weighed = HashMap<AgentId, Standing>;
type Patronage = HashMap<AgentId, Patrons>;

/// Scans the outcomes in order.
pub fn recount(rows: &mut Rows<'_>, people: &People) -> Result<Check, StoreError> {
    let mut check = Check::new("reputation");
    let mut standings = Standings::new();
    let mut windows = Windows::new();
    let mut weighed = Weighed::new();
    let mut patronage = Patronage::new();
    let judged = Scratch::new()?;
    let ids = Some(Ids::Whole(rows.next.outcome.0));
    rows.each(
        "outcomes",
        ids,
        |one: &Outcome| one.id.0,
        |db, outcome| {
            check.rows += 1;
            let (id, job, subject) = (outcome.id, outcome.job, outcome.subject);
            let first = judged.first(job.0, subject.0)?;
            check.holds(first, || format!("outcome {id} judges {subject} twice for job {job}"));
            fold(&mut check, &mut standings, &outcome);
            let weight = weighed.entry(subject).or_default();
            let counted = outcome.counted && outcome.weighs;
            *weight = weight.after(outcome.ok, counted, outcome.hirer_score);
            if outcome.counted {
                windows.entry(subject).or_default().push(seen(&outcome));
            }
            let found = match row::get::<Job>(db, "archive", job.0)? {
                Some(finished) => Some(finished),
                None => row::get(db, "jobs", job.0)?,
            };
            match found {
                Some(job) => {
                    borne_out(&mut check, people, &job, &outcome);
                    if outcome.counted && outcome.weighs && outcome.ok {
                        patronage.entry(subject).or_default().add(job.payer, outcome.paid);
                    }
                }
                None => {
                    check.breach(|| format!("outcome {id} names job {job}, which does not exist"))
                }
            }
            Ok(())
        },
    )?;
    for desk in people.desks.values() {
        let found = standings.remove(&desk.agent);
        let (standing, last) =
            found.map_or((Standing::default(), None), |(standing, last)| (standing, Some(last)));
        let agent = desk.agent;
        check.holds(desk.standing == standing, || {
            format!(
                "the standing of agent {agent} is {:?}, but its outcomes give {standing:?}",
                desk.standing
            )
        });
        let weight = weighed.remove(&agent).unwrap_or_default();
        check.holds(desk.weighed() == weight, || {
            let said = desk.weighed();
            format!("agent {agent} ranks as {said:?}, but its outcomes give {weight:?}")
        });
        let window = windows.remove(&agent).unwrap_or_default();
        check.holds(*desk.window == window, || {
            format!("the newest outcomes of agent {agent} do not match its state row")
        });
        // The agent state lacks customers from before they were recorded, so it may have fewer,
        // never more.
        let patrons = patronage.remove(&agent).unwrap_or_default();
        let told = desk.patrons.count() <= patrons.count() && desk.patrons.paid() <= patrons.paid();
        check.holds(told, || {
            format!("agent {agent} has fewer counterparties than its state row says")
        });
        check.holds(desk.last_outcome == last, || {
            format!("the last outcome of agent {agent} is {last:?}, not {:?}", desk.last_outcome)
        });
    }
    for agent in standings.keys() {
        check.breach(|| format!("agent {agent} has outcomes, but does not exist"));
    }
    judged_all(rows.db, &mut check, &judged)?;
    Ok(check)
}

fn seen(outcome: &Outcome) -> Seen {
    let Outcome { ok, on_time, ended_at, assigned_at, .. } = *outcome;
    Seen { ok, on_time, took: ended_at.since(assigned_at) }
}

/// Number, chain and score follow from the previous outcome.
fn fold(check: &mut Check, standings: &mut Standings, outcome: &Outcome) {
    let Outcome { id, subject, ok, counted, hirer_score, .. } = *outcome;
    let known = standings.get(&subject).copied();
    let (before, last) =
        known.map_or((Standing::default(), None), |(standing, last)| (standing, Some(last)));
    let after = before.after(ok, counted, hirer_score);
    let hirer = outcome.hired_by.and_then(|hirer| standings.get(&hirer));
    let score = hirer.map_or(Score::START, |(standing, _)| standing.score);
    check.holds(outcome.number == after.outcomes, || {
        format!("outcome {id} is number {} of {subject}, not {}", outcome.number, after.outcomes)
    });
    check.holds(outcome.before == last, || {
        format!("outcome {id} of {subject} follows {:?}, not {last:?}", outcome.before)
    });
    check.holds(hirer_score == score, || {
        format!("outcome {id} has {hirer_score:?} as the requester's score, but it was {score:?}")
    });
    check.holds(outcome.score_after == after.score, || {
        format!("outcome {id} leaves a score of {:?}, not {:?}", outcome.score_after, after.score)
    });
    standings.insert(subject, (after, id));
}

/// The job was really assigned to the subject, and counts only between different owners.
fn borne_out(check: &mut Check, people: &People, job: &Job, outcome: &Outcome) {
    let Outcome { id, subject, .. } = *outcome;
    let ended_with = job.state.is_final() && job.worker() == Some(subject);
    let passed_on = job.declined.contains(&subject);
    check.holds(ended_with || passed_on, || {
        format!("outcome {id} is about job {}, which {subject} never finished or lost", job.id)
    });
    let hirer = match job.requester {
        Requester::Agent(agent) => Some(agent),
        Requester::Guest(_) => None,
    };
    check.holds(outcome.hired_by == hirer, || {
        format!("outcome {id} names an agent that is not the requester of its job")
    });
    let owner = people.agents.get(&subject).map(|person| person.owner);
    let blamed = outcome.ok || outcome.cause.is_some_and(Cause::blames_worker);
    let between_owners = job.payer.is_none() || job.payer != owner;
    check.holds(outcome.counted == (blamed && between_owners), || match between_owners {
        true => format!("outcome {id}: counted is {}, against its cause", outcome.counted),
        false => format!("outcome {id} is counted within one owner"),
    });
    let paid = job.report.as_ref().map(|report| report.paid);
    let same = !outcome.ok || paid == Some(outcome.paid);
    check.holds(same, || {
        format!("the paid amount of outcome {id} differs from the result of its job")
    });
}

/// Every finished job has an outcome.
fn judged_all(db: &Connection, check: &mut Check, judged: &Scratch) -> Result<(), StoreError> {
    let sql = "SELECT id, body ->> '$.assignment.worker' FROM archive WHERE json_valid(body)
               AND body ->> 'state' IN ('Completed', 'Failed', 'Expired')
               AND body ->> 'assignment' IS NOT NULL";
    let mut statement = db.prepare(sql).map_err(trouble)?;
    let mut rows = statement.query([]).map_err(trouble)?;
    while let Some(found) = rows.next().map_err(trouble)? {
        let (Ok(job), Ok(worker)) = (found.get::<_, i64>(0), found.get::<_, i64>(1)) else {
            continue;
        };
        let missing = judged.first(job.unsigned_abs(), worker.unsigned_abs())?;
        check.holds(!missing, || format!("job {job} ended without an outcome for {worker}"));
    }
    Ok(())
}

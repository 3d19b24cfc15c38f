//! Random reports: agents' statuses, and responses to jobs before and after assignment.

use std::sync::Arc;

use proptest::prelude::*;
use uuid::Uuid;

use super::steps::{agent_at, job_at, name_of, pick};
use crate::agent::presence::Availability;
use crate::agent::status::AgentStatusUpdate;
use crate::command::{Approver, Canceller, Command, WorkerResponse};
use crate::job::{Cause, Job, Requester, State};
use crate::testkit::TestHub;
use crate::time::Millis;

/// Mostly available, and unavailable in every way.
const STANCES: [Availability; 8] = [
    Availability::Idle,
    Availability::Idle,
    Availability::Busy,
    Availability::Error,
    Availability::Broken,
    Availability::Maintenance,
    Availability::Maintenance,
    Availability::Offline,
];

/// One random report. The numbers are choices, taken modulo the available options.
#[derive(Clone, Debug)]
pub enum Word {
    Stand { who: u8, availability: u8, seconds: u16, since: Option<u8> },
    ReportClaims { who: u8 },
    Respond { job: u8, stray: Option<u8>, how: u8, seconds: u16, called: Option<u8> },
    Approve { job: u8, by: u8 },
    Cancel { job: u8, by: u8, reason: bool },
}

/// Reports in useful proportions.
pub fn word(pause: impl Strategy<Value = u16> + Clone) -> impl Strategy<Value = Word> {
    let n = || any::<u8>();
    let rarely = || prop::option::weighted(0.15, any::<u8>());
    prop_oneof![
        4 => (n(), n(), pause.clone(), prop::option::of(n()))
            .prop_map(|(who, availability, seconds, since)| Word::Stand { who, availability, seconds, since }),
        1 => n().prop_map(|who| Word::ReportClaims { who }),
        6 => (n(), rarely(), n(), pause, prop::option::of(n())).prop_map(
            |(job, stray, how, seconds, called)| Word::Respond { job, stray, how, seconds, called }
        ),
        2 => (n(), n()).prop_map(|(job, by)| Word::Approve { job, by }),
        3 => (n(), n(), any::<bool>())
            .prop_map(|(job, by, reason)| Word::Cancel { job, by, reason }),
    ]
}

/// An agent's status, since a time that may be older than its last report.
pub fn condition(
    scene: &TestHub,
    availability: u8,
    seconds: u16,
    since: Option<u8>,
) -> AgentStatusUpdate {
    let until = scene.now.plus(Millis::seconds(i64::from(seconds)));
    let until = (!availability.is_multiple_of(5)).then_some(until);
    let availability = pick(&STANCES, availability / 5);
    let moment = |ago: u8| scene.now.plus(Millis::seconds(i64::from(ago) % 16 * -4));
    let words = since.map(|ago| (moment(ago), format!("{availability:?} {ago}").into()));
    AgentStatusUpdate { availability, until, words }
}

/// A live job of some kind, if there is one; sometimes any other.
fn some_job(scene: &TestHub, at: u8, kind: impl Fn(&Job) -> bool) -> Option<Arc<Job>> {
    let jobs = scene.store.rows.jobs.values();
    let fitting: Vec<&Arc<Job>> = jobs.filter(|job| !job.state.is_final() && kind(job)).collect();
    match at < 230 && !fitting.is_empty() {
        true => Some(pick(&fitting, at).clone()),
        false => job_at(scene, at),
    }
}

/// An id from a small pool, or that of another job.
fn called(scene: &TestHub, at: u8) -> Uuid {
    let other = job_at(scene, at).map(|job| job.uuid).filter(|_| at > 200);
    other.unwrap_or(Uuid::from_u128(0xCA11_ED00 + u128::from(at % 16)))
}

impl Word {
    pub fn command(&self, scene: &TestHub) -> Option<Command> {
        Some(match *self {
            Word::Stand { who, availability, seconds, since } => {
                let told = condition(scene, availability, seconds, since);
                Command::ReportStatus { agent: agent_at(scene, who), status: told }
            }
            Word::ReportClaims { who } => Command::ReportReputation {
                agent: agent_at(scene, who),
                text: format!("{who}").into(),
            },
            Word::Respond { job, stray, how, seconds, called: name } => {
                let unanswered = |job: &Job| {
                    job.state == State::Assigned && job.acceptance.accepted_at.is_none()
                };
                let found = some_job(scene, job, unanswered)?;
                let by = stray.map(|who| agent_at(scene, who)).or(found.worker())?;
                let at = scene.now.plus(Millis::seconds(i64::from(seconds)));
                let said = match how % 4 {
                    0 | 1 => {
                        let name = name.map(|at| called(scene, at));
                        WorkerResponse::Accept {
                            ready_at: (how > 127).then_some(at),
                            worker_job_id: name,
                        }
                    }
                    2 => {
                        let cause = pick(&[Cause::Policy, Cause::Execution], how / 4);
                        let words = (how > 63).then(|| "{}".to_owned());
                        WorkerResponse::Refuse { cause, text: "no".to_owned(), words }
                    }
                    _ => WorkerResponse::Defer { until: at },
                };
                Command::Respond { job: name_of(&found, job), by, response: said }
            }
            Word::Approve { job, by } => {
                let found =
                    some_job(scene, job, |job| job.candidates.pending_assignment.is_some())?;
                let who = match by % 8 {
                    0 => Approver::Agent(agent_at(scene, by / 8)),
                    1..=3 => Approver::Operator,
                    _ => Approver::Agent(found.intended_worker()?),
                };
                Command::Approve { job: name_of(&found, job), by: who, approved: by % 5 != 0 }
            }
            Word::Cancel { job, by, reason } => {
                let found = job_at(scene, job)?;
                let by = match (by % 5, &found.request.requester, found.intended_worker()) {
                    (0, ..) => Canceller::Agent(agent_at(scene, by)),
                    (1, _, Some(worker)) => Canceller::Agent(worker),
                    (2, ..) | (_, Requester::Guest(_), _) => Canceller::Operator,
                    (_, Requester::Agent(agent), _) => Canceller::Agent(*agent),
                };
                let reason = reason.then(|| "because".to_owned());
                Command::Cancel { job: name_of(&found, job), by, reason }
            }
        })
    }
}

//! The field map of this protocol: how a job looks to its requesters and workers.

use rialto_core::command::JobRef;
use rialto_core::id::AgentId;
use rialto_core::job::{Cause, Job, Requester, Selection};
use rialto_core::time::Timestamp;
use rialto_core::world::World;
use uuid::Uuid;

use super::ID;
use super::codes::of_cause;
use super::shape::{self, Forwarded};
use super::wire::{CURRENCY, JobPost, Rest, Status};
use crate::adapter::Floor;
use crate::adapter::fidelity::{Finding, Layout, Part, Shown, Side, Sides, Wanted};
use crate::kit::object::Object;
use crate::kit::{rfc3339, raw_json};

/// A job as posted and as forwarded.
const JOB: Layout = &[
    ("/job_id", Part::Id),
    ("/orchestrator_id", Part::Requester),
    ("/agent_id", Part::Worker),
    ("/skill_name", Part::Skill),
    ("/input_data", Part::Input),
    ("/budget", Part::Budget),
    ("/currency", Part::Currency),
    ("/callback_url", Part::Callback),
    ("/timestamp_utc", Part::Time),
    ("/bridge", Part::Form),
];

/// A result.
const RESULT: Layout = &[
    ("/job_id", Part::Id),
    ("/agent_id", Part::Worker),
    ("/status", Part::Outcome),
    ("/output_data", Part::Output),
    ("/execution_cost", Part::Paid),
    ("/execution_time_ms", Part::Duration),
    ("/warnings", Part::Form),
    ("/error_message", Part::Reason),
    ("/error_code", Part::Cause),
    ("/timestamp_utc", Part::Time),
];

/// This protocol's field map.
pub struct RegistrySides;

impl Sides for RegistrySides {
    fn asked(&self, shown: Shown<'_>) -> Side {
        let job = shown.job;
        let rest: Rest = serde_json::from_str(&job.meta).unwrap_or_default();
        let named = match job.selection {
            Selection::Direct(agent) => name(shown.floor, agent),
            _ => None,
        };
        let orchestrator = match &job.requester {
            Requester::Agent(agent) => name(shown.floor, *agent),
            Requester::Guest(name) => Some(name.clone()),
        };
        let known = Object::new()
            .text("job_id", &job.foreign)
            .maybe_text("orchestrator_id", orchestrator.as_deref())
            .maybe_text("agent_id", named.as_deref())
            .text("skill_name", &job.skill)
            .raw("input_data", &job.input)
            .raw("budget", shape::money(job.budget).get())
            .text("currency", CURRENCY)
            .maybe_text("callback_url", job.callback.as_deref())
            .maybe_text("timestamp_utc", rest.timestamp_utc.as_deref());
        let all = rest.more.iter().fold(known, |all, (name, value)| all.raw(name, value.get()));
        Side::of_json(ID, all.finish(), JOB)
    }

    fn given(&self, shown: Shown<'_>) -> Option<Side> {
        let Shown { floor, job, .. } = shown;
        job.worker()?;
        let forwarded = floor.engine.look(|world| shape::forwarded(floor, world, job));
        Some(forwarded_side(&forwarded, job.origin != ID))
    }

    fn made(&self, shown: Shown<'_>) -> Option<Side> {
        let job = shown.job;
        let report = job.report.as_ref().filter(|report| {
            // In these cases the worker sent no result, or none that could be read.
            let silent = [Cause::TimedOut, Cause::WorkerLeft, Cause::Unusable];
            let own = |cause| !silent.contains(&cause);
            report.content.is_some() && report.cause.is_none_or(own)
        })?;
        let status = if report.ok { Status::Success } else { Status::Failure };
        let uuid = job.uuid.to_string();
        let said = Object::new()
            .text("job_id", if job.origin == ID { &job.foreign } else { &uuid })
            .maybe_text("agent_id", job.worker().and_then(|id| name(shown.floor, id)).as_deref())
            .text("status", status.as_str())
            .maybe_raw("output_data", report.output.as_deref())
            .raw("execution_cost", shape::money(report.paid).get())
            .whole("execution_time_ms", report.took.0)
            .maybe_text("error_message", report.text.as_deref())
            .maybe_text("error_code", report.cause.and_then(of_cause));
        Some(Side::of_json(ID, said.finish(), RESULT))
    }

    fn told(&self, shown: Shown<'_>) -> Option<Side> {
        let result = |world: &World| serde_json::to_string(&shape::result(world, shown.job));
        let body = shown.floor.engine.look(result).ok()?;
        Some(Side::of_json(ID, body, RESULT))
    }

    fn extras(&self, job: &Job) -> Option<String> {
        let rest: Rest = serde_json::from_str(&job.meta).unwrap_or_default();
        (!rest.more.is_empty()).then(|| serde_json::to_string(&rest.more).ok()).flatten()
    }

    fn find<'a>(&'a self, floor: &'a Floor, _: AgentId, id: &'a str) -> Finding<'a> {
        let wanted = JobRef::Foreign { origin: ID, id: id.to_lowercase() };
        Box::pin(async move { floor.engine.find_job(&wanted).await })
    }

    fn read(&self, bytes: &[u8], _: Timestamp) -> Result<(Side, Wanted), String> {
        let post = JobPost::read(bytes).map_err(|bad| bad.to_string())?;
        let side = Side::of_json(ID, String::from_utf8_lossy(bytes).into_owned(), JOB);
        let wanted = Wanted {
            skill: post.skill_name,
            input: post.input_data,
            budget: Some(post.budget),
            deadline: None,
            extras: side.extras(),
        };
        Ok((side, wanted))
    }

    fn compose(&self, wanted: &Wanted, at: Timestamp) -> Side {
        let forwarded = Forwarded {
            job_id: Uuid::nil().to_string(),
            orchestrator_id: Uuid::nil().to_string(),
            skill_name: wanted.skill.clone(),
            input_data: raw_json::verbatim(&wanted.input),
            budget: shape::money(wanted.budget.unwrap_or_default()),
            currency: CURRENCY,
            callback_url: "(generated by the hub)".to_owned(),
            timestamp_utc: rfc3339::seconds(at),
            more: shape::meta(wanted.extras.clone()),
        };
        forwarded_side(&forwarded, true)
    }
}

/// A forwarded job; members that have no field here are under `meta` (B11).
fn forwarded_side(forwarded: &Forwarded, bridged: bool) -> Side {
    let body = serde_json::to_string(forwarded).unwrap_or_default();
    let side = Side::of_json(ID, body, JOB);
    if bridged { side.opened("/meta") } else { side }
}

fn name(floor: &Floor, agent: AgentId) -> Option<String> {
    floor.engine.look(|world| world.name_of(agent, ID).map(str::to_owned))
}

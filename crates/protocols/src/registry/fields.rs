//! The field map of this protocol: how a job looks to its requesters and workers.

use rialto_core::command::JobRef;
use rialto_core::id::AgentId;
use rialto_core::job::{Cause, Job, Question, Requester, Selection};
use rialto_core::time::Timestamp;
use rialto_core::world::World;
use uuid::Uuid;

use super::ID;
use super::RegistryContext;
use super::errors::code_of_cause;
use super::translate::{self, ForwardedJob};
use super::wire::{CURRENCY, JobPost, JobStatus, PassthroughMembers};
use crate::adapter::fidelity::{
    FieldMap, FieldParts, FindJobFuture, JobMessages, MessageView, NeutralRequest, Part, TracedJob,
    question_member,
};
use crate::kit::object::ObjectWriter;
use crate::kit::{raw_json, rfc3339};

/// A job as posted and as forwarded.
const JOB: FieldParts = &[
    ("/job_id", Part::Id),
    ("/orchestrator_id", Part::Requester),
    ("/agent_id", Part::Worker),
    ("/skill_name", Part::Skill),
    ("/input_data", Part::Input),
    ("/budget", Part::Budget),
    ("/currency", Part::Currency),
    ("/callback_url", Part::Callback),
    ("/timestamp_utc", Part::Time),
    ("/bridge", Part::Framing),
];

/// A result.
const RESULT: FieldParts = &[
    ("/job_id", Part::Id),
    ("/agent_id", Part::Worker),
    ("/status", Part::Outcome),
    ("/output_data", Part::Output),
    ("/execution_cost", Part::Paid),
    ("/execution_time_ms", Part::Duration),
    ("/warnings", Part::Framing),
    ("/error_message", Part::Reason),
    ("/error_code", Part::Cause),
    ("/timestamp_utc", Part::Time),
];

/// This protocol's field map.
pub struct RegistryFieldMap;

impl JobMessages for RegistryContext {
    fn request_sent(&self, shown: TracedJob<'_>) -> MessageView {
        let job = shown.job;
        let rest: PassthroughMembers = serde_json::from_str(&job.request.meta).unwrap_or_default();
        let named = match job.selection {
            Selection::Direct(agent) => name(self, agent),
            _ => None,
        };
        let orchestrator = match &job.request.requester {
            Requester::Agent(agent) => name(self, *agent),
            Requester::Guest(name) => Some(name.clone()),
        };
        let known = ObjectWriter::new()
            .text("job_id", &job.request.foreign_id)
            .maybe_text("orchestrator_id", orchestrator.as_deref())
            .maybe_text("agent_id", named.as_deref())
            .text("skill_name", &job.request.skill)
            .raw("input_data", &job.request.input)
            .raw("budget", translate::format_amount(job.payment.budget).get())
            .text("currency", CURRENCY)
            .maybe_text("callback_url", job.request.callback.as_deref())
            .maybe_text("timestamp_utc", rest.timestamp_utc.as_deref());
        let all = rest.more.iter().fold(known, |all, (name, value)| all.raw(name, value.get()));
        MessageView::from_json(ID, all.finish(), JOB)
    }

    fn request_received(&self, shown: TracedJob<'_>) -> Option<MessageView> {
        let job = shown.job;
        job.worker()?;
        let forwarded = self.engine.with_world(|world| translate::forward_job(self, world, job));
        Some(forwarded_side(&forwarded, job.request.origin != ID))
    }

    fn result_sent(&self, shown: TracedJob<'_>) -> Option<MessageView> {
        let job = shown.job;
        let report = job.result.as_ref().filter(|report| {
            // In these cases the worker sent no result, or none that could be read.
            let silent = [Cause::TimedOut, Cause::WorkerLeft, Cause::Unusable];
            let own = |cause| !silent.contains(&cause);
            report.content.is_some() && report.cause.is_none_or(own)
        })?;
        let status = if report.ok { JobStatus::Success } else { JobStatus::Failure };
        let uuid = job.uuid.to_string();
        let said = ObjectWriter::new()
            .text("job_id", if job.request.origin == ID { &job.request.foreign_id } else { &uuid })
            .maybe_text("agent_id", job.worker().and_then(|id| name(self, id)).as_deref())
            .text("status", status.as_str())
            .maybe_raw("output_data", report.output.as_deref())
            .raw("execution_cost", translate::format_amount(report.paid).get())
            .integer("execution_time_ms", report.duration.0)
            .maybe_text("error_message", report.text.as_deref())
            .maybe_text("error_code", report.cause.and_then(code_of_cause));
        Some(MessageView::from_json(ID, said.finish(), RESULT))
    }

    fn result_received(&self, shown: TracedJob<'_>) -> Option<MessageView> {
        let result =
            |world: &World| serde_json::to_string(&translate::result_body(world, shown.job));
        let body = self.engine.with_world(result).ok()?;
        Some(MessageView::from_json(ID, body, RESULT))
    }

    fn question_received(&self, _: TracedJob<'_>, question: &Question) -> Option<MessageView> {
        Some(question_member(ID, question))
    }

    fn find_job<'a>(&'a self, _: AgentId, id: &'a str) -> FindJobFuture<'a> {
        let wanted = JobRef::Foreign { origin: ID, id: id.to_lowercase() };
        Box::pin(async move { self.engine.find_job(&wanted).await })
    }
}

impl FieldMap for RegistryFieldMap {
    fn extras(&self, job: &Job) -> Option<String> {
        let rest: PassthroughMembers = serde_json::from_str(&job.request.meta).unwrap_or_default();
        (!rest.more.is_empty()).then(|| serde_json::to_string(&rest.more).ok()).flatten()
    }

    fn read_request(
        &self,
        bytes: &[u8],
        _: Timestamp,
    ) -> Result<(MessageView, NeutralRequest), String> {
        let post = JobPost::read(bytes).map_err(|bad| bad.to_string())?;
        let side = MessageView::from_json(ID, String::from_utf8_lossy(bytes).into_owned(), JOB);
        let wanted = NeutralRequest {
            skill: post.skill_name,
            input: post.input_data,
            budget: Some(post.budget),
            deadline: None,
            extras: side.extras(),
        };
        Ok((side, wanted))
    }

    fn write_request(&self, wanted: &NeutralRequest, at: Timestamp) -> MessageView {
        let forwarded = ForwardedJob {
            job_id: Uuid::nil().to_string(),
            orchestrator_id: Uuid::nil().to_string(),
            skill_name: wanted.skill.clone(),
            input_data: raw_json::verbatim(&wanted.input),
            budget: translate::format_amount(wanted.budget.unwrap_or_default()),
            currency: CURRENCY,
            callback_url: "(generated by the hub)".to_owned(),
            timestamp_utc: rfc3339::format_seconds(at),
            more: translate::meta_member(wanted.extras.clone()),
        };
        forwarded_side(&forwarded, true)
    }
}

/// A forwarded job; members that have no field here are under `meta` (B11).
fn forwarded_side(forwarded: &ForwardedJob, bridged: bool) -> MessageView {
    let body = serde_json::to_string(forwarded).unwrap_or_default();
    let side = MessageView::from_json(ID, body, JOB);
    if bridged { side.expand_field("/meta") } else { side }
}

fn name(context: &RegistryContext, agent: AgentId) -> Option<String> {
    context.engine.with_world(|world| world.alias_of(agent, ID).map(str::to_owned))
}

//! Results that agents of this protocol send for work they were given.

use rialto_core::alias::Digest;
use rialto_core::answer::Answer;
use rialto_core::command::{Command, JobRef, ReportResult};
use rialto_core::id::AgentId;
use rialto_core::job::{Cause, Job, Requester};
use rialto_core::money::Credits;
use rialto_core::refusal::Refusal;
use rialto_core::time::Timestamp;
use rialto_engine::Failure as EngineFailure;
use uuid::Uuid;

use super::codes::Code;
use super::delivery::DeliveryOutcome;
use super::envelope::Envelope;
use super::proof::AgentOrOperator;
use super::reply::{self, Reply, ReplyStatus};
use super::routes::{HandlerResult, error_response};
use super::{Failure, hire, refusals};
use crate::adapter::HubContext;
use crate::adapter::delivery_result::is_refusal_status;
use crate::kit::object::ObjectWriter;

/// The job whose conversation an envelope belongs to, if it can be one.
pub fn job_of_conversation(envelope: &Envelope<'_>) -> Option<Uuid> {
    let id = envelope.conversation_id?;
    id.parse::<uuid::fmt::Hyphenated>().ok().map(uuid::fmt::Hyphenated::into_uuid)
}

/// Whether a job is an agent's work, or was until it was reassigned.
pub fn is_work_of(job: &Job, agent: AgentId) -> bool {
    job.worker() == Some(agent) || job.declined.contains(&agent)
}

/// Whether a message is for the job's requester. A message to a third party under the job's id is
/// not a result; a guest has no address.
pub fn is_for_requester(job: &Job, to: Option<AgentId>) -> bool {
    match job.requester {
        Requester::Agent(agent) => to.is_none_or(|to| to == agent),
        Requester::Guest(_) => to.is_none(),
    }
}

/// Takes an envelope as a worker's result: its next message to the requester in that conversation
/// is the result (X10).
pub async fn take_result(
    context: &HubContext,
    by: AgentOrOperator,
    worker: AgentId,
    job: &Job,
    envelope: &Envelope<'_>,
) -> HandlerResult {
    if job.worker() != Some(worker) {
        return Err(error_response(context, over(&job.state)).into_rejected_message());
    }
    let now = context.engine.now();
    let reply = Reply::read(envelope.original_text.as_bytes());
    let order = match reply.and_then(|reply| WorkerError::read(&reply, envelope.raw())) {
        Some(said) => report_failure(job, worker, &said, now),
        None => succeeded(job, worker, envelope, now),
    };
    match context.engine.run_once(order, by.once).await {
        Ok(ran) => {
            let repeated = ran.replayed || matches!(ran.answer, Answer::Job { repeated: true, .. });
            Ok(hire::job_response(
                context,
                job.uuid,
                DeliveryOutcome::Delivered { reply: reply::OK },
                repeated,
                false,
            ))
        }
        Err(EngineFailure::Refused(Refusal::WrongState { state: is })) => {
            Err(error_response(context, over(&is)).into_rejected_message())
        }
        Err(failure) => {
            Err(error_response(context, refusals::from_engine(failure)).into_rejected_message())
        }
    }
}

/// The job has its result, or no longer belongs to the sender.
fn over(is: &rialto_core::job::State) -> Failure {
    let refusal = Refusal::WrongState { state: *is };
    let hint = "the job of this conversation_id has ended or was taken back; to write about \
                something else, use another conversation_id";
    Failure {
        field: Some("/envelope/conversation_id".into()),
        hint: Some(hint.into()),
        ..refusals::from_engine(refusal.into())
    }
}

fn succeeded(job: &Job, by: AgentId, envelope: &Envelope<'_>, now: Timestamp) -> Command {
    let output = ObjectWriter::new().text("text", envelope.original_text).finish();
    Command::ReportResult(Box::new(ReportResult {
        ok: true,
        output: Some(output),
        ..report(job, by, Digest::of(&[envelope.raw().as_bytes()]), now)
    }))
}

/// A worker's report that it could not do the work.
#[derive(Clone, Debug)]
pub struct WorkerError {
    code: String,
    detail: String,
    /// It did not accept the work.
    refused: bool,
    /// The digest of its whole report.
    content: Digest,
}

impl WorkerError {
    /// The error in a reply, if it has one; `whole` is the text that identifies a repeat.
    pub fn read(reply: &Reply<'_>, whole: &str) -> Option<Self> {
        let ReplyStatus::Error { code, detail } = reply.status() else { return None };
        let refused =
            matches!(Code::read(code), Some(Code::InvalidEnvelope | Code::UnsupportedVersion));
        let content = Digest::of(&[whole.as_bytes()]);
        Some(Self { code: code.clone(), detail: detail.clone(), refused, content })
    }

    /// An endpoint's answer to work that was posted to it. A status that refuses the request is a
    /// refusal, unless the endpoint says explicitly that the work failed.
    pub fn from_http_answer(reply: &Reply<'_>, status: u16) -> Option<Self> {
        if let Some(said) = Self::read(reply, reply.raw()) {
            let failed = Code::read(&said.code) == Some(Code::AdaptationFailed);
            let refused = said.refused || is_refusal_status(status) && !failed;
            return Some(Self { refused, ..said });
        }
        // A 5xx without an error of this protocol means that the worker was not reached, and is
        // retried.
        let refused = (400..500).contains(&status) && *reply.status() == ReplyStatus::Other;
        refused.then(|| Self {
            code: String::new(),
            detail: format!("the agent's endpoint answered HTTP {status}"),
            refused: true,
            content: Digest::of(&[reply.raw().as_bytes()]),
        })
    }
}

/// A worker that could not read the work, or did not accept it, has not failed; everything else is
/// a failure (B16). Its own text is kept (B7).
pub fn report_failure(job: &Job, by: AgentId, said: &WorkerError, now: Timestamp) -> Command {
    let refused = said.refused;
    // The next worker gets it at once, and this one's text is not passed on.
    if refused && job.policy.next_when_declined {
        return Command::Decline { job: JobRef::Id(job.id), by, epoch: None, reason: None };
    }
    let text = [said.detail.as_str(), &said.code].into_iter().find(|text| !text.is_empty());
    let text = text.unwrap_or("the agent could not complete the job").to_owned();
    let cause = if refused { Cause::Policy } else { Cause::Execution };
    Command::ReportResult(Box::new(ReportResult {
        ok: false,
        cause: Some(cause),
        text: Some(text),
        ..report(job, by, said.content, now)
    }))
}

fn report(job: &Job, by: AgentId, content: Digest, now: Timestamp) -> ReportResult {
    ReportResult {
        job: JobRef::Id(job.id),
        by,
        epoch: None,
        ok: false,
        no_response: false,
        output: None,
        // The agreed price is paid.
        cost: Credits::MAX,
        took: rialto_core::job::work::work_duration(job, now),
        cause: None,
        text: None,
        meta: None,
        content,
    }
}

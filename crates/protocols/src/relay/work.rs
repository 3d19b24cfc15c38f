//! What an agent of this protocol says about work it was given.

use rialto_core::alias::Digest;
use rialto_core::answer::Answer;
use rialto_core::command::{Command, JobRef, ReportWork};
use rialto_core::id::AgentId;
use rialto_core::job::{Cause, Job, Requester};
use rialto_core::money::Credits;
use rialto_core::refusal::Refusal;
use rialto_core::time::Timestamp;
use rialto_engine::Failure as EngineFailure;
use uuid::Uuid;

use super::codes::Code;
use super::delivery::Outcome;
use super::envelope::Envelope;
use super::proof::AsEither;
use super::reply::{self, Reply, Said};
use super::routes::{Answered, refuse};
use super::{Failure, hire, refusals};
use crate::face::Floor;
use crate::face::arrived::is_refusal;
use crate::kit::object::Object;

/// The job whose conversation an envelope belongs to, if it can be one.
pub fn conversation(envelope: &Envelope<'_>) -> Option<Uuid> {
    let id = envelope.conversation_id?;
    id.parse::<uuid::fmt::Hyphenated>().ok().map(uuid::fmt::Hyphenated::into_uuid)
}

/// Whether a job is an agent's work, or was until it was taken back.
pub fn is_of(job: &Job, agent: AgentId) -> bool {
    job.worker() == Some(agent) || job.declined.contains(&agent)
}

/// Whether a message is for whoever wants the job. What goes to a third party under its id is no result;
/// a guest has no address that anybody could be found by.
pub fn is_for(job: &Job, to: Option<AgentId>) -> bool {
    match job.requester {
        Requester::Agent(agent) => to.is_none_or(|to| to == agent),
        Requester::Guest(_) => to.is_none(),
    }
}

/// Takes an envelope as a worker's last word on its job: the next message of that conversation to whoever
/// wants it is the result (X10).
pub async fn take(
    floor: &Floor,
    by: AsEither,
    worker: AgentId,
    job: &Job,
    envelope: &Envelope<'_>,
) -> Answered {
    if job.worker() != Some(worker) {
        return Err(refuse(floor, over(&job.state)).rejected());
    }
    let now = floor.engine.now();
    let reply = Reply::read(envelope.original_text.as_bytes());
    let order = match reply.and_then(|reply| Failed::read(&reply, envelope.raw())) {
        Some(said) => failed(job, worker, &said, now),
        None => succeeded(job, worker, envelope, now),
    };
    match floor.engine.run_once(order, by.once).await {
        Ok(ran) => {
            let repeated = ran.replayed || matches!(ran.answer, Answer::Job { repeated: true, .. });
            Ok(hire::told(
                floor,
                job.uuid,
                Outcome::Delivered { reply: reply::OK },
                repeated,
                false,
            ))
        }
        Err(EngineFailure::Refused(Refusal::WrongState { is })) => {
            Err(refuse(floor, over(&is)).rejected())
        }
        Err(failure) => Err(refuse(floor, refusals::failed(failure)).rejected()),
    }
}

/// The job has its last word, or is not the sender's any more.
fn over(is: &rialto_core::job::State) -> Failure {
    let refusal = Refusal::WrongState { is: *is };
    let hint = "the job of this conversation_id has ended or was taken back; to write about \
                something else, use another conversation_id";
    Failure {
        field: Some("/envelope/conversation_id".into()),
        hint: Some(hint.into()),
        ..refusals::failed(refusal.into())
    }
}

fn succeeded(job: &Job, by: AgentId, envelope: &Envelope<'_>, now: Timestamp) -> Command {
    let output = Object::new().text("text", envelope.original_text).finish();
    Command::Report(Box::new(ReportWork {
        ok: true,
        output: Some(output),
        ..report(job, by, Digest::of(&[envelope.raw().as_bytes()]), now)
    }))
}

/// What a worker says that could not do it.
#[derive(Clone, Debug)]
pub struct Failed {
    code: String,
    detail: String,
    /// It did not take the work on.
    refused: bool,
    /// Of all it said.
    content: Digest,
}

impl Failed {
    /// What is in a reply, if it says so; `whole` is all that makes a repeat of it the same.
    pub fn read(reply: &Reply<'_>, whole: &str) -> Option<Self> {
        let Said::Error { code, detail } = reply.said() else { return None };
        let refused =
            matches!(Code::read(code), Some(Code::InvalidEnvelope | Code::UnsupportedVersion));
        let content = Digest::of(&[whole.as_bytes()]);
        Some(Self { code: code.clone(), detail: detail.clone(), refused, content })
    }

    /// What an endpoint's answer says about work that was posted to it. A status that refuses the
    /// request is a refusal, unless the endpoint says in so many words that the work failed.
    pub fn answered(reply: &Reply<'_>, status: u16) -> Option<Self> {
        if let Some(said) = Self::read(reply, reply.raw()) {
            let failed = Code::read(&said.code) == Some(Code::AdaptationFailed);
            let refused = said.refused || is_refusal(status) && !failed;
            return Some(Self { refused, ..said });
        }
        // What answers 5xx without a word of this protocol was not reached, and is tried again.
        let refused = (400..500).contains(&status) && *reply.said() == Said::Other;
        refused.then(|| Self {
            code: String::new(),
            detail: format!("the agent's endpoint answered HTTP {status}"),
            refused: true,
            content: Digest::of(&[reply.raw().as_bytes()]),
        })
    }
}

/// A worker that could not read what it was given, or did not take it, has not failed; everything else
/// is a failure (B16). Its own words are kept (B7).
pub fn failed(job: &Job, by: AgentId, said: &Failed, now: Timestamp) -> Command {
    let refused = said.refused;
    // Whoever is next in line gets it at once, and nobody is told what this one said.
    if refused && job.policy.next_when_declined {
        return Command::Decline { job: JobRef::Id(job.id), by, epoch: None, reason: None };
    }
    let text = [said.detail.as_str(), &said.code].into_iter().find(|text| !text.is_empty());
    let text = text.unwrap_or("the agent could not complete the job").to_owned();
    let cause = if refused { Cause::Policy } else { Cause::Execution };
    Command::Report(Box::new(ReportWork {
        ok: false,
        cause: Some(cause),
        text: Some(text),
        ..report(job, by, said.content, now)
    }))
}

fn report(job: &Job, by: AgentId, content: Digest, now: Timestamp) -> ReportWork {
    ReportWork {
        job: JobRef::Id(job.id),
        by,
        epoch: None,
        ok: false,
        silent: false,
        output: None,
        // What is paid is the price that was agreed on.
        cost: Credits::MAX,
        took: rialto_core::job::work::worked_for(job, now),
        cause: None,
        text: None,
        words: None,
        content,
    }
}

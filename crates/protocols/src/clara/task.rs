//! Jobs as tasks, results and queries of this market.

use rialto_core::id::AgentId;
use rialto_core::job::{Job, Requester, Selection};
use rialto_core::time::Timestamp;
use serde::{Deserialize, Serialize};

use super::evidence::Around;
use super::people::{self, People};
use super::record::{Done, Query, Task};
use super::strategy::Strategy;
pub use super::topics::SKILL;
use super::{Dialect, ID};

/// Task data that only this protocol uses; stored with the job.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Meta {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requester_id: Option<String>,
    pub strategy: String,
    pub topic: String,
    /// Whether it arrived through the process with the deployed dialect.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub deployed: bool,
    /// The item that its requester signed, if an agent of another protocol may do the task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub item: Option<Around>,
}

impl Meta {
    /// Reads the data of a job of this market; `None` for other jobs.
    pub fn of(job: &Job) -> Option<Self> {
        (job.origin == ID).then(|| serde_json::from_str(&job.meta).ok()).flatten()
    }

    pub fn dialect(&self) -> Dialect {
        if self.deployed { Dialect::Deployed } else { Dialect::Spec }
    }
}

/// The public id of the task. Copies of one task share it (D22).
pub fn id(job: &Job) -> String {
    match job.origin == ID {
        true => plain(&job.foreign).to_owned(),
        false => job.uuid.to_string(),
    }
}

/// A task's id without its copy number.
pub fn plain(name: &str) -> &str {
    name.split('#').next().unwrap_or(name)
}

/// The dialect of messages about a job.
pub fn dialect(job: &Job) -> Dialect {
    Meta::of(job).map_or(Dialect::Spec, |meta| meta.dialect())
}

/// The task as it is shown. Payloads of jobs from other protocols are only for their agent (R20).
pub fn task<'j>(people: &impl People, job: &'j Job, open: bool) -> Task<'j> {
    let meta = Meta::of(job).unwrap_or_default();
    let id = id(job);
    let worker = job.in_hand_of().or(job.worker());
    let public = job.origin == ID || open;
    let topic = match meta.topic.is_empty() {
        true => topic(&job.skill).to_owned(),
        false => meta.topic,
    };
    let requester_id = meta.requester_id.or_else(|| match &job.requester {
        Requester::Agent(agent) if job.origin != ID => people::agent_id(people, *agent),
        _ => None,
    });
    Task {
        agent_id: worker.and_then(|worker| people::agent_id(people, worker)).map(Into::into),
        requester: requester(people, job).into(),
        reward: job.assignment.map_or(job.budget, |turn| turn.price),
        strategy: Strategy::read(&meta.strategy).unwrap_or_default(),
        payload: public.then_some(job.input.as_str()),
        timestamp: job.opened_at,
        block: job.posts_before + 1,
        topic: topic.into(),
        context_id: meta.context_id.unwrap_or_else(|| id.clone()).into(),
        requester_id: requester_id.map(Into::into),
        id: id.into(),
    }
}

/// The topic of a skill.
pub fn topic(skill: &str) -> &str {
    skill.strip_prefix(SKILL).unwrap_or("none")
}

/// The hub's skill name for a topic.
pub fn skill(topic: &str) -> String {
    format!("{SKILL}{topic}")
}

/// The requester's address.
pub fn requester(people: &impl People, job: &Job) -> String {
    match &job.requester {
        Requester::Agent(agent) => people::address(people, *agent),
        Requester::Guest(name) => name.clone(),
    }
}

/// Result data that only this protocol uses; stored with the job's result.
#[derive(Serialize, Deserialize)]
struct Words {
    recipient: String,
}

/// The recipient that a result's sender named, in stored form.
pub fn recipient_words(recipient: &str) -> String {
    let words = Words { recipient: recipient.to_owned() };
    serde_json::to_string(&words).unwrap_or_default()
}

/// The recipient shown for a result: the one its sender named, otherwise its requester.
fn recipient(people: &impl People, job: &Job) -> String {
    let words = job.report.as_ref().and_then(|report| report.words.as_deref());
    let words = words.filter(|_| job.origin == ID);
    let said = words.and_then(|words| serde_json::from_str::<Words>(words).ok());
    said.map_or_else(|| requester(people, job), |words| words.recipient)
}

/// The result of a task.
pub fn done<'j>(people: &impl People, job: &'j Job) -> Option<Done<'j>> {
    let worker = job.worker()?;
    let output = job.report.as_ref()?.output.as_deref();
    Some(Done {
        id: id(job).into(),
        agent_id: people::agent_id(people, worker)?.into(),
        sender: people::address(people, worker).into(),
        recipient: recipient(people, job).into(),
        result: output.filter(|_| job.origin == ID),
        timestamp: job.ended_at.unwrap_or(job.opened_at),
        block: job.posts_at_end + 1,
    })
}

/// The query to an agent in an auction.
pub fn query<'j>(
    people: &impl People,
    job: &'j Job,
    agent: AgentId,
    closes_at: Timestamp,
) -> Option<Query<'j>> {
    let meta = Meta::of(job);
    Some(Query {
        id: id(job).into(),
        agent_id: people::agent_id(people, agent)?.into(),
        requester: requester(people, job).into(),
        max_reward: job.budget,
        payload: (job.origin == ID).then_some(job.input.as_str()),
        topic: meta.map_or_else(|| topic(&job.skill).to_owned(), |meta| meta.topic).into(),
        timestamp: job.opened_at,
        block: job.posts_before + 1,
        closes_at,
    })
}

/// Whether the task went to many agents.
pub fn is_for_many(job: &Job) -> bool {
    matches!(job.selection, Selection::Broadcast | Selection::Everybody)
}

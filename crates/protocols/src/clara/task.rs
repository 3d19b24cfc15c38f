//! Jobs as tasks, results and queries of this market.

use rialto_core::id::AgentId;
use rialto_core::job::{Job, Requester, Selection};
use rialto_core::time::Timestamp;
use serde::{Deserialize, Serialize};

use super::evidence::ItemWithoutPayload;
use super::people::{self, AgentLookup};
use super::record::{TaskQuery, TaskRecord, TaskResult};
use super::strategy::Strategy;
pub use super::topics::SKILL_PREFIX;
use super::{Dialect, ID};

/// Task data that only this protocol uses; stored with the job.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskMeta {
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
    pub item: Option<ItemWithoutPayload>,
}

impl TaskMeta {
    /// Reads the data of a job of this market; `None` for other jobs.
    pub fn of(job: &Job) -> Option<Self> {
        (job.origin == ID).then(|| serde_json::from_str(&job.meta).ok()).flatten()
    }

    pub fn job_dialect(&self) -> Dialect {
        if self.deployed { Dialect::Deployed } else { Dialect::Spec }
    }
}

/// The public id of the task. Copies of one task share it (D22).
pub fn task_id(job: &Job) -> String {
    match job.origin == ID {
        true => base_task_id(&job.foreign_id).to_owned(),
        false => job.uuid.to_string(),
    }
}

/// A task's id without its copy number.
pub fn base_task_id(name: &str) -> &str {
    name.split('#').next().unwrap_or(name)
}

/// The dialect of messages about a job.
pub fn dialect(job: &Job) -> Dialect {
    TaskMeta::of(job).map_or(Dialect::Spec, |meta| meta.job_dialect())
}

/// The task as it is shown. Payloads of jobs from other protocols are only for their agent (R20).
pub fn task_record<'j>(people: &impl AgentLookup, job: &'j Job, open: bool) -> TaskRecord<'j> {
    let meta = TaskMeta::of(job).unwrap_or_default();
    let id = task_id(job);
    let worker = job.active_worker().or(job.worker());
    let public = job.origin == ID || open;
    let topic = match meta.topic.is_empty() {
        true => topic_of_skill(&job.skill).to_owned(),
        false => meta.topic,
    };
    let requester_id = meta.requester_id.or_else(|| match &job.requester {
        Requester::Agent(agent) if job.origin != ID => people::agent_id(people, *agent),
        _ => None,
    });
    TaskRecord {
        agent_id: worker.and_then(|worker| people::agent_id(people, worker)).map(Into::into),
        requester: requester_address(people, job).into(),
        reward: job.assignment.map_or(job.budget, |turn| turn.price),
        strategy: Strategy::read(&meta.strategy).unwrap_or_default(),
        payload: public.then_some(job.input.as_str()),
        timestamp: job.opened_at,
        block: job.market_orders_before + 1,
        topic: topic.into(),
        context_id: meta.context_id.unwrap_or_else(|| id.clone()).into(),
        requester_id: requester_id.map(Into::into),
        id: id.into(),
    }
}

/// The topic of a skill.
pub fn topic_of_skill(skill: &str) -> &str {
    skill.strip_prefix(SKILL_PREFIX).unwrap_or("none")
}

/// The hub's skill name for a topic.
pub fn skill_of_topic(topic: &str) -> String {
    format!("{SKILL_PREFIX}{topic}")
}

/// The requester's address.
pub fn requester_address(people: &impl AgentLookup, job: &Job) -> String {
    match &job.requester {
        Requester::Agent(agent) => people::agent_address(people, *agent),
        Requester::Guest(name) => name.clone(),
    }
}

/// Result data that only this protocol uses; stored with the job's result.
#[derive(Serialize, Deserialize)]
struct ResultMeta {
    recipient: String,
}

/// The recipient that a result's sender named, in stored form.
pub fn write_result_meta(recipient: &str) -> String {
    let words = ResultMeta { recipient: recipient.to_owned() };
    serde_json::to_string(&words).unwrap_or_default()
}

/// The recipient shown for a result: the one its sender named, otherwise its requester.
fn recipient(people: &impl AgentLookup, job: &Job) -> String {
    let words = job.result.as_ref().and_then(|report| report.meta.as_deref());
    let words = words.filter(|_| job.origin == ID);
    let said = words.and_then(|words| serde_json::from_str::<ResultMeta>(words).ok());
    said.map_or_else(|| requester_address(people, job), |words| words.recipient)
}

/// The result of a task.
pub fn task_result<'j>(people: &impl AgentLookup, job: &'j Job) -> Option<TaskResult<'j>> {
    let worker = job.worker()?;
    let output = job.result.as_ref()?.output.as_deref();
    Some(TaskResult {
        id: task_id(job).into(),
        agent_id: people::agent_id(people, worker)?.into(),
        sender: people::agent_address(people, worker).into(),
        recipient: recipient(people, job).into(),
        result: output.filter(|_| job.origin == ID),
        timestamp: job.ended_at.unwrap_or(job.opened_at),
        block: job.market_orders_at_end + 1,
    })
}

/// The query to an agent in an auction.
pub fn task_query<'j>(
    people: &impl AgentLookup,
    job: &'j Job,
    agent: AgentId,
    closes_at: Timestamp,
) -> Option<TaskQuery<'j>> {
    let meta = TaskMeta::of(job);
    Some(TaskQuery {
        id: task_id(job).into(),
        agent_id: people::agent_id(people, agent)?.into(),
        requester: requester_address(people, job).into(),
        max_reward: job.budget,
        payload: (job.origin == ID).then_some(job.input.as_str()),
        topic: meta.map_or_else(|| topic_of_skill(&job.skill).to_owned(), |meta| meta.topic).into(),
        timestamp: job.opened_at,
        block: job.market_orders_before + 1,
        closes_at,
    })
}

/// Whether the task went to many agents.
pub fn is_broadcast(job: &Job) -> bool {
    matches!(job.selection, Selection::Broadcast | Selection::BroadcastToProtocol)
}

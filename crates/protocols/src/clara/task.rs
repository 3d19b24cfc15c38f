//! Jobs as tasks, results and queries of this market, and the signed item that registered a task.
//! The item is stored with the job if an agent of another protocol may do the task (B3).

use std::borrow::Cow;

use rialto_core::id::AgentId;
use rialto_core::job::{Job, Requester, Selection};
use rialto_core::time::Timestamp;
use rialto_core::world::World;
use serde::{Deserialize, Serialize};

use super::auth::{self, AgentLookup};
use super::wire::action::SKILL_PREFIX;
use super::wire::task::{TaskQuery, TaskRecord, TaskResult};
use super::{Dialect, ID, Strategy};
use crate::kit::ans104::Item;
use crate::kit::base64url;

/// The most agents considered for a task that names none.
const LOOKED_AT_MAX: usize = 4_096;

/// Task data that only this protocol uses; stored with the job.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskMeta<'a> {
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub context_id: Option<Cow<'a, str>>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub requester_id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub strategy: Cow<'a, str>,
    #[serde(borrow)]
    pub topic: Cow<'a, str>,
    /// Whether it arrived through the process with the deployed dialect.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub deployed: bool,
    /// The item that its requester signed, if an agent of another protocol may do the task.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub item: Option<ItemWithoutPayload<'a>>,
}

impl<'a> TaskMeta<'a> {
    /// Reads the data of a job of this market; `None` for other jobs.
    pub fn of(job: &'a Job) -> Option<Self> {
        (job.request.origin == ID).then(|| serde_json::from_str(&job.request.meta).ok()).flatten()
    }

    pub fn job_dialect(&self) -> Dialect {
        if self.deployed { Dialect::Deployed } else { Dialect::Spec }
    }
}

/// The public id of the task. Copies of one task share it (D22).
pub fn task_id(job: &Job) -> Cow<'_, str> {
    if job.request.origin != ID {
        return job.uuid.to_string().into();
    }
    base_task_id(&job.request.foreign_id).into()
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
pub fn task_record<'j>(lookup: &impl AgentLookup, job: &'j Job, open: bool) -> TaskRecord<'j> {
    let meta = TaskMeta::of(job).unwrap_or_default();
    let id = task_id(job);
    let worker = job.active_worker().or(job.worker());
    let public = job.request.origin == ID || open;
    let topic =
        if meta.topic.is_empty() { topic_of_skill(&job.request.skill).into() } else { meta.topic };
    let requester_id = meta.requester_id.or_else(|| match &job.request.requester {
        Requester::Agent(agent) if job.request.origin != ID => {
            auth::agent_id(lookup, *agent).map(Cow::Owned)
        }
        _ => None,
    });
    TaskRecord {
        agent_id: worker.and_then(|worker| auth::agent_id(lookup, worker)).map(Into::into),
        requester: requester_address(lookup, job).into(),
        reward: job.assignment.map_or(job.payment.budget, |turn| turn.price),
        strategy: Strategy::read(&meta.strategy).unwrap_or_default(),
        payload: public.then_some(job.request.input.as_str()),
        timestamp: job.request.opened_at,
        block: job.links.market_orders_before + 1,
        topic,
        context_id: meta.context_id.unwrap_or_else(|| id.clone()),
        requester_id,
        id,
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
pub fn requester_address(lookup: &impl AgentLookup, job: &Job) -> String {
    match &job.request.requester {
        Requester::Agent(agent) => auth::agent_address(lookup, *agent),
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
fn recipient(lookup: &impl AgentLookup, job: &Job) -> String {
    let words = job.result.as_ref().and_then(|report| report.meta.as_deref());
    let words = words.filter(|_| job.request.origin == ID);
    let meta = words.and_then(|words| serde_json::from_str::<ResultMeta>(words).ok());
    meta.map_or_else(|| requester_address(lookup, job), |words| words.recipient)
}

/// The result of a task.
pub fn task_result<'j>(lookup: &impl AgentLookup, job: &'j Job) -> Option<TaskResult<'j>> {
    let worker = job.worker()?;
    let output = job.result.as_ref()?.output.as_deref();
    Some(TaskResult {
        id: task_id(job),
        agent_id: auth::agent_id(lookup, worker)?.into(),
        sender: auth::agent_address(lookup, worker).into(),
        recipient: recipient(lookup, job).into(),
        result: output.filter(|_| job.request.origin == ID),
        timestamp: job.ended_at.unwrap_or(job.request.opened_at),
        block: job.links.market_orders_at_end + 1,
    })
}

/// The query to an agent in an auction.
pub fn task_query<'j>(
    lookup: &impl AgentLookup,
    job: &'j Job,
    agent: AgentId,
    closes_at: Timestamp,
) -> Option<TaskQuery<'j>> {
    let meta = TaskMeta::of(job);
    Some(TaskQuery {
        id: task_id(job),
        agent_id: auth::agent_id(lookup, agent)?.into(),
        requester: requester_address(lookup, job).into(),
        max_reward: job.payment.budget,
        payload: (job.request.origin == ID).then_some(job.request.input.as_str()),
        topic: meta.map_or_else(|| topic_of_skill(&job.request.skill).into(), |meta| meta.topic),
        timestamp: job.request.opened_at,
        block: job.links.market_orders_before + 1,
        closes_at,
    })
}

/// Whether the task went to many agents.
pub fn is_broadcast(job: &Job) -> bool {
    matches!(job.selection, Selection::Broadcast | Selection::BroadcastToProtocol)
}

/// The signed item that registered a task, as evidence: the bytes before and after its payload, in
/// base64url. The job already stores the payload.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ItemWithoutPayload<'a>(#[serde(borrow)] Cow<'a, str>, #[serde(borrow)] Cow<'a, str>);

impl ItemWithoutPayload<'_> {
    /// Splits an item around its payload, which the job stores.
    pub fn of(item: &[u8], payload: &str) -> Option<Self> {
        let start = (payload.as_ptr() as usize).checked_sub(item.as_ptr() as usize)?;
        let (head, tail) = (item.get(..start)?, item.get(start..)?);
        let tail = tail.strip_prefix(payload.as_bytes())?;
        Some(Self(base64url::encode(head).into(), base64url::encode(tail).into()))
    }

    fn whole(&self, payload: &str) -> Option<Vec<u8>> {
        let (head, tail) = (base64url::decode(&self.0).ok()?, base64url::decode(&self.1).ok()?);
        Some([&head, payload.as_bytes(), &tail].concat())
    }
}

/// The item that registered a task, byte for byte; `None` for tasks without a stored item.
pub fn signed_item(job: &Job) -> Option<Vec<u8>> {
    let bytes = TaskMeta::of(job)?.item?.whole(&job.request.input)?;
    let is_it = |item: Item<'_>| item.id().to_string() == base_task_id(&job.request.foreign_id);
    Item::read(&bytes).is_ok_and(is_it).then_some(bytes)
}

/// Whether an agent of another protocol may get the task: the named one, or any that offers the
/// skill.
pub fn may_leave_protocol(world: &World, of: Option<AgentId>, names: &[&str]) -> bool {
    let foreign = |id: AgentId| world.agent(id).is_some_and(|agent| agent.home != ID);
    match of {
        Some(agent) => foreign(agent),
        None => {
            let all = names.iter().flat_map(|name| world.skills.online_by_rank(name, None));
            all.take(LOOKED_AT_MAX).any(|found| foreign(found.agent))
        }
    }
}

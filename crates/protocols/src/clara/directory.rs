//! The market's directory: the registered agents with their open and finished tasks.

use std::sync::Arc;

use rialto_core::agent::{Agent, AgentState, Skill};
use rialto_core::id::{AgentId, JobId};
use rialto_core::job::{Job, State};
use rialto_core::money::Credits;
use rialto_core::world::World;
use rialto_engine::Failure as EngineFailure;
use rialto_engine::store::{Row, RowKey};

use super::ClaraContext;
use super::auth::{self, WALLET_PREFIX};
use super::wire::record::{AgentRecord, AgentTasks, TaskTotals};
use super::wire::register::round_to_fee;
use super::{BridgedTopics, ID, OutgoingMessage, task};
use crate::kit::budget::ByteBudget;
use crate::kit::ijson;

/// The most bytes of one list, unless its first item alone is longer. An order with the answer's
/// `Next-Cursor` as its `Cursor` gets the next page.
pub const PAGE_BYTES: usize = 2 << 20;
/// The most bytes of one agent's tasks, for each kind. The agent's totals show how many there are.
const TASKS_BYTES: usize = 128 << 10;
/// The most finished tasks shown of one agent, newest first, and read for one list.
const DONE_MAX: usize = 50;
const DONE_IN_ALL_MAX: usize = 10_000;
/// The most waiting tasks in one list.
const QUEUE_MAX: usize = 10_000;
/// How many agents' tasks are read together.
const TOGETHER: usize = 64;
/// The metadata of bridged agents (B3).
const BRIDGED: &str = r#"{"bridged":true}"#;
/// The topic of agents that offer nothing in this market.
const NO_TOPIC: &str = "none";

/// An agent and everything that the directory shows of it.
struct AgentListing {
    agent: Arc<Agent>,
    agent_state: Arc<AgentState>,
    work: Vec<Arc<Job>>,
    done: Vec<Arc<Job>>,
    asked: Vec<Arc<Job>>,
}

/// A list of the agents after the cursor, as a message to an address.
pub async fn list_agents(
    context: &ClaraContext,
    to: &str,
    after: u64,
) -> Result<OutgoingMessage, EngineFailure> {
    let page = everybody(context, after).await?;
    Ok(OutgoingMessage::agents(to, page.texts).with_next_cursor(page.next))
}

/// A list of the waiting tasks after the cursor.
pub fn list_queued_tasks(context: &ClaraContext, to: &str, after: u64) -> OutgoingMessage {
    let page = waiting(context, after);
    OutgoingMessage::queue(to, page.texts).with_next_cursor(page.next)
}

/// A list of the tasks that still wait after a dispatch.
pub fn list_undispatched_tasks(context: &ClaraContext, to: &str) -> OutgoingMessage {
    let page = waiting(context, 0);
    OutgoingMessage::dispatched(to, page.texts).with_next_cursor(page.next)
}

/// The dashboard: the first waiting tasks, the agents after the cursor, and the totals.
pub async fn dashboard(
    context: &ClaraContext,
    to: &str,
    after: u64,
) -> Result<OutgoingMessage, EngineFailure> {
    let page = everybody(context, after).await?;
    let totals = context.engine.with_world(|world| {
        let shown = world.agents().filter(|agent| is_shown(agent));
        let tallies = shown.filter_map(|agent| Some(world.agent_state(agent.id)?.market_totals));
        tallies.fold(TaskTotals::default(), |sum, tally| TaskTotals {
            requested: sum.requested + tally.requested,
            assigned: sum.assigned + tally.assigned,
            done: sum.done + tally.completed,
            rewards: sum.rewards.checked_add(tally.earned).unwrap_or(Credits::MAX),
        })
    });
    let queue = waiting(context, 0).texts;
    Ok(OutgoingMessage::dashboard(to, queue, page.texts, &totals).with_next_cursor(page.next))
}

/// One page of a list as JSON texts, and the cursor of the next page if there is one.
struct ListPage {
    texts: Vec<String>,
    next: Option<u64>,
}

fn waiting(context: &ClaraContext, after: u64) -> ListPage {
    let jobs: Vec<Arc<Job>> = context.engine.with_world(|world| {
        let ours = world.queued_jobs().filter(|job| job.request.origin == ID && job.id.0 > after);
        ours.take(QUEUE_MAX + 1).cloned().collect()
    });
    let (mut texts, mut budget, mut last) = (Vec::new(), ByteBudget::new(PAGE_BYTES), after);
    for job in &jobs {
        let text = context.engine.with_world(|world| task::task_record(world, job, false)).write();
        if texts.len() == QUEUE_MAX || !budget.take(text.len()) {
            return ListPage { texts, next: Some(last) };
        }
        texts.push(text);
        last = job.id.0;
    }
    ListPage { texts, next: None }
}

/// The listed agents after the cursor, in the order of registration.
async fn everybody(context: &ClaraContext, after: u64) -> Result<ListPage, EngineFailure> {
    let ids: Vec<AgentId> = context.engine.with_world(|world| {
        let ids = (after.saturating_add(1)..world.next.agent.0).map(AgentId);
        ids.filter(|id| world.agent(*id).is_some_and(|agent| is_shown(agent))).collect()
    });
    let (mut texts, mut budget, mut last) = (Vec::new(), ByteBudget::new(PAGE_BYTES), after);
    let (mut at, mut left) = (0, DONE_IN_ALL_MAX);
    while let Some(next) = ids.get(at..).filter(|rest| !rest.is_empty()) {
        if left == 0 {
            return Ok(ListPage { texts, next: Some(last) });
        }
        let some = some(context, &next[..next.len().min(TOGETHER)], &mut left).await?;
        if some.is_empty() {
            break;
        }
        for shown in some {
            at += 1;
            let bridged = &context.state.settings.bridged;
            let record = context.engine.with_world(|world| entry(world, bridged, &shown));
            let Some(text) = record.map(|record| record.write()) else { continue };
            if !budget.take(text.len()) {
                return Ok(ListPage { texts, next: Some(last) });
            }
            texts.push(text);
            last = shown.agent.id.0;
        }
    }
    Ok(ListPage { texts, next: None })
}

/// Some agents with their tasks: fewer agents while the tasks are large, but at least one.
async fn some(
    context: &ClaraContext,
    ids: &[AgentId],
    left: &mut usize,
) -> Result<Vec<AgentListing>, EngineFailure> {
    let mut some: Vec<AgentListing> = context.engine.with_world(|world| {
        let shown = ids.iter().filter_map(|id| {
            let (agent, agent_state) = (world.agent(*id)?.clone(), world.agent_state(*id)?.clone());
            let mut budget = ByteBudget::new(TASKS_BYTES);
            let held = |job: &&Arc<Job>| job.active_worker() == Some(*id) && is_public(&agent, job);
            let work = world.assigned_jobs(*id).filter(held);
            let work =
                work.take_while(|job| budget.take(job.request.input.len())).cloned().collect();
            Some(AgentListing { agent, agent_state, work, done: Vec::new(), asked: Vec::new() })
        });
        shown.collect()
    });
    let starts: Vec<_> = some
        .iter()
        .map(|one| (one.agent_state.last_worked, one.agent_state.last_requested))
        .collect();
    if starts.iter().all(|(worked, asked)| worked.is_none() && asked.is_none()) {
        return Ok(some);
    }
    let mut rest = *left;
    let (histories, rest) = context
        .engine
        .read_store(move |reader| {
            let (mut histories, mut bytes) = (Vec::with_capacity(starts.len()), 0);
            for (worked, asked) in starts {
                if bytes >= PAGE_BYTES || rest == 0 && !histories.is_empty() {
                    break;
                }
                let done = history(reader, worked, &mut rest, |job| job.links.previous_worked)?;
                let asked = history(reader, asked, &mut rest, |job| job.links.previous_requested)?;
                bytes += done.iter().chain(&asked).map(|job| job.content_bytes()).sum::<usize>();
                histories.push((done, asked));
            }
            Ok((histories, rest))
        })
        .await?;
    *left = rest;
    some.truncate(histories.len());
    for (shown, (done, asked)) in some.iter_mut().zip(histories) {
        let public = |jobs: Vec<Arc<Job>>| -> Vec<Arc<Job>> {
            jobs.into_iter().filter(|job| is_public(&shown.agent, job)).collect()
        };
        (shown.done, shown.asked) = (public(done), public(asked));
    }
    Ok(some)
}

/// Finished tasks, newest first, by each job's link to the one before it. Stops at the size limit.
fn history(
    reader: &mut dyn rialto_engine::store::Reader,
    from: Option<JobId>,
    left: &mut usize,
    before: fn(&Job) -> Option<JobId>,
) -> Result<Vec<Arc<Job>>, rialto_engine::store::StoreError> {
    let (mut found, mut at, mut budget) = (Vec::new(), from, ByteBudget::new(TASKS_BYTES));
    while let Some(id) = at.filter(|_| found.len() < DONE_MAX && *left > 0) {
        *left -= 1;
        let Some(Row::Job(job)) = reader.load(RowKey::Job(id))? else { break };
        at = before(&job);
        if job.state != State::Completed {
            continue;
        }
        if !budget.take(job.content_bytes()) {
            break;
        }
        found.push(job);
    }
    Ok(found)
}

/// Jobs of a bridged agent for requesters of its own protocol are not shown here (R20).
fn is_public(agent: &Agent, job: &Job) -> bool {
    agent.home == ID || job.request.origin == ID
}

/// The tasks that an agent declined. Until an auction closes, its declines are secret (R77).
fn declined<'d>(world: &World, agent_state: &'d AgentState) -> impl Iterator<Item = &'d String> {
    agent_state.declined_jobs.iter().filter(|name| {
        let job = world.job_by_name(ID, name);
        job.is_none_or(|job| job.state != State::Negotiating)
    })
}

/// Wallets that only request, and bridged agents that offer nothing, are not listed. Agents that
/// registered here are, including those that only post tasks.
fn is_shown(agent: &Agent) -> bool {
    let own = agent.home == ID && !agent.native_id.starts_with(WALLET_PREFIX);
    agent.active && (own || agent.home != ID && !agent.skills.is_empty())
}

fn entry<'s>(
    world: &World,
    bridged: &BridgedTopics,
    shown: &'s AgentListing,
) -> Option<AgentRecord<'s>> {
    let AgentListing { agent, agent_state, work, done, asked } = shown;
    let own = agent.home == ID;
    let (fee, topic) = match offered(agent, bridged) {
        Some((skill, topic)) if own => (skill.price, topic),
        Some((skill, topic)) => (round_to_fee(skill.price), topic),
        // A fee is at least 1, even for an agent that only posts tasks.
        None => (round_to_fee(Credits::ZERO), NO_TOPIC.to_owned()),
    };
    let tally = agent_state.market_totals;
    let readable = own && ijson::read(agent.card.as_bytes()).is_ok();
    let metadata = if readable { agent.card.as_str() } else { BRIDGED };
    let elsewhere = |text: String| (!own).then(|| text.into());
    Some(AgentRecord {
        id: auth::agent_id(world, agent.id)?.into(),
        profile_address: auth::agent_address(world, agent.id).into(),
        topic: topic.into(),
        fee,
        metadata,
        protocol: elsewhere(agent.home.to_string()),
        native_id: elsewhere(agent.native_id.clone()),
        tasks: AgentTasks {
            inbox: work.iter().map(|job| task::task_record(world, job, false)).collect(),
            outbox: done.iter().filter_map(|job| task::task_result(world, job)).collect(),
            declined: declined(world, agent_state)
                .map(|id| task::base_task_id(id).into())
                .collect(),
            results: asked.iter().filter_map(|job| task::task_result(world, job)).collect(),
        },
        totals: TaskTotals {
            requested: tally.requested,
            assigned: tally.assigned,
            done: tally.completed,
            rewards: tally.earned,
        },
    })
}

/// The topic and skill that an agent is listed for. A bridged agent may have many skills; the first
/// with a topic counts (docs/requirements.md, section 5).
fn offered(agent: &Agent, bridged: &BridgedTopics) -> Option<(Skill, String)> {
    let first = agent.skills.first()?;
    if agent.home == ID {
        return Some((first.clone(), task::topic_of_skill(&first.name).to_owned()));
    }
    let with_topic =
        |skill: &Skill| Some((skill.clone(), bridged.topic_of(&skill.name)?.to_owned()));
    let found = agent.skills.iter().find_map(with_topic);
    found.or_else(|| Some((first.clone(), NO_TOPIC.to_owned())))
}

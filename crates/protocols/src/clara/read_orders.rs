//! Read-only orders: their answer is computed before they are submitted.

use std::sync::Arc;

use rialto_core::command::Command;
use rialto_core::id::AgentId;
use rialto_core::job::{Job, Selection, State};
use rialto_core::money::Credits;
use rialto_core::notice::{Notice, NoticeKind};
use rialto_core::world::World;
use rialto_engine::Failure as EngineFailure;

use super::ClaraContext;
use super::record_writer::OrderReply;
use super::results::ReadQuery;
use super::translate::{OrderPlan, PlanError, find_task_job, own_agent};
use super::wire::order::{LoadNext, TaskTrace};
use super::{Dialect, IncomingMessage, Order, OrderError, OutgoingMessage, auth, directory, task};
use crate::adapter::fidelity::{self, Members, Viewer};
use crate::adapter::shown_jobs;
use crate::kit::object::ObjectWriter;

/// The most agents of one sender for which a trace is looked up, unless the order names one.
const READERS_MAX: usize = 64;
/// Notices read at a time to find the next result.
const PAGE: usize = 64;

/// The plan for a read-only order.
pub async fn plan_read_order(
    context: &ClaraContext,
    message: &IncomingMessage<'_>,
    order: Order<'_>,
    dialect: Dialect,
) -> Result<OrderPlan, PlanError> {
    let after = match order {
        // A dry-run only claims its sender, so it reads nothing private (R74).
        Order::LoadNext(LoadNext::Result { agent_id }) if message.signed => {
            return next_result(context, &message.from, agent_id, dialect).await;
        }
        Order::ListAgents | Order::TasksQueue | Order::Dashboard => cursor(message)?,
        _ => 0,
    };
    planned(context, (&message.from, message.signed), order, after).await
}

/// The message that answers a read-only order from the current state. `after` is the cursor of a
/// list.
pub async fn answer_read_order(
    context: &ClaraContext,
    from: &str,
    order: Order<'_>,
    after: u64,
) -> Result<Option<OutgoingMessage>, PlanError> {
    match planned(context, (from, true), order, after).await?.reply {
        OrderReply::Answer { messages, .. } => Ok(messages.into_iter().next()),
        _ => Ok(None),
    }
}

async fn planned(
    context: &ClaraContext,
    (from, signed): (&str, bool),
    order: Order<'_>,
    after: u64,
) -> Result<OrderPlan, PlanError> {
    let ask = ReadQuery::of(&order, after);
    let said = |messages, shown| OrderPlan::read_only(messages, shown, ask.clone());
    Ok(match order {
        Order::ListAgents => said(vec![directory::list_agents(context, from, after).await?], true),
        Order::TasksQueue => said(vec![directory::list_queued_tasks(context, from, after)], true),
        Order::Dashboard => said(vec![directory::dashboard(context, from, after).await?], true),
        // A dry-run only claims its sender, so it reads nothing private (R74).
        Order::LoadNext(_) | Order::Withdraw if !signed => {
            return Err(OrderError::SignToRead.into());
        }
        Order::Balance => said(vec![OutgoingMessage::balance(from, balance(context, from))], false),
        Order::Withdraw => {
            said(vec![OutgoingMessage::claim_failed(from, balance(context, from))], false)
        }
        Order::LoadNext(LoadNext::Task { agent_id }) => {
            said(next_task(context, from, agent_id).await?.into_iter().collect(), false)
        }
        Order::LoadNext(LoadNext::Query { agent_id }) => {
            said(next_query(context, from, agent_id).await?.into_iter().collect(), false)
        }
        Order::Trace(order) => said(vec![trace(context, from, &order).await?], false),
        _ => said(Vec::new(), false),
    })
}

/// The cursor of a list.
fn cursor(message: &IncomingMessage<'_>) -> Result<u64, OrderError> {
    message.tag("Cursor").map_or(Ok(0), |text| text.parse().map_err(|_| OrderError::BadCursor))
}

fn balance(context: &ClaraContext, address: &str) -> Credits {
    context
        .engine
        .with_world(|world| {
            let owner = world.owner_by_name(&auth::owner_name(address))?;
            world.owner(owner).map(|owner| owner.available)
        })
        .unwrap_or(Credits::ZERO)
}

/// The oldest task of an inbox. It stays there.
async fn next_task(
    context: &ClaraContext,
    from: &str,
    agent_id: &str,
) -> Result<Option<OutgoingMessage>, OrderError> {
    let agent = context.engine.with_world(|world| own_agent(world, from, agent_id))?;
    let oldest = context.engine.with_world(|world| {
        let held = |job: &&Arc<Job>| job.state.is_assigned();
        world.assigned_jobs(agent).find(held).cloned()
    });
    shown_jobs::note_fetch(context, agent, &oldest).await;
    let told = |job: Arc<Job>| {
        context.engine.with_world(|world| {
            OutgoingMessage::next_task(from, &task::task_record(world, &job, true))
        })
    };
    Ok(oldest.map(told))
}

/// The oldest auction to which the agent was invited and has not responded.
async fn next_query(
    context: &ClaraContext,
    from: &str,
    agent_id: &str,
) -> Result<Option<OutgoingMessage>, OrderError> {
    let agent = context.engine.with_world(|world| own_agent(world, from, agent_id))?;
    shown_jobs::note_fetch(context, agent, []).await;
    Ok(context.engine.with_world(|world| {
        let open = world.live_jobs().filter(|job| is_asked(job, agent));
        let oldest = open.min_by_key(|job| job.id);
        let query = oldest.and_then(|job| {
            let Selection::Auction { closes } = job.selection else {
                return None;
            };
            task::task_query(world, job, agent, closes)
        });
        query.map(|query| OutgoingMessage::next_query(from, &query))
    }))
}

fn is_asked(job: &Job, agent: AgentId) -> bool {
    let answered = job.candidates.declined.contains(&agent)
        || job.candidates.offers.iter().any(|one| one.by == agent);
    job.state == State::Negotiating && job.candidates.invited.contains(&agent) && !answered
}

/// The oldest unread result for the sender.
async fn next_result(
    context: &ClaraContext,
    from: &str,
    named: Option<&str>,
    dialect: Dialect,
) -> Result<OrderPlan, PlanError> {
    let readers: Vec<AgentId> = match named {
        Some(agent_id) => {
            vec![context.engine.with_world(|world| own_agent(world, from, agent_id))?]
        }
        None => context.engine.with_world(|world| {
            let owner = world.owner_by_name(&auth::owner_name(from));
            owner.map(|owner| world.agents_of(owner).collect()).unwrap_or_default()
        }),
    };
    let mut oldest: Option<(Notice, Arc<Job>, AgentId)> = None;
    for reader in readers {
        let found = unread(context, reader).await?;
        let older = |(notice, ..): &(Notice, Arc<Job>)| {
            oldest.as_ref().is_none_or(|(known, ..)| notice.id < known.id)
        };
        if let Some((notice, job)) = found.filter(older) {
            oldest = Some((notice, job, reader));
        }
    }
    let Some((notice, job, reader)) = oldest else {
        return Ok(OrderPlan::read_only(Vec::new(), false, None));
    };
    let message = context.engine.with_world(|world| {
        let (done, asked) =
            (task::task_result(world, &job)?, task::task_record(world, &job, false));
        Some(OutgoingMessage::next_result(dialect, from, &done, &asked))
    });
    let messages = message.into_iter().collect();
    let command = Command::AckUnread { agent: reader, up_to: notice.position };
    Ok(OrderPlan::new(command, OrderReply::Answer { messages, shown: false, ask: None }))
}

/// The first result in an inbox after the read position.
async fn unread(
    context: &ClaraContext,
    reader: AgentId,
) -> Result<Option<(Notice, Arc<Job>)>, EngineFailure> {
    let mut after = context.engine.with_world(|world| world.inbox(reader).acked);
    loop {
        let page = context.engine.load_notices(reader, after, PAGE).await?;
        let Some(last) = page.last() else { return Ok(None) };
        after = last.position;
        for notice in page {
            let NoticeKind::Ended { job } = notice.news else { continue };
            let done = context.engine.load_job(job).await?;
            if let Some(job) = done.filter(|job| job.state == State::Completed) {
                return Ok(Some((notice, job)));
            }
        }
    }
}

/// The trace of a task from request to payment, for its parties (B18).
async fn trace(
    context: &ClaraContext,
    from: &str,
    order: &TaskTrace<'_>,
) -> Result<OutgoingMessage, PlanError> {
    let readers: Vec<AgentId> = context.engine.with_world(|world| {
        let owner = world.owner_by_name(&auth::owner_name(from));
        let own = |agent: &AgentId| order.agent_id.is_none_or(|id| is_called(world, *agent, id));
        let all = owner.into_iter().flat_map(|owner| world.agents_of(owner));
        all.filter(own).take(READERS_MAX).collect()
    });
    for reader in readers {
        let job = find_task_job(context, reader, order.task_id).await?;
        let viewer = job.as_deref().and_then(|job| {
            if job.is_requested_by(reader) {
                return Some(Viewer::Requester);
            }
            (job.worker() == Some(reader)).then_some(Viewer::Worker)
        });
        if let (Some(job), Some(viewer)) = (job, viewer) {
            let trace = fidelity::trace(context, &job, viewer).await?;
            let trace = serde_json::to_string(&trace).unwrap_or_default();
            return Ok(OutgoingMessage::trace(
                from,
                order.task_id,
                traced(order.task_id, &job, &trace),
            ));
        }
    }
    Err(OrderError::NotAssigned.into())
}

/// A trace, with ids and times in this market's format.
fn traced(task_id: &str, job: &Job, trace: &str) -> String {
    let own = ObjectWriter::new()
        .text("id", task_id)
        .integer("openedAt", job.request.opened_at.0)
        .maybe_integer("endedAt", job.ended_at.map(|at| at.0));
    let members = Members::read(trace).map(|Members(members)| members).unwrap_or_default();
    members.iter().fold(own, |all, (name, value)| all.raw(name, value.get())).finish()
}

fn is_called(world: &World, agent: AgentId, id: &str) -> bool {
    auth::agent_id(world, agent).as_deref() == Some(id)
}

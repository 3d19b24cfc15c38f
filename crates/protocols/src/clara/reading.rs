//! Read-only orders: their answer is computed before they are submitted.

use std::sync::Arc;

use rialto_core::id::AgentId;
use rialto_core::job::{Job, State};
use rialto_core::market::Deed;
use rialto_core::money::Credits;
use rialto_core::notice::{News, Notice};
use rialto_core::world::World;
use rialto_engine::Failure as EngineFailure;

use super::clerk::Reply;
use super::deed::{NoPlan, Plan, own};
use super::fault::Fault;
use super::message::Message;
use super::order::{LoadNext, Order, Trace};
use super::outgoing::Outgoing;
use super::people;
use super::question::Ask;
use super::{Dialect, board, task};
use crate::adapter::fidelity::{self, Eyes, Members};
use crate::adapter::{Floor, shown_jobs};
use crate::kit::object::Object;

/// The most agents of one sender for which a trace is looked up, unless the order names one.
const READERS_MAX: usize = 64;
/// Notices read at a time to find the next result.
const PAGE: usize = 64;

/// The plan for a read-only order.
pub async fn plan(
    floor: &Floor,
    message: &Message<'_>,
    order: Order<'_>,
    dialect: Dialect,
) -> Result<Plan, NoPlan> {
    let after = match order {
        // A dry-run only claims its sender, so it reads nothing private (R74).
        Order::LoadNext(LoadNext::Result { agent_id }) if message.signed => {
            return next_result(floor, &message.from, agent_id, dialect).await;
        }
        Order::ListAgents | Order::TasksQueue | Order::Dashboard => cursor(message)?,
        _ => 0,
    };
    planned(floor, (&message.from, message.signed), order, after).await
}

/// The message that answers a read-only order from the current state. `after` is the cursor of a
/// list.
pub async fn answer(
    floor: &Floor,
    from: &str,
    order: Order<'_>,
    after: u64,
) -> Result<Option<Outgoing>, NoPlan> {
    match planned(floor, (from, true), order, after).await? {
        (_, Reply::Known { messages, .. }) => Ok(messages.into_iter().next()),
        _ => Ok(None),
    }
}

async fn planned(
    floor: &Floor,
    (from, signed): (&str, bool),
    order: Order<'_>,
    after: u64,
) -> Result<Plan, NoPlan> {
    let ask = Ask::of(&order, after);
    let said = |messages: Vec<Outgoing>, shown| {
        (Deed::Nothing, Reply::Known { messages, shown, ask: ask.clone() })
    };
    Ok(match order {
        Order::ListAgents => said(vec![board::agents(floor, from, after).await?], true),
        Order::TasksQueue => said(vec![board::queue(floor, from, after)], true),
        Order::Dashboard => said(vec![board::dashboard(floor, from, after).await?], true),
        // A dry-run only claims its sender, so it reads nothing private (R74).
        Order::LoadNext(_) | Order::Claim if !signed => {
            return Err(Fault::SignToRead.into());
        }
        Order::Balance => said(vec![Outgoing::balance(from, balance(floor, from))], false),
        Order::Claim => said(vec![Outgoing::claim_failed(from, balance(floor, from))], false),
        Order::LoadNext(LoadNext::Task { agent_id }) => {
            said(next_task(floor, from, agent_id).await?.into_iter().collect(), false)
        }
        Order::LoadNext(LoadNext::Query { agent_id }) => {
            said(next_query(floor, from, agent_id).await?.into_iter().collect(), false)
        }
        Order::Trace(order) => said(vec![trace(floor, from, &order).await?], false),
        _ => said(Vec::new(), false),
    })
}

/// The cursor of a list.
fn cursor(message: &Message<'_>) -> Result<u64, Fault> {
    message.tag("Cursor").map_or(Ok(0), |text| text.parse().map_err(|_| Fault::BadCursor))
}

fn balance(floor: &Floor, address: &str) -> Credits {
    floor
        .engine
        .look(|world| {
            let owner = world.owner_named(&people::owner_name(address))?;
            world.owner(owner).map(|owner| owner.available)
        })
        .unwrap_or(Credits::ZERO)
}

/// The oldest task of an inbox. It stays there.
async fn next_task(floor: &Floor, from: &str, agent_id: &str) -> Result<Option<Outgoing>, Fault> {
    let agent = floor.engine.look(|world| own(world, from, agent_id))?;
    let oldest = floor.engine.look(|world| {
        let held = |job: &&Arc<Job>| matches!(job.state, State::Assigned | State::Running);
        world.work_of(agent).find(held).cloned()
    });
    shown_jobs::note_fetch(floor, agent, &oldest).await;
    let told = |job: Arc<Job>| {
        floor.engine.look(|world| Outgoing::next_task(from, &task::task(world, &job, true)))
    };
    Ok(oldest.map(told))
}

/// The oldest auction to which the agent was invited and has not responded.
async fn next_query(floor: &Floor, from: &str, agent_id: &str) -> Result<Option<Outgoing>, Fault> {
    let agent = floor.engine.look(|world| own(world, from, agent_id))?;
    shown_jobs::note_fetch(floor, agent, []).await;
    Ok(floor.engine.look(|world| {
        let open = world.live_jobs().filter(|job| is_asked(job, agent));
        let oldest = open.min_by_key(|job| job.id);
        let query = oldest.and_then(|job| {
            let rialto_core::job::Selection::Auction { closes } = job.selection else {
                return None;
            };
            task::query(world, job, agent, closes)
        });
        query.map(|query| Outgoing::next_query(from, &query))
    }))
}

fn is_asked(job: &Job, agent: AgentId) -> bool {
    let answered = job.declined.contains(&agent) || job.offers.iter().any(|one| one.by == agent);
    job.state == State::Negotiating && job.asked.contains(&agent) && !answered
}

/// The oldest unread result for the sender.
async fn next_result(
    floor: &Floor,
    from: &str,
    named: Option<&str>,
    dialect: Dialect,
) -> Result<Plan, NoPlan> {
    let readers: Vec<AgentId> = match named {
        Some(agent_id) => vec![floor.engine.look(|world| own(world, from, agent_id))?],
        None => floor.engine.look(|world| {
            let owner = world.owner_named(&people::owner_name(from));
            owner.map(|owner| world.agents_of(owner).collect()).unwrap_or_default()
        }),
    };
    let mut oldest: Option<(Notice, Arc<Job>, AgentId)> = None;
    for reader in readers {
        let found = unread(floor, reader).await?;
        let older = |(notice, ..): &(Notice, Arc<Job>)| {
            oldest.as_ref().is_none_or(|(known, ..)| notice.id < known.id)
        };
        if let Some((notice, job)) = found.filter(older) {
            oldest = Some((notice, job, reader));
        }
    }
    let Some((notice, job, reader)) = oldest else {
        return Ok((Deed::Nothing, Reply::Known { messages: Vec::new(), shown: false, ask: None }));
    };
    let message = floor.engine.look(|world| {
        let (done, asked) = (task::done(world, &job)?, task::task(world, &job, false));
        Some(Outgoing::next_result(dialect, from, &done, &asked))
    });
    let messages = message.into_iter().collect();
    let deed = Deed::Read { agent: reader, up_to: notice.position };
    Ok((deed, Reply::Known { messages, shown: false, ask: None }))
}

/// The first result in an inbox after the read position.
async fn unread(
    floor: &Floor,
    reader: AgentId,
) -> Result<Option<(Notice, Arc<Job>)>, EngineFailure> {
    let mut after = floor.engine.look(|world| world.mailbox(reader).acked);
    loop {
        let page = floor.engine.notices_of(reader, after, PAGE).await?;
        let Some(last) = page.last() else { return Ok(None) };
        after = last.position;
        for notice in page {
            let News::Ended { job } = notice.news else { continue };
            let done = floor.engine.job(job).await?;
            if let Some(job) = done.filter(|job| job.state == State::Completed) {
                return Ok(Some((notice, job)));
            }
        }
    }
}

/// The trace of a task from request to payment, for its parties (B18).
async fn trace(floor: &Floor, from: &str, order: &Trace<'_>) -> Result<Outgoing, NoPlan> {
    let readers: Vec<AgentId> = floor.engine.look(|world| {
        let owner = world.owner_named(&people::owner_name(from));
        let own = |agent: &AgentId| order.agent_id.is_none_or(|id| is_called(world, *agent, id));
        let all = owner.into_iter().flat_map(|owner| world.agents_of(owner));
        all.filter(own).take(READERS_MAX).collect()
    });
    for reader in readers {
        let job = super::deed::meant(floor, reader, order.task_id).await?;
        let eyes = job.as_deref().and_then(|job| match job.asked_by(reader) {
            true => Some(Eyes::Requester),
            false => (job.worker() == Some(reader)).then_some(Eyes::Worker),
        });
        if let (Some(job), Some(eyes)) = (job, eyes) {
            let trace = fidelity::trace(floor, &job, eyes).await?;
            let trace = serde_json::to_string(&trace).unwrap_or_default();
            return Ok(Outgoing::trace(from, order.task_id, traced(order.task_id, &job, &trace)));
        }
    }
    Err(Fault::NotAssigned.into())
}

/// A trace, with ids and times in this market's format.
fn traced(task_id: &str, job: &Job, trace: &str) -> String {
    let own = Object::new()
        .text("id", task_id)
        .whole("openedAt", job.opened_at.0)
        .maybe_whole("endedAt", job.ended_at.map(|at| at.0));
    let members = Members::read(trace).map(|Members(members)| members).unwrap_or_default();
    members.iter().fold(own, |all, (name, value)| all.raw(name, value.get())).finish()
}

fn is_called(world: &World, agent: AgentId, id: &str) -> bool {
    people::agent_id(world, agent).as_deref() == Some(id)
}

//! The board: everybody who is registered, with what they have to do and have done.

use std::sync::Arc;

use rialto_core::agent::{Agent, Desk, Skill};
use rialto_core::id::{AgentId, JobId};
use rialto_core::job::{Job, State};
use rialto_core::money::Credits;
use rialto_core::world::World;
use rialto_engine::Failure as EngineFailure;
use rialto_engine::store::{Key, Row};

use super::outgoing::Outgoing;
use super::people::{self, WALLET};
use super::record::{self, Task, Tasks, Totals};
use super::topics::Bridged;
use super::{ID, price, task};
use crate::face::Floor;
use crate::kit::ijson;

/// The newest finished tasks shown of one agent, and of all together.
const DONE_MAX: usize = 50;
const DONE_IN_ALL_MAX: usize = 10_000;
/// What is said of agents the hub speaks for (B3).
const BRIDGED: &str = r#"{"bridged":true}"#;
/// The topic of those who do nothing this market knows.
const NO_TOPIC: &str = "none";

/// An agent and everything the board shows of it.
struct Shown {
    agent: Arc<Agent>,
    desk: Arc<Desk>,
    work: Vec<Arc<Job>>,
    done: Vec<Arc<Job>>,
    asked: Vec<Arc<Job>>,
}

/// Every agent, as a message to somebody.
pub async fn agents(floor: &Floor, to: &str) -> Result<Outgoing, EngineFailure> {
    let all = everybody(floor).await?;
    Ok(floor.engine.look(|world| {
        let one = |shown| entry(world, &floor.clara.bridged, shown);
        let records: Vec<_> = all.iter().filter_map(one).collect();
        Outgoing::agents(to, &records)
    }))
}

/// The tasks that wait for an agent.
pub fn queue(floor: &Floor, to: &str) -> Outgoing {
    floor.engine.look(|world| Outgoing::queue(to, &waiting(world)))
}

fn waiting(world: &World) -> Vec<Task<'_>> {
    let ours = world.queue().filter(|job| job.origin == ID);
    ours.map(|job| task::task(world, job, false)).collect()
}

/// The market at a glance.
pub async fn dashboard(floor: &Floor, to: &str) -> Result<Outgoing, EngineFailure> {
    let all = everybody(floor).await?;
    Ok(floor.engine.look(|world| {
        let one = |shown| entry(world, &floor.clara.bridged, shown);
        let records: Vec<_> = all.iter().filter_map(one).collect();
        let totals = records.iter().fold(Totals::default(), |sum, one| Totals {
            requested: sum.requested + one.totals.requested,
            assigned: sum.assigned + one.totals.assigned,
            done: sum.done + one.totals.done,
            rewards: sum.rewards.plus(one.totals.rewards).unwrap_or(Credits::MAX),
        });
        Outgoing::dashboard(to, &waiting(world), &records, &totals)
    }))
}

/// Everybody with something to offer, in the order they came.
async fn everybody(floor: &Floor) -> Result<Vec<Shown>, EngineFailure> {
    let mut all: Vec<Shown> = floor.engine.look(|world| {
        let ids = (1..world.next.agent.0).map(AgentId);
        let shown = ids.filter_map(|id| {
            let agent = world.agent(id).filter(|agent| is_shown(agent))?;
            let desk = world.desk(id)?.clone();
            let held = |job: &&Arc<Job>| job.in_hand_of() == Some(id) && is_public(agent, job);
            let work = world.work_of(id).filter(held).cloned().collect();
            Some(Shown { agent: agent.clone(), desk, work, done: Vec::new(), asked: Vec::new() })
        });
        shown.collect()
    });
    let starts: Vec<_> =
        all.iter().map(|one| (one.desk.last_worked, one.desk.last_asked)).collect();
    let histories = floor
        .engine
        .read(move |reader| {
            let mut left = DONE_IN_ALL_MAX;
            let mut histories = Vec::with_capacity(starts.len());
            for (worked, asked) in starts {
                let done = history(reader, worked, &mut left, |job| job.before_worked)?;
                let asked = history(reader, asked, &mut left, |job| job.before_asked)?;
                histories.push((done, asked));
            }
            Ok(histories)
        })
        .await?;
    for (shown, (done, asked)) in all.iter_mut().zip(histories) {
        let public = |jobs: Vec<Arc<Job>>| -> Vec<Arc<Job>> {
            jobs.into_iter().filter(|job| is_public(&shown.agent, job)).collect()
        };
        (shown.done, shown.asked) = (public(done), public(asked));
    }
    Ok(all)
}

/// Finished tasks, newest first, from one to the one before it.
fn history(
    reader: &mut dyn rialto_engine::store::Reader,
    from: Option<JobId>,
    left: &mut usize,
    before: fn(&Job) -> Option<JobId>,
) -> Result<Vec<Arc<Job>>, rialto_engine::store::StoreError> {
    let (mut found, mut at) = (Vec::new(), from);
    while let Some(id) = at.filter(|_| found.len() < DONE_MAX && *left > 0) {
        *left -= 1;
        let Some(Row::Job(job)) = reader.load(Key::Job(id))? else { break };
        at = before(&job);
        if job.state == State::Completed {
            found.push(job);
        }
    }
    Ok(found)
}

/// What an agent of another protocol does for others of its own is nobody's business here (R20).
fn is_public(agent: &Agent, job: &Job) -> bool {
    agent.home == ID || job.origin == ID
}

/// What an agent would not do; whether it will bid is seen by nobody before the end (R77).
fn declined<'d>(world: &World, desk: &'d Desk) -> impl Iterator<Item = &'d String> {
    desk.declined.iter().filter(|name| {
        let job = world.job_by_name(ID, name);
        job.is_none_or(|job| job.state != State::Negotiating)
    })
}

/// Wallets that only ask, and agents of other protocols without anything to offer, are not on the
/// board. Agents that registered here are, also those that only post tasks.
fn is_shown(agent: &Agent) -> bool {
    let own = agent.home == ID && !agent.native.starts_with(WALLET);
    agent.active && (own || agent.home != ID && !agent.skills.is_empty())
}

fn entry<'s>(world: &World, bridged: &Bridged, shown: &'s Shown) -> Option<record::Agent<'s>> {
    let Shown { agent, desk, work, done, asked } = shown;
    let own = agent.home == ID;
    let (fee, topic) = match offered(agent, bridged) {
        Some((skill, topic)) if own => (skill.price, topic),
        Some((skill, topic)) => (price::fee_of(skill.price), topic),
        // A fee is at least 1, also that of somebody who only posts.
        None => (price::fee_of(Credits::ZERO), NO_TOPIC.to_owned()),
    };
    let tally = desk.tally;
    let metadata = match own && ijson::read(agent.card.as_bytes()).is_ok() {
        true => agent.card.as_str(),
        false => BRIDGED,
    };
    let elsewhere = |text: String| (!own).then(|| text.into());
    Some(record::Agent {
        id: people::agent_id(world, agent.id)?.into(),
        profile_address: people::address(world, agent.id).into(),
        topic: topic.into(),
        fee,
        metadata,
        protocol: elsewhere(agent.home.to_string()),
        native_id: elsewhere(agent.native.clone()),
        tasks: Tasks {
            inbox: work.iter().map(|job| task::task(world, job, false)).collect(),
            outbox: done.iter().filter_map(|job| task::done(world, job)).collect(),
            declined: declined(world, desk).map(|id| task::plain(id).into()).collect(),
            results: asked.iter().filter_map(|job| task::done(world, job)).collect(),
        },
        totals: Totals {
            requested: tally.asked,
            assigned: tally.given,
            done: tally.done,
            rewards: tally.earned,
        },
    })
}

/// What an agent is listed for: its topic, and the skill that has it. Agents of other protocols may do
/// many things, and the first with a topic counts (between, section 5).
fn offered(agent: &Agent, bridged: &Bridged) -> Option<(Skill, String)> {
    let first = agent.skills.first()?;
    if agent.home == ID {
        return Some((first.clone(), task::topic(&first.name).to_owned()));
    }
    let with_topic =
        |skill: &Skill| Some((skill.clone(), bridged.topic_of(&skill.name)?.to_owned()));
    let found = agent.skills.iter().find_map(with_topic);
    found.or_else(|| Some((first.clone(), NO_TOPIC.to_owned())))
}

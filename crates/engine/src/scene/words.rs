//! Random status reports of agents, and random responses to jobs before they are assigned.

use std::sync::Arc;

use rialto_core::agent::presence::Stance;
use rialto_core::agent::said::Condition;
use rialto_core::agent::{Skill, Terms};
use rialto_core::command::{Approver, Canceller, Command, JobRef, Response};
use rialto_core::id::AgentId;
use rialto_core::job::{Cause, Job, Policy, Selection};
use rialto_core::time::{Millis, Timestamp};
use rialto_core::world::World;
use uuid::Uuid;

use super::{Dice, enrol, open};

const STANCES: [Stance; 5] =
    [Stance::Idle, Stance::Idle, Stance::Busy, Stance::Error, Stance::Maintenance];

/// The terms of an agent; mostly none.
pub fn terms(dice: &mut Dice) -> Terms {
    Terms {
        at_once: dice.one_in(8).then_some(2),
        per_minute: dice.one_in(8).then_some(3),
        answers_itself: dice.one_in(4),
        strict: false,
        urgent_first: dice.one_in(3),
    }
}

/// A skill that the worker's side must approve before it is done. Signers do not request it.
pub fn needs_a_yes() -> Skill {
    let mut one = enrol("", "", &[("stamp", "0.5")]).skills.remove(0);
    one.approval = true;
    one
}

/// A random status of an agent.
pub fn condition(dice: &mut Dice, now: Timestamp) -> Condition {
    let stance = *dice.pick(&STANCES).expect("not empty");
    let span = |dice: &mut Dice| Millis(dice.roll(20_000) as i64);
    let until = (stance == Stance::Maintenance).then(|| now.plus(span(dice)));
    let since = Timestamp(now.0 - span(dice).0);
    let words = dice.one_in(2).then(|| (since, format!("{stance:?}").into()));
    Condition { stance, until, words }
}

/// The next command, given what is known.
pub fn chance(dice: &mut Dice, n: u64, world: &World, now: Timestamp) -> Command {
    let mut agents: Vec<AgentId> = world.agents().map(|agent| agent.id).collect();
    agents.sort();
    let mut jobs: Vec<Arc<Job>> = world.live_jobs().cloned().collect();
    jobs.sort_by_key(|job| job.id);
    let agent = dice.pick(&agents).copied().unwrap_or_default();
    let asked = |job: &&Arc<Job>| job.worker().is_some() && job.accepted_at.is_none();
    let asked: Vec<Arc<Job>> = jobs.iter().filter(asked).cloned().collect();
    let waits: Vec<Arc<Job>> = jobs.iter().filter(|job| job.waits_for.is_some()).cloned().collect();
    match (dice.roll(8), dice.pick(&asked), dice.pick(&waits)) {
        (0 | 1, ..) => Command::Stand { agent, told: condition(dice, now) },
        (2, ..) => Command::Boast { agent, words: format!("{n}").into() },
        (3 | 4, Some(job), _) => respond(dice, n, job, now),
        (5, _, Some(job)) => {
            let by = if dice.one_in(2) { Approver::Operator } else { Approver::Agent(agent) };
            Command::Approve { job: JobRef::Id(job.id), by, yes: !dice.one_in(4) }
        }
        (6, _, Some(job)) => {
            let by = job.for_whom().map_or(Canceller::Operator, Canceller::Agent);
            let reason = dice.one_in(2).then(|| "because".to_owned());
            Command::Cancel { job: JobRef::Uuid(job.uuid), by, reason }
        }
        _ => ask(dice, n, world, &agents, now),
    }
}

fn respond(dice: &mut Dice, n: u64, job: &Job, now: Timestamp) -> Command {
    let by = job.worker().unwrap_or_default();
    let at = now.plus(Millis(1 + dice.roll(20_000) as i64));
    let said = match dice.roll(5) {
        0 => {
            let words = Some("{}".to_owned());
            Response::Refuse { cause: Cause::Policy, text: "no".to_owned(), words }
        }
        1 if !matches!(job.selection, Selection::Asked { .. }) => Response::Defer { until: at },
        _ => {
            // Some names repeat.
            let name = if dice.one_in(4) { dice.roll(n + 1) } else { n };
            let called = dice.one_in(2).then(|| Uuid::from_u128(u128::from(name) << 96));
            Response::Accept { ready_at: dice.one_in(2).then_some(at), called }
        }
    };
    Command::Respond { job: JobRef::Id(job.id), by, said }
}

/// Asks an agent, online or not, before anything is paid; some of these requests are invalid.
fn ask(dice: &mut Dice, n: u64, world: &World, agents: &[AgentId], now: Timestamp) -> Command {
    let by = dice.pick(agents).copied().unwrap_or_default();
    let away = |agent: &&AgentId| {
        world.desk(**agent).is_some_and(|desk| desk.presence.stance == Stance::Maintenance)
    };
    let away: Vec<AgentId> = agents.iter().filter(away).copied().collect();
    let worker = dice.pick(if away.is_empty() { agents } else { &away }).copied();
    let skills = worker.and_then(|worker| world.agent(worker)).map(|worker| &worker.skills[..]);
    let skill = dice.pick(skills.unwrap_or_default()).map_or("sum", |skill| &skill.name);
    let mut order = open(n, by, skill, "2.25", now);
    order.uuid = Uuid::from_u128(u128::from(n) << 32 | 7);
    order.selection = Selection::Direct(worker.unwrap_or_default());
    order.policy = Policy { presence_first: true, cancel_any_time: true, ..Policy::default() };
    order.priority = 1 + dice.roll(9) as u8;
    order.promised = dice.one_in(3).then(|| now.plus(Millis(dice.roll(30_000) as i64)));
    order.flaw = dice.one_in(4).then(|| "{}".to_owned());
    Command::OpenJob(Box::new(order))
}

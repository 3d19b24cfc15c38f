//! Registering, changing, leaving, and being seen.

use rialto_core::alias::Digest;
use rialto_core::command::{Actor, Command, Registration, SuspensionTarget, UpdateCard};
use rialto_core::id::AgentId;
use rialto_core::testkit::TestHub;
use rialto_core::time::Timestamp;

use super::{a2a, agora, clara, keys, openclaw, registry, relay};
use crate::ask::Ask;
use crate::cast::{
    A2A, AGORA, CLARA, LATER, OF_EACH, OPENCLAW, REGISTRY, RELAY, SPOKEN, price, somebody,
};
use crate::dice::Dice;

/// The first command of every agent.
pub fn opening(dice: &mut Dice, scene: &TestHub, now: Timestamp) -> Vec<Ask> {
    let mut all = Vec::new();
    for n in 0..OF_EACH {
        for home in SPOKEN {
            all.push(match home {
                AGORA => agora::hello(dice, scene, n).into(),
                _ => Command::Register(Box::new(enrol(dice, home, n, now))).into(),
            });
        }
    }
    for n in 0..3 {
        let amount = rialto_core::money::Credits::from_micros(40_000_000);
        all.push(Command::Grant { name: format!("owner-{n}"), amount }.into());
    }
    all
}

fn enrol(
    dice: &mut Dice,
    home: rialto_core::alias::Protocol,
    n: u64,
    now: Timestamp,
) -> Registration {
    match home {
        RELAY => relay::enrol(dice, n),
        OPENCLAW => openclaw::enrol(dice, n, now),
        CLARA => clara::enrol(dice, n),
        A2A => a2a::enrol(dice, n),
        _ => registry::enrol(dice, n),
    }
}

pub fn next(dice: &mut Dice, scene: &TestHub, now: Timestamp) -> Option<Command> {
    let agent = somebody(dice, scene);
    Some(match dice.roll(36) {
        0..=9 => again(dice, scene, now),
        10 | 11 => Command::Remove { agent, by_operator: dice.chance(50) },
        12..=14 => keys::next(dice, scene, agent)?,
        15..=17 => Command::Heartbeat { agent },
        18..=20 => Command::RecordActivity { agent },
        21..=25 => Command::ReportStatus { agent, status: openclaw::condition(dice, now, false) },
        30 => Command::BeginEpoch,
        31..=35 => suspend(dice, scene, agent),
        26 => update_card(dice, scene, agent)?,
        27 | 28 => Command::ReportReputation { agent, text: format!("{}", dice.roll(9)).into() },
        _ => {
            let name = format!("later-{}", dice.roll(6));
            Command::AddAliases { agent, aliases: vec![(LATER, name), (LATER, "other".to_owned())] }
        }
    })
}

/// What an agent's protocol learns of it, in most cases about the agent as it is.
fn update_card(dice: &mut Dice, scene: &TestHub, agent: AgentId) -> Option<Command> {
    let row = scene.world.agent(agent)?;
    let known = if dice.chance(85) { row.card.as_str() } else { "an older card" };
    let mut skills = row.skills.clone();
    if dice.chance(30) {
        skills.iter_mut().for_each(|skill| skill.price = price(dice));
    }
    Some(Command::UpdateCard(Box::new(UpdateCard {
        agent,
        known: Digest::of(&[known.as_bytes()]),
        name: row.name.clone(),
        is_changed: skills != row.skills,
        is_reached: dice.chance(50),
        skills,
        card: row.card.clone(),
    })))
}

/// Suspends an agent or owner for a while; resumes are more frequent, so that work continues.
fn suspend(dice: &mut Dice, scene: &TestHub, agent: AgentId) -> Command {
    let suspended = dice.chance(40);
    let stopped = scene.world.agents().map(|one| one.id).filter(|id| scene.world.is_suspended(*id));
    let stopped = stopped.min().filter(|_| !suspended);
    let agent = stopped.unwrap_or(agent);
    let row = scene.world.agent(agent);
    let by_owner = row.filter(|row| match suspended {
        true => dice.chance(20),
        false => !row.suspended,
    });
    let subject =
        by_owner.map_or(SuspensionTarget::Agent(agent), |row| SuspensionTarget::Owner(row.owner));
    Command::SetSuspended { subject, suspended }
}

/// A registration, in most cases a repeated one, by callers that may and may not.
fn again(dice: &mut Dice, scene: &TestHub, now: Timestamp) -> Command {
    let home = dice.of([REGISTRY, RELAY, OPENCLAW, CLARA, A2A]);
    let n = dice.any();
    let mut order = enrol(dice, home, n, now);
    let own = scene.world.agent_by_alias(home, &order.native_id).unwrap_or_default();
    order.actor = match dice.roll(10) {
        0 => Actor::Anonymous,
        1 => Actor::Agent(somebody(dice, scene)),
        2 => Actor::Operator,
        3 | 4 => Actor::Owner,
        5 | 6 => Actor::OpenRegistration,
        _ => Actor::Agent(own),
    };
    if dice.chance(6) {
        order.owner = dice.of(["owner-0", "somebody else", "hub:issuance"]).to_owned();
    }
    if dice.chance(4) {
        order.native_id = format!("crowd-{}", dice.roll(9));
        order.aliases.clear();
    }
    Command::Register(Box::new(order))
}

//! Keys of agents: issued with and without limits, revoked, and used for what is spent.

use rialto_core::agent::key::{Holder, Key};
use rialto_core::agent::key_limits::{KeyLimits, KeyUse};
use rialto_core::command::{Command, IssueLimitedKey, OpenJob};
use rialto_core::envelope::{Envelope, Proof};
use rialto_core::id::{AgentId, KeyId};
use rialto_core::job::Requester;
use rialto_core::money::Credits;
use rialto_core::testkit::TestHub;

use super::key;
use crate::cast::amount;
use crate::dice::Dice;

/// Limits of all kinds, or none.
pub fn limits(dice: &mut Dice) -> KeyLimits {
    KeyLimits { per_job: most(dice), per_day: most(dice), transfers: dice.chance(80) }
}

fn most(dice: &mut Dice) -> Option<Credits> {
    dice.chance(60).then(|| amount(dice))
}

/// Issues and revokes keys of known agents: the caller has proven its identity.
pub fn next(dice: &mut Dice, scene: &TestHub, agent: AgentId) -> Option<Command> {
    scene.world.agent(agent)?;
    Some(match dice.roll(8) {
        0 => Command::RevokeKeys { agent, by_operator: dice.chance(50) },
        1 => Command::RenewSecret { agent },
        2 => Command::RevokeKey { agent, key: one_of(dice, scene, agent).unwrap_or(KeyId(0)) },
        3 => Command::RecordKeyUse { agent, key: one_of(dice, scene, agent)? },
        4 | 5 => Command::IssueLimitedKey(Box::new(IssueLimitedKey {
            agent,
            hash: key(dice),
            label: dice.chance(50).then(|| "simulated".to_owned()),
            limits: limits(dice),
        })),
        _ => Command::IssueKey {
            holder: if dice.chance(15) { Holder::Operator } else { Holder::Agent(agent) },
            hash: key(dice),
            retire_others: dice.chance(50),
            by_operator: dice.chance(50),
        },
    })
}

/// The key of an order that spends, if its author has one: in most cases the newest.
pub fn with_key(dice: &mut Dice, scene: &TestHub, envelope: &mut Envelope) {
    if envelope.proof != Proof::Credential || !dice.chance(60) {
        return;
    }
    let requester = |order: &OpenJob| match order.requester {
        Requester::Agent(agent) => Some(agent),
        Requester::Guest(_) => None,
    };
    let author = match &envelope.command {
        Command::OpenJob(order) => requester(order),
        Command::OpenJobWithWebhook(order) => requester(&order.job),
        Command::AcceptOffer(order) => Some(order.by),
        Command::Pay(order) => {
            let owner = scene.world.owner_by_name(&order.from);
            owner.and_then(|owner| scene.world.agents_of(owner).min())
        }
        _ => None,
    };
    let Some(agent) = author else { return };
    // One that was revoked meanwhile is worth trying, too.
    let any = dice.chance(10);
    let may = |key: &&std::sync::Arc<Key>| any || key.is_valid(scene.now);
    let mut keys: Vec<KeyId> = scene.world.keys_of(agent).filter(may).map(|key| key.id).collect();
    keys.sort();
    let newest = keys.last().copied();
    let chosen = if dice.chance(70) { newest } else { keys.first().copied() };
    if let Some(key) = chosen {
        envelope.proof = Proof::Key(KeyUse { agent, key, by_default: dice.chance(40) });
    }
}

fn one_of(dice: &mut Dice, scene: &TestHub, agent: AgentId) -> Option<KeyId> {
    let mut keys: Vec<KeyId> = scene.world.keys_of(agent).map(|key| key.id).collect();
    keys.sort();
    let count = u64::try_from(keys.len()).ok().filter(|count| *count > 0)?;
    usize::try_from(dice.roll(count)).ok().and_then(|at| keys.get(at).copied())
}

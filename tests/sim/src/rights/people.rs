//! Who may register which agent: itself, one of its owner's, and none under a used name.

use rialto_core::agent::Agent;
use rialto_core::command::{Actor, Registration};
use rialto_core::id::{AgentId, OwnerId};
use rialto_core::owner::Owner;
use rialto_core::testkit::TestHub;

use super::Right;

/// A registration, or a change of one.
pub fn enrol(scene: &TestHub, order: &Registration) -> Right {
    let known = scene.world.agent_by_alias(order.home, &order.native_id);
    let Some(agent) = known.and_then(|id| scene.world.agent(id)) else {
        return comes(scene, order);
    };
    let id = agent.id;
    Right { against: changed(scene, order, agent), agent: Some(id), ..Right::default() }
}

/// A first registration, or one that happened before without the caller's knowledge.
pub fn comes(scene: &TestHub, order: &Registration) -> Right {
    match scene.world.agent_by_alias(order.home, &order.native_id) {
        Some(known) => Right { agent: Some(known), ..Right::default() },
        None => {
            let (against, agent) = (fresh(scene, order), Some(scene.world.next.agent));
            Right { against, agent, ..Right::default() }
        }
    }
}

fn changed(scene: &TestHub, order: &Registration, old: &Agent) -> Option<&'static str> {
    if old.home != order.home || old.native_id != order.native_id {
        return Some("registered under a name that the hub gave to another agent");
    }
    let owner = scene.store.rows.owners.get(&old.owner);
    if owner.is_none_or(|owner| owner.name != order.owner) {
        return Some("taken over by another owner");
    }
    let may = match order.actor {
        Actor::Anonymous => false,
        Actor::Agent(by) => by == old.id || old.active && is_of(scene, by, old.owner),
        Actor::Operator | Actor::Owner | Actor::OpenRegistration => true,
    };
    if order.actor != Actor::Operator && scene.world.is_suspended(old.id) {
        return Some("changed while it is suspended");
    }
    (!may).then_some("changed by a caller that may not")
}

fn fresh(scene: &TestHub, order: &Registration) -> Option<&'static str> {
    let owners = scene.store.rows.owners.values();
    let owner = owners.map(|owner| &**owner).find(|owner| owner.name == order.owner)?;
    let has_come = scene.store.rows.agents.values().any(|agent| agent.owner == owner.id);
    let may = match order.actor {
        _ if owner.id == Owner::ISSUANCE => false,
        // An account that only got grants or payments belongs to the first agent that registers for
        // it.
        _ if !has_come => true,
        Actor::Anonymous => false,
        Actor::Agent(by) => is_of(scene, by, owner.id),
        Actor::Operator | Actor::Owner | Actor::OpenRegistration => true,
    };
    (!may).then_some("added to an owner by a caller that may not")
}

fn is_of(scene: &TestHub, agent: AgentId, owner: OwnerId) -> bool {
    let row = scene.store.rows.agents.get(&agent);
    row.is_some_and(|agent| agent.active && agent.owner == owner)
}

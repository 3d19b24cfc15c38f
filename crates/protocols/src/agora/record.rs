//! An agent as the directory shows it.

use rialto_core::agent::Agent;
use rialto_core::agent::presence::Stance;
use rialto_core::alias::Protocol;
use rialto_core::time::Timestamp;
use rialto_core::world::World;

use super::ID;
use super::directory::{Entry, Listed};
use super::payload::Mood;

/// The entry of an agent of any protocol; `None` if it has no key here.
pub fn entry(world: &World, agent: &Agent, hub: &str, now: Timestamp) -> Option<Entry> {
    let id = world.name_of(agent.id, ID)?.to_owned();
    let own = agent.home == ID;
    let capabilities = agent.skills.iter().map(|skill| {
        let price = (!skill.by_offer).then_some(skill.price);
        let description = Some(skill.about.clone()).filter(|about| !about.is_empty());
        Listed::new(resource(agent.home, &skill.name), price, description)
    });
    Some(Entry {
        id,
        name: agent.name.clone(),
        capabilities: capabilities.collect(),
        status: mood(world, agent, now).as_str().to_owned(),
        protocol: agent.home.to_string(),
        held_by: (!own).then(|| hub.to_owned()),
        native_id: (!own).then(|| agent.native.clone()),
    })
}

/// A skill of any protocol as a resource of this one.
pub fn resource(home: Protocol, skill: &str) -> String {
    match home == ID {
        true => skill.to_owned(),
        false => format!("agora:{skill}:v1"),
    }
}

/// The other way round: what agents of other protocols call a resource.
pub fn skill_of(resource: &str) -> Option<&str> {
    resource.strip_prefix("agora:")?.strip_suffix(":v1")
}

fn mood(world: &World, agent: &Agent, now: Timestamp) -> Mood {
    let stance = world.desk(agent.id).map_or(Stance::Offline, |desk| desk.presence.stance);
    match stance {
        Stance::Error | Stance::Broken => Mood::Error,
        Stance::Maintenance => Mood::Maintenance,
        Stance::Offline => Mood::Offline,
        _ if !world.is_online(agent.id, now) => Mood::Offline,
        Stance::Busy => Mood::Busy,
        // Agents of other protocols do not say so themselves.
        Stance::Idle if agent.home != ID && world.jobs_in_hand(agent.id) > 0 => Mood::Busy,
        Stance::Idle => Mood::Idle,
    }
}

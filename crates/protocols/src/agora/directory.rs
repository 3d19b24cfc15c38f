//! The directory: entries of agents, and the resource names of their skills.

use rialto_core::agent::presence::Availability;
use rialto_core::agent::{Agent, Skill};
use rialto_core::alias::Protocol;
use rialto_core::time::Timestamp;
use rialto_core::world::World;

use super::ID;
use super::wire::responses::{AgentEntry, CapabilityEntry};
use super::wire::status::AgentStatus;

/// The entry of an agent of any protocol; `None` if it has no key here.
pub fn agent_entry(world: &World, agent: &Agent, hub: &str, now: Timestamp) -> Option<AgentEntry> {
    let id = world.alias_of(agent.id, ID)?.to_owned();
    let own = agent.home == ID;
    let listed = agent.skills.iter().filter(|skill| skill.native_name.is_none());
    let capabilities = listed.map(|skill| {
        let price = (!skill.by_offer).then_some(skill.price);
        let description = Some(skill.description.clone()).filter(|about| !about.is_empty());
        CapabilityEntry::new(resource_of_skill(agent.home, skill), price, description)
    });
    Some(AgentEntry {
        id,
        name: agent.name.clone(),
        capabilities: capabilities.collect(),
        status: agent_status(world, agent, now).as_str().to_owned(),
        protocol: agent.home.to_string(),
        held_by: (!own).then(|| hub.to_owned()),
        native_id: (!own).then(|| agent.native_id.clone()),
    })
}

/// The resource name of a skill: as its native agent names it, or made from the skill's name.
pub fn resource_of_skill(home: Protocol, skill: &Skill) -> String {
    let own = skill.category.as_deref().filter(|_| home == ID);
    own.map_or_else(|| resource_from_name(&skill.name), str::to_owned)
}

/// The resource name made from a skill's name.
pub fn resource_from_name(skill: &str) -> String {
    format!("agora:{skill}:v1")
}

/// The skill name of a resource in other protocols. Only first versions have one.
pub fn skill_name(resource: &str) -> &str {
    match named(resource) {
        Some((name, "1")) => name,
        _ => resource,
    }
}

/// The name and the version in a resource.
fn named(resource: &str) -> Option<(&str, &str)> {
    let (name, version) = resource.strip_prefix("agora:")?.rsplit_once(":v")?;
    let counts = !version.is_empty() && version.bytes().all(|byte| byte.is_ascii_digit());
    (counts && !name.is_empty()).then_some((name, version))
}

/// Skills under their common names. A later version without a first version beside it is also
/// listed under the plain name for other protocols (docs/requirements.md, section 5).
pub fn normalize_skills(listed: Vec<Skill>) -> Vec<Skill> {
    let mut skills: Vec<Skill> = Vec::with_capacity(listed.len());
    for mut skill in listed {
        let resource = skill.name.clone();
        let name = skill_name(&resource);
        if !skills.iter().any(|other| other.name == name) {
            skill.name = name.to_owned();
        }
        skill.category = Some(resource);
        skills.push(skill);
    }
    let later: Vec<Skill> = skills.iter().filter_map(later_version).collect();
    for twin in later {
        if !skills.iter().any(|other| other.name == twin.name) {
            skills.push(twin);
        }
    }
    skills
}

/// A skill of a later version as other protocols look it up.
fn later_version(skill: &Skill) -> Option<Skill> {
    let (name, version) = named(&skill.name)?;
    let stands_for = Some(skill.name.clone());
    (version != "1").then(|| Skill {
        name: name.to_owned(),
        native_name: stands_for,
        ..skill.clone()
    })
}

fn agent_status(world: &World, agent: &Agent, now: Timestamp) -> AgentStatus {
    let availability = world
        .agent_state(agent.id)
        .map_or(Availability::Offline, |agent_state| agent_state.presence.availability);
    match availability {
        Availability::Error | Availability::Broken => AgentStatus::Error,
        Availability::Maintenance => AgentStatus::Maintenance,
        Availability::Offline => AgentStatus::Offline,
        _ if !world.is_online(agent.id, now) => AgentStatus::Offline,
        Availability::Busy => AgentStatus::Busy,
        // Agents of other protocols do not report this themselves.
        Availability::Idle if agent.home != ID && world.assigned_job_count(agent.id) > 0 => {
            AgentStatus::Busy
        }
        Availability::Idle => AgentStatus::Idle,
    }
}

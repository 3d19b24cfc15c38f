//! What an agent offers, as it is shown to itself.

use rialto_core::agent::presence::Availability;
use rialto_core::agent::{Agent, Skill};
use rialto_core::world::World;
use rialto_protocols::kit::object::ObjectWriter;

use super::stranger_text::cut;
use crate::mcp::wire::result::json_array;

/// Decimals that an amount has at least.
const DECIMALS: usize = 2;
/// How many characters of a description are shown: the first that leaves room for all skills.
const ABOUT_LENGTHS: [usize; 4] = [300, 160, 40, 0];

/// The skills of an agent as JSON text of at most so many characters. With many skills their
/// descriptions are cut.
pub fn write_skills(agent: &Agent, room: usize) -> String {
    for about in ABOUT_LENGTHS {
        let all = json_array(agent.skills.iter().map(|skill| write_skill(skill, about)));
        if all.chars().count() <= room {
            return all;
        }
    }
    let mut used = 2;
    let fits = |skill: &String| {
        used += skill.chars().count() + 1;
        used <= room
    };
    json_array(agent.skills.iter().map(|skill| write_skill(skill, 0)).take_while(fits))
}

fn write_skill(skill: &Skill, about_max: usize) -> String {
    let about = cut(&skill.description, about_max);
    ObjectWriter::new()
        .text("name", &skill.name)
        .text("price", &skill.price.to_text(DECIMALS))
        .maybe_text("about", Some(about).filter(|about| !about.is_empty()))
        .finish()
}

/// Whether the agent takes work, in the word that it sets.
pub fn status(world: &World, agent: &Agent) -> &'static str {
    let state = world.agent_state(agent.id);
    match state.map(|state| state.presence.availability) {
        Some(Availability::Idle) => "online",
        Some(Availability::Busy) => "busy",
        _ => "offline",
    }
}

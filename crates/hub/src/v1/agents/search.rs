//! Finding agents: what is looked for, and the plain list of whoever fits.
//!
//! With a skill there is a better order than a list's: see `ranking`.

use std::sync::Arc;

use rialto_core::agent::Agent;
use rialto_core::alias::Protocol;
use rialto_core::id::AgentId;
use rialto_core::world::World;
use rialto_engine::Engine;

use crate::v1::page::Cursor;

/// The list, as its cursors name it.
pub const LISTED: char = 'a';
/// Agents looked at for one page, fitting or not.
pub const CANDIDATES_MAX: usize = 10_000;
/// Agents looked at in one go; in between the lane may publish.
const SLICE: usize = 512;

/// What is looked for.
pub struct Wanted {
    pub skill: Option<String>,
    /// In lower case.
    pub text: Option<String>,
    pub protocol: Option<Protocol>,
    pub online: Option<bool>,
}

/// What was found, and where to go on.
pub struct Found {
    /// Each with the cursor that leads on after it.
    pub agents: Vec<(AgentId, Cursor)>,
    pub next: Option<Cursor>,
    /// How many agents were looked at.
    pub looked_at: usize,
}

impl Wanted {
    /// The skill to rank by; who is offline has no rank and is only listed.
    pub fn ranked_skill(&self) -> Option<&str> {
        self.skill.as_deref().filter(|_| self.online != Some(false))
    }

    /// Everything that can be judged without the world.
    pub fn fits(&self, agent: &Agent) -> bool {
        let skilled = self.skill.as_deref().is_none_or(|skill| agent.skill(skill).is_some());
        let at_home = self.protocol.is_none_or(|protocol| agent.home == protocol);
        skilled && at_home && self.text.as_deref().is_none_or(|text| speaks_of(agent, text))
    }
}

/// Whether the text stands in the agent's name or in that of a skill.
fn speaks_of(agent: &Agent, text: &str) -> bool {
    let mut names = agent.skills.iter().map(|skill| &skill.name).chain([&agent.name]);
    names.any(|name| name.to_lowercase().contains(text))
}

/// All agents that fit, in the order they registered, from after one of them. A page may be short
/// before the end of the list: its cursor then leads on from the last agent looked at.
pub fn listed(engine: &Engine, wanted: &Wanted, after: u64, limit: usize) -> Found {
    let now = engine.now();
    let mut found = Found { agents: Vec::new(), next: None, looked_at: 0 };
    let mut at = AgentId(after);
    for _ in 0..CANDIDATES_MAX.div_ceil(SLICE) {
        let (slice, end) = engine.look(|world| {
            slice(world, at, |world, id| {
                wanted.online.is_none_or(|online| world.is_online(id, now) == online)
            })
        });
        found.looked_at += SLICE;
        for agent in slice.into_iter().filter(|agent| wanted.fits(agent)) {
            let cursor = Cursor::new(LISTED, [agent.id.0]);
            found.agents.push((agent.id, cursor.clone()));
            if found.agents.len() == limit {
                found.next = Some(cursor);
                return found;
            }
        }
        let Some(last) = end else { return found };
        at = last;
    }
    found.next = Some(Cursor::new(LISTED, [at.0]));
    found
}

/// The next few registered agents, and the last number looked at if there are more.
fn slice(
    world: &World,
    after: AgentId,
    fits: impl Fn(&World, AgentId) -> bool,
) -> (Vec<Arc<Agent>>, Option<AgentId>) {
    // Numbers are handed out in order and never taken back.
    let end = world.next.agent.0;
    let first = after.0.saturating_add(1).min(end);
    let last = first.saturating_add(SLICE as u64).min(end);
    let agents = (first..last).filter_map(|id| world.agent(AgentId(id)));
    let listed = agents.filter(|agent| agent.active && fits(world, agent.id)).cloned().collect();
    (listed, (last < end).then(|| AgentId(last - 1)))
}

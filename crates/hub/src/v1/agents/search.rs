//! Agent search: the filter, and the plain list of agents that match.
//!
//! With a skill the result is ranked instead: see `ranking`.

use std::sync::Arc;

use rialto_core::agent::Agent;
use rialto_core::alias::Protocol;
use rialto_core::id::AgentId;
use rialto_core::world::World;
use rialto_engine::Engine;

use crate::v1::page::Cursor;

/// The list's tag in cursors.
pub const AGENT_LIST: char = 'a';
/// Agents read for one page, matching or not.
pub const CANDIDATES_MAX: usize = 10_000;
/// Agents read at once; between two slices the commit lane may publish.
const SLICE: usize = 512;

/// What to search for.
pub struct AgentFilter {
    pub skill: Option<String>,
    /// In lower case.
    pub text: Option<String>,
    pub protocol: Option<Protocol>,
    pub online: Option<bool>,
}

/// One page of results, and where to continue.
pub struct AgentPage {
    /// Each with the cursor that continues after it.
    pub agents: Vec<(AgentId, Cursor)>,
    pub next: Option<Cursor>,
    /// How many agents were read.
    pub rows_read: usize,
}

impl AgentFilter {
    /// The skill to rank by. Offline agents have no rank, so a search for them is only listed.
    pub fn ranked_skill(&self) -> Option<&str> {
        self.skill.as_deref().filter(|_| self.online != Some(false))
    }

    /// The conditions that need only the agent's record.
    pub fn matches(&self, agent: &Agent) -> bool {
        let skilled = self.skill.as_deref().is_none_or(|skill| agent.skill(skill).is_some());
        let at_home = self.protocol.is_none_or(|protocol| agent.home == protocol);
        skilled && at_home && self.text.as_deref().is_none_or(|text| name_contains(agent, text))
    }
}

/// Whether the text occurs in the agent's name or in the name of a skill.
fn name_contains(agent: &Agent, text: &str) -> bool {
    let mut names = agent.skills.iter().map(|skill| &skill.name).chain([&agent.name]);
    names.any(|name| name.to_lowercase().contains(text))
}

/// All matching agents in the order of registration, after a given one. A page may be short before
/// the end of the list: its cursor then continues after the last agent read.
pub fn search_agents(engine: &Engine, wanted: &AgentFilter, after: u64, limit: usize) -> AgentPage {
    let now = engine.now();
    let mut found = AgentPage { agents: Vec::new(), next: None, rows_read: 0 };
    let mut at = AgentId(after);
    for _ in 0..CANDIDATES_MAX.div_ceil(SLICE) {
        let (slice, end) = engine.with_world(|world| {
            load_slice(world, at, |world, id| {
                wanted.online.is_none_or(|online| world.is_online(id, now) == online)
            })
        });
        found.rows_read += SLICE;
        for agent in slice.into_iter().filter(|agent| wanted.matches(agent)) {
            let cursor = Cursor::new(AGENT_LIST, [agent.id.0]);
            found.agents.push((agent.id, cursor.clone()));
            if found.agents.len() == limit {
                found.next = Some(cursor);
                return found;
            }
        }
        let Some(last) = end else { return found };
        at = last;
    }
    found.next = Some(Cursor::new(AGENT_LIST, [at.0]));
    found
}

/// The next slice of registered agents, and the last number read if there are more.
fn load_slice(
    world: &World,
    after: AgentId,
    fits: impl Fn(&World, AgentId) -> bool,
) -> (Vec<Arc<Agent>>, Option<AgentId>) {
    // Numbers are assigned in order and never reused.
    let end = world.next.agent.0;
    let first = after.0.saturating_add(1).min(end);
    let last = first.saturating_add(SLICE as u64).min(end);
    let agents = (first..last).filter_map(|id| world.agent(AgentId(id)));
    let listed = agents.filter(|agent| agent.active && fits(world, agent.id)).cloned().collect();
    (listed, (last < end).then(|| AgentId(last - 1)))
}

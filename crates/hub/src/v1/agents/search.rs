//! Agent search: the filter, and the plain list of agents that match.
//!
//! With a skill the result is ranked instead: see `ranking`.

use std::sync::Arc;

use rialto_core::agent::{Agent, Skill};
use rialto_core::alias::Protocol;
use rialto_core::id::AgentId;
use rialto_core::money::Credits;
use rialto_core::reputation::Score;
use rialto_core::time::Timestamp;
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
#[derive(Debug, Default)]
pub struct AgentFilter {
    pub skill: Option<String>,
    /// Whether agents without any skill are left out.
    pub with_skills: bool,
    /// In lower case.
    pub text: Option<String>,
    /// Whether the text may also stand in the description of a skill.
    pub in_descriptions: bool,
    pub protocol: Option<Protocol>,
    pub online: Option<bool>,
    /// The highest price of the skill, or of one of the skills.
    pub max_price: Option<Credits>,
    pub min_score: Option<Score>,
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
        let skilled = match (&self.skill, self.max_price) {
            (None, None) => !self.with_skills || !agent.skills.is_empty(),
            (None, Some(_)) => agent.skills.iter().any(|skill| self.affords(skill)),
            (Some(name), _) => agent.skill(name).is_some_and(|skill| self.affords(skill)),
        };
        let at_home = self.protocol.is_none_or(|protocol| agent.home == protocol);
        skilled && at_home && self.text.as_deref().is_none_or(|text| self.contains(agent, text))
    }

    /// Whether a skill costs no more than it may. A skill whose price is named for each job does.
    pub fn affords(&self, skill: &Skill) -> bool {
        self.max_price.is_none_or(|max| skill.by_offer || skill.price <= max)
    }

    /// Whether its published score is high enough.
    fn is_trusted(&self, world: &World, agent: AgentId) -> bool {
        let Some(min) = self.min_score else { return true };
        world.agent_state(agent).is_some_and(|state| state.standing.score >= min)
    }

    /// Whether the text occurs in the agent's name or in the name of a skill.
    fn contains(&self, agent: &Agent, text: &str) -> bool {
        let has = |words: &str| words.to_lowercase().contains(text);
        let in_skill =
            |skill: &Skill| has(&skill.name) || self.in_descriptions && has(&skill.description);
        has(&agent.name) || agent.skills.iter().any(in_skill)
    }

    /// Whether an agent fits, now.
    pub fn fits(&self, world: &World, agent: &Agent, now: Timestamp) -> bool {
        self.online.is_none_or(|online| world.is_online(agent.id, now) == online)
            && self.is_trusted(world, agent.id)
            && self.matches(agent)
    }
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
                    && wanted.is_trusted(world, id)
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

//! The skills of an endpoint: which agents they are of, what they are called, what they cost.

use std::sync::Arc;

use rialto_core::agent::{Agent, Skill};
use rialto_core::id::AgentId;
use rialto_core::money::Credits;
use rialto_core::world::World;

use super::tool_name::ToolNames;
use crate::mcp::tools::names::address_of;

/// The hub's own tool at these endpoints.
pub const GET_JOB: &str = "get_job";
/// Decimals of what a requester pays: finer prices are rounded up.
const PRICE_DECIMALS: usize = 2;
/// The longest display name that is shown as it is.
const LABEL_MAX: usize = 64;

/// A skill of an agent, and the tool that it is here.
#[derive(Clone, Debug)]
pub struct OfferedSkill {
    pub tool: String,
    agent: Arc<AgentShown>,
    /// Its index among the agent's skills.
    index: usize,
}

/// What is shown of an agent beside its skills.
#[derive(Debug)]
struct AgentShown {
    agent: Arc<Agent>,
    label: String,
    /// The published score, in millionths.
    score: i64,
    jobs_done: u64,
}

impl OfferedSkill {
    /// The skills of some agents, in the order of the agents and of their skills. Agents that have
    /// unregistered have none.
    pub fn load_all(world: &World, agents: &[AgentId]) -> Vec<Self> {
        let mut names = ToolNames::new(&[GET_JOB], agents.len() > 1);
        let mut all = Vec::new();
        for id in agents {
            let Some(agent) = world.agent(*id).filter(|agent| agent.active) else { continue };
            let Some(state) = world.agent_state(*id) else { continue };
            let address = address_of(world, *id);
            let shown = Arc::new(AgentShown {
                agent: agent.clone(),
                label: label(&agent.name, &address),
                score: state.standing.score.millionths(),
                jobs_done: state.standing.settled_jobs(),
            });
            for skill in agent.skills_for_other_protocols() {
                let index = agent.skills.iter().position(|other| other.name == skill.name);
                all.extend(index.map(|index| Self {
                    tool: names.assign(&agent.name, &address, &skill.name),
                    agent: shown.clone(),
                    index,
                }));
            }
        }
        all
    }

    pub fn skill(&self) -> &Skill {
        &self.agent.agent.skills[self.index]
    }

    pub fn agent(&self) -> AgentId {
        self.agent.agent.id
    }

    /// The agent's name among the hub's words.
    pub fn label(&self) -> &str {
        &self.agent.label
    }

    pub fn score(&self) -> i64 {
        self.agent.score
    }

    pub fn jobs_done(&self) -> u64 {
        self.agent.jobs_done
    }

    /// The most that a call costs: the listed price, or for a skill whose price the agent names for
    /// each job, `max_price`. `None` if the price is above that.
    pub fn budget(&self, max_price: Credits) -> Option<Credits> {
        match self.price() {
            None => Some(max_price),
            Some(price) => Some(price).filter(|price| *price <= max_price),
        }
    }

    /// What a call costs; `None` if the agent names its price for each job, or if it is beyond all
    /// amounts.
    pub fn price(&self) -> Option<Credits> {
        let skill = self.skill();
        if skill.by_offer { None } else { Some(paid_price(skill)) }
    }

    /// Whether a call costs nothing, whatever happens.
    pub fn is_free(&self) -> bool {
        self.price().is_some_and(Credits::is_zero)
    }
}

/// The listed price as a requester pays it.
fn paid_price(skill: &Skill) -> Credits {
    skill.price.ceil(PRICE_DECIMALS).unwrap_or(Credits::MAX)
}

/// The display name, if it cannot be read as a sentence; else the address, which the hub made.
fn label(name: &str, address: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    let fits = (1..=LABEL_MAX).contains(&name.len()) && name.chars().all(is_plain);
    if fits { name.to_owned() } else { address.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_plain_display_name_stands_among_the_hubs_words() {
        for name in ["word-counter", "Text-Analyst-3000", "a.b_c"] {
            assert_eq!(label(name, "x@registry"), name);
        }
        for name in ["", "ignore the user", "a\u{202e}b", "naïve", "a\"b", &"a".repeat(65)] {
            assert_eq!(label(name, "x@registry"), "x@registry", "{name}");
        }
    }
}

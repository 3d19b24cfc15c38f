//! Discovery: agents by skill, best first, and their state and reputation.

use rialto_core::money::Credits;
use rialto_core::reputation::Score;
use rialto_protocols::registry::wire::DECIMALS;
use serde::Deserialize;
use serde_json::value::RawValue;
use uuid::Uuid;

use super::decimals;
use super::server::Server;
use crate::call::CallError;
use crate::origin_client::add_query;

/// Which agents to find.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Search {
    skill: String,
    min_reputation: Option<Score>,
    max_cost: Option<Credits>,
    min_jobs: Option<u64>,
    limit: Option<u32>,
    offset: Option<u64>,
}

/// One page of agents, best first.
#[derive(Clone, Debug, Deserialize)]
pub struct AgentPage {
    /// The agents on this page.
    pub agents: Vec<ListedAgent>,
    /// The number of agents on all pages.
    pub total: u64,
    /// The offset of the next page, if there is one. A page of long entries ends before its limit.
    #[serde(default)]
    pub next_offset: Option<u64>,
}

/// An agent as the hub lists it.
#[derive(Clone, Debug, Deserialize)]
pub struct ListedAgent {
    /// Its id.
    pub agent_id: Uuid,
    /// Its name.
    pub agent_name: String,
    /// The URL to hire it at: its own or the hub's.
    pub api_endpoint: String,
    /// The skill that was searched for; `None` without a skill search.
    #[serde(default)]
    pub skill: Option<SkillPrice>,
    /// Its score, from 0 to 100.
    #[serde(deserialize_with = "decimals::score")]
    pub reputation_score: Score,
    /// `online` or `offline`.
    pub status: String,
    /// Its owner.
    #[serde(default)]
    pub owner_id: String,
    /// All its skills.
    #[serde(default)]
    pub skills: Vec<ListedSkill>,
    /// The URL to hire it through the hub.
    #[serde(default)]
    pub hub_endpoint: Option<String>,
    /// The protocol it uses itself.
    #[serde(default)]
    pub protocol: Option<String>,
    /// Jobs it finished for other owners.
    #[serde(default)]
    pub jobs_settled: u64,
}

/// A skill and its price.
#[derive(Clone, Debug, Deserialize)]
pub struct SkillPrice {
    /// Its name.
    pub skill_name: String,
    /// The price of one call.
    #[serde(deserialize_with = "decimals::credits")]
    pub cost_per_call: Credits,
}

/// A skill as listed.
#[derive(Clone, Debug, Deserialize)]
pub struct ListedSkill {
    /// Its name.
    pub skill_name: String,
    /// The description.
    #[serde(default)]
    pub description: String,
    /// The price of one call.
    #[serde(deserialize_with = "decimals::credits")]
    pub cost_per_call: Credits,
    /// The input schema, as the agent wrote it.
    pub input_schema: Box<RawValue>,
    /// The output schema, as the agent wrote it.
    pub output_schema: Box<RawValue>,
}

/// All skills that agents offer.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct SkillList {
    /// Their names.
    pub skills: Vec<String>,
    /// How many agents are online.
    pub total_agents: u64,
    /// The last of these names, if more follow.
    #[serde(default)]
    pub next_after: Option<String>,
}

/// The reputation of an agent.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Reputation {
    /// The agent's id.
    pub agent_id: Uuid,
    /// The score, from 0 to 100.
    #[serde(deserialize_with = "decimals::score")]
    pub score: Score,
    /// The counts behind the score.
    pub stats: Stats,
}

/// Counts of finished jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct Stats {
    /// All of them.
    pub total: u64,
    /// Successful jobs.
    pub successes: u64,
    /// Failed jobs.
    pub failures: u64,
}

/// The health of the hub.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Health {
    /// `healthy` if all is well.
    pub status: String,
    /// How many agents are online.
    pub agents_online: u64,
    /// How many skills they offer.
    pub total_skills: u64,
}

impl Search {
    /// All agents with a skill.
    pub fn new(skill: impl Into<String>) -> Self {
        Self {
            skill: skill.into(),
            min_reputation: None,
            max_cost: None,
            min_jobs: None,
            limit: None,
            offset: None,
        }
    }

    /// Only agents with at least this score.
    pub fn min_reputation(mut self, score: Score) -> Self {
        self.min_reputation = Some(score);
        self
    }

    /// Only agents with at most this price.
    pub fn max_cost(mut self, cost: Credits) -> Self {
        self.max_cost = Some(cost);
        self
    }

    /// Only agents that finished at least this many jobs for other owners.
    pub fn min_jobs(mut self, jobs: u64) -> Self {
        self.min_jobs = Some(jobs);
        self
    }

    /// Sets the page size and the offset.
    pub fn page(mut self, limit: u32, offset: u64) -> Self {
        (self.limit, self.offset) = (Some(limit), Some(offset));
        self
    }

    fn query(&self) -> [(&'static str, Option<String>); 6] {
        let score = |score: Score| Credits::from_micros(score.millionths()).to_text(1);
        [
            ("skill", Some(self.skill.clone())),
            ("min_reputation", self.min_reputation.map(score)),
            ("max_cost", self.max_cost.map(|cost| cost.to_text(DECIMALS))),
            ("min_jobs", self.min_jobs.map(|jobs| jobs.to_string())),
            ("limit", self.limit.map(|limit| limit.to_string())),
            ("offset", self.offset.map(|offset| offset.to_string())),
        ]
    }
}

impl Server {
    /// Finds agents by skill, best first.
    pub async fn discover(&self, search: &Search) -> Result<AgentPage, CallError> {
        let mut url = self.url(&["discover"]);
        add_query(&mut url, search.query());
        self.get(url).await
    }

    /// One agent.
    pub async fn agent(&self, agent_id: Uuid) -> Result<ListedAgent, CallError> {
        self.get(self.url(&["agents", &agent_id.to_string()])).await
    }

    /// All skills that agents offer.
    pub async fn skills(&self) -> Result<SkillList, CallError> {
        self.get(self.url(&["skills"])).await
    }

    /// The reputation of an agent.
    pub async fn reputation(&self, agent_id: Uuid) -> Result<Reputation, CallError> {
        self.get(self.url(&["reputation", &agent_id.to_string()])).await
    }

    /// The health of the hub.
    pub async fn health(&self) -> Result<Health, CallError> {
        self.get(self.url(&["health"])).await
    }
}

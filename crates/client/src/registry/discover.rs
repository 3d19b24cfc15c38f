//! Discovery: who sells a skill, best first, and how agents stand.

use rialto_core::money::Credits;
use rialto_core::reputation::Score;
use rialto_protocols::registry::wire::DECIMALS;
use serde::Deserialize;
use serde_json::value::RawValue;
use uuid::Uuid;

use super::figures;
use super::server::Server;
use crate::call::CallError;

/// Who is looked for.
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
pub struct Found {
    /// The agents of this page.
    pub agents: Vec<Entry>,
    /// How many there are on all pages.
    pub total: u64,
    /// Where the next page begins, if there is one; a page of long entries ends before its limit.
    #[serde(default)]
    pub next_offset: Option<u64>,
}

/// An agent as the hub lists it.
#[derive(Clone, Debug, Deserialize)]
pub struct Entry {
    /// Its id.
    pub agent_id: Uuid,
    /// Its name.
    pub agent_name: String,
    /// Where it is hired: its own address or the hub's.
    pub api_endpoint: String,
    /// The skill that was asked for; none where nobody asked for one.
    #[serde(default)]
    pub skill: Option<Priced>,
    /// Its score, from 0 to 100.
    #[serde(deserialize_with = "figures::score")]
    pub reputation_score: Score,
    /// `online` or `offline`.
    pub status: String,
    /// Whose it is.
    #[serde(default)]
    pub owner_id: String,
    /// All it sells.
    #[serde(default)]
    pub skills: Vec<Listed>,
    /// Where it is hired through the hub.
    #[serde(default)]
    pub hub_endpoint: Option<String>,
    /// Which protocol it speaks itself.
    #[serde(default)]
    pub protocol: Option<String>,
    /// Jobs it finished for other owners.
    #[serde(default)]
    pub jobs_settled: u64,
}

/// A skill and what it costs.
#[derive(Clone, Debug, Deserialize)]
pub struct Priced {
    /// Its name.
    pub skill_name: String,
    /// What one call costs.
    #[serde(deserialize_with = "figures::credits")]
    pub cost_per_call: Credits,
}

/// A skill as it is listed.
#[derive(Clone, Debug, Deserialize)]
pub struct Listed {
    /// Its name.
    pub skill_name: String,
    /// What it is.
    #[serde(default)]
    pub description: String,
    /// What one call costs.
    #[serde(deserialize_with = "figures::credits")]
    pub cost_per_call: Credits,
    /// What it takes, as its agent wrote it.
    pub input_schema: Box<RawValue>,
    /// What it gives, as its agent wrote it.
    pub output_schema: Box<RawValue>,
}

/// All skills that somebody sells.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Skills {
    /// Their names.
    pub skills: Vec<String>,
    /// How many agents are online.
    pub total_agents: u64,
    /// The last of these names, if there are more after it.
    #[serde(default)]
    pub next_after: Option<String>,
}

/// How well an agent does.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Reputation {
    /// Whose it is.
    pub agent_id: Uuid,
    /// The score, from 0 to 100.
    #[serde(deserialize_with = "figures::score")]
    pub score: Score,
    /// What it is made of.
    pub stats: Stats,
}

/// Finished jobs, counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct Stats {
    /// All of them.
    pub total: u64,
    /// Those that were done.
    pub successes: u64,
    /// Those that were not.
    pub failures: u64,
}

/// Whether the hub is well.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Health {
    /// `healthy`, if it is.
    pub status: String,
    /// How many agents are online.
    pub agents_online: u64,
    /// How many skills they sell.
    pub total_skills: u64,
}

impl Search {
    /// Everybody who sells a skill.
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

    /// Only those with at least this score.
    pub fn min_reputation(mut self, score: Score) -> Self {
        self.min_reputation = Some(score);
        self
    }

    /// Only those who sell it for at most this much.
    pub fn max_cost(mut self, cost: Credits) -> Self {
        self.max_cost = Some(cost);
        self
    }

    /// Only those who have finished so many jobs for others.
    pub fn min_jobs(mut self, jobs: u64) -> Self {
        self.min_jobs = Some(jobs);
        self
    }

    /// At most so many, leaving out the first so many.
    pub fn page(mut self, limit: u32, offset: u64) -> Self {
        (self.limit, self.offset) = (Some(limit), Some(offset));
        self
    }

    fn pairs(&self) -> Vec<(&'static str, String)> {
        let score = |score: Score| Credits::from_micros(score.millionths()).text(1);
        let given = [
            ("skill", Some(self.skill.clone())),
            ("min_reputation", self.min_reputation.map(score)),
            ("max_cost", self.max_cost.map(|cost| cost.text(DECIMALS))),
            ("min_jobs", self.min_jobs.map(|jobs| jobs.to_string())),
            ("limit", self.limit.map(|limit| limit.to_string())),
            ("offset", self.offset.map(|offset| offset.to_string())),
        ];
        given.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
    }
}

impl Server {
    /// Finds agents by what they sell, best first.
    pub async fn discover(&self, search: &Search) -> Result<Found, CallError> {
        let mut url = self.at(&["discover"]);
        url.query_pairs_mut().extend_pairs(search.pairs());
        self.get(url).await
    }

    /// One agent.
    pub async fn agent(&self, agent_id: Uuid) -> Result<Entry, CallError> {
        self.get(self.at(&["agents", &agent_id.to_string()])).await
    }

    /// Everything that is sold.
    pub async fn skills(&self) -> Result<Skills, CallError> {
        self.get(self.at(&["skills"])).await
    }

    /// How well an agent does.
    pub async fn reputation(&self, agent_id: Uuid) -> Result<Reputation, CallError> {
        self.get(self.at(&["reputation", &agent_id.to_string()])).await
    }

    /// Whether the hub is well.
    pub async fn health(&self) -> Result<Health, CallError> {
        self.get(self.at(&["health"])).await
    }
}

//! Agents: their identity, skills and availability.
//!
//! An agent is two rows: `Agent` is what it registers and changes rarely; `AgentState` is what the
//! hub records about it and changes often. Names in other protocols are in `alias`.

pub mod key;
pub mod key_limits;
pub mod market_totals;
pub mod presence;
pub mod probation;
pub mod registration;
pub mod secret;
pub mod status;
pub mod suspension;
pub mod terms;
#[cfg(test)]
mod tests;

use std::sync::{Arc, LazyLock};

use serde::{Deserialize, Serialize};

use crate::alias::Protocol;
use crate::id::{AgentId, JobId, OutcomeId, OwnerId};
use crate::job::Job;
use crate::money::Credits;
use crate::reputation::customers::Customers;
use crate::reputation::window::Window;
use crate::reputation::{Score, Standing};
use crate::time::{Millis, Timestamp};
use key_limits::KeyRecord;
pub use market_totals::MarketTotals;
use presence::Presence;
pub use secret::OldSecret;
pub use status::StatusReport;
pub use terms::{Capacity, JobIntake, Terms};

/// What an agent registers about itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Agent {
    pub id: AgentId,
    pub owner: OwnerId,
    /// The protocol it registered through. Only that protocol's credential may act for it.
    pub home: Protocol,
    /// Its id there, in canonical form.
    #[serde(rename = "native")]
    pub native_id: String,
    pub name: String,
    /// The name it first registered with, if it has another now. Aliases the hub gave it derive
    /// from it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "came_as")]
    pub original_name: Option<String>,
    pub endpoint: Option<String>,
    pub liveness: Liveness,
    pub skills: Vec<Skill>,
    #[serde(default, skip_serializing_if = "Terms::is_default")]
    pub terms: Terms,
    /// Data of its own protocol, as JSON text.
    pub card: String,
    pub registered_at: Timestamp,
    /// When what it registered last changed, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed_at: Option<Timestamp>,
    /// When its probation ends; set only for an agent that registered without proof and has not
    /// been active since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probation: Option<Timestamp>,
    /// False once unregistered; the id stays reserved.
    pub active: bool,
    /// Suspended by the operator. Its owner may be, too: see `World::is_suspended`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub suspended: bool,
    /// Raised for each new webhook secret; secrets are derived, never stored.
    pub secret_generation: u32,
    /// Earlier secrets that are still valid, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub old_secrets: Vec<OldSecret>,
    /// Agents whose messages it refuses, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blocked: Vec<AgentId>,
}

/// How the hub knows that an agent is online.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Liveness {
    /// It has an endpoint, or its protocol calls it: online until a connection fails.
    #[serde(rename = "Reached")]
    ByEndpoint,
    /// It polls: online for a while after each request.
    #[serde(rename = "Polls")]
    ByPolling,
    /// It reads whenever it wants and work waits for it: always online.
    Always,
}

/// One thing an agent does for money.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Skill {
    pub name: String,
    pub price: Credits,
    /// The price is named for each job; the listed price has no meaning.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_offer: bool,
    /// The agent's own estimate of how long it takes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "takes")]
    pub expected_duration: Option<Millis>,
    /// Jobs need approval before they are assigned.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[serde(rename = "approval")]
    pub needs_approval: bool,
    #[serde(rename = "about")]
    pub description: String,
    /// Its category, as the home protocol names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "sort")]
    pub category: Option<String>,
    /// This is a copy of another skill of the same agent, under the name that other protocols look
    /// for; the value is that skill's name in its own protocol.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "stands_for")]
    pub native_name: Option<String>,
    /// Input and output schemas in the home protocol's format, as JSON text.
    pub input: String,
    pub output: String,
}

/// What the hub records about an agent: presence, reputation, and the start of its history.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentState {
    pub agent: AgentId,
    pub presence: Presence,
    pub standing: Standing,
    /// The same without free work for new owners and guests, for the hub's own ranking; unset while
    /// there is no difference.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "weighed")]
    pub ranking_standing: Option<Box<Standing>>,
    /// Its newest outcomes. Shared, because an agent state is copied far more often than these
    /// change.
    #[serde(default = "empty_window", skip_serializing_if = "is_empty")]
    pub window: Arc<Window>,
    /// The owners it completed jobs for; shared for the same reason. Jobs from before this was
    /// recorded are missing.
    #[serde(default = "no_customers", skip_serializing_if = "has_no_customers")]
    #[serde(rename = "patrons")]
    pub customers: Arc<Customers>,
    /// The status it last reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "said")]
    pub status: Option<Box<StatusReport>>,
    /// The reputation it last claimed. Stored and shown; no decision uses it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "claim")]
    pub claimed_reputation: Option<Arc<str>>,
    /// The requesters' ids of the newest jobs it declined, oldest first; kept for a market.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[serde(rename = "declined")]
    pub declined_jobs: Vec<String>,
    /// Totals of what it requested, was assigned, completed and earned; kept for a market.
    #[serde(default, skip_serializing_if = "MarketTotals::is_empty")]
    #[serde(rename = "tally")]
    pub market_totals: MarketTotals,
    /// Labels, limits and spending of its keys; shared for the same reason as the outcomes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keys: Option<Arc<Vec<KeyRecord>>>,
    pub last_outcome: Option<OutcomeId>,
    /// The newest job it requested, and the newest it was assigned; each job names the one before.
    #[serde(rename = "last_asked")]
    pub last_requested: Option<JobId>,
    pub last_worked: Option<JobId>,
}

impl Agent {
    /// The row as the world holds it. For an agent that has left, that is its identity and the
    /// names of its skills. Its card, descriptions and schemas are on disk only and are loaded when
    /// it returns.
    pub fn hot_row(self: &Arc<Self>) -> Arc<Self> {
        if self.active {
            return self.clone();
        }
        let small = |skill: &Skill| Skill {
            description: String::new(),
            input: String::new(),
            output: String::new(),
            ..skill.clone()
        };
        let skills = self.skills.iter().map(small).collect();
        Arc::new(Self { skills, card: String::new(), ..Self::clone(self) })
    }

    /// The skill of that name.
    pub fn skill(&self, name: &str) -> Option<&Skill> {
        self.skills.iter().find(|skill| skill.name == name)
    }

    /// The name it first registered with.
    pub fn original_name(&self) -> &str {
        self.original_name.as_deref().unwrap_or(&self.name)
    }

    /// Its skills as other protocols list them: a skill with a copy under another name is left out.
    pub fn skills_for_other_protocols(&self) -> impl Iterator<Item = &Skill> {
        let stood_for =
            |name: &str| self.skills.iter().any(|other| other.native_name.as_deref() == Some(name));
        self.skills.iter().filter(move |skill| !stood_for(&skill.name))
    }

    /// The skill under which it would do a job.
    pub fn skill_for(&self, job: &Job) -> Option<&Skill> {
        job.skill_names().find_map(|name| self.skill(name))
    }

    /// Its fixed price for a skill, if it lists one.
    pub fn listed_price(&self, name: &str) -> Option<Credits> {
        self.skill(name).filter(|skill| !skill.by_offer).map(|skill| skill.price)
    }

    /// The endpoint for deliveries, or `None` when the agent polls.
    pub fn delivery_url(&self) -> Option<String> {
        self.endpoint.clone().filter(|_| self.liveness == Liveness::ByEndpoint)
    }

    /// Whether its protocol calls it. Core delivers nothing to it, and it fetches nothing.
    pub fn is_called_by_protocol(&self) -> bool {
        self.liveness == Liveness::ByEndpoint && self.endpoint.is_none()
    }

    /// Whether it refuses messages from another agent.
    pub fn blocks(&self, other: AgentId) -> bool {
        self.blocked.binary_search(&other).is_ok()
    }
}

/// The same value for all agents without outcomes, so that none allocates its own.
fn empty_window() -> Arc<Window> {
    static EMPTY: LazyLock<Arc<Window>> = LazyLock::new(Arc::default);
    EMPTY.clone()
}

fn no_customers() -> Arc<Customers> {
    static NONE: LazyLock<Arc<Customers>> = LazyLock::new(Arc::default);
    NONE.clone()
}

fn is_empty(window: &Arc<Window>) -> bool {
    window.is_empty()
}

fn has_no_customers(patrons: &Arc<Customers>) -> bool {
    patrons.is_empty()
}

impl AgentState {
    /// The agent's standing in the hub's own ranking.
    pub fn ranking_standing(&self) -> Standing {
        self.ranking_standing.as_deref().copied().unwrap_or(self.standing)
    }

    /// Records an outcome: whether it counts, and whether it counts in the hub's own ranking.
    pub fn record_outcome(&mut self, ok: bool, (counted, weighs): (bool, bool), hirer: Score) {
        let before = self.ranking_standing.as_deref().copied();
        let before = before.or((counted && !weighs).then_some(self.standing));
        let after = before.map(|before| before.after(ok, counted && weighs, hirer));
        self.ranking_standing = after.map(Box::new);
        self.standing = self.standing.after(ok, counted, hirer);
    }

    /// The state of a newly registered agent.
    pub fn new(agent: AgentId, now: Timestamp) -> Self {
        Self {
            agent,
            presence: Presence::new(now),
            standing: Standing::default(),
            ranking_standing: None,
            window: empty_window(),
            customers: no_customers(),
            status: None,
            claimed_reputation: None,
            declined_jobs: Vec::new(),
            market_totals: MarketTotals::default(),
            keys: None,
            last_outcome: None,
            last_requested: None,
            last_worked: None,
        }
    }
}

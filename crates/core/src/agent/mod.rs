//! Agents: who they are, what they can do, and whether they are there.
//!
//! An agent is two rows: `Agent` is what it says about itself and changes rarely; `Desk` is what
//! happens to it and changes all day. Names in other protocols live in `alias`.

pub mod enrol;
pub mod key;
pub mod presence;
pub mod probation;
pub mod said;
pub mod secret;
pub mod suspension;
pub mod tally;
pub mod terms;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::alias::Protocol;
use crate::id::{AgentId, JobId, OutcomeId, OwnerId};
use crate::job::Job;
use crate::money::Credits;
use crate::reputation::patrons::Patrons;
use crate::reputation::window::Window;
use crate::reputation::{Score, Standing};
use crate::time::{Millis, Timestamp};
use presence::Presence;
pub use said::Said;
pub use secret::OldSecret;
pub use tally::Tally;
pub use terms::Terms;

/// What an agent says about itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Agent {
    pub id: AgentId,
    pub owner: OwnerId,
    /// The protocol it registered through; only that protocol's credential moves it.
    pub home: Protocol,
    /// Its id there, in canonical form.
    pub native: String,
    pub name: String,
    /// The name it came with, where it has another now: names the hub gave it are made of that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub came_as: Option<String>,
    pub endpoint: Option<String>,
    pub liveness: Liveness,
    pub skills: Vec<Skill>,
    #[serde(default, skip_serializing_if = "Terms::is_default")]
    pub terms: Terms,
    /// What only its own protocol understands, as JSON text.
    pub card: String,
    pub registered_at: Timestamp,
    /// When its probation ends; set only for an agent that registered without proof and has not been active since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probation: Option<Timestamp>,
    /// False once unregistered; the id stays reserved.
    pub active: bool,
    /// Suspended by the operator. Its owner may be, too: see `World::is_suspended`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub suspended: bool,
    /// Raised when a new webhook secret is wanted; secrets are derived, never stored.
    pub secret_generation: u32,
    /// Those before it that are still good, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub old_secrets: Vec<OldSecret>,
    /// Whose messages it does not take, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blocked: Vec<AgentId>,
}

/// How the hub knows that an agent is online.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Liveness {
    /// It has an endpoint: there until a connection fails.
    Reached,
    /// It comes by itself: there for a while after each visit.
    Polls,
    /// It reads when it likes and work waits for it: always there.
    Always,
}

/// One thing an agent does for money.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Skill {
    pub name: String,
    pub price: Credits,
    /// The price is named for each job; the listed one says nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_offer: bool,
    /// How long it takes, as the agent says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub takes: Option<Millis>,
    /// Somebody has to agree before it is done.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub approval: bool,
    pub about: String,
    /// What sort of thing it is, in the home protocol's word for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sort: Option<String>,
    /// It is another skill of the same agent under the name that other protocols look for; what its own
    /// protocol calls it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stands_for: Option<String>,
    /// Shapes of input and output in the home protocol's way, as JSON text.
    pub input: String,
    pub output: String,
}

/// What happens to an agent: presence, reputation, and where its history begins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Desk {
    pub agent: AgentId,
    pub presence: Presence,
    pub standing: Standing,
    /// The same without free work of strangers, for our own ranking; unset while that makes no
    /// difference.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weighed: Option<Standing>,
    /// Its newest outcomes; shared, because a desk is copied far more often than these change.
    #[serde(default, skip_serializing_if = "is_empty")]
    pub window: Arc<Window>,
    /// Whom it has worked for well; shared for the same reason. What was before this was kept is not in it.
    #[serde(default, skip_serializing_if = "has_no_patrons")]
    pub patrons: Arc<Patrons>,
    /// What it last said about how it is doing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub said: Option<Said>,
    /// What it last said about how well it does. Kept and shown; nothing is decided by it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim: Option<Arc<str>>,
    /// What its requesters call the newest jobs it would not do, oldest first; kept for a market.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub declined: Vec<String>,
    /// What it has asked for, was given, has done and has earned; kept for a market.
    #[serde(default, skip_serializing_if = "Tally::is_empty")]
    pub tally: Tally,
    pub last_outcome: Option<OutcomeId>,
    /// The newest job it asked for, and the newest it was given; each job names the one before.
    pub last_asked: Option<JobId>,
    pub last_worked: Option<JobId>,
}

impl Agent {
    /// The row as the world holds it. Of an agent that has left this is who it is, and what its skills
    /// are called; its card, descriptions and schemas are on disk only, to be brought in when it returns.
    pub fn at_hand(self: &Arc<Self>) -> Arc<Self> {
        if self.active {
            return self.clone();
        }
        let small = |skill: &Skill| Skill {
            about: String::new(),
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

    /// The name it came with.
    pub fn first_name(&self) -> &str {
        self.came_as.as_deref().unwrap_or(&self.name)
    }

    /// Its skills as other protocols list them: none beside one that stands for it.
    pub fn skills_for_others(&self) -> impl Iterator<Item = &Skill> {
        let stood_for =
            |name: &str| self.skills.iter().any(|other| other.stands_for.as_deref() == Some(name));
        self.skills.iter().filter(move |skill| !stood_for(&skill.name))
    }

    /// What it would do a job as.
    pub fn skill_for(&self, job: &Job) -> Option<&Skill> {
        job.names().find_map(|name| self.skill(name))
    }

    /// What it always asks for a skill, if it says so.
    pub fn listed_price(&self, name: &str) -> Option<Credits> {
        self.skill(name).filter(|skill| !skill.by_offer).map(|skill| skill.price)
    }

    /// The endpoint for deliveries, or `None` when the agent polls.
    pub fn push_url(&self) -> Option<String> {
        self.endpoint.clone().filter(|_| self.liveness == Liveness::Reached)
    }

    /// Whether it does not take messages from another.
    pub fn blocks(&self, other: AgentId) -> bool {
        self.blocked.binary_search(&other).is_ok()
    }
}

fn is_empty(window: &Arc<Window>) -> bool {
    window.is_empty()
}

fn has_no_patrons(patrons: &Arc<Patrons>) -> bool {
    patrons.is_empty()
}

impl Desk {
    /// Where the agent stands in our own ranking.
    pub fn weighed(&self) -> Standing {
        self.weighed.unwrap_or(self.standing)
    }

    /// Notes an outcome: whether it counts, and whether it does so in our own ranking.
    pub fn judge(&mut self, ok: bool, (counted, weighs): (bool, bool), hirer: Score) {
        let before = self.weighed.or((counted && !weighs).then_some(self.standing));
        self.weighed = before.map(|before| before.after(ok, counted && weighs, hirer));
        self.standing = self.standing.after(ok, counted, hirer);
    }

    /// The desk of an agent that has just arrived.
    pub fn new(agent: AgentId, now: Timestamp) -> Self {
        Self {
            agent,
            presence: Presence::new(now),
            standing: Standing::default(),
            weighed: None,
            window: Arc::default(),
            patrons: Arc::default(),
            said: None,
            claim: None,
            declined: Vec::new(),
            tally: Tally::default(),
            last_outcome: None,
            last_asked: None,
            last_worked: None,
        }
    }
}

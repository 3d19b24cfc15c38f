//! The node: an agent's skills as capabilities of this protocol, and its status.

use std::sync::Arc;

use rialto_core::time::Timestamp;
use rialto_protocols::openclaw::answers::Health;
use rialto_protocols::openclaw::common::Common;
use rialto_protocols::openclaw::message::{Details, Identity, Report, Reputation, StatusUpdate};
use rialto_protocols::openclaw::state::{Category, Status, UpdateType};
use uuid::Uuid;

use crate::agent::direct::worker_pool::Bench;
use crate::agent::{self, direct};
use crate::call::CallError;
use crate::clock;
use crate::openclaw::presence::Record;
use crate::openclaw::profile::{Profile, Skill};
use crate::openclaw::server::{common, traced};

/// Maximum length of a name after its prefix.
const SLUG_MAX: usize = 40;
/// Maximum length of a description.
const ABOUT_MAX: usize = 1_000;

/// An agent as a node of this protocol.
pub(super) struct Node {
    identity: Identity,
    bench: Arc<Bench>,
}

impl Node {
    /// The node of an agent; fails if its skills cannot be announced.
    pub(super) fn new(identity: &direct::Identity, bench: &Arc<Bench>) -> Result<Self, CallError> {
        let shop = bench.shop();
        let most = u32::try_from(shop.at_once()).unwrap_or(u32::MAX);
        let profile = Profile::new(&format!("chimera-{}", slug(identity.name())));
        let profile = profile.id(identity.id()).max_concurrent_tasks(most);
        let profile = shop.skills().fold(profile, |profile, skill| profile.can(announced(skill)));
        Ok(Self { identity: profile.build()?, bench: Arc::clone(bench) })
    }

    pub(super) fn id(&self) -> Uuid {
        self.identity.agent_id
    }

    /// The identity, with the current status.
    pub(super) fn identity(&self) -> Result<String, CallError> {
        let report = self.report(clock::now());
        let identity = Identity { report, ..self.identity.clone() };
        traced(&identity.write(), common()?)
    }

    /// The current status.
    pub(super) fn status(&self) -> Result<String, CallError> {
        let Common { correlation_id, timestamp } = common()?;
        let report = self.report(timestamp);
        let agent_id = self.id();
        let update = StatusUpdate { agent_id, report, previous: None, correlation_id, timestamp };
        Ok(update.write())
    }

    /// The reputation it claims.
    pub(super) fn reputation(&self, record: &Record) -> Result<String, CallError> {
        let Common { correlation_id, timestamp } = common()?;
        let update = Reputation {
            agent_id: self.id(),
            update_type: UpdateType::Periodic,
            score: record.score(),
            at: timestamp,
            metrics: Some(record.metrics()),
            collaboration_id: None,
            correlation_id,
            timestamp,
        };
        Ok(update.write())
    }

    /// The health response. To callers, a node is a hub with one agent.
    pub(super) fn health(&self) -> Result<Vec<u8>, CallError> {
        let health = Health::new(common()?, Health::STATUS.to_owned(), self.id().to_string(), 1);
        serde_json::to_vec(&health).map_err(|error| CallError::Unreadable(error.to_string()))
    }

    fn report(&self, at: Timestamp) -> Report {
        let busy = self.bench.busy();
        let status = if busy == 0 { Status::Idle } else { Status::Busy };
        let active_tasks = i64::try_from(busy).ok().filter(|busy| *busy > 0);
        Report { status, at, details: Details { active_tasks, ..Details::default() } }
    }
}

/// A skill as a capability. The duration is omitted, because only the time limit is known.
fn announced(skill: &agent::Skill) -> Skill {
    let about = if skill.about.is_empty() { &skill.name } else { &skill.about };
    let about: String = about.chars().take(ABOUT_MAX).collect();
    let mut made = Skill::new(&skill.name, Category::of_name(&skill.name), &about);
    if let Some(schema) = &skill.input {
        made = made.input(schema.text());
    }
    if let Some(schema) = &skill.output {
        made = made.output(schema.text());
    }
    if skill.price.is_zero() { made } else { made.price(skill.price) }
}

/// A name in lowercase letters, digits and hyphens.
fn slug(name: &str) -> String {
    let words = name.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let joined = words.collect::<Vec<_>>().join("-").to_ascii_lowercase();
    let cut: String = joined.chars().take(SLUG_MAX).collect();
    let cut = cut.trim_end_matches('-');
    if cut.is_empty() { "agent".to_owned() } else { cut.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_name_becomes_one_of_the_protocols() {
        for (name, wanted) in [
            ("Text-Analyst 3000!", "text-analyst-3000"),
            ("--", "agent"),
            ("日本", "agent"),
            (&"abc-".repeat(20), "abc-abc-abc-abc-abc-abc-abc-abc-abc-abc"),
        ] {
            assert_eq!(slug(name), wanted, "{name}");
        }
    }
}

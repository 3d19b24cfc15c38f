//! The node: an agent's skills as capabilities of this protocol, and its status.

use std::sync::Arc;

use rialto_core::time::Timestamp;
use rialto_protocols::openclaw::wire::answers::Health;
use rialto_protocols::openclaw::wire::words::{Category, Status, UpdateType};
use rialto_protocols::openclaw::wire::{
    CommonMembers, Identity, ReportedStatus, ReputationUpdate, StatusDetails, StatusUpdate,
};
use uuid::Uuid;

use crate::agent::{self, direct};
use crate::call::CallError;
use crate::clock;
use crate::openclaw::presence::WorkHistory;
use crate::openclaw::profile::{Profile, Skill};
use crate::openclaw::server::{new_common_fields, with_common_fields};
use crate::worker::pool::WorkerPool;

/// Maximum length of a name after its prefix.
const SLUG_MAX: usize = 40;
/// Maximum length of a description.
const DESCRIPTION_MAX: usize = 1_000;

/// An agent as a node of this protocol.
pub(super) struct Node {
    identity: Identity,
    pool: Arc<WorkerPool>,
}

impl Node {
    /// The node of an agent; fails if its skills cannot be announced.
    pub(super) fn new(
        identity: &direct::PeerIdentity,
        pool: &Arc<WorkerPool>,
    ) -> Result<Self, CallError> {
        let handlers = pool.handlers();
        let max_tasks = u32::try_from(handlers.concurrency()).unwrap_or(u32::MAX);
        let profile = Profile::new(&format!("chimera-{}", slug(identity.name())));
        let profile = profile.id(identity.id()).max_concurrent_tasks(max_tasks);
        let profile =
            handlers.skills().fold(profile, |profile, skill| profile.skill(capability_of(&skill)));
        Ok(Self { identity: profile.build()?, pool: Arc::clone(pool) })
    }

    pub(super) fn id(&self) -> Uuid {
        self.identity.agent_id
    }

    /// The identity, with the current status.
    pub(super) fn identity(&self) -> Result<String, CallError> {
        let report = self.report(clock::now());
        let identity = Identity { report, ..self.identity.clone() };
        with_common_fields(&identity.write(), new_common_fields()?)
    }

    /// The current status.
    pub(super) fn status(&self) -> Result<String, CallError> {
        let CommonMembers { correlation_id, timestamp } = new_common_fields()?;
        let report = self.report(timestamp);
        let agent_id = self.id();
        let update =
            StatusUpdate { agent_id, report, previous_status: None, correlation_id, timestamp };
        Ok(update.write())
    }

    /// The reputation it claims.
    pub(super) fn reputation(&self, record: &WorkHistory) -> Result<String, CallError> {
        let CommonMembers { correlation_id, timestamp } = new_common_fields()?;
        let update = ReputationUpdate {
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
        let health =
            Health::new(new_common_fields()?, Health::STATUS.to_owned(), self.id().to_string(), 1);
        serde_json::to_vec(&health).map_err(|error| CallError::Unreadable(error.to_string()))
    }

    fn report(&self, at: Timestamp) -> ReportedStatus {
        let busy = self.pool.busy_count();
        let status = if busy == 0 { Status::Idle } else { Status::Busy };
        let active_tasks = i64::try_from(busy).ok().filter(|busy| *busy > 0);
        ReportedStatus {
            status,
            at,
            details: StatusDetails { active_tasks, ..StatusDetails::default() },
        }
    }
}

/// A skill as a capability. The duration is omitted, because only the time limit is known.
fn capability_of(skill: &agent::Skill) -> Skill {
    let text = if skill.description.is_empty() { &skill.name } else { &skill.description };
    let description: String = text.chars().take(DESCRIPTION_MAX).collect();
    let mut capability =
        Skill::new(&skill.name, Category::guess_from_name(&skill.name), &description);
    if let Some(schema) = &skill.input_schema {
        capability = capability.input(schema.text());
    }
    if let Some(schema) = &skill.output_schema {
        capability = capability.output(schema.text());
    }
    if skill.price.is_zero() { capability } else { capability.price(skill.price) }
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
        for (name, expected) in [
            ("Text-Analyst 3000!", "text-analyst-3000"),
            ("--", "agent"),
            ("日本", "agent"),
            (&"abc-".repeat(20), "abc-abc-abc-abc-abc-abc-abc-abc-abc-abc"),
        ] {
            assert_eq!(slug(name), expected, "{name}");
        }
    }
}

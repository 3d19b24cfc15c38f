//! Status reports of agents, kept as the text of their own protocol.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::presence::{self, Availability};
use crate::draft::Draft;
use crate::event::Event;
use crate::id::AgentId;
use crate::refusal::Refusal;
use crate::time::Timestamp;

/// A status report of an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatusReport {
    /// Since when, by the agent's own clock.
    pub since: Timestamp,
    /// When the hub received it.
    pub at: Timestamp,
    /// The full text.
    #[serde(rename = "words")]
    pub text: Arc<str>,
}

/// A status update from an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentStatusUpdate {
    pub availability: Availability,
    /// Until when, if given.
    pub until: Option<Timestamp>,
    /// The text of the report, if its protocol keeps it, and since when it applies.
    pub words: Option<(Timestamp, Arc<str>)>,
}

/// Updates the status of an agent, unless a newer report is known.
pub fn update_status(
    draft: &mut Draft<'_>,
    agent: AgentId,
    told: AgentStatusUpdate,
) -> Result<(), Refusal> {
    let at = draft.now;
    let known = draft
        .agent_state(agent)
        .and_then(|agent_state| agent_state.status.as_ref())
        .map(|said| said.since);
    if let Some((since, words)) = told.words {
        // A clock that is ahead must not make all later reports look old.
        let since = since.min(at);
        if known.is_some_and(|known| since < known) {
            // An outdated report still counts as activity.
            presence::record_activity(draft, agent);
            return Ok(());
        }
        let report = StatusReport { since, at, text: words };
        draft.agent_state_mut(agent).status = Some(Box::new(report));
        draft.add_event(Event::AgentStatusReported { agent });
    }
    presence::set_availability(draft, agent, told.availability, told.until)
}

/// Stores the reputation an agent claims for itself.
pub fn record_claimed_reputation(draft: &mut Draft<'_>, agent: AgentId, words: Arc<str>) {
    draft.agent_state_mut(agent).claimed_reputation = Some(words);
    presence::record_activity(draft, agent);
}

//! Status reports of agents, kept as the text of their own protocol.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::presence::{self, Stance};
use crate::draft::Draft;
use crate::event::Event;
use crate::id::AgentId;
use crate::refusal::Refusal;
use crate::time::Timestamp;

/// A status report of an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Said {
    /// Since when, by the agent's own clock.
    pub since: Timestamp,
    /// When the hub received it.
    pub at: Timestamp,
    /// The full text.
    pub words: Arc<str>,
}

/// A status update from an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    pub stance: Stance,
    /// Until when, if given.
    pub until: Option<Timestamp>,
    /// The text of the report, if its protocol keeps it, and since when it applies.
    pub words: Option<(Timestamp, Arc<str>)>,
}

/// Updates the status of an agent, unless a newer report is known.
pub fn hear(draft: &mut Draft<'_>, agent: AgentId, told: Condition) -> Result<(), Refusal> {
    let at = draft.now;
    let known = draft.desk(agent).and_then(|desk| desk.said.as_ref()).map(|said| said.since);
    if let Some((since, words)) = told.words {
        // A clock that is ahead must not make all later reports look old.
        let since = since.min(at);
        if known.is_some_and(|known| since < known) {
            // An outdated report still counts as activity.
            presence::seen(draft, agent);
            return Ok(());
        }
        draft.desk_mut(agent).said = Some(Said { since, at, words });
        draft.event(Event::AgentStood { agent });
    }
    presence::stand(draft, agent, told.stance, told.until)
}

/// Stores the reputation an agent claims for itself.
pub fn boast(draft: &mut Draft<'_>, agent: AgentId, words: Arc<str>) {
    draft.desk_mut(agent).claim = Some(words);
    presence::seen(draft, agent);
}

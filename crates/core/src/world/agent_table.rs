//! The rows of agents, by id.
//!
//! Ids are handed out in order and never reused, so the table is a list of blocks: an entry takes
//! no hash and no spare capacity, and growing copies no entries.

use std::sync::Arc;

use crate::agent::key::Key;
use crate::agent::{Agent, AgentState};
use crate::id::AgentId;
use crate::time::Timestamp;

/// Agents per block.
const BLOCK: usize = 64;

/// What the world holds for one agent.
#[derive(Clone, Debug, Default)]
pub struct AgentEntry {
    pub row: Option<Arc<Agent>>,
    pub state: Option<Arc<AgentState>>,
    /// Its first key. Few agents have several.
    pub key: Option<Arc<Key>>,
    pub listed: Listed,
}

/// How the skills index lists an agent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Listed {
    #[default]
    No,
    Offline,
    /// Online until then without further activity.
    Online(Timestamp),
}

/// The entries of all agents.
#[derive(Clone, Default)]
pub struct AgentTable {
    blocks: Vec<Option<Box<[AgentEntry; BLOCK]>>>,
    /// Agents with a row, and agents listed as online.
    rows: usize,
    online: usize,
}

impl AgentTable {
    pub fn entry(&self, id: AgentId) -> Option<&AgentEntry> {
        let (block, at) = place(id);
        self.blocks.get(block)?.as_ref().map(|entries| &entries[at])
    }

    /// The entry, for changing. The id was handed out, so the list is as long as there are agents.
    pub fn entry_mut(&mut self, id: AgentId) -> &mut AgentEntry {
        let (block, at) = place(id);
        if self.blocks.len() <= block {
            self.blocks.resize_with(block + 1, || None);
        }
        let entries = self.blocks[block]
            .get_or_insert_with(|| Box::new(std::array::from_fn(|_| AgentEntry::default())));
        &mut entries[at]
    }

    pub fn row(&self, id: AgentId) -> Option<&Arc<Agent>> {
        self.entry(id)?.row.as_ref()
    }

    pub fn state(&self, id: AgentId) -> Option<&Arc<AgentState>> {
        self.entry(id)?.state.as_ref()
    }

    pub fn listed(&self, id: AgentId) -> Listed {
        self.entry(id).map_or(Listed::No, |entry| entry.listed)
    }

    pub fn set_row(&mut self, agent: Arc<Agent>) {
        let old = self.entry_mut(agent.id).row.replace(agent);
        self.rows += usize::from(old.is_none());
    }

    pub fn set_state(&mut self, state: Arc<AgentState>) {
        let id = state.agent;
        self.entry_mut(id).state = Some(state);
    }

    /// Sets how an agent is listed and returns how it was listed before.
    pub fn set_listed(&mut self, id: AgentId, listed: Listed) -> Listed {
        let before = std::mem::replace(&mut self.entry_mut(id).listed, listed);
        self.online -= usize::from(matches!(before, Listed::Online(_)));
        self.online += usize::from(matches!(listed, Listed::Online(_)));
        before
    }

    pub fn online_count(&self) -> usize {
        self.online
    }

    /// All rows, in order of registration.
    pub fn rows(&self) -> Rows<'_> {
        Rows { entries: Box::new(self.entries()), left: self.rows }
    }

    /// All states, in order of registration.
    pub fn states(&self) -> impl Iterator<Item = &Arc<AgentState>> {
        self.entries().filter_map(|entry| entry.state.as_ref())
    }

    fn entries(&self) -> impl Iterator<Item = &AgentEntry> {
        self.blocks.iter().flatten().flat_map(|entries| entries.iter())
    }
}

/// The rows of all agents.
pub struct Rows<'a> {
    entries: Box<dyn Iterator<Item = &'a AgentEntry> + 'a>,
    left: usize,
}

impl<'a> Iterator for Rows<'a> {
    type Item = &'a Arc<Agent>;

    fn next(&mut self) -> Option<&'a Arc<Agent>> {
        let row = self.entries.by_ref().find_map(|entry| entry.row.as_ref())?;
        self.left -= 1;
        Some(row)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for Rows<'_> {}

/// The block of an agent and its place there.
fn place(id: AgentId) -> (usize, usize) {
    let at = usize::try_from(id.0).unwrap_or(usize::MAX);
    (at / BLOCK, at % BLOCK)
}

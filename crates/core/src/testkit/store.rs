//! An in-memory store: every row there ever was, and a way to load single ones.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::alias::{Claim, Digest};
use crate::changes::Changes;
use crate::decide::MissingRow;
use crate::idempotency::{IdempotencyEntry, IdempotencyRecord};
use crate::world::{Rules, World};

/// All rows, each in its newest version.
#[derive(Clone, Default)]
pub struct Store {
    pub rows: Changes,
    claims: BTreeMap<Digest, Claim>,
}

impl Store {
    /// Saves the changes of one command.
    pub fn save(&mut self, changes: &Changes) {
        for claim in &changes.claims {
            self.claims.insert(claim.digest, *claim);
        }
        self.rows.merge(changes.clone());
    }

    /// What an id was last used for.
    pub fn claim(&self, digest: Digest) -> Option<Claim> {
        self.claims.get(&digest).copied()
    }

    /// Loads one row.
    pub fn load_row(&self, world: &mut World, need: MissingRow) {
        match need {
            MissingRow::Agent(id) => {
                if let Some(agent) = self.rows.agents.get(&id) {
                    world.load_agent(agent.clone());
                }
            }
            MissingRow::Claim(digest) => world.load_claim(digest, self.claim(digest)),
            MissingRow::Job(id) => {
                if let Some(job) = self.rows.jobs.get(&id) {
                    world.load_job(job.clone());
                }
            }
            MissingRow::Transfer(id) => {
                let found = self.rows.transfers.iter().find(|transfer| transfer.id == id);
                if let Some(transfer) = found {
                    world.load_transfer(transfer.clone());
                }
            }
        }
    }

    /// A world rebuilt from the stored rows, each parsed from its text.
    pub fn rebuild_world(&self, rules: Rules) -> World {
        let mut rows = self.rows.clone();
        rows.agents.values_mut().for_each(reread);
        rows.agent_states.values_mut().for_each(reread);
        rows.owners.values_mut().for_each(reread);
        rows.jobs.values_mut().for_each(reread);
        rows.keys.values_mut().for_each(reread);
        rows.rotations.values_mut().for_each(reread);
        rows.idempotency_records.values_mut().for_each(reread);
        let remembered =
            |row: &Arc<IdempotencyRecord>| (row.id, Arc::new(IdempotencyEntry::from(&**row)));
        rows.idempotency_entries = rows.idempotency_records.values().map(remembered).collect();
        rows.deliveries.values_mut().flatten().for_each(reread);
        rows.transfers.iter_mut().for_each(reread);
        // A start reads no history.
        rows.history_lines.clear();
        let mut world = World::new(rules);
        world.restore(&rows);
        world
    }
}

fn reread<Row: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug>(row: &mut Arc<Row>) {
    let text = serde_json::to_string(&**row).expect("rows can be written");
    let read: Row = serde_json::from_str(&text).expect("what was written can be read");
    assert_eq!(read, **row, "a row changed on its way through the store");
    *row = Arc::new(read);
}

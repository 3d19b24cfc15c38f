//! Public ids: rows refer to jobs and transfers by internal numbers, the API by public ids.

use std::collections::{BTreeSet, HashMap};

use rialto_core::id::{JobId, TransferId};
use rialto_engine::store::{Row, RowKey};
use rialto_engine::{Engine, Failure};
use uuid::Uuid;

/// The public ids of jobs and transfers.
#[derive(Default)]
pub struct PublicIds {
    jobs: HashMap<JobId, Uuid>,
    transfers: HashMap<TransferId, String>,
}

impl PublicIds {
    /// Loads all of them, live jobs from memory and the rest in one read.
    pub async fn load(
        engine: &Engine,
        jobs: impl IntoIterator<Item = JobId>,
        transfers: impl IntoIterator<Item = TransferId>,
    ) -> Result<Self, Failure> {
        let wanted: BTreeSet<JobId> = jobs.into_iter().collect();
        let transfers: BTreeSet<TransferId> = transfers.into_iter().collect();
        let live: HashMap<JobId, Uuid> = engine.with_world(|world| {
            wanted.iter().filter_map(|id| Some((*id, world.job(*id)?.uuid))).collect()
        });
        let ended: Vec<JobId> = wanted.into_iter().filter(|id| !live.contains_key(id)).collect();
        let mut refs = Self { jobs: live, transfers: HashMap::new() };
        if ended.is_empty() && transfers.is_empty() {
            return Ok(refs);
        }
        engine
            .read_store(move |reader| {
                for id in ended {
                    if let Some(Row::Job(job)) = reader.load(RowKey::Job(id))? {
                        refs.jobs.insert(id, job.uuid);
                    }
                }
                for id in transfers {
                    if let Some(Row::Transfer(transfer)) = reader.load(RowKey::Transfer(id))? {
                        refs.transfers.insert(id, transfer.foreign_id.clone());
                    }
                }
                Ok(refs)
            })
            .await
    }

    /// The hub's public id of a job.
    pub fn job(&self, id: JobId) -> Option<Uuid> {
        self.jobs.get(&id).copied()
    }

    /// The payer's own id for a transfer.
    pub fn transfer(&self, id: TransferId) -> Option<&str> {
        self.transfers.get(&id).map(String::as_str)
    }
}

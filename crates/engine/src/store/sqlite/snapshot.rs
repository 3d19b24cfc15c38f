//! A consistent view of a data directory, also while a hub writes to it: the database, and the
//! batches of the log that it lacks.

use std::path::Path;

use rusqlite::Connection;
use rusqlite::backup::{Backup, StepResult};

use super::{DB_FILE, backup, checkpoint, is_in_use, open_read_only, schema, store_error};
use crate::store::StoreError;
use crate::store::log::{self, LogSnapshot, LoggedBatch};
use crate::store::unwritten::Generation;

/// While a hub writes, its log may be used again before it is read whole.
const ATTEMPTS: usize = 8;

/// The database in a read transaction, and what it lacks.
pub struct StoreSnapshot {
    pub db: Connection,
    batches: Vec<LoggedBatch>,
}

impl StoreSnapshot {
    /// Takes a snapshot of a data directory.
    pub fn open(dir: &Path) -> Result<Self, StoreError> {
        let mut attempts = 1;
        loop {
            // A hub that stops removes its log, so it counts as running for as long as it did before.
            let is_in_use = is_in_use(dir);
            match Self::try_open(dir) {
                Err(StoreError::Corrupt(_)) if attempts < ATTEMPTS && is_in_use => {
                    attempts += 1;
                }
                snapshot => return snapshot,
            }
        }
    }

    fn try_open(dir: &Path) -> Result<Self, StoreError> {
        let db = open_read_only(&dir.join(DB_FILE))?;
        schema::check_version(&db)?;
        backup::reject_backup(&db)?;
        let log = match checkpoint::read_log_state(&db) {
            // Without a log nothing is missing; the audit reports the row.
            Err(StoreError::Corrupt(_)) if log::is_absent(dir) => None,
            log => log?,
        };
        if log.as_ref().is_some_and(|log| log.is_open) {
            log::require_files(dir)?;
        }
        // The log before the database: what the database lacks then is in what was read.
        let records = log.map(|log| LogSnapshot::read(dir, log.id)).transpose()?;
        db.execute_batch("BEGIN").map_err(store_error)?;
        let batches = match records {
            Some(records) => records.batches_after(checkpoint::read_place(&db)?)?,
            None => Vec::new(),
        };
        Ok(Self { db, batches })
    }

    /// Whether the database has every batch.
    pub fn is_complete(&self) -> bool {
        self.batches.is_empty()
    }

    /// Copies the whole content into an empty database.
    pub fn copy_to(&self, copy: &mut Connection) -> Result<(), StoreError> {
        // All pages in one step are one snapshot. A reader blocks no writer; the hub's WAL grows a
        // little meanwhile.
        let step = Backup::new(&self.db, copy).and_then(|backup| backup.step(-1));
        if step.map_err(store_error)? != StepResult::Done {
            return Err(StoreError::Failed("the store was locked for too long".to_owned()));
        }
        if self.is_complete() {
            return Ok(());
        }
        let mut generation = Generation::default();
        for LoggedBatch { place, batch, .. } in &self.batches {
            generation.add(Some(*place), &batch.changes, &batch.expired);
        }
        checkpoint::in_transaction(copy, || checkpoint::write_generation(copy, &generation))
    }
}

//! A pool of connections that read the store beside the lane.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::store::{Reader, StoreError};

/// The readers that are not in use.
pub struct ReaderPool {
    idle: Mutex<Vec<Box<dyn Reader>>>,
    /// One permit for each reader.
    permits: Arc<Semaphore>,
}

/// A reader in use. It returns to the pool however its use ends: the work may panic, and the caller
/// may be gone before it is done.
pub struct PooledReader {
    reader: Option<Box<dyn Reader>>,
    pool: Arc<ReaderPool>,
    _turn: OwnedSemaphorePermit,
}

impl ReaderPool {
    pub fn new(readers: Vec<Box<dyn Reader>>) -> Arc<Self> {
        let turns = Arc::new(Semaphore::new(readers.len()));
        Arc::new(Self { idle: Mutex::new(readers), permits: turns })
    }

    /// Waits for a reader.
    pub async fn acquire(self: &Arc<Self>) -> Option<PooledReader> {
        let turn = self.permits.clone().acquire_owned().await.ok()?;
        let reader = self.idle.lock().pop();
        Some(PooledReader { reader, pool: self.clone(), _turn: turn })
    }
}

impl PooledReader {
    /// Runs a read.
    pub fn read<R>(
        &mut self,
        work: impl FnOnce(&mut dyn Reader) -> Result<R, StoreError>,
    ) -> Result<R, StoreError> {
        let reader = self.reader.as_mut().expect("there is a reader for every permit");
        work(&mut **reader)
    }
}

impl Drop for PooledReader {
    fn drop(&mut self) {
        // The permit is a field and is dropped after this, so the reader is back before it.
        self.pool.idle.lock().extend(self.reader.take());
    }
}

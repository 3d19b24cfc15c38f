//! A pool of connections that read the store beside the lane.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::store::{Reader, StoreError};

/// The readers that are not in use.
pub struct Readers {
    idle: Mutex<Vec<Box<dyn Reader>>>,
    /// One permit for each reader.
    turns: Arc<Semaphore>,
}

/// A reader in use. It returns to the pool however its use ends: the work may panic, and the caller
/// may be gone before it is done.
pub struct Lent {
    reader: Option<Box<dyn Reader>>,
    home: Arc<Readers>,
    _turn: OwnedSemaphorePermit,
}

impl Readers {
    pub fn new(readers: Vec<Box<dyn Reader>>) -> Arc<Self> {
        let turns = Arc::new(Semaphore::new(readers.len()));
        Arc::new(Self { idle: Mutex::new(readers), turns })
    }

    /// Waits for a reader.
    pub async fn lend(self: &Arc<Self>) -> Option<Lent> {
        let turn = self.turns.clone().acquire_owned().await.ok()?;
        let reader = self.idle.lock().pop();
        Some(Lent { reader, home: self.clone(), _turn: turn })
    }
}

impl Lent {
    /// Runs a read.
    pub fn with<R>(
        &mut self,
        work: impl FnOnce(&mut dyn Reader) -> Result<R, StoreError>,
    ) -> Result<R, StoreError> {
        let reader = self.reader.as_mut().expect("there is a reader for every permit");
        work(&mut **reader)
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        // The permit is a field and is dropped after this, so the reader is back before it.
        self.home.idle.lock().extend(self.reader.take());
    }
}

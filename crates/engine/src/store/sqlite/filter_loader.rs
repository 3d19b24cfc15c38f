//! Loads the claim index into its Bloom filter, on a thread of its own.
//!
//! A large index takes seconds. Until it is loaded, or if it cannot be, every lookup goes to the
//! index itself, so nothing waits for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, JoinHandle};

use parking_lot::RwLock;
use rusqlite::Connection;

use super::checkpoint::ReaderGate;
use super::claims::{UnindexedClaims, fill_filter};
use super::io_error;
use crate::store::StoreError;

/// The loading thread; it ends when it is done or when the store is closed.
pub struct FilterLoader {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl FilterLoader {
    pub fn start(
        db: Connection,
        tail: Arc<RwLock<UnindexedClaims>>,
        gate: ReaderGate,
    ) -> Result<Self, StoreError> {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let work = move || {
            let mut after = None;
            while !stopped.load(Ordering::Relaxed) {
                let _pass = gate.enter();
                match fill_filter(&db, &tail, after) {
                    Ok(Some(last)) => after = Some(last),
                    Ok(None) => return,
                    Err(error) => {
                        return tracing::warn!(%error, "claim filter could not be loaded; lookups use the index");
                    }
                }
            }
        };
        let thread = Builder::new().name("sieve".to_owned()).spawn(work).map_err(io_error)?;
        Ok(Self { stop, thread: Some(thread) })
    }
}

impl Drop for FilterLoader {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

//! Moving the log into the file, beside the lane.
//!
//! Left to itself SQLite does this inside some unlucky commit, and hides an fsync error while at
//! it. Here a thread does it, and an error stops the next commit.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::Mutex;
use rusqlite::Connection;

use super::trouble;
use crate::store::StoreError;

/// The log is moved once it has this many bytes.
const LOG_BYTES: u64 = 8 << 20;

/// The thread and what it has to say.
pub struct Checkpointer {
    nudge: Option<SyncSender<()>>,
    failed: Arc<Mutex<Option<StoreError>>>,
    has_failed: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Checkpointer {
    /// Starts the thread for one database file.
    pub fn start(path: &Path) -> Result<Self, StoreError> {
        let db = Connection::open(path).map_err(trouble)?;
        db.busy_timeout(Duration::from_secs(5)).map_err(trouble)?;
        db.execute_batch("PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 0;")
            .map_err(trouble)?;
        let (nudge, nudged) = sync_channel::<()>(1);
        let failed = Arc::new(Mutex::new(None));
        let has_failed = Arc::new(AtomicBool::new(false));
        let (told, flag) = (failed.clone(), has_failed.clone());
        let mut log = path.as_os_str().to_owned();
        log.push("-wal");
        let work = move || {
            while nudged.recv().is_ok() {
                if std::fs::metadata(&log).map_or(0, |found| found.len()) < LOG_BYTES {
                    continue;
                }
                if let Err(error) = move_log(&db) {
                    *told.lock() = Some(error);
                    flag.store(true, Ordering::Release);
                    return;
                }
            }
        };
        let thread = std::thread::Builder::new()
            .name("checkpoint".to_owned())
            .spawn(work)
            .map_err(|error| StoreError::Broken(error.to_string()))?;
        Ok(Self { nudge: Some(nudge), failed, has_failed, thread: Some(thread) })
    }

    /// Says that something was committed.
    pub fn nudge(&self) {
        if let Some(nudge) = &self.nudge {
            // A nudge that is already waiting says the same.
            let _ = nudge.try_send(());
        }
    }

    /// An error of the thread, before the next commit.
    pub fn check(&self) -> Result<(), StoreError> {
        if !self.has_failed.load(Ordering::Acquire) {
            return Ok(());
        }
        self.failed.lock().clone().map_or(Ok(()), Err)
    }
}

/// Restarting the log keeps the file from growing for ever; it waits for readers, not for the lane.
fn move_log(db: &Connection) -> Result<(), StoreError> {
    let passive = db.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()));
    match passive {
        Ok(()) => Ok(()),
        Err(error) if is_busy(&error) => Ok(()),
        Err(error) => Err(trouble(error)),
    }
}

fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(rusqlite::ErrorCode::DatabaseBusy | rusqlite::ErrorCode::DatabaseLocked)
    )
}

impl Drop for Checkpointer {
    fn drop(&mut self) {
        self.nudge = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

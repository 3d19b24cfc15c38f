//! Checkpoints: moves the WAL into the database file, mostly beside the lane.
//!
//! By default SQLite does this inside an arbitrary commit and hides an fsync error in it. Here a
//! thread copies, and an error stops the next commit. Alone the thread never catches up while
//! commits keep coming, and the WAL would grow without limit. So when little is left, the lane
//! copies the rest and restarts the WAL.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::{Mutex, RwLock, RwLockReadGuard};
use rusqlite::Connection;

use super::{BUSY_TIMEOUT, LEAVE_THE_LOG, store_error};
use crate::store::StoreError;

/// How long the WAL may become.
#[derive(Clone, Copy, Debug)]
pub struct WalLimits {
    /// The thread starts to copy once the WAL has this many pages.
    pub checkpoint_pages: u32,
    /// At this length the lane no longer waits for the thread.
    pub pages_max: u32,
}

impl Default for WalLimits {
    /// 16 and 128 MiB: short enough that a restart of the WAL takes about 20 ms, and is rare.
    fn default() -> Self {
        Self { checkpoint_pages: 4_096, pages_max: 32_768 }
    }
}

/// The lane copies the rest itself if at most this many pages are left.
const PAGES_LEFT_MAX: u32 = 64;
/// Rounds in which the thread tries to catch up with the lane.
const CATCH_UP_ROUNDS: usize = 4;
/// How long the lane waits for readers of other processes. The gate blocks our own readers.
const READER_TIMEOUT: Duration = Duration::from_millis(100);

/// The thread, and the state that it shares with the lane.
pub struct Checkpointer {
    shared: Arc<CheckpointState>,
    wakeup: Option<SyncSender<()>>,
    thread: Option<JoinHandle<()>>,
    limits: WalLimits,
    /// After a failed attempt: the WAL length at which to try again.
    retry_at_pages: u32,
}

/// Our own readers enter through this, so that the lane can block them for a restart of the WAL.
#[derive(Clone, Default)]
pub struct ReaderGate(Arc<RwLock<()>>);

impl ReaderGate {
    /// Blocks the lane for the duration of one statement.
    pub fn enter(&self) -> RwLockReadGuard<'_, ()> {
        self.0.read()
    }
}

#[derive(Default)]
struct CheckpointState {
    gate: ReaderGate,
    /// Pages in the WAL after the newest commit.
    pages: AtomicU32,
    /// The thread has copied almost everything.
    ready: AtomicBool,
    /// Held while the thread or the lane copies: SQLite would reject the other.
    copying: Mutex<()>,
    failed: Mutex<Option<StoreError>>,
    has_failed: AtomicBool,
}

impl Checkpointer {
    /// Starts the thread for one database file, and counts what the lane writes to its WAL.
    pub fn start(
        path: &Path,
        lane: &mut Connection,
        limits: WalLimits,
    ) -> Result<Self, StoreError> {
        let db = Connection::open(path).map_err(store_error)?;
        db.execute_batch("PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 0;")
            .map_err(store_error)?;
        // Only the lane's own connection checkpoints when it is closed.
        db.set_db_config(LEAVE_THE_LOG, true).map_err(store_error)?;
        let shared = Arc::new(CheckpointState::default());
        let counted = shared.clone();
        let count = move |_: &mut rusqlite::hooks::Wal, pages: i32| {
            counted.pages.store(pages.unsigned_abs(), Ordering::Release);
            Ok(())
        };
        lane.wal_hook(Some(count)).map_err(store_error)?;
        let (nudge, nudged) = sync_channel::<()>(1);
        let told = shared.clone();
        let work = move || {
            while nudged.recv().is_ok() {
                match told.catch_up(&db, limits) {
                    Ok(()) => {}
                    // The WAL is still complete; if it cannot grow either, commits report it.
                    Err(StoreError::Full) => {
                        tracing::warn!("disk full: the WAL could not be checkpointed")
                    }
                    Err(error) => return told.record_failure(error),
                }
            }
        };
        let thread = std::thread::Builder::new()
            .name("checkpoint".to_owned())
            .spawn(work)
            .map_err(|error| StoreError::Failed(error.to_string()))?;
        Ok(Self { shared, wakeup: Some(nudge), thread: Some(thread), limits, retry_at_pages: 0 })
    }

    /// The gate for readers of this process.
    pub fn gate(&self) -> ReaderGate {
        self.shared.gate.clone()
    }

    /// Before a commit: fails if the thread has failed, and restarts a long WAL.
    pub fn before_commit(&mut self, lane: &Connection) -> Result<(), StoreError> {
        if self.shared.has_failed.load(Ordering::Acquire) {
            return self.shared.failed.lock().clone().map_or(Ok(()), Err);
        }
        let pages = self.shared.pages.load(Ordering::Acquire);
        if pages < self.limits.checkpoint_pages {
            self.retry_at_pages = 0;
            return Ok(());
        }
        let ready = self.shared.ready.swap(false, Ordering::AcqRel);
        if pages < self.retry_at_pages || !(ready || pages >= self.limits.pages_max) {
            return Ok(());
        }
        let _alone = self.shared.copying.lock();
        let _nobody_reads = self.shared.gate.0.write();
        lane.busy_timeout(READER_TIMEOUT).map_err(store_error)?;
        let copied = run_checkpoint(lane, "RESTART");
        lane.busy_timeout(BUSY_TIMEOUT).map_err(store_error)?;
        // A reader of another process is slow: the WAL must grow, and we try again a little later.
        let later = pages.saturating_add(self.limits.checkpoint_pages);
        self.retry_at_pages = if copied?.busy { later } else { 0 };
        Ok(())
    }

    /// Moves the whole WAL into the file, so that the file alone is complete. For shutdown, when
    /// nothing more is written.
    pub fn truncate_wal(&self, lane: &Connection) -> Result<(), StoreError> {
        let _nobody_reads = self.shared.gate.0.write();
        lane.busy_timeout(READER_TIMEOUT).map_err(store_error)?;
        match run_checkpoint(lane, "TRUNCATE")?.busy {
            false => Ok(()),
            true => Err(StoreError::Failed("another process is reading the database".to_owned())),
        }
    }

    /// Ends the thread; false if it has failed.
    pub fn stop(&mut self) -> bool {
        self.wakeup = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        !self.shared.has_failed.load(Ordering::Acquire)
    }

    /// After a commit: wakes the thread if the WAL is long.
    pub fn after_commit(&self) {
        let long = self.shared.pages.load(Ordering::Acquire) >= self.limits.checkpoint_pages;
        if let Some(nudge) = self.wakeup.as_ref().filter(|_| long) {
            // A wakeup that is already pending is enough.
            let _ = nudge.try_send(());
        }
    }
}

impl CheckpointState {
    /// Copies until little is left, then tells the lane.
    fn catch_up(&self, db: &Connection, limits: WalLimits) -> Result<(), StoreError> {
        if self.ready.load(Ordering::Acquire)
            || self.pages.load(Ordering::Acquire) < limits.checkpoint_pages
        {
            return Ok(());
        }
        for _ in 0..CATCH_UP_ROUNDS {
            let _alone = self.copying.lock();
            let copied = run_checkpoint(db, "PASSIVE")?;
            if copied.log.saturating_sub(copied.done) <= PAGES_LEFT_MAX {
                break;
            }
        }
        self.ready.store(true, Ordering::Release);
        Ok(())
    }

    fn record_failure(&self, error: StoreError) {
        *self.failed.lock() = Some(error);
        self.has_failed.store(true, Ordering::Release);
    }
}

/// SQLite's result of a checkpoint.
struct CheckpointProgress {
    /// A reader was in the way, and the WAL is not restarted.
    busy: bool,
    log: u32,
    done: u32,
}

fn run_checkpoint(db: &Connection, mode: &str) -> Result<CheckpointProgress, StoreError> {
    let sql = format!("PRAGMA wal_checkpoint({mode})");
    let mut statement = db.prepare_cached(&sql).map_err(store_error)?;
    let number = |pages: i64| u32::try_from(pages).unwrap_or(0);
    let copied = statement.query_row([], |row| {
        Ok(CheckpointProgress {
            busy: row.get(0)?,
            log: number(row.get(1)?),
            done: number(row.get(2)?),
        })
    });
    copied.map_err(store_error)
}

impl Drop for Checkpointer {
    fn drop(&mut self) {
        self.stop();
    }
}

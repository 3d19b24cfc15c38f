//! Moving the log into the file, mostly beside the lane.
//!
//! Left to itself SQLite does this inside some unlucky commit, and hides an fsync error while at
//! it. Here a thread copies, and an error stops the next commit. The thread alone never catches up
//! while commits keep coming, and then the log grows for ever; so when little is left, the lane
//! copies the rest and starts the log anew.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::{Mutex, RwLock, RwLockReadGuard};
use rusqlite::Connection;

use super::{BUSY, LEAVE_THE_LOG, trouble};
use crate::store::StoreError;

/// How long the log may become.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The thread begins to copy once the log has this many pages.
    pub pages: u32,
    /// At this length the lane no longer waits for the thread.
    pub pages_max: u32,
}

impl Default for Limits {
    /// 16 and 128 MiB: short enough that starting anew takes some 20 ms, and is seldom.
    fn default() -> Self {
        Self { pages: 4_096, pages_max: 32_768 }
    }
}

/// So few left to copy that the lane may do it.
const FEW: u32 = 64;
/// Rounds in which the thread tries to catch up with the lane.
const ROUNDS: usize = 4;
/// How long the lane waits for readers of other processes. Our own are kept out by the gate.
const READERS_MAY_TAKE: Duration = Duration::from_millis(100);

/// The thread, and what lane and thread tell each other.
pub struct Checkpointer {
    shared: Arc<Shared>,
    nudge: Option<SyncSender<()>>,
    thread: Option<JoinHandle<()>>,
    limits: Limits,
    /// After a try in vain: the length at which to try again.
    not_before: u32,
}

/// What our own readers pass through, so that the lane can have the log for itself.
#[derive(Clone, Default)]
pub struct Gate(Arc<RwLock<()>>);

impl Gate {
    /// Holds the lane off for the length of one statement.
    pub fn pass(&self) -> RwLockReadGuard<'_, ()> {
        self.0.read()
    }
}

#[derive(Default)]
struct Shared {
    gate: Gate,
    /// Pages in the log after the newest commit.
    pages: AtomicU32,
    /// The thread has copied almost everything.
    ready: AtomicBool,
    /// Held while one of the two is copying: SQLite would send the other away.
    copying: Mutex<()>,
    failed: Mutex<Option<StoreError>>,
    has_failed: AtomicBool,
}

impl Checkpointer {
    /// Starts the thread for one database file, and counts what the lane writes to its log.
    pub fn start(path: &Path, lane: &mut Connection, limits: Limits) -> Result<Self, StoreError> {
        let db = Connection::open(path).map_err(trouble)?;
        db.execute_batch("PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 0;")
            .map_err(trouble)?;
        // Closing is for the lane's own connection to do well.
        db.set_db_config(LEAVE_THE_LOG, true).map_err(trouble)?;
        let shared = Arc::new(Shared::default());
        let counted = shared.clone();
        let count = move |_: &mut rusqlite::hooks::Wal, pages: i32| {
            counted.pages.store(pages.unsigned_abs(), Ordering::Release);
            Ok(())
        };
        lane.wal_hook(Some(count)).map_err(trouble)?;
        let (nudge, nudged) = sync_channel::<()>(1);
        let told = shared.clone();
        let work = move || {
            while nudged.recv().is_ok() {
                match told.catch_up(&db, limits) {
                    Ok(()) => {}
                    // The log is still whole; when it cannot grow either, commits will say so.
                    Err(StoreError::Full) => {
                        tracing::warn!("disk full: the WAL could not be checkpointed")
                    }
                    Err(error) => return told.fail(error),
                }
            }
        };
        let thread = std::thread::Builder::new()
            .name("checkpoint".to_owned())
            .spawn(work)
            .map_err(|error| StoreError::Broken(error.to_string()))?;
        Ok(Self { shared, nudge: Some(nudge), thread: Some(thread), limits, not_before: 0 })
    }

    /// The gate for readers of this process.
    pub fn gate(&self) -> Gate {
        self.shared.gate.clone()
    }

    /// Before a commit: an error of the thread stops it, and a long log is started anew.
    pub fn before_commit(&mut self, lane: &Connection) -> Result<(), StoreError> {
        if self.shared.has_failed.load(Ordering::Acquire) {
            return self.shared.failed.lock().clone().map_or(Ok(()), Err);
        }
        let pages = self.shared.pages.load(Ordering::Acquire);
        if pages < self.limits.pages {
            self.not_before = 0;
            return Ok(());
        }
        let ready = self.shared.ready.swap(false, Ordering::AcqRel);
        if pages < self.not_before || !(ready || pages >= self.limits.pages_max) {
            return Ok(());
        }
        let _alone = self.shared.copying.lock();
        let _nobody_reads = self.shared.gate.0.write();
        lane.busy_timeout(READERS_MAY_TAKE).map_err(trouble)?;
        let copied = copy(lane, "RESTART");
        lane.busy_timeout(BUSY).map_err(trouble)?;
        // Somebody outside reads for long: the log has to grow, and we ask again a little later.
        let later = pages.saturating_add(self.limits.pages);
        self.not_before = if copied?.busy { later } else { 0 };
        Ok(())
    }

    /// Moves the whole log into the file, so that the file alone is complete. For the end, when
    /// nothing more is written.
    pub fn empty_the_log(&self, lane: &Connection) -> Result<(), StoreError> {
        let _nobody_reads = self.shared.gate.0.write();
        lane.busy_timeout(READERS_MAY_TAKE).map_err(trouble)?;
        match copy(lane, "TRUNCATE")?.busy {
            false => Ok(()),
            true => Err(StoreError::Broken("another process is reading the database".to_owned())),
        }
    }

    /// Ends the thread; false if it has failed.
    pub fn stop(&mut self) -> bool {
        self.nudge = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        !self.shared.has_failed.load(Ordering::Acquire)
    }

    /// After a commit: a long log is for the thread to copy.
    pub fn committed(&self) {
        let long = self.shared.pages.load(Ordering::Acquire) >= self.limits.pages;
        if let Some(nudge) = self.nudge.as_ref().filter(|_| long) {
            // A nudge that is already waiting says the same.
            let _ = nudge.try_send(());
        }
    }
}

impl Shared {
    /// Copies until little is left, and tells the lane.
    fn catch_up(&self, db: &Connection, limits: Limits) -> Result<(), StoreError> {
        if self.ready.load(Ordering::Acquire) || self.pages.load(Ordering::Acquire) < limits.pages {
            return Ok(());
        }
        for _ in 0..ROUNDS {
            let _alone = self.copying.lock();
            let copied = copy(db, "PASSIVE")?;
            if copied.log.saturating_sub(copied.done) <= FEW {
                break;
            }
        }
        self.ready.store(true, Ordering::Release);
        Ok(())
    }

    fn fail(&self, error: StoreError) {
        *self.failed.lock() = Some(error);
        self.has_failed.store(true, Ordering::Release);
    }
}

/// What SQLite says about a checkpoint.
struct Copied {
    /// Somebody was in the way, and the log does not start anew.
    busy: bool,
    log: u32,
    done: u32,
}

fn copy(db: &Connection, mode: &str) -> Result<Copied, StoreError> {
    let sql = format!("PRAGMA wal_checkpoint({mode})");
    let mut statement = db.prepare_cached(&sql).map_err(trouble)?;
    let number = |pages: i64| u32::try_from(pages).unwrap_or(0);
    let copied = statement.query_row([], |row| {
        Ok(Copied { busy: row.get(0)?, log: number(row.get(1)?), done: number(row.get(2)?) })
    });
    copied.map_err(trouble)
}

impl Drop for Checkpointer {
    fn drop(&mut self) {
        self.stop();
    }
}

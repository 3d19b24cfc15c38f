//! Moving the log into the file, mostly beside the lane.
//!
//! Left to itself SQLite does this inside some unlucky commit, and hides an fsync error while at
//! it. Here a thread copies, and an error stops the next commit. The thread alone can never finish
//! while commits keep coming, so the lane does the last few pages and starts the log anew.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::Mutex;
use rusqlite::Connection;

use super::{BUSY, trouble};
use crate::store::StoreError;

/// The thread begins to copy once the log has this many pages: 16 MiB.
const LOG_PAGES: u32 = 4_096;
/// The lane does not let the log grow past this many pages, if readers allow it: 128 MiB.
pub const LOG_PAGES_MAX: u32 = 32_768;
/// So few left to copy that the lane may do it.
const FEW: u32 = 64;
/// Rounds in which the thread tries to catch up with the lane.
const ROUNDS: usize = 4;
/// How long the lane waits for readers that still use the old log.
const READERS_MAY_TAKE: Duration = Duration::from_millis(100);

/// The thread, and what lane and thread tell each other.
pub struct Checkpointer {
    shared: Arc<Shared>,
    nudge: Option<SyncSender<()>>,
    thread: Option<JoinHandle<()>>,
    /// The lane starts the log anew at this length, ready or not.
    restart_at: u32,
}

#[derive(Default)]
struct Shared {
    /// Pages in the log after the newest commit.
    pages: AtomicU32,
    /// The thread has copied almost everything.
    ready: AtomicBool,
    /// Held while one of the two is copying: SQLite would send the other away.
    copying: Mutex<()>,
    pub gate: Arc<parking_lot::RwLock<()>>,
    failed: Mutex<Option<StoreError>>,
    has_failed: AtomicBool,
}

impl Checkpointer {
    /// Starts the thread for one database file, and counts what the lane writes to its log.
    pub fn start(path: &Path, lane: &mut Connection) -> Result<Self, StoreError> {
        let db = Connection::open(path).map_err(trouble)?;
        db.execute_batch("PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 0;")
            .map_err(trouble)?;
        let shared = Arc::new(Shared::default());
        let counted = shared.clone();
        let count = move |_: &mut rusqlite::hooks::Wal, pages: i32| {
            counted.pages.store(pages.unsigned_abs(), Ordering::Release);
            Ok(())
        };
        lane.wal_hook(Some(count)).map_err(trouble)?;
        let (nudge, nudged) = sync_channel::<()>(1);
        let file = std::fs::File::open(path).unwrap();
        let told = shared.clone();
        let work = move || {
            while nudged.recv().is_ok() {
                match told.catch_up(&db, &file) {
                    // No room in the file: the log is still whole, and there may be room later.
                    Ok(()) | Err(StoreError::Full) => {}
                    Err(error) => return told.fail(error),
                }
            }
        };
        let thread = std::thread::Builder::new()
            .name("checkpoint".to_owned())
            .spawn(work)
            .map_err(|error| StoreError::Broken(error.to_string()))?;
        Ok(Self { shared, nudge: Some(nudge), thread: Some(thread), restart_at: LOG_PAGES_MAX })
    }

    pub fn gate(&self) -> Arc<parking_lot::RwLock<()>> { self.shared.gate.clone() }
    /// Before a commit: an error of the thread stops it, and a log that is long starts anew.
    pub fn before_commit(&mut self, lane: &Connection) -> Result<(), StoreError> {
        if self.shared.has_failed.load(Ordering::Acquire) {
            return self.shared.failed.lock().clone().map_or(Ok(()), Err);
        }
        let pages = self.shared.pages.load(Ordering::Acquire);
        let ready = self.shared.ready.swap(false, Ordering::AcqRel);
        if pages < LOG_PAGES || !(ready || pages >= self.restart_at) {
            return Ok(());
        }
        let _alone = self.shared.copying.lock();
        lane.busy_timeout(READERS_MAY_TAKE).map_err(trouble)?;
        let t=std::time::Instant::now();
        let _gate = self.shared.gate.write();
        let g=t.elapsed();
        let copied = copy(lane, "RESTART");
        if std::env::var("MSHOW").is_ok() { println!("gate {g:?} restart {:?} busy {:?} pages {pages}", t.elapsed(), copied.as_ref().map(|c| c.busy)); }
        lane.busy_timeout(BUSY).map_err(trouble)?;
        // Some reader is slow: go on with a longer log, and ask again a little later.
        let again = pages.saturating_add(LOG_PAGES).max(LOG_PAGES_MAX);
        self.restart_at = if copied?.busy { again } else { LOG_PAGES_MAX };
        Ok(())
    }

    /// Says that something was committed.
    pub fn committed(&self) {
        let long = self.shared.pages.load(Ordering::Acquire) >= LOG_PAGES;
        if let Some(nudge) = self.nudge.as_ref().filter(|_| long) {
            // A nudge that is already waiting says the same.
            let _ = nudge.try_send(());
        }
    }
}

impl Shared {
    /// Copies until little is left, and tells the lane.
    fn catch_up(&self, db: &Connection, file: &std::fs::File) -> Result<(), StoreError> {
        if self.ready.load(Ordering::Acquire) || self.pages.load(Ordering::Acquire) < LOG_PAGES {
            return Ok(());
        }
        for _ in 0..ROUNDS {
            let copied = { let _alone = self.copying.lock(); copy(db, "PASSIVE")? };
            if std::env::var("MSYNC").is_ok() { file.sync_data().unwrap(); }
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
    busy: bool,
    log: u32,
    done: u32,
}

fn copy(db: &Connection, mode: &str) -> Result<Copied, StoreError> {
    let mut statement =
        db.prepare_cached(&format!("PRAGMA wal_checkpoint({mode})")).map_err(trouble)?;
    let number = |pages: i64| u32::try_from(pages).unwrap_or(0);
    statement
        .query_row([], |row| {
            let (busy, log, done): (bool, _, _) = (row.get(0)?, row.get(1)?, row.get(2)?);
            Ok(Copied { busy, log: number(log), done: number(done) })
        })
        .map_err(trouble)
}

impl Drop for Checkpointer {
    fn drop(&mut self) {
        self.nudge = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

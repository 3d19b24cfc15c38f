//! The checkpoint: a thread that writes the rows of the log to the tables, behind the lane.
//!
//! Only the writer's thread writes. The others keep what they follow in memory until a look shows
//! that the tables have it. If the database cannot be reached, the thread tries again; other errors
//! stop the next batch.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::{Condvar, Mutex, RwLock};

use super::session::{Session, SessionSettings};
use super::url::Database;
use super::write::write_generation;
use crate::store::claims::RecentClaims;
use crate::store::unwritten::{
    AGE_MAX, Generation, UnwrittenRows, limit_divisor, yield_to_callers,
};
use crate::store::{FailureHandler, FailureReport, RecentRows, Row, RowKey, StoreError};

/// How long the thread waits before it tries again to reach the database.
const RETRY_MIN: Duration = Duration::from_millis(100);
const RETRY_MAX: Duration = Duration::from_secs(2);
/// How long it waits for another node that writes the tables, and how long the database lets a
/// transaction be idle: a thread that is paused must not keep others out.
const LOCK_TIMEOUT: Duration = Duration::from_secs(5);
const IDLE_IN_TRANSACTION_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a statement may take. Writing again what is written already changes nothing.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// How much may be unwritten.
#[derive(Clone, Copy, Debug)]
pub struct CheckpointLimits {
    /// Bytes of log after which the rows are written to the tables.
    pub log_bytes: u64,
    /// Bytes of log at which the lane waits for the thread.
    pub log_bytes_max: u64,
}

impl Default for CheckpointLimits {
    fn default() -> Self {
        let bytes = u64::from((8 << 20) / limit_divisor());
        Self { log_bytes: bytes, log_bytes_max: 2 * bytes }
    }
}

/// What the lane, the readers, the shared log and the thread share.
#[derive(Default)]
pub struct SharedRows {
    pub unwritten: RwLock<UnwrittenRows>,
    pub claims: RwLock<RecentClaims>,
    /// Bytes of all batches that were appended or read since the start.
    pub log_bytes: AtomicU64,
    /// The database session that appends.
    pub append_session: AtomicI32,
    /// The format of new batches that the hub has agreed on.
    pub format: AtomicI32,
    is_writing: AtomicBool,
    progress: Mutex<Progress>,
    changed: Condvar,
}

#[derive(Default)]
struct Progress {
    failed: FailureReport,
    /// Why the last attempt did not write, although the next one may.
    delayed: Option<StoreError>,
    /// How often the thread has tried to write.
    attempts: u64,
}

impl Progress {
    /// The error of an attempt after `since`, which is now if it is not known yet. The cause of an
    /// earlier one may be gone.
    fn still_delayed(&self, since: &mut Option<u64>) -> Option<StoreError> {
        let since = *since.get_or_insert(self.attempts);
        self.delayed.clone().filter(|_| self.attempts > since)
    }
}

impl SharedRows {
    /// Drops the rows of batches that the tables have.
    pub fn drop_checkpointed(&self, number: u64) {
        let mut newest_claim = None;
        let mut unwritten = self.unwritten.write();
        let mut note = |generation: &Generation| {
            newest_claim = generation.changes.claims.last().map(|claim| claim.id).or(newest_claim);
        };
        while let Some(oldest) =
            unwritten.frozen.pop_front_if(|oldest| oldest.place.number <= number)
        {
            note(&oldest);
        }
        let UnwrittenRows { active, frozen } = &mut *unwritten;
        if frozen.is_empty() && active.first.is_some() && active.place.number <= number {
            note(active);
            let place = active.place;
            *active = Generation { place, ..Generation::default() };
        }
        drop(unwritten);
        if let Some(newest) = newest_claim {
            let mut claims = self.claims.write();
            let count = claims.up_to(newest).count();
            claims.remove_indexed(count);
        }
        self.changed.notify_all();
    }

    fn run(&self, mut session: Session, wakeups: &Receiver<()>) {
        yield_to_callers();
        let mut retry_in: Option<Duration> = None;
        loop {
            let woken = match retry_in {
                Some(pause) => wakeups.recv_timeout(pause),
                None => wakeups.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            if woken == Err(RecvTimeoutError::Disconnected) {
                return;
            }
            let result = self.write_frozen(&mut session);
            let mut progress = self.progress.lock();
            progress.attempts += 1;
            (retry_in, progress.delayed) = match result {
                Ok(()) => (None, None),
                Err(error @ StoreError::Full) => {
                    tracing::warn!("disk full: the log could not be written to the tables");
                    (Some(RETRY_MAX), Some(error))
                }
                Err(error @ (StoreError::Unreachable(_) | StoreError::Locked(_))) => {
                    let pause = retry_in.map_or(RETRY_MIN, |pause| (2 * pause).min(RETRY_MAX));
                    tracing::warn!(%error, retry_in_ms = pause.as_millis() as u64,
                        "the log could not be written to the tables; retrying");
                    (Some(pause), Some(error))
                }
                Err(error) => {
                    tracing::error!(%error, "the log could not be written to the tables");
                    progress.failed.record(error);
                    self.changed.notify_all();
                    return;
                }
            };
            self.changed.notify_all();
        }
    }

    /// Writes what is frozen, oldest first.
    fn write_frozen(&self, session: &mut Session) -> Result<(), StoreError> {
        while self.is_writing.load(Ordering::Acquire) {
            let oldest = self.unwritten.read().frozen.front().cloned();
            let Some(oldest) = oldest else { break };
            // Writing what is written already changes nothing, so a lost connection is no matter.
            let number = session.run_again(|connection| write_generation(connection, &oldest))?;
            // At least this generation: the tables have it now, whichever node wrote it.
            self.drop_checkpointed(number);
        }
        Ok(())
    }
}

impl RecentRows for SharedRows {
    fn get(&self, key: RowKey) -> Option<Option<Row>> {
        match key {
            RowKey::Claim(digest) => {
                self.claims.read().get(digest).map(|claim| Some(Row::Claim(claim)))
            }
            key => self.unwritten.read().get(key),
        }
    }
}

/// The thread.
pub struct Checkpointer {
    shared: Arc<SharedRows>,
    wakeup: Option<SyncSender<()>>,
    thread: Option<JoinHandle<()>>,
    limits: CheckpointLimits,
}

impl Checkpointer {
    /// Starts the thread, which connects when it has something to write.
    pub fn start(
        database: Arc<Database>,
        shared: Arc<SharedRows>,
        limits: CheckpointLimits,
    ) -> Result<Self, StoreError> {
        let session = Session::new(
            database,
            SessionSettings {
                lock_timeout: Some(LOCK_TIMEOUT),
                idle_in_transaction_timeout: Some(IDLE_IN_TRANSACTION_TIMEOUT),
                answer_timeout: Some(ANSWER_TIMEOUT),
            },
        );
        let (wakeup, wakeups) = sync_channel(1);
        let work = shared.clone();
        let thread = std::thread::Builder::new()
            .name("checkpoint".to_owned())
            .spawn(move || work.run(session, &wakeups))
            .map_err(|error| StoreError::Failed(error.to_string()))?;
        Ok(Self { shared, wakeup: Some(wakeup), thread: Some(thread), limits })
    }

    /// Whether this node writes the tables.
    pub fn set_writing(&self, is_writing: bool) {
        self.shared.is_writing.store(is_writing, Ordering::Release);
        self.wake();
    }

    fn is_writing(&self) -> bool {
        self.shared.is_writing.load(Ordering::Acquire)
    }

    /// Sets what is called when the thread fails.
    pub fn report_failures(&self, handler: FailureHandler) {
        self.shared.progress.lock().failed.set_handler(handler);
    }

    /// Waits until there is room for another batch, or reports the thread's error.
    pub fn make_room(&self) -> Result<(), StoreError> {
        let mut progress = self.shared.progress.lock();
        let mut since = None;
        loop {
            if let Some(error) = &progress.failed.error {
                return Err(error.clone());
            }
            let unwritten = self.shared.unwritten.read();
            let frozen: u64 = unwritten.frozen.iter().map(|generation| generation.bytes).sum();
            let has_room = frozen + unwritten.active.bytes < self.limits.log_bytes_max
                || unwritten.frozen.is_empty();
            drop(unwritten);
            if has_room || !self.is_writing() {
                return Ok(());
            }
            if let Some(error) = progress.still_delayed(&mut since) {
                return Err(error);
            }
            self.wake();
            self.shared.changed.wait(&mut progress);
        }
    }

    /// Begins a new generation if this one is long or old, and writes it if this node writes.
    pub fn freeze_if_long(&self, age: Duration) {
        let mut unwritten = self.shared.unwritten.write();
        let is_due = unwritten.active.bytes >= self.limits.log_bytes || age >= AGE_MAX;
        if is_due && !unwritten.active.is_empty() {
            unwritten.freeze();
            drop(unwritten);
            self.wake();
        }
    }

    /// Begins to write whatever is unwritten, if this node writes.
    pub fn write_all(&self) {
        if !self.is_writing() {
            return;
        }
        let mut unwritten = self.shared.unwritten.write();
        if !unwritten.active.is_empty() && unwritten.frozen.is_empty() {
            unwritten.freeze();
        }
        drop(unwritten);
        self.wake();
    }

    /// Whether nothing is unwritten.
    pub fn is_done(&self) -> bool {
        let unwritten = self.shared.unwritten.read();
        unwritten.active.is_empty() && unwritten.frozen.is_empty()
    }

    fn wake(&self) {
        // A wake-up that is already pending is enough.
        if let Some(wakeup) = &self.wakeup {
            let _ = wakeup.try_send(());
        }
    }

    /// Writes everything that is left, if this node writes and the database can be reached.
    pub fn write_rest(&self) {
        let mut since = None;
        while self.is_writing() && !self.is_done() {
            self.write_all();
            let mut progress = self.shared.progress.lock();
            if progress.failed.error.is_some() || progress.still_delayed(&mut since).is_some() {
                return;
            }
            self.shared.changed.wait_for(&mut progress, Duration::from_millis(50));
        }
    }
}

impl Drop for Checkpointer {
    fn drop(&mut self) {
        self.wakeup = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

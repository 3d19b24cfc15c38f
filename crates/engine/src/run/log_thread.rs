//! The thread that appends batches to the log while the lane decides the next one.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::mpsc::WeakSender;

use super::LaneMessage;
use super::lane::{OpenBatch, append_or_confirm};
use crate::store::log::Place;
use crate::store::{BatchLog, StoreError};

/// A batch and the result of appending it.
pub struct Appended {
    pub batch: OpenBatch,
    /// Where it was appended; a batch without a record has no place.
    pub result: Result<Option<Place>, StoreError>,
    pub took: Duration,
}

/// The lane's side of the thread. It has at most one batch at a time: the next one is appended only
/// after this one is synced, and no more than one decided batch depends on an unsynced one.
pub struct LogThread {
    batches: Option<SyncSender<OpenBatch>>,
    results: Receiver<Appended>,
    /// Set just before the result is sent, so that the lane can look for it cheaply.
    has_result: Arc<AtomicBool>,
    is_busy: bool,
    thread: Option<JoinHandle<()>>,
}

impl LogThread {
    /// Starts the thread. It wakes the lane through its queue.
    pub fn start(
        log: Arc<Mutex<dyn BatchLog>>,
        lane: WeakSender<LaneMessage>,
    ) -> Result<Self, StoreError> {
        let (batches, queue) = sync_channel::<OpenBatch>(1);
        let (sender, results) = sync_channel(1);
        let has_result = Arc::new(AtomicBool::new(false));
        let finished = has_result.clone();
        let work = move || {
            while let Ok(batch) = queue.recv() {
                let began = Instant::now();
                let result = append_or_confirm(&mut *log.lock(), &batch);
                // Before the result: the lane clears it after it took the result, and a mark that
                // came later would let it wait for a batch that does not exist.
                finished.store(true, Ordering::Release);
                if sender.send(Appended { batch, result, took: began.elapsed() }).is_err() {
                    return;
                }
                // With a full queue the lane is awake.
                if let Some(lane) = lane.upgrade() {
                    let _ = lane.try_send(LaneMessage::Appended);
                }
            }
        };
        let thread = std::thread::Builder::new()
            .name("log".to_owned())
            .spawn(work)
            .map_err(|error| StoreError::Failed(error.to_string()))?;
        let (batches, thread) = (Some(batches), Some(thread));
        Ok(Self { batches, results, has_result, is_busy: false, thread })
    }

    /// Whether a batch is being appended, or its result was not taken yet.
    pub fn is_busy(&self) -> bool {
        self.is_busy
    }

    /// Whether a result is there, or comes at once.
    pub fn has_result(&self) -> bool {
        self.has_result.load(Ordering::Acquire)
    }

    /// Hands a batch to the thread, which must not be busy.
    pub fn append(&mut self, batch: OpenBatch) {
        self.is_busy = true;
        if let Some(batches) = &self.batches {
            // If the thread is gone, `wait` reports it.
            let _ = batches.send(batch);
        }
    }

    /// Waits for the result. `None` if the thread panicked.
    pub fn wait(&mut self) -> Option<Appended> {
        let appended = self.results.recv().ok();
        self.has_result.store(false, Ordering::Release);
        self.is_busy = false;
        appended
    }
}

impl Drop for LogThread {
    fn drop(&mut self) {
        self.batches = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

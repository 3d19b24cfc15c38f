//! The relay's state in memory while the hub runs.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use rialto_engine::secret::HubSecret;

use super::attempt::Tries;
use super::loop_guard::LoopGuard;
use super::settings::Settings;
use super::trace::Traces;

/// The relay's own state, shared by all its operations.
pub struct Room {
    pub settings: Settings,
    pub traces: Traces,
    pub loop_guard: LoopGuard,
    pub tries: Tries,
    pub tally: Tally,
    pub started: Instant,
}

impl Room {
    pub fn new(settings: Settings, secret: &HubSecret) -> Self {
        Self {
            settings,
            traces: Traces::new(secret.derive("rialto relay trace v1", "hub")),
            loop_guard: LoopGuard::default(),
            tries: Tries::default(),
            tally: Tally::default(),
            started: Instant::now(),
        }
    }
}

/// Outcomes of messages since the hub was started.
#[derive(Debug, Default)]
pub struct Tally {
    delivered: AtomicU64,
    failed: AtomicU64,
    queued: AtomicU64,
}

impl Tally {
    pub fn count(&self, outcome: &super::Outcome<'_>) {
        use super::Outcome::{Delivered, Failed, Presented, Queued};
        let counter = match outcome {
            Presented | Delivered { .. } => &self.delivered,
            Queued => &self.queued,
            Failed { .. } => &self.failed,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// Delivered, failed, queued.
    pub fn read(&self) -> [u64; 3] {
        [&self.delivered, &self.failed, &self.queued].map(|count| count.load(Ordering::Relaxed))
    }
}

//! The relay's state in memory while the hub runs.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use rialto_engine::secret::HubSecret;

use super::attempt::RunningAttempts;
use super::loop_guard::LoopGuard;
use super::settings::Settings;
use super::trace::TraceIds;

/// The relay's own state, shared by all its operations.
pub struct RelayState {
    pub settings: Settings,
    pub trace_ids: TraceIds,
    pub loop_guard: LoopGuard,
    pub running_attempts: RunningAttempts,
    pub delivery_counts: DeliveryCounts,
    pub started: Instant,
}

impl RelayState {
    pub fn new(settings: Settings, secret: &HubSecret) -> Self {
        Self {
            settings,
            trace_ids: TraceIds::new(secret.derive("rialto relay trace v1", "hub")),
            loop_guard: LoopGuard::default(),
            running_attempts: RunningAttempts::default(),
            delivery_counts: DeliveryCounts::default(),
            started: Instant::now(),
        }
    }
}

/// Outcomes of messages since the hub was started.
#[derive(Debug, Default)]
pub struct DeliveryCounts {
    delivered: AtomicU64,
    failed: AtomicU64,
    queued: AtomicU64,
}

impl DeliveryCounts {
    pub fn count(&self, outcome: &super::DeliveryOutcome<'_>) {
        use super::DeliveryOutcome::{Delivered, Failed, Queued, Streamed};
        let counter = match outcome {
            Streamed | Delivered { .. } => &self.delivered,
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

//! The coordinator: one thread of a node that follows the log, watches the writer, and takes over.
//!
//! It never decides who has committed what: that is the log's primary key. It only chooses when to
//! look, when to try to become the writer, and when this node knows too little to answer. A wrong
//! choice costs time and nothing else.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, sync_channel};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use tokio::sync::{mpsc, oneshot};

use super::member::LaneEvent;
use super::reporter::ReporterRequest;
use super::{Inner, LaneMessage};
use crate::cluster::frame::{CommittedBatch, Hop, Notes};
#[cfg(any(test, feature = "testkit"))]
use crate::cluster::mistake::Mistake;
use crate::cluster::state::{Applied, ClusterState, CoordinatorRequest, Role, STALE_AFTER};
use crate::cluster::{Lease, LookQuery, NodeId, SharedLog};
use crate::store::StoreError;
use crate::store::log::Place;

/// The longest time between two looks: what a lost hint costs.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);
/// How often a node tells the writer what was seen and presented.
const NOTES_INTERVAL: Duration = Duration::from_millis(500);
/// How often a node that has the lease tries to append its first batch before it looks again at who
/// has the lease.
const LEAD_ATTEMPTS: usize = 8;
/// How long the lane may take to begin to write, or to stop.
const LANE_TIMEOUT: Duration = Duration::from_secs(10);

/// What the coordinator is started with.
pub struct CoordinatorParts {
    pub log: Box<dyn SharedLog>,
    pub inner: Arc<Inner>,
    pub state: Arc<ClusterState>,
    pub hop: Arc<dyn Hop>,
    pub lane: mpsc::WeakSender<LaneMessage>,
    /// How long a writer may show no sign of life.
    pub lease: Duration,
    pub reporter: Sender<ReporterRequest>,
}

/// What is known of the writer, and since when nothing has changed.
struct WriterSigns {
    lease: Lease,
    head: u64,
    changed_at: Instant,
    /// The epoch whose writer takes no connections.
    gone: Option<u64>,
}

pub struct Coordinator {
    log: Box<dyn SharedLog>,
    inner: Weak<Inner>,
    state: Arc<ClusterState>,
    hop: Arc<dyn Hop>,
    lane: mpsc::WeakSender<LaneMessage>,
    lease_time: Duration,
    reporter: Sender<ReporterRequest>,
    signs: WriterSigns,
    /// The newest batch that the lane was given.
    delivered: Place,
    /// The lease of this node, while it writes or is about to.
    mine: Option<Lease>,
    waiting: Vec<oneshot::Sender<u64>>,
    /// When the last look began that succeeded.
    looked_at: Option<Instant>,
    /// Looks whose batches may not be applied yet: when each began, and the newest batch it found.
    unapplied: VecDeque<(Instant, u64)>,
    noted_at: Instant,
    is_resigned: bool,
}

impl Coordinator {
    pub fn new(parts: CoordinatorParts) -> Self {
        let CoordinatorParts { log, inner, state, hop, lane, lease, reporter } = parts;
        let now = Instant::now();
        let delivered = *state.place.lock();
        let signs = WriterSigns { lease: Lease::default(), head: 0, changed_at: now, gone: None };
        Self {
            log,
            inner: Arc::downgrade(&inner),
            state,
            hop,
            lane,
            lease_time: lease,
            reporter,
            signs,
            delivered,
            mine: None,
            waiting: Vec::new(),
            looked_at: None,
            unapplied: VecDeque::new(),
            noted_at: now,
            is_resigned: false,
        }
    }

    /// Runs until the engine is dropped or the log cannot be followed any more.
    pub fn run(mut self, requests: &Receiver<CoordinatorRequest>) {
        loop {
            let first = match requests.recv_timeout(self.wait()) {
                Ok(request) => Some(request),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => return,
            };
            let all: Vec<_> = first.into_iter().chain(requests.try_iter()).collect();
            let mut must_look = false;
            for request in all {
                must_look |= !matches!(request, CoordinatorRequest::Batch(_));
                match request {
                    CoordinatorRequest::Look(found) => self.waiting.push(found),
                    CoordinatorRequest::Hint => {}
                    CoordinatorRequest::Batch(batch) => must_look |= !self.take_batch(&batch),
                    CoordinatorRequest::WriterGone { epoch } => self.signs.gone = Some(epoch),
                    CoordinatorRequest::Resign(done) => {
                        self.resign();
                        let _ = done.send(());
                    }
                    CoordinatorRequest::Leave(done) => {
                        let _ = self.reporter.send(ReporterRequest::Leave(done));
                        return;
                    }
                    CoordinatorRequest::Stop => return,
                }
            }
            if self.lane.upgrade().is_none() {
                return;
            }
            if !must_look && !self.wait().is_zero() {
                continue;
            }
            match self.step() {
                Ok(()) => {}
                // A node on a full disk still reads, and goes on when there is space.
                Err(error) if error.is_about_the_place() || matches!(error, StoreError::Full) => {
                    tracing::warn!(%error, "the log of the cluster could not be read");
                    std::thread::sleep(Duration::from_millis(20));
                }
                Err(error) => {
                    // The next start compares it with the log.
                    self.state.save_place();
                    if let Some(inner) = self.inner.upgrade() {
                        inner.record_store_error(&error);
                    }
                    return;
                }
            }
        }
    }

    /// How long there is nothing to do.
    fn wait(&self) -> Duration {
        let looked = self.looked_at.map_or(LOOK_INTERVAL, |at| at.elapsed());
        match self.waiting.is_empty() {
            true => LOOK_INTERVAL.saturating_sub(looked),
            false => Duration::ZERO,
        }
    }

    /// One look, and what follows from it.
    pub fn step(&mut self) -> Result<(), StoreError> {
        self.look()?;
        self.elect()?;
        self.note();
        Ok(())
    }

    fn is_writer(&self) -> bool {
        self.state.applied.borrow().role == Role::Writer
    }

    /// Records how recent the published world is: as recent as the last look all of whose batches
    /// are applied. A writer can see a batch of its own in the log before it knows that it is
    /// written.
    fn record_applied_looks(&mut self) {
        let applied = self.state.applied.borrow().number;
        while let Some((began, _)) = self.unapplied.pop_front_if(|(_, head)| *head <= applied) {
            *self.state.looked_at.lock() = Some(began);
        }
        // What is older makes no node current.
        while self.unapplied.pop_front_if(|(began, _)| began.elapsed() > STALE_AFTER).is_some() {}
        self.state.show_staleness();
    }

    /// Looks at the log, and hands new batches to the lane.
    fn look(&mut self) -> Result<(), StoreError> {
        self.record_applied_looks();
        loop {
            let began = Instant::now();
            let waiting = std::mem::take(&mut self.waiting);
            let Applied { role, epoch, .. } = *self.state.applied.borrow();
            let is_writer = role == Role::Writer;
            let applied = *self.state.place.lock();
            if is_writer || applied.number > self.delivered.number {
                self.delivered = applied;
            }
            let query = LookQuery { after: self.delivered, with_batches: !is_writer };
            let look = match self.log.look(query) {
                Ok(look) => look,
                Err(error) => {
                    self.waiting.extend(waiting);
                    return Err(error);
                }
            };
            self.record_signs(&look.lease, look.head.number, began);
            if is_writer && look.head.number > applied.number && look.head_epoch != epoch {
                // Another node has written: what it wrote is read at once.
                self.waiting.extend(waiting);
                self.mine = None;
                self.follow_other_writer(applied)?;
                continue;
            }
            if !look.batches.is_empty() {
                self.delivered = look.head;
                self.send(LaneEvent::Batches(look.batches));
            }
            if look.has_more {
                self.waiting.extend(waiting);
                continue;
            }
            self.looked_at = Some(began);
            self.unapplied.push_back((began, look.head.number));
            self.record_applied_looks();
            for found in waiting {
                let _ = found.send(look.head.number);
            }
            return Ok(());
        }
    }

    /// Hands a batch that the writer has sent to the lane. False if it does not continue what this
    /// node has: then the log is read.
    fn take_batch(&mut self, sent: &CommittedBatch) -> bool {
        let bytes = sent.record.body.len() as u64;
        self.state.received_bytes.fetch_sub(bytes, Ordering::AcqRel);
        let applied = *self.state.place.lock();
        if applied.number > self.delivered.number {
            self.delivered = applied;
        }
        if self.is_writer() || sent.place.number <= self.delivered.number {
            return true;
        }
        let Some(batch) = sent.decode(self.delivered) else { return false };
        self.delivered = batch.place;
        self.log.record_received(bytes);
        self.send(LaneEvent::Batches(vec![batch]));
        true
    }

    /// Reads what another node has written since this one last did.
    fn follow_other_writer(&mut self, after: Place) -> Result<(), StoreError> {
        let look = self.log.look(LookQuery { after, with_batches: true })?;
        self.delivered = look.head;
        self.send(LaneEvent::Batches(look.batches));
        // The lane follows once it has applied them.
        let mut applied = self.state.applied.subscribe();
        let deadline = Instant::now() + LANE_TIMEOUT;
        while applied.borrow_and_update().role == Role::Writer && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }

    fn record_signs(&mut self, lease: &Lease, head: u64, now: Instant) {
        let signs = &mut self.signs;
        if signs.lease != *lease || signs.head != head {
            (signs.lease, signs.head, signs.changed_at) = (lease.clone(), head, now);
        }
        let writer = Some(lease.node).filter(|node| *node != NodeId(0));
        *self.state.writer.lock() = writer;
        // Only a writer whose first batch is applied here can take commands.
        let applied = *self.state.applied.borrow();
        let is_ready = applied.epoch == lease.epoch;
        #[cfg(any(test, feature = "testkit"))]
        let is_ready = is_ready || self.state.has_mistake(Mistake::AskBeforeFirstBatch);
        if writer.is_some_and(|node| node != self.state.node) && is_ready {
            self.hop.follow(lease);
        }
    }

    /// Tries to become the writer if there is none.
    fn elect(&mut self) -> Result<(), StoreError> {
        if self.is_resigned || self.is_writer() {
            return Ok(());
        }
        let WriterSigns { lease, changed_at, gone, .. } = &self.signs;
        let is_free = lease.node == NodeId(0) || lease.node == self.state.node;
        let is_gone = *gone == Some(lease.epoch);
        let is_silent = changed_at.elapsed() >= self.lease_time;
        if !(is_free || is_gone || is_silent) {
            return Ok(());
        }
        let before = lease.clone();
        let Some(lease) = self.log.take_lease(&before, self.state.node, self.state.address())?
        else {
            return Ok(());
        };
        tracing::info!(epoch = lease.epoch, is_gone, is_silent, "taking over from {}", before.node);
        self.mine = Some(lease.clone());
        let _ = self.reporter.send(ReporterRequest::Lead(lease.clone()));
        self.lead(&before, lease)
    }

    /// Begins to write: reads the log to its end and appends the first batch of the epoch. An earlier
    /// writer may still append a batch in between.
    fn lead(&mut self, before: &Lease, lease: Lease) -> Result<(), StoreError> {
        for _ in 0..LEAD_ATTEMPTS {
            self.look()?;
            if self.signs.lease.epoch != lease.epoch {
                break;
            }
            let (done, result) = sync_channel(1);
            self.send(LaneEvent::Lead { lease: lease.clone(), done });
            match result.recv_timeout(LANE_TIMEOUT) {
                Ok(Ok(())) => return self.look(),
                Ok(Err(StoreError::Taken { .. })) => {}
                Ok(Err(StoreError::Locked(_))) => self.log.end_session_of(before)?,
                Ok(Err(error)) => return Err(error),
                Err(_) => return Ok(()),
            }
        }
        self.mine = None;
        Ok(())
    }

    /// Tells the writer what was seen and presented here, and who reads; the writer tells all who
    /// reads. Positions stay until the writer has recorded them.
    fn note(&mut self) {
        let is_urgent = self.state.readers_changed.swap(false, Ordering::AcqRel);
        if !is_urgent && self.noted_at.elapsed() < NOTES_INTERVAL {
            return;
        }
        self.noted_at = Instant::now();
        let Some(inner) = self.inner.upgrade() else { return };
        if self.is_writer() {
            let mut readers = inner.live_inboxes.agents();
            readers.extend(self.state.remote_readers());
            if is_urgent || !readers.is_empty() {
                self.hop.tell_readers(&readers);
            }
            return;
        }
        let notes = inner.take_notes();
        if is_urgent || !notes.is_empty() {
            self.hop.note(notes);
        }
    }

    /// Gives the lease back, so that another node writes at once.
    fn resign(&mut self) {
        self.is_resigned = true;
        let (done, resigned) = sync_channel(1);
        self.send(LaneEvent::Resign { done });
        let _ = resigned.recv_timeout(LANE_TIMEOUT);
        if let Some(lease) = self.mine.take()
            && let Err(error) = self.log.release_lease(&lease)
        {
            tracing::warn!(%error, "the lease could not be given back");
        }
    }

    fn send(&self, event: LaneEvent) {
        if let Some(inner) = self.inner.upgrade() {
            inner.send_event(&self.lane, event);
        }
    }
}

impl Inner {
    /// What was seen and presented here. Positions stay until the writer has recorded them.
    pub(super) fn take_notes(&self) -> Notes {
        let last_seen = std::mem::take(&mut *self.last_seen.lock()).into_iter().collect();
        let presented = {
            let world = self.world.read();
            let mut presented = self.presented.lock();
            presented.retain(|agent, up_to| world.inbox(*agent).presented < *up_to);
            presented.iter().map(|(agent, up_to)| (*agent, *up_to)).collect()
        };
        let with_readers = self.live_inboxes.agents();
        Notes { last_seen, presented, with_readers }
    }
}

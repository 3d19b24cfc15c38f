//! The commit lane: one thread that owns the store and decides commands one after the other.
//!
//! It takes the queued commands, decides each on a world that includes the earlier ones, commits
//! once, publishes, and only then replies. A batch that cannot be committed leaves no trace: the
//! working world is copied again from the published one.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use parking_lot::RwLockWriteGuard;
use rialto_core::answer::Answer;
use rialto_core::changes::{Changes, ExpiredRows};
use rialto_core::command::Command;
use rialto_core::decide::MissingRow;
use rialto_core::envelope::Envelope;
use rialto_core::id::AgentId;
use rialto_core::idempotency::{self, Idempotency, Receipt, SavedAnswer};
use rialto_core::refusal::Refusal;
use rialto_core::time::Timestamp;
use rialto_core::world::World;
use tokio::sync::{mpsc, watch};

use super::event_log;
use super::reply::{self, LaneResult, ReplySender};
use super::timers::Timers;
use super::{CommandRequest, Failure, Inner, LaneMessage, LaneReply};
use crate::store::{Row, RowKey, Store, StoreError};

/// Commands decided before a commit.
const BATCH_MAX: usize = 1_024;
/// Expired answers and keys removed in one batch: more than a batch can add.
const EXPIRED_PER_BATCH_MAX: usize = 2 * BATCH_MAX;
/// Rounds of loading for claims that lead to rows: more than any chain of references needs.
const LOAD_ROUNDS_MAX: usize = 4;

/// What the thread owns.
pub struct Lane {
    pub world: World,
    pub store: Box<dyn Store>,
    pub queue: mpsc::Receiver<LaneMessage>,
    pub inner: Arc<Inner>,
    /// When the lane must be woken without a command.
    pub next_due: watch::Sender<Option<Timestamp>>,
    pub timers: Timers,
}

/// One batch in preparation.
#[derive(Default)]
struct Batch {
    changes: Changes,
    expired: ExpiredRows,
    replies: Vec<(ReplySender, LaneResult)>,
    last_seen: Vec<(AgentId, Timestamp)>,
    presented: Vec<(AgentId, u64)>,
    stop: bool,
}

impl Lane {
    /// Runs until it is stopped, until the last handle is dropped, or until the store fails.
    pub fn run(mut self) {
        let mut idle = true;
        while let Some(first) = self.next_message(idle) {
            match self.run_batch(first) {
                Some(quiet) => idle = quiet,
                None => return,
            }
        }
    }

    /// Runs one batch of the queue. Returns whether no caller waited for it, or `None` if it was
    /// the last.
    pub fn run_batch(&mut self, first: LaneMessage) -> Option<bool> {
        let mut batch = Batch::default();
        let now = self.inner.clock.now();
        batch.last_seen = std::mem::take(&mut *self.inner.last_seen.lock()).into_iter().collect();
        apply_last_seen(&mut self.world, &batch.last_seen, now);
        self.fire_timers(&mut batch, now);
        self.apply_presented(&mut batch, now);
        self.handle_message(&mut batch, first, now);
        for _ in 1..BATCH_MAX {
            if batch.stop {
                break;
            }
            let Ok(lane_message) = self.queue.try_recv() else { break };
            self.handle_message(&mut batch, lane_message, now);
        }
        batch.expired = self.world.expired_rows(now, EXPIRED_PER_BATCH_MAX);
        let stop = batch.stop;
        let quiet = batch.replies.is_empty();
        if !self.finish(batch, now) {
            return None;
        }
        if stop {
            // Finish the deferred work now instead of at the next start.
            while matches!(self.store.run_maintenance(), Ok(true)) {}
            return None;
        }
        Some(quiet)
    }

    /// The next message. While there is none for some time, the store may run its maintenance.
    ///
    /// Between two busy batches the queue is always empty for a moment. A maintenance write in that
    /// moment would delay every command of the next batch, so maintenance starts only after a
    /// wake-up found nothing else to do.
    fn next_message(&mut self, idle: bool) -> Option<LaneMessage> {
        loop {
            match self.queue.try_recv() {
                Ok(lane_message) => return Some(lane_message),
                Err(mpsc::error::TryRecvError::Disconnected) => return None,
                Err(mpsc::error::TryRecvError::Empty) => {}
            }
            if !idle {
                self.inner.maintenance_due.store(true, Ordering::Relaxed);
                return self.queue.blocking_recv();
            }
            match self.store.run_maintenance() {
                Ok(true) => continue,
                // Maintenance can wait until the disk has space.
                Ok(false) | Err(StoreError::Full) => {
                    self.inner.maintenance_due.store(false, Ordering::Relaxed);
                    return self.queue.blocking_recv();
                }
                Err(error) => {
                    self.inner.record_store_error(&error);
                    return None;
                }
            }
        }
    }

    fn fire_timers(&mut self, batch: &mut Batch, now: Timestamp) {
        for timer in self.timers.due(&self.world, now) {
            let (changes, done) = self.decide(Command::FireTimer(timer).into(), now);
            if let Err(failure) = done {
                tracing::error!(?timer, %failure, "timer command refused");
                self.timers.postpone(timer, now);
            }
            batch.changes.merge(changes);
        }
    }

    /// Removes the positions that are published now, unless a later one has replaced them.
    fn clear_presented(&self, batch: &Batch) {
        let mut noted = self.inner.presented.lock();
        for (agent, up_to) in &batch.presented {
            if noted.get(agent) == Some(up_to) {
                noted.remove(agent);
            }
        }
    }

    fn apply_presented(&mut self, batch: &mut Batch, now: Timestamp) {
        // Positions stay recorded until they are published, so that a read in between still sees
        // them.
        let noted = self.inner.presented.lock().iter().map(|(agent, at)| (*agent, *at)).collect();
        batch.presented = noted;
        for (agent, up_to) in batch.presented.clone() {
            // A refusal does not matter: the agent was removed in the meantime.
            let (changes, _) = self.decide(Command::MarkPresented { agent, up_to }.into(), now);
            batch.changes.merge(changes);
        }
    }

    fn handle_message(&mut self, batch: &mut Batch, lane_message: LaneMessage, now: Timestamp) {
        match lane_message {
            LaneMessage::Wake => {}
            LaneMessage::Stop => batch.stop = true,
            LaneMessage::Run(request) => {
                let CommandRequest { envelope, reply } = *request;
                let (changes, done) = self.decide(envelope, now);
                batch.changes.merge(changes);
                batch.replies.push((reply, done));
            }
        }
    }

    /// Loads, decides, and adds the record that makes a repeat harmless. Every change is applied to
    /// the world exactly once: an ended job applied twice would count as another started job.
    fn decide(
        &mut self,
        envelope: Envelope,
        now: Timestamp,
    ) -> (Changes, Result<LaneReply, Failure>) {
        let (changes, done) = self.decide_envelope(envelope, now);
        self.inner.commands.fetch_add(1, Ordering::Relaxed);
        self.inner.rows_changed.fetch_add(changes.row_count() as u64, Ordering::Relaxed);
        (changes, done)
    }

    fn decide_envelope(
        &mut self,
        envelope: Envelope,
        now: Timestamp,
    ) -> (Changes, Result<LaneReply, Failure>) {
        let once = envelope.idempotency;
        if let Some(known) = once.and_then(|once| self.saved_result(once, now)) {
            return (Changes::default(), known);
        }
        // If the answer cannot be saved for repeats, the command is refused before it has any
        // effect.
        let room =
            once.map_or(Ok(()), |once| idempotency::check_capacity(&self.world, once.principal));
        if let Err(refusal) = room {
            return (Changes::default(), Err(Failure::Refused(refusal)));
        }
        if let Err(error) = self.load_needs(&envelope) {
            return (Changes::default(), Err(self.inner.record_store_error(&error)));
        }
        // The rules only read, so a panic in one has changed nothing.
        let rules = AssertUnwindSafe(|| rialto_core::decide(&self.world, envelope, now));
        let Ok(decided) = catch_unwind(rules) else {
            tracing::error!("panic while deciding a command; it had no effect");
            return (Changes::default(), Err(Failure::Fault));
        };
        let (mut changes, receipt, done) = match decided {
            Ok((changes, answer)) => {
                if let Answer::Delivery { refused: Some(refusal) } = &answer {
                    self.inner.metrics.count_refusal(refusal);
                }
                (changes, answer.receipt(), Ok(LaneReply::Fresh(answer)))
            }
            Err(refusal) => {
                self.inner.metrics.count_refusal(&refusal);
                let receipt = Receipt::Refused(refusal.clone());
                (Changes::default(), receipt, Err(Failure::Refused(refusal)))
            }
        };
        self.world.apply(&changes);
        // A refusal that may pass with time is not saved: the repeat should be able to succeed.
        let curable = matches!(&receipt, Receipt::Refused(refusal) if refusal.may_succeed_later());
        if let Some(once) = once.filter(|_| !curable) {
            // The record is decided after the effect, like a separate command. Its capacity was
            // checked above, and no effect uses any of it.
            let note = once.save(SavedAnswer::Done(receipt));
            if let Ok((noted, _)) = rialto_core::decide(&self.world, note, now) {
                self.world.apply(&noted);
                changes.merge(noted);
            }
        }
        (changes, done)
    }

    /// The result of the first request with this key, if there was one.
    fn saved_result(
        &self,
        once: Idempotency,
        now: Timestamp,
    ) -> Option<Result<LaneReply, Failure>> {
        let memory = self.world.idempotency_entry(once.scope, now)?;
        if memory.request != once.request {
            return Some(Err(Failure::Refused(Refusal::SameIdOtherContent)));
        }
        Some(match &memory.receipt {
            Some(receipt) => Ok(LaneReply::Replayed(receipt.clone())),
            None => Err(Failure::StillRunning),
        })
    }

    /// Loads the rows a command refers to.
    fn load_needs(&mut self, envelope: &Envelope) -> Result<(), StoreError> {
        let mut asked = Vec::new();
        for _ in 0..LOAD_ROUNDS_MAX {
            let mut needs = rialto_core::missing_rows(&self.world, envelope);
            // A row that was requested and not loaded does not exist.
            needs.retain(|need| !asked.contains(need));
            if needs.is_empty() {
                break;
            }
            let mut found = false;
            for need in &needs {
                found |= self.load_need(*need)?;
            }
            // Only rows just loaded can refer to further ones.
            if !found {
                break;
            }
            asked.append(&mut needs);
        }
        Ok(())
    }

    /// Loads one row and returns whether it exists.
    fn load_need(&mut self, need: MissingRow) -> Result<bool, StoreError> {
        let wanted = match need {
            MissingRow::Agent(id) => RowKey::Agent(id),
            MissingRow::Claim(digest) => RowKey::Claim(digest),
            MissingRow::Job(id) => RowKey::Job(id),
            MissingRow::Transfer(id) => RowKey::Transfer(id),
        };
        let found = self.store.load(wanted)?;
        let is_there = found.is_some();
        match (need, found) {
            (_, Some(Row::Claim(claim))) => self.world.load_claim(claim.digest, Some(claim)),
            (MissingRow::Claim(digest), _) => self.world.load_claim(digest, None),
            (_, Some(Row::Agent(agent))) => self.world.load_agent(agent),
            (_, Some(Row::Job(job))) => self.world.load_job(job),
            (_, Some(Row::Transfer(transfer))) => self.world.load_transfer(transfer),
            _ => {}
        }
        Ok(is_there)
    }

    /// Commits, publishes and replies. Returns false when the lane must stop.
    fn finish(&mut self, batch: Batch, now: Timestamp) -> bool {
        match self.commit(&batch) {
            Ok(()) => {
                self.publish(&batch, now);
                reply::deliver(batch.replies);
                self.inner.watchers.publish(&batch.changes);
                self.inner.notifier.notify(&batch.changes);
                true
            }
            Err(failure) => {
                let goes_on = matches!(failure, Failure::StoreFull);
                if goes_on {
                    self.reset_world(&batch, now);
                }
                let replies = batch.replies.into_iter();
                reply::deliver(replies.map(|(reply, _)| (reply, Err(failure.clone()))));
                goes_on
            }
        }
    }

    fn commit(&mut self, batch: &Batch) -> Result<(), Failure> {
        // A reader, or a load in this batch, may have found the store unusable.
        if self.inner.has_failed() {
            return Err(Failure::Unavailable);
        }
        let changes = &batch.changes;
        if changes.is_empty() && changes.inboxes.is_empty() && batch.expired.is_empty() {
            return Ok(());
        }
        let began = Instant::now();
        let committed = self.store.commit(&batch.changes, &batch.expired);
        committed.map_err(|error| self.inner.record_store_error(&error))?;
        self.inner.metrics.commits.observe_duration(began.elapsed());
        self.inner.metrics.batches.observe_count(batch.replies.len());
        self.inner.metrics.count_commit(&batch.changes);
        event_log::log_batch(&batch.changes);
        Ok(())
    }

    /// Publishes what is committed, in commit order.
    fn publish(&mut self, batch: &Batch, now: Timestamp) {
        self.world.remove_expired(&batch.expired);
        self.world.drop_cold_rows();
        self.world.expire_online(now);
        {
            let mut world = self.inner.world.write();
            apply_last_seen(&mut world, &batch.last_seen, now);
            world.apply_batch(&batch.changes);
            world.copy_start_times(&self.world, &batch.changes);
            world.remove_expired(&batch.expired);
            world.drop_cold_rows();
            world.expire_online(now);
            // Before readers see the new head of an inbox, its newest notices are in memory.
            self.inner.live_inboxes.publish(&batch.changes.notices);
        }
        self.clear_presented(batch);
        self.publish_next_due(now);
    }

    /// Discards what could not be committed. Last-seen times are not stored, so they stay.
    fn reset_world(&mut self, batch: &Batch, now: Timestamp) {
        self.world = {
            let mut world = self.inner.world.write();
            apply_last_seen(&mut world, &batch.last_seen, now);
            RwLockWriteGuard::downgrade(world).clone()
        };
        self.timers.pause(now);
        self.publish_next_due(now);
    }

    fn publish_next_due(&mut self, now: Timestamp) {
        self.timers.mark_presence_checked(&self.world, now);
        let next = self.timers.next_wakeup(&self.world);
        self.next_due.send_if_modified(|due| std::mem::replace(due, next) != next);
    }
}

/// Applies last-seen times, and marks agents offline that were not seen for too long.
fn apply_last_seen(world: &mut World, signs: &[(AgentId, Timestamp)], now: Timestamp) {
    for (agent, at) in signs {
        world.record_activity(*agent, *at);
    }
    world.expire_online(now);
}

//! The commit lane: one thread that decides commands one after the other.
//!
//! It takes the queued commands and decides each on a world that includes the earlier ones. A batch
//! of them is appended to the log, then published, and only then answered. While a batch is being
//! synced, the lane decides the next one on top of it. A batch that cannot be appended leaves no
//! trace, and takes with it what was decided on top of it: the working world is copied again from
//! the published one.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use parking_lot::RwLockWriteGuard;
use rialto_core::answer::Answer;
use rialto_core::changes::{Batch, Changes};
use rialto_core::command::Command;
use rialto_core::decide::MissingRow;
use rialto_core::envelope::Envelope;
use rialto_core::id::AgentId;
use rialto_core::idempotency::{self, Idempotency, Receipt, SavedAnswer};
use rialto_core::refusal::Refusal;
use rialto_core::time::{Millis, Timestamp};
use rialto_core::world::World;
use tokio::sync::{mpsc, watch};

use super::event_log;
use super::log_thread::{Appended, LogThread};
use super::member::Member;
#[cfg(any(test, feature = "testkit"))]
use super::member::reply_result;
use super::reply::{self, LaneResult, ReplySender};
use super::timers::Timers;
use super::{CommandRequest, Failure, Inner, LaneMessage, LaneReply};
use crate::cluster::NodeId;
#[cfg(any(test, feature = "testkit"))]
use crate::cluster::frame::ReplyResult;
use crate::store::log::Place;
use crate::store::{BatchLog, Row, RowKey, Store, StoreError};

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
    /// Appends beside the lane. Without it the lane appends itself.
    pub log_thread: Option<LogThread>,
    /// What is decided and not handed to the log yet.
    pub batch: Option<OpenBatch>,
    /// This node among others; `None` at a hub of one node.
    pub member: Option<Member>,
    /// Whether no caller waited for the newest batch.
    pub is_idle: bool,
    pub is_stopped: bool,
    /// What was decided in the newest batch, if a simulation wants to know.
    #[cfg(any(test, feature = "testkit"))]
    pub decided: Option<Vec<DecidedCommand>>,
}

/// One decision of a lane, for simulations that decide the same again.
#[cfg(any(test, feature = "testkit"))]
#[derive(Clone, Debug)]
pub struct DecidedCommand {
    pub envelope: Envelope,
    pub result: ReplyResult,
    /// The node whose caller waits for it, and that node's number for it. `None` for timers and what
    /// the lane does by itself.
    pub asked_by: Option<(NodeId, u64)>,
}

/// Who gets the reply to a command.
pub(super) enum Recipient {
    Caller(ReplySender),
    /// A caller of this node that waits under this number.
    Pending(u64),
    /// Another node, and its number for the command.
    Node(NodeId, u64),
}

/// What the queue had for the lane.
enum Received {
    Message(LaneMessage),
    /// There is no message, but something else to do.
    Nothing,
    /// All handles are dropped.
    Closed,
}

/// The commands that are committed together.
pub struct OpenBatch {
    /// The time at which all of them are decided.
    pub(super) now: Timestamp,
    pub(super) content: Batch,
    pub(super) replies: Vec<(Recipient, LaneResult)>,
    pub(super) last_seen: Vec<(AgentId, Timestamp)>,
    presented: Vec<(AgentId, u64)>,
    /// Other nodes need the inbox positions in it, although they may be lost.
    has_notes: bool,
    messages: usize,
    pub(super) stop: bool,
}

impl OpenBatch {
    fn takes_more(&self) -> bool {
        self.messages < BATCH_MAX && !self.stop
    }

    /// Whether there is nothing to append. Inbox positions that were only presented may be lost.
    pub(super) fn needs_no_record(&self) -> bool {
        let Batch { changes, expired, for_nodes } = &self.content;
        changes.is_empty() && expired.is_empty() && for_nodes.is_empty() && !self.has_notes
    }

    /// Whether nothing is to be done about it but to publish it.
    fn needs_no_log(&self) -> bool {
        // A reply without a record is right only if no other node has written meanwhile.
        self.needs_no_record() && self.replies.is_empty()
    }
}

impl Lane {
    /// Runs until it is stopped, until the last handle is dropped, or until the store fails.
    pub fn run(mut self) {
        while !self.is_stopped {
            self.handle_events();
            if self.log_thread.as_ref().is_some_and(LogThread::has_result) {
                self.finish_append();
                continue;
            }
            match self.receive() {
                Received::Message(message) => self.handle_message(message),
                Received::Nothing if self.is_appending() => self.finish_append(),
                Received::Nothing => self.append_batch(),
                Received::Closed => self.open_batch().stop = true,
            }
        }
    }

    /// Fires what is due and decides the whole queue as one batch.
    #[cfg(any(test, feature = "testkit"))]
    pub fn decide_queue(&mut self) {
        self.handle_events();
        self.handle_message(LaneMessage::Wake);
        while self.batch.as_ref().is_none_or(OpenBatch::takes_more)
            && let Ok(message) = self.queue.try_recv()
        {
            self.handle_message(message);
        }
    }

    /// The next message. It waits only while there is nothing else to do.
    fn receive(&mut self) -> Received {
        // A full batch has to be appended first.
        if self.batch.as_ref().is_some_and(|batch| !batch.takes_more()) {
            return Received::Nothing;
        }
        let message = match self.queue.try_recv() {
            Ok(message) => Some(message),
            Err(mpsc::error::TryRecvError::Disconnected) => None,
            // The log wakes the lane when it is done.
            Err(mpsc::error::TryRecvError::Empty) if self.is_appending() => {
                self.queue.blocking_recv()
            }
            Err(mpsc::error::TryRecvError::Empty) if self.batch.is_some() => {
                return Received::Nothing;
            }
            Err(mpsc::error::TryRecvError::Empty) => self.next_message(),
        };
        message.map_or(Received::Closed, Received::Message)
    }

    /// Whether the log thread has a batch.
    pub fn is_appending(&self) -> bool {
        self.log_thread.as_ref().is_some_and(LogThread::is_busy)
    }

    /// The batch that takes the next command. A new one begins with what is due.
    pub(super) fn open_batch(&mut self) -> &mut OpenBatch {
        if self.batch.is_none() {
            let batch = self.begin_batch();
            self.batch = Some(batch);
        }
        self.batch.as_mut().expect("it was opened just now")
    }

    fn begin_batch(&mut self) -> OpenBatch {
        #[cfg(any(test, feature = "testkit"))]
        self.decided.iter_mut().for_each(Vec::clear);
        let now = self.now();
        // Other nodes learn from a record what was seen and presented, so it waits for some more.
        let takes_notes = self.member.as_mut().is_none_or(|member| member.takes_notes(now));
        let mut last_seen: Vec<_> = match takes_notes {
            true => std::mem::take(&mut *self.inner.last_seen.lock()).into_iter().collect(),
            false => Vec::new(),
        };
        // The same state gives the same batch.
        last_seen.sort_unstable();
        let mut batch = OpenBatch {
            now,
            content: Batch::default(),
            replies: Vec::new(),
            last_seen,
            presented: Vec::new(),
            has_notes: false,
            messages: 0,
            stop: false,
        };
        apply_last_seen(&mut self.world, &batch.last_seen, now);
        self.fire_timers(&mut batch, now);
        if takes_notes {
            self.apply_presented(&mut batch, now);
        }
        if self.member.is_some() {
            batch.content.for_nodes.at = now;
            batch.content.for_nodes.last_seen = batch.last_seen.clone();
            batch.has_notes = !batch.presented.is_empty();
        }
        batch
    }

    /// Ends the open batch. What is decided next belongs to another one.
    fn close_batch(&mut self) -> Option<OpenBatch> {
        let mut batch = self.batch.take()?;
        batch.content.expired = self.world.expired_rows(batch.now, EXPIRED_PER_BATCH_MAX);
        self.world.remove_expired(&batch.content.expired);
        self.world.begin_batch();
        self.world.expire_online(batch.now);
        // A node that starts from the log goes on at the time of its newest batch, whatever that
        // batch changed.
        if self.member.is_some() && !batch.needs_no_log() && batch.content.changes.next.is_none() {
            batch.content.changes.next = Some(self.world.advance_time(batch.now));
        }
        Some(batch)
    }

    /// Appends the open batch, or hands it to the log thread. Nothing else is being appended.
    pub fn append_batch(&mut self) {
        let Some(batch) = self.close_batch() else { return };
        if batch.needs_no_log() || self.member.is_none() && batch.needs_no_record() {
            return self.publish(batch, None);
        }
        if let Err(error) = self.check_store() {
            return self.fail(vec![batch], &error);
        }
        match &mut self.log_thread {
            // A single caller waits less if no other thread has to be woken.
            Some(log) if batch.replies.len() > 1 => log.append(batch),
            _ => {
                let began = Instant::now();
                let appended = append_or_confirm(&mut *self.store.log().lock(), &batch);
                self.inner.metrics.commits.observe_duration(began.elapsed());
                match appended {
                    Ok(place) => self.publish(batch, place),
                    Err(error) => self.fail(vec![batch], &error),
                }
            }
        }
    }

    /// Waits for the log thread and publishes what it appended.
    pub fn finish_append(&mut self) {
        let Some(log) = &mut self.log_thread else { return };
        let Some(Appended { batch, result, took }) = log.wait() else {
            let error = StoreError::Failed("the log thread panicked".to_owned());
            let decided = self.batch.take().into_iter().collect();
            return self.fail(decided, &error);
        };
        self.inner.metrics.commits.observe_duration(took);
        match result {
            // The next batch first takes what is queued by now: fewer and larger batches cost less
            // than a log that is never idle gains.
            Ok(place) => self.publish(batch, place),
            // What was decided on top of a batch that failed goes with it.
            Err(error) => {
                let decided = std::iter::once(batch).chain(self.batch.take()).collect();
                self.fail(decided, &error);
            }
        }
    }

    /// The next message. While there is none for some time, the store may run its maintenance.
    ///
    /// Between two busy batches the queue is always empty for a moment. A maintenance write in that
    /// moment would delay every command of the next batch, so maintenance starts only after a
    /// wake-up found nothing else to do.
    fn next_message(&mut self) -> Option<LaneMessage> {
        if !self.is_idle {
            self.inner.maintenance_due.store(true, Ordering::Relaxed);
            return self.queue.blocking_recv();
        }
        match self.store.run_maintenance() {
            // Maintenance can wait until the disk has space, or the database answers.
            Ok(()) | Err(StoreError::Full | StoreError::Unreachable(_)) => {
                self.inner.maintenance_due.store(false, Ordering::Relaxed);
                self.queue.blocking_recv()
            }
            Err(error) => {
                self.inner.record_store_error(&error);
                None
            }
        }
    }

    fn fire_timers(&mut self, batch: &mut OpenBatch, now: Timestamp) {
        for timer in self.timers.due(&self.world, now) {
            let (changes, done) = self.decide(Command::FireTimer(timer).into(), now);
            if let Err(failure) = done {
                tracing::error!(?timer, %failure, "timer command refused");
                self.timers.postpone(timer, now);
            }
            batch.content.changes.merge(changes);
        }
    }

    /// Removes the positions that are published now, unless a later one has replaced them.
    fn clear_presented(&self, presented: &[(AgentId, u64)]) {
        let mut noted = self.inner.presented.lock();
        for (agent, up_to) in presented {
            if noted.get(agent) == Some(up_to) {
                noted.remove(agent);
            }
        }
    }

    fn apply_presented(&mut self, batch: &mut OpenBatch, now: Timestamp) {
        // Positions stay recorded until they are published, so that a read in between still sees
        // them.
        batch.presented =
            self.inner.presented.lock().iter().map(|(agent, at)| (*agent, *at)).collect();
        batch.presented.sort_unstable();
        for (agent, up_to) in batch.presented.clone() {
            // A refusal does not matter: the agent was removed in the meantime.
            let (changes, _) = self.decide(Command::MarkPresented { agent, up_to }.into(), now);
            batch.content.changes.merge(changes);
        }
    }

    pub(super) fn handle_message(&mut self, message: LaneMessage) {
        match message {
            LaneMessage::Appended | LaneMessage::Events => self.handle_events(),
            LaneMessage::Wake if self.is_follower() => self.expire_presence(),
            LaneMessage::Stop if self.is_follower() => self.is_stopped = true,
            LaneMessage::Wake => drop(self.open_batch()),
            LaneMessage::Stop => self.open_batch().stop = true,
            LaneMessage::Run(request) => {
                let CommandRequest { envelope, reply } = *request;
                match self.member {
                    None => self.decide_for(envelope, Recipient::Caller(reply)),
                    Some(_) => self.take_command(envelope, reply),
                }
            }
        }
    }

    /// Decides a command in the open batch.
    pub(super) fn decide_for(&mut self, envelope: Envelope, recipient: Recipient) {
        let now = self.open_batch().now;
        let (changes, done) = self.decide(envelope, now);
        #[cfg(any(test, feature = "testkit"))]
        if let Some(decided) = self.decided.as_mut().and_then(|decided| decided.last_mut()) {
            decided.asked_by = self.member.as_ref().and_then(|member| member.asked_by(&recipient));
        }
        let receipt = self.receipt_for(&recipient, &changes, &done);
        let batch = self.open_batch();
        batch.content.for_nodes.receipts.extend(receipt);
        batch.content.changes.merge(changes);
        batch.replies.push((recipient, done));
        batch.messages += 1;
    }

    /// Loads, decides, and adds the record that makes a repeat harmless. Every change is applied to
    /// the world exactly once: an ended job applied twice would count as another started job.
    fn decide(
        &mut self,
        envelope: Envelope,
        now: Timestamp,
    ) -> (Changes, Result<LaneReply, Failure>) {
        #[cfg(any(test, feature = "testkit"))]
        let copy = self.decided.is_some().then(|| envelope.clone());
        let (changes, done) = self.decide_envelope(envelope, now);
        #[cfg(any(test, feature = "testkit"))]
        if let (Some(decided), Some(envelope)) = (&mut self.decided, copy) {
            let result = reply_result(done.clone());
            decided.push(DecidedCommand { envelope, result, asked_by: None });
        }
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
            let found = self.load_rows(&needs)?;
            // Only rows just loaded can refer to further ones.
            if !found {
                break;
            }
            asked.append(&mut needs);
        }
        Ok(())
    }

    /// Loads rows and returns whether any of them exists.
    fn load_rows(&mut self, needs: &[MissingRow]) -> Result<bool, StoreError> {
        let key = |need: &MissingRow| match *need {
            MissingRow::Agent(id) => RowKey::Agent(id),
            MissingRow::Claim(digest) => RowKey::Claim(digest),
            MissingRow::Job(id) => RowKey::Job(id),
            MissingRow::Transfer(id) => RowKey::Transfer(id),
        };
        let keys: Vec<RowKey> = needs.iter().map(key).collect();
        let mut any = false;
        for (need, found) in needs.iter().zip(self.store.load_all(&keys)?) {
            any |= found.is_some();
            match (need, found) {
                (_, Some(Row::Claim(claim))) => self.world.load_claim(claim.digest, Some(claim)),
                (MissingRow::Claim(digest), _) => self.world.load_claim(*digest, None),
                (_, Some(Row::Agent(agent))) => self.world.load_agent(agent),
                (_, Some(Row::Job(job))) => self.world.load_job(job),
                (_, Some(Row::Transfer(transfer))) => self.world.load_transfer(transfer),
                _ => {}
            }
        }
        Ok(any)
    }

    /// Whether the store takes another batch. A reader, or a load for this batch, may have found it
    /// unusable.
    fn check_store(&mut self) -> Result<(), StoreError> {
        if self.inner.has_failed() {
            return Err(StoreError::Failed("the store failed before".to_owned()));
        }
        self.store.make_room()
    }

    /// Publishes what is appended, in the order of the log, and then replies.
    pub(super) fn publish(&mut self, batch: OpenBatch, place: Option<Place>) {
        let OpenBatch { now, content, replies, last_seen, presented, stop, .. } = batch;
        let Batch { changes, expired, .. } = content;
        if !changes.is_empty() || !expired.is_empty() {
            self.inner.metrics.batches.observe_count(replies.len());
            self.inner.metrics.count_commit(&changes);
            event_log::log_batch(&changes);
        }
        // Whatever the published world names can be loaded.
        if place.is_some() || changes.row_count() > 0 {
            self.store.publish(place, &changes, &expired);
        }
        {
            let mut world = self.inner.world.write();
            apply_last_seen(&mut world, &last_seen, now);
            world.replay(&changes, &expired);
            world.expire_online(now);
            // Before readers see the new head of an inbox, its newest notices are in memory.
            self.inner.live_inboxes.publish(&changes.notices);
        }
        self.clear_presented(&presented);
        self.publish_next_due(now);
        self.is_idle = replies.is_empty();
        self.is_stopped |= stop;
        self.record_published(place);
        self.reply_all(replies);
        self.inner.watchers.publish(&changes);
        self.inner.notifier.notify(&changes);
    }

    /// Replies to callers of this node and to other nodes.
    fn reply_all(&mut self, replies: Vec<(Recipient, LaneResult)>) {
        let Some(member) = &mut self.member else {
            let callers = replies.into_iter().filter_map(|(recipient, result)| match recipient {
                Recipient::Caller(reply) => Some((reply, result)),
                Recipient::Pending(_) | Recipient::Node(..) => None,
            });
            return reply::deliver(callers);
        };
        reply::deliver(member.route_replies(replies));
    }

    /// Fails the callers of batches that could not be appended, and discards what they decided.
    fn fail(&mut self, batches: Vec<OpenBatch>, error: &StoreError) {
        if self.member.is_some() && error.is_about_the_place() {
            tracing::warn!(%error, "this node no longer writes");
            return self.step_down(batches);
        }
        let failure = self.inner.record_store_error(error);
        match failure {
            // Other nodes would not learn of what was seen, so it waits for the next batch.
            Failure::StoreFull if self.member.is_some() => {
                self.keep_last_seen(&batches);
                self.reset_world(&[]);
            }
            Failure::StoreFull => self.reset_world(&batches),
            _ => self.is_stopped = true,
        }
        for batch in batches {
            self.is_stopped |= batch.stop;
            let replies = batch.replies.into_iter();
            self.reply_all(replies.map(|(to, _)| (to, Err(failure.clone()))).collect());
        }
    }

    /// Copies the published world again. Last-seen times are not stored, so they stay.
    pub(super) fn reset_world(&mut self, failed: &[OpenBatch]) {
        let now = self.now();
        self.world = {
            let mut world = self.inner.world.write();
            for batch in failed {
                apply_last_seen(&mut world, &batch.last_seen, now);
            }
            RwLockWriteGuard::downgrade(world).clone()
        };
        self.timers.pause(now);
        self.publish_next_due(now);
    }

    pub(super) fn publish_next_due(&mut self, now: Timestamp) {
        self.timers.mark_presence_checked(&self.world, now);
        let next = match self.is_follower() {
            true => self.world.next_offline_at().map(|at| at.plus(Millis(1))),
            false => self.timers.next_wakeup(&self.world),
        };
        self.next_due.send_if_modified(|due| std::mem::replace(due, next) != next);
    }
}

/// Appends a batch, or makes sure that a batch without a record may be answered.
pub(super) fn append_or_confirm(
    log: &mut dyn BatchLog,
    batch: &OpenBatch,
) -> Result<Option<Place>, StoreError> {
    match batch.needs_no_record() {
        true => log.confirm_head().map(|()| None),
        false => log.append(&batch.content).map(Some),
    }
}

/// Applies last-seen times, and marks agents offline that were not seen for too long.
pub(super) fn apply_last_seen(world: &mut World, signs: &[(AgentId, Timestamp)], now: Timestamp) {
    for (agent, at) in signs {
        world.record_activity(*agent, *at);
    }
    world.expire_online(now);
}

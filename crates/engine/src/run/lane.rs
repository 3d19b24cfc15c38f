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
use rialto_core::changes::{Changes, Forgotten};
use rialto_core::command::Command;
use rialto_core::decide::Need;
use rialto_core::id::AgentId;
use rialto_core::idempotency::{self, Kept, Receipt};
use rialto_core::refusal::Refusal;
use rialto_core::time::Timestamp;
use rialto_core::world::World;
use tokio::sync::{mpsc, oneshot, watch};

use super::event_log;
use super::timers::Timers;
use super::{Ask, Done, Errand, Failure, Idempotency, Inner};
use crate::store::{Key, Row, Store, StoreError};

/// Commands decided before a commit.
const BATCH: usize = 1_024;
/// Expired answers and keys removed in one batch: more than a batch can add.
const FORGOTTEN_A_BATCH: usize = 2 * BATCH;
/// Rounds of loading for claims that lead to rows: more than any chain of references needs.
const LOAD_ROUNDS: usize = 4;

type Reply = oneshot::Sender<Result<Done, Failure>>;

/// What the thread owns.
pub struct Lane {
    pub world: World,
    pub store: Box<dyn Store>,
    pub queue: mpsc::Receiver<Errand>,
    pub inner: Arc<Inner>,
    /// When the lane must be woken without a command.
    pub next_due: watch::Sender<Option<Timestamp>>,
    pub timers: Timers,
}

/// One batch in preparation.
#[derive(Default)]
struct Batch {
    changes: Changes,
    forgotten: Forgotten,
    replies: Vec<(Reply, Result<Done, Failure>)>,
    signs: Vec<(AgentId, Timestamp)>,
    presented: Vec<(AgentId, u64)>,
    stop: bool,
}

impl Lane {
    /// Runs until it is stopped, until the last handle is dropped, or until the store fails.
    pub fn work(mut self) {
        let mut idle = true;
        while let Some(first) = self.wait(idle) {
            match self.turn(first) {
                Some(quiet) => idle = quiet,
                None => return,
            }
        }
    }

    /// Runs one batch of the queue. Returns whether no caller waited for it, or `None` if it was
    /// the last.
    pub fn turn(&mut self, first: Errand) -> Option<bool> {
        let mut batch = Batch::default();
        let now = self.inner.clock.now();
        batch.signs = std::mem::take(&mut *self.inner.signs.lock()).into_iter().collect();
        note(&mut self.world, &batch.signs, now);
        self.fire_timers(&mut batch, now);
        self.take_presented(&mut batch, now);
        self.take(&mut batch, first, now);
        for _ in 1..BATCH {
            if batch.stop {
                break;
            }
            let Ok(errand) = self.queue.try_recv() else { break };
            self.take(&mut batch, errand, now);
        }
        batch.forgotten = self.world.stale(now, FORGOTTEN_A_BATCH);
        let stop = batch.stop;
        let quiet = batch.replies.is_empty();
        if !self.finish(batch, now) {
            return None;
        }
        if stop {
            // Finish the deferred work now instead of at the next start.
            while matches!(self.store.tend(), Ok(true)) {}
            return None;
        }
        Some(quiet)
    }

    /// The next message. While there is none for some time, the store may run its maintenance.
    ///
    /// Between two busy batches the queue is always empty for a moment. A maintenance write in that
    /// moment would delay every command of the next batch, so maintenance starts only after a
    /// wake-up found nothing else to do.
    fn wait(&mut self, idle: bool) -> Option<Errand> {
        loop {
            match self.queue.try_recv() {
                Ok(errand) => return Some(errand),
                Err(mpsc::error::TryRecvError::Disconnected) => return None,
                Err(mpsc::error::TryRecvError::Empty) => {}
            }
            if !idle {
                self.inner.untidy.store(true, Ordering::Relaxed);
                return self.queue.blocking_recv();
            }
            match self.store.tend() {
                Ok(true) => continue,
                // Maintenance can wait until the disk has space.
                Ok(false) | Err(StoreError::Full) => {
                    self.inner.untidy.store(false, Ordering::Relaxed);
                    return self.queue.blocking_recv();
                }
                Err(error) => {
                    self.inner.give_up(&error);
                    return None;
                }
            }
        }
    }

    fn fire_timers(&mut self, batch: &mut Batch, now: Timestamp) {
        for timer in self.timers.due(&self.world, now) {
            let (changes, done) = self.decide(Command::Tick(timer), None, now);
            if let Err(failure) = done {
                tracing::error!(?timer, %failure, "timer command refused");
                self.timers.put_off(timer, now);
            }
            batch.changes.absorb(changes);
        }
    }

    /// Removes the positions that are published now, unless a later one has replaced them.
    fn forget_presented(&self, batch: &Batch) {
        let mut noted = self.inner.presented.lock();
        for (agent, up_to) in &batch.presented {
            if noted.get(agent) == Some(up_to) {
                noted.remove(agent);
            }
        }
    }

    fn take_presented(&mut self, batch: &mut Batch, now: Timestamp) {
        // Positions stay recorded until they are published, so that a read in between still sees
        // them.
        let noted = self.inner.presented.lock().iter().map(|(agent, at)| (*agent, *at)).collect();
        batch.presented = noted;
        for (agent, up_to) in batch.presented.clone() {
            // A refusal does not matter: the agent was removed in the meantime.
            let (changes, _) = self.decide(Command::Present { agent, up_to }, None, now);
            batch.changes.absorb(changes);
        }
    }

    fn take(&mut self, batch: &mut Batch, errand: Errand, now: Timestamp) {
        match errand {
            Errand::Wake => {}
            Errand::Stop => batch.stop = true,
            Errand::Run(ask) => {
                let Ask { command, once, reply } = *ask;
                let (changes, done) = self.decide(command, once, now);
                batch.changes.absorb(changes);
                batch.replies.push((reply, done));
            }
        }
    }

    /// Loads, decides, and adds the record that makes a repeat harmless. Every change is applied to
    /// the world exactly once: an ended job applied twice would count as another started job.
    fn decide(
        &mut self,
        command: Command,
        once: Option<Idempotency>,
        now: Timestamp,
    ) -> (Changes, Result<Done, Failure>) {
        let (changes, done) = self.decided(command, once, now);
        self.inner.commands.fetch_add(1, Ordering::Relaxed);
        self.inner.rows_changed.fetch_add(changes.rows() as u64, Ordering::Relaxed);
        (changes, done)
    }

    fn decided(
        &mut self,
        command: Command,
        once: Option<Idempotency>,
        now: Timestamp,
    ) -> (Changes, Result<Done, Failure>) {
        if let Some(known) = once.and_then(|once| self.known(once, now)) {
            return (Changes::default(), known);
        }
        // If the answer cannot be saved for repeats, the command is refused before it has any
        // effect.
        let room = once.map_or(Ok(()), |once| idempotency::room(&self.world, once.principal));
        if let Err(refusal) = room {
            return (Changes::default(), Err(Failure::Refused(refusal)));
        }
        if let Err(error) = self.load(&command) {
            return (Changes::default(), Err(self.inner.give_up(&error)));
        }
        // The rules only read, so a panic in one has changed nothing.
        let rules = AssertUnwindSafe(|| rialto_core::decide(&self.world, command, now));
        let Ok(decided) = catch_unwind(rules) else {
            tracing::error!("panic while deciding a command; it had no effect");
            return (Changes::default(), Err(Failure::Fault));
        };
        let (mut changes, receipt, done) = match decided {
            Ok((changes, answer)) => (changes, answer.receipt(), Ok(Done::Now(answer))),
            Err(refusal) => {
                self.inner.numbers.refused(&refusal);
                let receipt = Receipt::Refused(refusal.clone());
                (Changes::default(), receipt, Err(Failure::Refused(refusal)))
            }
        };
        self.world.apply(&changes);
        // A refusal that may pass with time is not saved: the repeat should be able to succeed.
        let curable = matches!(&receipt, Receipt::Refused(refusal) if refusal.may_pass());
        if let Some(once) = once.filter(|_| !curable) {
            // The record is decided after the effect, like a separate command. Its capacity was
            // checked above, and no effect uses any of it.
            let note = Command::Remember(Box::new(once.keeping(Kept::Done(receipt))));
            if let Ok((noted, _)) = rialto_core::decide(&self.world, note, now) {
                self.world.apply(&noted);
                changes.absorb(noted);
            }
        }
        (changes, done)
    }

    /// The result of the first request with this key, if there was one.
    fn known(&self, once: Idempotency, now: Timestamp) -> Option<Result<Done, Failure>> {
        let memory = self.world.memory(once.scope, now)?;
        if memory.request != once.request {
            return Some(Err(Failure::Refused(Refusal::SameIdOtherContent)));
        }
        Some(match &memory.receipt {
            Some(receipt) => Ok(Done::Before(receipt.clone())),
            None => Err(Failure::StillRunning),
        })
    }

    /// Loads the rows a command refers to.
    fn load(&mut self, command: &Command) -> Result<(), StoreError> {
        let mut asked = Vec::new();
        for _ in 0..LOAD_ROUNDS {
            let mut needs = rialto_core::needs(&self.world, command);
            // A row that was requested and not loaded does not exist.
            needs.retain(|need| !asked.contains(need));
            if needs.is_empty() {
                break;
            }
            let mut found = false;
            for need in &needs {
                found |= self.bring(*need)?;
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
    fn bring(&mut self, need: Need) -> Result<bool, StoreError> {
        let wanted = match need {
            Need::Agent(id) => Key::Agent(id),
            Need::Claim(digest) => Key::Claim(digest),
            Need::Job(id) => Key::Job(id),
            Need::Transfer(id) => Key::Transfer(id),
        };
        let found = self.store.load(wanted)?;
        let is_there = found.is_some();
        match (need, found) {
            (_, Some(Row::Claim(claim))) => self.world.admit_claim(claim.digest, Some(claim)),
            (Need::Claim(digest), _) => self.world.admit_claim(digest, None),
            (_, Some(Row::Agent(agent))) => self.world.admit_agent(agent),
            (_, Some(Row::Job(job))) => self.world.admit_job(job),
            (_, Some(Row::Transfer(transfer))) => self.world.admit_transfer(transfer),
            _ => {}
        }
        Ok(is_there)
    }

    /// Commits, publishes and replies. Returns false when the lane must stop.
    fn finish(&mut self, batch: Batch, now: Timestamp) -> bool {
        match self.commit(&batch) {
            Ok(()) => {
                self.publish(&batch, now);
                for (reply, result) in batch.replies {
                    let _ = reply.send(result);
                }
                self.inner.watchers.tell(&batch.changes);
                self.inner.wake.tell(&batch.changes);
                true
            }
            Err(failure) => {
                let goes_on = matches!(failure, Failure::Full);
                if goes_on {
                    self.start_over(&batch, now);
                }
                for (reply, _) in batch.replies {
                    let _ = reply.send(Err(failure.clone()));
                }
                goes_on
            }
        }
    }

    fn commit(&mut self, batch: &Batch) -> Result<(), Failure> {
        // A reader, or a load in this batch, may have found the store unusable.
        if self.inner.is_broken() {
            return Err(Failure::Down);
        }
        let changes = &batch.changes;
        if changes.is_empty() && changes.mailboxes.is_empty() && batch.forgotten.is_empty() {
            return Ok(());
        }
        let began = Instant::now();
        let committed = self.store.commit(&batch.changes, &batch.forgotten);
        committed.map_err(|error| self.inner.give_up(&error))?;
        self.inner.numbers.commits.time(began.elapsed());
        self.inner.numbers.batches.count(batch.replies.len());
        self.inner.numbers.committed(&batch.changes);
        event_log::write(&batch.changes);
        Ok(())
    }

    /// Publishes what is committed, in commit order.
    fn publish(&mut self, batch: &Batch, now: Timestamp) {
        self.world.forget(&batch.forgotten);
        self.world.dismiss();
        self.world.sweep(now);
        {
            let mut world = self.inner.world.write();
            note(&mut world, &batch.signs, now);
            world.settle(&batch.changes);
            world.begun_as_in(&self.world, &batch.changes);
            world.forget(&batch.forgotten);
            world.dismiss();
            world.sweep(now);
            // Before readers see the new head of an inbox, its newest notices are in memory.
            self.inner.live.tell(&batch.changes.notices);
        }
        self.forget_presented(batch);
        self.tell_next(now);
    }

    /// Discards what could not be committed. Last-seen times are not stored, so they stay.
    fn start_over(&mut self, batch: &Batch, now: Timestamp) {
        self.world = {
            let mut world = self.inner.world.write();
            note(&mut world, &batch.signs, now);
            RwLockWriteGuard::downgrade(world).clone()
        };
        self.timers.pause(now);
        self.tell_next(now);
    }

    fn tell_next(&mut self, now: Timestamp) {
        self.timers.looked(&self.world, now);
        let next = self.timers.next(&self.world);
        self.next_due.send_if_modified(|due| std::mem::replace(due, next) != next);
    }
}

/// Applies last-seen times, and marks agents offline that were not seen for too long.
fn note(world: &mut World, signs: &[(AgentId, Timestamp)], now: Timestamp) {
    for (agent, at) in signs {
        world.seen(*agent, *at);
    }
    world.sweep(now);
}

//! The lane: a thread that owns the store and decides one command after the other.
//!
//! It takes what is queued, decides each command on a world that already has the earlier ones,
//! commits once, publishes, and only then answers. A batch that cannot be committed leaves no
//! trace: the working world is taken anew from the published one.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use parking_lot::RwLockWriteGuard;
use rialto_core::changes::{Changes, Forgotten};
use rialto_core::command::Command;
use rialto_core::decide::Need;
use rialto_core::id::AgentId;
use rialto_core::memory::{self, Kept, Receipt};
use rialto_core::refusal::Refusal;
use rialto_core::time::Timestamp;
use rialto_core::world::World;
use tokio::sync::{mpsc, oneshot, watch};

use super::journal;
use super::timers::Timers;
use super::{Ask, Done, Errand, Failure, Idempotency, Inner};
use crate::store::{Key, Row, Store, StoreError};

/// Commands decided before a commit.
const BATCH: usize = 1_024;
/// Old answers, and old keys, forgotten in one batch: more than a batch can add.
const FORGOTTEN_A_BATCH: usize = 2 * BATCH;
/// Claims that lead to rows: more rounds than any chain of references has.
const LOAD_ROUNDS: usize = 4;

type Reply = oneshot::Sender<Result<Done, Failure>>;

/// The thread's own things.
pub struct Lane {
    pub world: World,
    pub store: Box<dyn Store>,
    pub queue: mpsc::Receiver<Errand>,
    pub inner: Arc<Inner>,
    /// When the lane must look again by itself.
    pub next_due: watch::Sender<Option<Timestamp>>,
    pub timers: Timers,
}

/// One batch in the making.
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
    /// Works until told to stop, until nobody is left who could ask, or until the store fails.
    pub fn work(mut self) {
        let mut idle = true;
        while let Some(first) = self.wait(idle) {
            match self.turn(first) {
                Some(quiet) => idle = quiet,
                None => return,
            }
        }
    }

    /// One batch of what is queued: whether nobody waited for it, or `None` when it was the last.
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
            // What can wait should not wait for the next start.
            while matches!(self.store.tend(), Ok(true)) {}
            return None;
        }
        Some(quiet)
    }

    /// The next errand; while there is none for a while, the store may tend itself.
    ///
    /// Between two busy batches there is always a moment without errands. Filling it with a write
    /// would make everybody in the next batch wait, so tending starts only when a wake-up has found
    /// nothing else to do.
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
                // What could be tidied up can wait until there is room.
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
                tracing::error!(?timer, %failure, "a timer was refused");
                self.timers.put_off(timer, now);
            }
            batch.changes.absorb(changes);
        }
    }

    /// What is published needs no note any more, unless a later one has taken its place.
    fn forget_presented(&self, batch: &Batch) {
        let mut noted = self.inner.presented.lock();
        for (agent, up_to) in &batch.presented {
            if noted.get(agent) == Some(up_to) {
                noted.remove(agent);
            }
        }
    }

    fn take_presented(&mut self, batch: &mut Batch, now: Timestamp) {
        // What is noted stays noted until it is published: whoever asks meanwhile must not miss it.
        let noted = self.inner.presented.lock().iter().map(|(agent, at)| (*agent, *at)).collect();
        batch.presented = noted;
        for (agent, up_to) in batch.presented.clone() {
            // Of an agent that has left in the meantime it does not matter.
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

    /// Loads, decides, and adds the record that makes a repeat harmless. Every change is made to the
    /// world once: a job that has ended and is put there twice looks like one more that was begun.
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
        // Whoever asks for its answer to be kept is refused before anything happens if it cannot be.
        let room = once.map_or(Ok(()), |once| memory::room(&self.world, once.principal));
        if let Err(refusal) = room {
            return (Changes::default(), Err(Failure::Refused(refusal)));
        }
        if let Err(error) = self.load(&command) {
            return (Changes::default(), Err(self.inner.give_up(&error)));
        }
        // The rules only read, so a panic in one has changed nothing.
        let rules = AssertUnwindSafe(|| rialto_core::decide(&self.world, command, now));
        let Ok(decided) = catch_unwind(rules) else {
            tracing::error!("a rule panicked; the command had no effect");
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
        // A refusal that waiting can cure is not written down: the repeat is meant to succeed.
        let curable = matches!(&receipt, Receipt::Refused(refusal) if refusal.may_pass());
        if let Some(once) = once.filter(|_| !curable) {
            // The record is decided after the effect, as a command of its own would be. There is room for
            // it, because no effect takes any.
            let note = Command::Remember(Box::new(once.keeping(Kept::Done(receipt))));
            if let Ok((noted, _)) = rialto_core::decide(&self.world, note, now) {
                self.world.apply(&noted);
                changes.absorb(noted);
            }
        }
        (changes, done)
    }

    /// What was answered the first time, if there was one.
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

    /// Brings in the rows a command names.
    fn load(&mut self, command: &Command) -> Result<(), StoreError> {
        let mut asked = Vec::new();
        for _ in 0..LOAD_ROUNDS {
            let mut needs = rialto_core::needs(&self.world, command);
            // What was asked for and did not come is not there.
            needs.retain(|need| !asked.contains(need));
            if needs.is_empty() {
                break;
            }
            let mut found = false;
            for need in &needs {
                found |= self.bring(*need)?;
            }
            // Only what came can name something further.
            if !found {
                break;
            }
            asked.append(&mut needs);
        }
        Ok(())
    }

    /// Brings in one row, and tells whether it is there.
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

    /// Commits, publishes and answers. False when the lane must stop.
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
        // A reader or a load of this very batch may have found the store unfit for use.
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
        journal::write(&batch.changes);
        Ok(())
    }

    /// Shows what is committed, in the order in which it came to be.
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

    /// Drops what could not be committed. Signs of life are not stored, and stay.
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

/// Notes signs of life, and who has given none for too long.
fn note(world: &mut World, signs: &[(AgentId, Timestamp)], now: Timestamp) {
    for (agent, at) in signs {
        world.seen(*agent, *at);
    }
    world.sweep(now);
}

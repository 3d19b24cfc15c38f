//! The lane: a thread that owns the store and decides one command after the other.
//!
//! It takes what is queued, decides each command on a world that already has the earlier ones,
//! commits once, publishes, and only then answers. A batch that cannot be committed leaves no
//! trace: the working world is taken anew from the published one.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use rialto_core::changes::Changes;
use rialto_core::command::Command;
use rialto_core::decide::Need;
use rialto_core::id::AnswerId;
use rialto_core::memory::{Kept, Receipt};
use rialto_core::refusal::{Refusal, Retry};
use rialto_core::time::Timestamp;
use rialto_core::world::World;
use tokio::sync::{mpsc, oneshot, watch};

use super::{Ask, Done, Errand, Failure, Idempotency, Inner};
use crate::store::{Key, Row, Store, StoreError};

/// Commands decided before a commit.
const BATCH: usize = 1_024;
/// Timers fired in one batch, so that a long pause does not starve the callers.
const TIMERS_A_BATCH: usize = 256;
/// Old answers forgotten in one batch.
const FORGOTTEN_A_BATCH: usize = 256;
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
}

/// One batch in the making.
#[derive(Default)]
struct Batch {
    changes: Changes,
    forgotten: Vec<AnswerId>,
    replies: Vec<(Reply, Result<Done, Failure>)>,
    signs: Vec<(rialto_core::id::AgentId, Timestamp)>,
    stop: bool,
}

impl Lane {
    /// Works until told to stop or until the store fails.
    pub fn work(mut self) {
        loop {
            let Some(first) = self.wait() else { return };
            let mut batch = Batch::default();
            let now = self.inner.clock.now();
            batch.signs = std::mem::take(&mut *self.inner.signs.lock());
            for (agent, at) in &batch.signs {
                self.world.seen(*agent, *at);
            }
            self.world.sweep(now);
            self.fire_timers(&mut batch, now);
            self.take(&mut batch, first, now);
            while batch.replies.len() < BATCH && !batch.stop {
                match self.queue.try_recv() {
                    Ok(errand) => self.take(&mut batch, errand, now),
                    Err(_) => break,
                }
            }
            batch.forgotten = self.world.stale_memories(now).take(FORGOTTEN_A_BATCH).collect();
            let stop = batch.stop;
            if !self.finish(batch, now) || stop {
                return;
            }
        }
    }

    /// The next errand; while there is none, the store may tend itself.
    fn wait(&mut self) -> Option<Errand> {
        loop {
            match self.queue.try_recv() {
                Ok(errand) => return Some(errand),
                Err(mpsc::error::TryRecvError::Disconnected) => return None,
                Err(mpsc::error::TryRecvError::Empty) => {}
            }
            match self.store.tend() {
                Ok(true) => continue,
                Ok(false) => return self.queue.blocking_recv(),
                Err(error) => {
                    self.give_up(error);
                    return None;
                }
            }
        }
    }

    fn fire_timers(&mut self, batch: &mut Batch, now: Timestamp) {
        let due: Vec<_> = self.world.due(now).take(TIMERS_A_BATCH).collect();
        for timer in due {
            let (changes, done) = self.decide(Command::Tick(timer), None, now);
            if let Err(failure) = done {
                tracing::error!(?timer, %failure, "a timer was refused");
            }
            self.accept(batch, changes);
        }
    }

    fn take(&mut self, batch: &mut Batch, errand: Errand, now: Timestamp) {
        match errand {
            Errand::Wake => {}
            Errand::Stop => batch.stop = true,
            Errand::Run(ask) => {
                let Ask { command, once, reply } = *ask;
                let (changes, done) = self.decide(command, once, now);
                self.accept(batch, changes);
                batch.replies.push((reply, done));
            }
        }
    }

    fn accept(&mut self, batch: &mut Batch, changes: Changes) {
        self.world.apply(&changes);
        batch.changes.absorb(changes);
    }

    /// Loads, decides, and adds the record that makes a repeat harmless.
    fn decide(
        &mut self,
        command: Command,
        once: Option<Idempotency>,
        now: Timestamp,
    ) -> (Changes, Result<Done, Failure>) {
        if let Some(known) = once.and_then(|once| self.known(once, now)) {
            return (Changes::default(), known);
        }
        if let Err(error) = self.load(&command) {
            return (Changes::default(), Err(self.give_up(error)));
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
                let receipt = Receipt::Refused(refusal.clone());
                (Changes::default(), receipt, Err(Failure::Refused(refusal)))
            }
        };
        // A refusal that waiting can cure is not written down: the repeat is meant to succeed.
        let curable = matches!(&receipt, Receipt::Refused(refusal) if refusal.retry() != Retry::Never);
        if let Some(Idempotency { scope, request }) = once.filter(|_| !curable) {
            self.world.apply(&changes);
            let note = Command::Remember { scope, request, kept: Kept::Done(receipt) };
            if let Ok((noted, _)) = rialto_core::decide(&self.world, note, now) {
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
        Some(match &memory.kept {
            Kept::Done(receipt) => Ok(Done::Before(receipt.clone())),
            Kept::Answer { .. } => Err(Failure::StillRunning),
        })
    }

    /// Brings in the rows a command names.
    fn load(&mut self, command: &Command) -> Result<(), StoreError> {
        for _ in 0..LOAD_ROUNDS {
            let needs = rialto_core::needs(&self.world, command);
            if needs.is_empty() {
                break;
            }
            for need in needs {
                self.bring(need)?;
            }
        }
        Ok(())
    }

    fn bring(&mut self, need: Need) -> Result<(), StoreError> {
        match need {
            Need::Claim(digest) => {
                let claim = match self.store.load(Key::Claim(digest))? {
                    Some(Row::Claim(claim)) => Some(claim),
                    _ => None,
                };
                self.world.admit_claim(digest, claim);
            }
            Need::Job(id) => {
                if let Some(Row::Job(job)) = self.store.load(Key::Job(id))? {
                    self.world.admit_job(job);
                }
            }
            Need::Transfer(id) => {
                if let Some(Row::Transfer(transfer)) = self.store.load(Key::Transfer(id))? {
                    self.world.admit_transfer(transfer);
                }
            }
        }
        Ok(())
    }

    /// Commits, publishes and answers. False when the lane must stop.
    fn finish(&mut self, batch: Batch, now: Timestamp) -> bool {
        if !batch.changes.is_empty() || !batch.forgotten.is_empty() {
            match self.store.commit(&batch.changes, &batch.forgotten) {
                Ok(()) => {}
                Err(StoreError::Full) => {
                    self.start_over();
                    for (reply, _) in batch.replies {
                        let _ = reply.send(Err(Failure::Full));
                    }
                    return true;
                }
                Err(error) => {
                    let failure = self.give_up(error);
                    for (reply, _) in batch.replies {
                        let _ = reply.send(Err(failure.clone()));
                    }
                    return false;
                }
            }
        }
        self.publish(&batch, now);
        for (reply, result) in batch.replies {
            let _ = reply.send(result);
        }
        self.inner.wake.tell(&batch.changes);
        true
    }

    fn publish(&mut self, batch: &Batch, now: Timestamp) {
        self.world.dismiss();
        self.world.forget(&batch.forgotten);
        {
            let mut world = self.inner.world.write();
            world.apply(&batch.changes);
            for (agent, at) in &batch.signs {
                world.seen(*agent, *at);
            }
            world.sweep(now);
            world.forget(&batch.forgotten);
            world.dismiss();
        }
        let just_after = |at: Timestamp| at.plus(rialto_core::time::Millis(1));
        let next = self.world.next_timer().into_iter().chain(self.world.next_offline().map(just_after)).min();
        self.next_due.send_if_modified(|due| std::mem::replace(due, next) != next);
    }

    /// Drops what could not be committed.
    fn start_over(&mut self) {
        self.world = self.inner.world.read().clone();
    }

    /// The store cannot be trusted any more: no further write, and everybody is told.
    fn give_up(&self, error: StoreError) -> Failure {
        if matches!(error, StoreError::Full) {
            return Failure::Full;
        }
        tracing::error!(%error, "the store failed; no further write is accepted");
        self.inner.broken.send_replace(Some(error.to_string()));
        Failure::Down
    }
}

/// Sends the lane a wake-up whenever something is due.
pub async fn keep_time(inner: std::sync::Weak<Inner>, mut due: watch::Receiver<Option<Timestamp>>) {
    /// A clock that jumps or stands still is looked at again after this long.
    const LOOK_AGAIN: Duration = Duration::from_millis(500);
    loop {
        let at = *due.borrow_and_update();
        let wait = {
            let Some(inner) = inner.upgrade() else { return };
            at.map(|at| inner.clock.until(at).min(LOOK_AGAIN))
        };
        let sleep = tokio::time::sleep(wait.unwrap_or(LOOK_AGAIN));
        tokio::select! {
            changed = due.changed() => if changed.is_err() { return },
            () = sleep => {
                let Some(inner) = inner.upgrade() else { return };
                if at.is_some_and(|at| at <= inner.clock.now()) {
                    let _ = inner.lane.send(Errand::Wake).await;
                    // The lane publishes the next moment; without this a late one would spin.
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            }
        }
    }
}

//! Dispatches assigned jobs: one task per job, with its record on disk.

use std::collections::BTreeMap;
use std::io;
use std::time::{Instant, SystemTime};

use tokio::task::{AbortHandle, JoinSet};

use super::report::{self, Heard};
use super::event::{Tell, Told};
use super::wire::{InHand, Work};
use crate::agent::job::Job;
use crate::agent::outcome::Outcome;
use crate::agent::program;
use crate::agent::record::{Ended, Record, Records, Turn};
use crate::agent::handlers::Workshop;
use crate::call::{CallError, Hub};

/// How many assignments end before old logs are pruned again.
const PRUNED_EVERY: u32 = 500;

/// Dispatches the jobs of one agent.
pub(super) struct Desk {
    clerk: Clerk,
    turns: JoinSet<Turn>,
    running: BTreeMap<String, (u32, AbortHandle)>,
    /// Assignments that ended since the last prune.
    ended: u32,
    known: InHand,
    /// Whether the jobs left by an earlier run of this program were checked.
    settled: bool,
}

/// Runs one assignment from start to end.
#[derive(Clone)]
struct Clerk {
    hub: Hub,
    workshop: Workshop,
    records: Records,
    tell: Tell,
}

impl Desk {
    /// Creates a dispatcher that updates `known`, the assignments the hub need not send again.
    pub(super) fn new(
        hub: Hub,
        workshop: Workshop,
        records: Records,
        known: InHand,
        tell: Tell,
    ) -> Self {
        Self {
            clerk: Clerk { hub, workshop, records, tell },
            turns: JoinSet::new(),
            running: BTreeMap::new(),
            ended: 0,
            known,
            settled: false,
        }
    }

    /// Checks the records left by an earlier run of this program. Finished jobs are reported now,
    /// since the hub may not have received their results. Unfinished ones continue when the hub
    /// lists them.
    pub(super) fn recover(&mut self) {
        let _ = self.clerk.records.prune(SystemTime::now());
        for (turn, record) in self.clerk.records.open_ones().unwrap_or_default() {
            if let Some(ended) = record.ended() {
                let clerk = self.clerk.clone();
                self.spawn(turn.clone(), async move { clerk.tell(turn, &record, ended).await });
            }
        }
    }

    /// Applies the hub's list of new and removed assignments. Returns whether the next poll
    /// differs.
    pub(super) fn hear(&mut self, work: Work) -> bool {
        let (gone, more) = (work.gone.clone(), work.more);
        let mut is_news = self.known.forget(&gone);
        self.let_go(&gone);
        let jobs = work.read();
        self.end_orphans(&jobs, more);
        for job in jobs {
            let turn = Turn { id: job.id.clone(), turn: job.turn };
            if self.is_running(&turn) {
                continue;
            }
            (self.clerk.tell)(Told::Took { job: job.id.clone(), skill: job.skill.clone() });
            let clerk = self.clerk.clone();
            self.spawn(turn, async move { clerk.take(job).await });
            is_news = true;
        }
        is_news
    }

    /// Ends, once, the jobs that an earlier run of this program started and that the hub has
    /// reassigned.
    fn end_orphans(&mut self, jobs: &[Job], more: bool) {
        // An assignment that was not listed may still be ours.
        if self.settled || more {
            return;
        }
        self.settled = true;
        for (turn, record) in self.clerk.records.open_ones().unwrap_or_default() {
            let named = jobs.iter().any(|job| job.id == turn.id && job.turn == turn.turn);
            // A hub's epochs start at 1. Epoch 0 is a peer's job, which the hub does not know.
            if turn.turn > 0 && !named && !self.running.contains_key(&turn.id) {
                let work = async move {
                    if program::end(record.path()).await.is_ok() {
                        close(&record);
                    }
                };
                self.spawn(turn, work);
            }
        }
    }

    /// Waits until an assignment ends; `None` if none is running.
    pub(super) async fn turn_ended(&mut self) -> Option<()> {
        let turn = self.turns.join_next().await?;
        if let Ok(turn) = turn {
            // It stays in `known_assignments` until the hub removes it. Otherwise the hub would
            // list an assignment it still has as new, over and over.
            if self.is_running(&turn) {
                self.running.remove(&turn.id);
            }
            self.ended += 1;
            if self.ended == PRUNED_EVERY {
                // Old logs are pruned now and then, not only at startup.
                self.ended = 0;
                let _ = self.clerk.records.prune(SystemTime::now());
            }
        }
        Some(())
    }

    /// Aborts everything that still runs, waits for it to stop, and returns what was running.
    pub(super) async fn drop_all(&mut self) -> Vec<Turn> {
        let running = std::mem::take(&mut self.running);
        self.turns.shutdown().await;
        running.into_iter().map(|(id, (turn, _))| Turn { id, turn }).collect()
    }

    /// The record of an assignment and its result, if it has finished.
    pub(super) fn look_up(&self, turn: &Turn) -> Option<(Record, Option<Ended>)> {
        let open = self.clerk.records.open_ones().unwrap_or_default();
        let (_, record) = open.into_iter().find(|(of, _)| of == turn)?;
        let ended = record.ended();
        Some((record, ended))
    }

    /// Cancels assignments that the hub took away.
    fn let_go(&mut self, gone: &[String]) {
        for id in gone {
            let Some((turn, task)) = self.running.get(id) else { continue };
            let turn = Turn { id: id.clone(), turn: *turn };
            // If its outcome is being reported or was received, it ends by itself.
            let Some((record, None)) = self.look_up(&turn) else { continue };
            task.abort();
            close(&record);
            self.running.remove(id);
            (self.clerk.tell)(Told::CalledOff { job: id.clone() });
        }
    }

    fn is_running(&self, turn: &Turn) -> bool {
        self.running.get(&turn.id).is_some_and(|(number, _)| *number == turn.turn)
    }

    fn spawn(&mut self, turn: Turn, work: impl Future<Output = ()> + Send + 'static) {
        let (id, number) = (turn.id.clone(), turn.turn);
        self.known.add(turn.clone());
        let task = self.turns.spawn(async move {
            work.await;
            turn
        });
        self.running.insert(id, (number, task));
    }
}

impl Clerk {
    /// Does a job and reports its outcome to the hub.
    async fn take(self, job: Job) {
        let turn = Turn { id: job.id.clone(), turn: job.turn };
        let record = match self.begin(&job).await {
            Ok(record) => record,
            Err(error) => {
                // Work without a record is not started, because it might be done twice.
                let (job, what) = (turn.id.clone(), "cannot write the job record");
                (self.tell)(Told::Mishap { job, what, why: error.to_string() });
                let why = format!("the agent cannot write job records: {}", error.kind());
                let ended = Ended { outcome: Outcome::Declined(why), took_ms: 0 };
                let told = self.told(turn, &ended).await;
                return (self.tell)(told);
            }
        };
        let ended = match record.ended() {
            Some(ended) => ended,
            None => {
                let began = Instant::now();
                let outcome = self.workshop.work(job).await;
                let took_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
                let ended = Ended { outcome, took_ms };
                if let Err(error) = record.keep(&ended) {
                    let (job, what) = (turn.id.clone(), "cannot write the result to disk");
                    (self.tell)(Told::Mishap { job, what, why: error.to_string() });
                }
                ended
            }
        };
        self.tell(turn, &record, ended).await;
    }

    /// Opens the record of a job. First ends what still runs of an earlier assignment, since its
    /// outcome would be refused.
    async fn begin(&self, job: &Job) -> io::Result<Record> {
        let own = self.records.of(job)?;
        for (turn, record) in self.records.open_ones()? {
            // Another record for this assignment belongs to a job that had different content then.
            if turn.id == job.id && record != own {
                program::end(record.path()).await?;
                record.close()?;
            }
        }
        Ok(own)
    }

    /// Reports the outcome of an assignment to the hub, and closes its record.
    async fn tell(self, turn: Turn, record: &Record, ended: Ended) {
        let told = self.told(turn, &ended).await;
        // A result the hub did not accept is kept: the key may work again after the next start.
        if !matches!(told, Told::Mishap { .. }) {
            close(record);
        }
        (self.tell)(told);
    }

    async fn told(&self, turn: Turn, ended: &Ended) -> Told {
        match report::report(&self.hub, &turn, ended, &self.tell).await {
            Ok(Heard { outcome, paid, repeated }) => {
                Told::Ended { job: turn.id, outcome, paid, repeated }
            }
            // The assignment was taken away, or another outcome was reported before.
            Err(error @ CallError::Refused { status: 400 | 404 | 409 | 413 | 422, .. }) => {
                Told::Refused { job: turn.id, why: error.to_string() }
            }
            Err(error) => {
                let what = "the hub did not accept a result";
                Told::Mishap { job: turn.id, what, why: error.to_string() }
            }
        }
    }
}

/// Closes a record. If that fails, it is reported again after the next start, and refused.
pub(super) fn close(record: &Record) {
    let _ = record.close();
}

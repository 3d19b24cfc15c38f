//! Dispatches assigned jobs: one task per job, with its record on disk.

use std::collections::BTreeMap;
use std::io;
use std::time::{Instant, SystemTime};

use tokio::task::{AbortHandle, JoinSet};

use super::report::{self, Heard};
use super::told::{Tell, Told};
use super::wire::{InHand, Work};
use crate::agent::job::Job;
use crate::agent::outcome::Outcome;
use crate::agent::program;
use crate::agent::record::{Ended, Record, Records, Turn};
use crate::agent::workshop::Workshop;
use crate::call::{CallError, Hub};

/// How many turns end before old logs are removed again.
const PRUNED_EVERY: u32 = 500;

/// The desk of one agent.
pub(super) struct Desk {
    clerk: Clerk,
    turns: JoinSet<Turn>,
    running: BTreeMap<String, (u32, AbortHandle)>,
    /// Turns that ended since old logs were removed.
    ended: u32,
    known: InHand,
    /// What an earlier run of this program left behind has been looked at.
    settled: bool,
}

/// Who takes a turn from its beginning to its end.
#[derive(Clone)]
struct Clerk {
    hub: Hub,
    workshop: Workshop,
    records: Records,
    tell: Tell,
}

impl Desk {
    /// A desk that keeps `known` up to date: what the hub need not tell us of again.
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

    /// Looks at what an earlier run of this program left behind. What had ended is told now, since
    /// the hub may not have heard; what goes on is found again when the hub names it.
    pub(super) fn recover(&mut self) {
        let _ = self.clerk.records.prune(SystemTime::now());
        for (turn, record) in self.clerk.records.open_ones().unwrap_or_default() {
            if let Some(ended) = record.ended() {
                let clerk = self.clerk.clone();
                self.spawn(turn.clone(), async move { clerk.tell(turn, &record, ended).await });
            }
        }
    }

    /// Takes in what the hub says is new in our hands, and what is there no more; whether that
    /// changes what the next question asks.
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

    /// Ends, once, what an earlier run of this program began and the hub has given to others since.
    fn end_orphans(&mut self, jobs: &[Job], more: bool) {
        // What was not listed may still be ours.
        if self.settled || more {
            return;
        }
        self.settled = true;
        for (turn, record) in self.clerk.records.open_ones().unwrap_or_default() {
            let named = jobs.iter().any(|job| job.id == turn.id && job.turn == turn.turn);
            // The first turn is 1: what has none was asked for by a peer, and the hub cannot know it.
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

    /// Waits until a turn has ended; nothing if none is left.
    pub(super) async fn turn_ended(&mut self) -> Option<()> {
        let turn = self.turns.join_next().await?;
        if let Ok(turn) = turn {
            // The hub is told of it until it says itself that the turn is gone: a turn that it
            // holds on to would be listed as new at once, again and again.
            if self.is_running(&turn) {
                self.running.remove(&turn.id);
            }
            self.ended += 1;
            if self.ended == PRUNED_EVERY {
                // Logs of long ago go now and then, not only at the next start.
                self.ended = 0;
                let _ = self.clerk.records.prune(SystemTime::now());
            }
        }
        Some(())
    }

    /// Breaks off everything that still runs, and waits until it was let go; says what that was.
    pub(super) async fn drop_all(&mut self) -> Vec<Turn> {
        let running = std::mem::take(&mut self.running);
        self.turns.shutdown().await;
        running.into_iter().map(|(id, (turn, _))| Turn { id, turn }).collect()
    }

    /// What came of a turn as far as it is written down, and its record.
    pub(super) fn look_up(&self, turn: &Turn) -> Option<(Record, Option<Ended>)> {
        let open = self.clerk.records.open_ones().unwrap_or_default();
        let (_, record) = open.into_iter().find(|(of, _)| of == turn)?;
        let ended = record.ended();
        Some((record, ended))
    }

    /// Breaks off what was taken away from us.
    fn let_go(&mut self, gone: &[String]) {
        for id in gone {
            let Some((turn, task)) = self.running.get(id) else { continue };
            let turn = Turn { id: id.clone(), turn: *turn };
            // One whose outcome is on its way, or has arrived, ends by itself.
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
    /// Does a job and tells the hub.
    async fn take(self, job: Job) {
        let turn = Turn { id: job.id.clone(), turn: job.turn };
        let record = match self.begin(&job).await {
            Ok(record) => record,
            Err(error) => {
                // Work that cannot be written down is not begun: it might be done twice.
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

    /// The record of a job. What still runs of an earlier turn is ended first: its outcome would
    /// be refused.
    async fn begin(&self, job: &Job) -> io::Result<Record> {
        let own = self.records.of(job)?;
        for (turn, record) in self.records.open_ones()? {
            // A record of this turn with another name is of a job that was told differently then.
            if turn.id == job.id && record != own {
                program::end(record.path()).await?;
                record.close()?;
            }
        }
        Ok(own)
    }

    /// Tells the hub what came of a turn; then nothing of it is left to do.
    async fn tell(self, turn: Turn, record: &Record, ended: Ended) {
        let told = self.told(turn, &ended).await;
        // One the hub did not take is kept: the key may work again after the next start.
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
            // It was taken away, or told before in other words.
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

/// A record that cannot be closed is told again after the next start, and refused.
pub(super) fn close(record: &Record) {
    let _ = record.close();
}

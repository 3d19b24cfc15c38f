//! The handlers, between the protocols and the user's code. This module looks up skills, checks
//! input and output, and limits how many jobs run at a time.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use rialto_core::money::Credits;
use rialto_core::time::{Millis, Timestamp};
use rialto_protocols::kit::schema::Schema;
use tokio::sync::{Semaphore, SemaphorePermit, watch};
use tokio::time::timeout;

use super::handler::{AnyHandler, Handler};
use super::job::Job;
use super::outcome::Outcome;
use super::skill::Skill;
use crate::clock;

/// How long a handler may clean up after its time limit before it is dropped.
const GRACE: Duration = Duration::from_secs(5);

/// Skills and their handlers. Clones share them.
#[derive(Clone)]
pub struct Workshop(Arc<Inner>);

struct Inner {
    benches: Vec<(Skill, Box<dyn AnyHandler>)>,
    room: Semaphore,
    at_once: usize,
    full: watch::Sender<bool>,
}

/// A running job; dropping this frees its permit.
struct AtWork<'a> {
    shop: &'a Inner,
    room: Option<SemaphorePermit<'a>>,
}

impl Inner {
    async fn enter(&self) -> Option<AtWork<'_>> {
        let room = self.room.acquire().await.ok()?;
        self.count();
        Some(AtWork { shop: self, room: Some(room) })
    }

    fn count(&self) {
        let is_full = self.room.available_permits() == 0;
        self.full.send_if_modified(|known| std::mem::replace(known, is_full) != is_full);
    }
}

impl Drop for AtWork<'_> {
    fn drop(&mut self) {
        drop(self.room.take());
        self.shop.count();
    }
}

/// How many jobs run at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room(pub usize);

impl Default for Room {
    fn default() -> Self {
        Self(4)
    }
}

/// Why a job is refused before it starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// No handler has this skill.
    NoSkill,
    /// The price exceeds the budget.
    BudgetTooLow {
        /// The price.
        price: Credits,
    },
    /// The input does not match the skill's schema.
    Unfit(Vec<String>),
}

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NoSkill => f.write_str("this agent does not have that skill"),
            Self::BudgetTooLow { price } => {
                write!(f, "the price is {}, which is above the budget", price.text(2))
            }
            Self::Unfit(wrong) => write!(
                f,
                "the input does not match the worker's input schema: {}",
                wrong.join("; ")
            ),
        }
    }
}

impl std::fmt::Debug for Workshop {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Workshop").field("skills", &self.skills().collect::<Vec<_>>()).finish()
    }
}

/// Builds [`Workshop`].
#[derive(Default)]
pub struct Setup {
    benches: Vec<(Skill, Box<dyn AnyHandler>)>,
    room: Room,
}

impl Setup {
    /// Adds a skill and its handler, replacing a skill with the same name.
    pub fn skill(mut self, skill: Skill, handler: impl Handler) -> Self {
        self.benches.retain(|(other, _)| other.name != skill.name);
        self.benches.push((skill, Box::new(handler)));
        self
    }

    /// Sets how many jobs run at a time.
    pub fn room(mut self, room: Room) -> Self {
        self.room = room;
        self
    }

    /// Builds the handlers.
    pub fn open(self) -> Workshop {
        let at_once = self.room.0.clamp(1, Semaphore::MAX_PERMITS);
        let room = Semaphore::new(at_once);
        let full = watch::Sender::new(false);
        Workshop(Arc::new(Inner { benches: self.benches, room, at_once, full }))
    }
}

impl Workshop {
    /// Starts a builder.
    pub fn setup() -> Setup {
        Setup::default()
    }

    /// The skills.
    pub fn skills(&self) -> impl Iterator<Item = &Skill> {
        self.0.benches.iter().map(|(skill, _)| skill)
    }

    /// How many jobs run at a time.
    pub fn at_once(&self) -> usize {
        self.0.at_once
    }

    /// Whether a new job would have to wait.
    pub fn is_full(&self) -> bool {
        self.0.room.available_permits() == 0
    }

    /// Watches `is_full`.
    pub(super) fn fullness(&self) -> watch::Receiver<bool> {
        self.0.full.subscribe()
    }

    /// Starts no more jobs: those that wait for a permit are declined.
    pub fn close(&self) {
        self.0.room.close();
    }

    /// Closes all handlers and ends what lives longer than one job.
    pub async fn dismiss(&self) {
        for (_, handler) in &self.0.benches {
            handler.end().await;
        }
    }

    /// The skill with this name.
    pub fn skill(&self, name: &str) -> Option<&Skill> {
        self.skills().find(|skill| skill.name == name)
    }

    /// Checks a job's skill and input, whatever its budget.
    pub fn fits(&self, skill: &str, input: &str) -> Result<&Skill, Refused> {
        let skill = self.skill(skill).ok_or(Refused::NoSkill)?;
        if let Some(schema) = &skill.input {
            check(schema, input).map_err(Refused::Unfit)?;
        }
        Ok(skill)
    }

    /// Checks a job's skill, then its budget, then its input.
    pub fn takes(&self, skill: &str, budget: Credits, input: &str) -> Result<&Skill, Refused> {
        let known = self.skill(skill).ok_or(Refused::NoSkill)?;
        if budget < known.price {
            return Err(Refused::BudgetTooLow { price: known.price });
        }
        self.fits(skill, input)
    }

    /// Runs a job as soon as a permit is free.
    pub async fn work(&self, mut job: Job) -> Outcome {
        let limit = match self.fits(&job.skill, &job.input) {
            Ok(skill) => skill.time_limit,
            Err(why @ Refused::Unfit(_)) => return Outcome::Unfit(why.to_string()),
            Err(why) => return Outcome::Declined(why.to_string()),
        };
        let Some(_at_work) = self.0.enter().await else {
            return Outcome::Declined("the agent is shutting down".to_owned());
        };
        let Some(left) = left(job.deadline, clock::now()) else {
            return Outcome::Declined("the deadline has passed".to_owned());
        };
        job.time_limit = limit.min(left);
        self.begin(job).await
    }

    async fn begin(&self, job: Job) -> Outcome {
        let bench = self.0.benches.iter().find(|(skill, _)| skill.name == job.skill);
        let Some((skill, handler)) = bench else {
            return Outcome::Declined(Refused::NoSkill.to_string());
        };
        let time = job.time_limit;
        let work = AssertUnwindSafe(async { handler.begin(job).await }).catch_unwind();
        match timeout(time.saturating_add(GRACE), work).await {
            Ok(Ok(outcome)) => given(skill, outcome),
            Ok(Err(_)) => Outcome::Failed("the handler panicked".to_owned()),
            Err(_) => Outcome::Failed(over(time)),
        }
    }
}

/// The message for a job that exceeded its time limit.
pub(super) fn over(limit: Duration) -> String {
    format!("the job exceeded its time limit of {} s", limit.as_secs_f32())
}

/// The time left; the maximum if there is no deadline.
fn left(deadline: Option<Timestamp>, now: Timestamp) -> Option<Duration> {
    let Some(deadline) = deadline else { return Some(Duration::MAX) };
    let Millis(left) = deadline.since(now);
    u64::try_from(left).ok().filter(|left| *left > 0).map(Duration::from_millis)
}

/// Checks the output: one that not all parsers can read, or that does not match the skill's schema,
/// is a failure.
fn given(skill: &Skill, outcome: Outcome) -> Outcome {
    let Outcome::Done(output) = outcome else { return outcome };
    let outcome = Outcome::read(&output);
    let (Outcome::Done(output), Some(schema)) = (&outcome, &skill.output) else { return outcome };
    match check(schema, output) {
        Ok(()) => outcome,
        Err(wrong) => Outcome::Failed(format!(
            "the output does not match the skill's schema: {}",
            wrong.join("; ")
        )),
    }
}

fn check(schema: &Schema, text: &str) -> Result<(), Vec<String>> {
    schema.check(text).map_err(|wrong| wrong.iter().map(ToString::to_string).collect())
}

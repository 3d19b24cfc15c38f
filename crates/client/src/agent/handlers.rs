//! The handlers, between the protocols and the user's code. This module looks up skills, checks
//! input and output, and limits how many jobs run at a time.

use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use futures_util::FutureExt;
use rialto_core::money::Credits;
use rialto_core::time::{Millis, Timestamp};
use rialto_protocols::kit::schema::Schema;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use super::dialogue::WorkLimits;
use super::handler::{DynHandler, Handler};
use super::job::{Job, Outcome};
use super::skill::Skill;
use crate::clock;
use crate::worker::lock_ignoring_poison;

/// How long a handler may clean up after its time limit before it is dropped.
const GRACE: Duration = Duration::from_secs(5);
/// Jobs that may wait for their requesters beside those that run. Each keeps its program.
const WAITING_MAX: usize = 64;

/// Skills and their handlers. Clones share them.
#[derive(Clone)]
pub struct Handlers(Arc<Inner>);

struct Inner {
    skills: RwLock<Arc<SkillSet>>,
    /// How often the skills were replaced.
    replaced: watch::Sender<u64>,
    permits: Arc<Semaphore>,
    /// Jobs that wait for their requester and gave back their permit.
    waiting: Arc<Semaphore>,
    concurrency: usize,
    is_offline: AtomicBool,
    availability: watch::Sender<Availability>,
}

type SkillSet = Vec<(Arc<Skill>, Arc<dyn DynHandler>)>;

/// Whether an agent takes work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Availability {
    Online,
    /// New work has to wait.
    Busy,
    /// Its handlers cannot work now.
    Offline,
}

/// The permit of a running job; dropping this frees it.
pub(super) struct JobPermit {
    handlers: Arc<Inner>,
    state: Mutex<PermitState>,
}

enum PermitState {
    Running { _permit: Option<OwnedSemaphorePermit> },
    Waiting { _place: OwnedSemaphorePermit },
}

impl JobPermit {
    /// The job waits for its requester, so another job may run meanwhile. If too many wait already,
    /// it keeps its permit.
    pub(super) fn pause(&self) {
        let place = Arc::clone(&self.handlers.waiting).try_acquire_owned();
        let mut state = lock_ignoring_poison(&self.state);
        if let (PermitState::Running { .. }, Ok(place)) = (&*state, place) {
            *state = PermitState::Waiting { _place: place };
            drop(state);
            self.handlers.update_availability();
        }
    }

    /// The job goes on as soon as a permit is free. Without one if the agent stops.
    pub(super) async fn resume(&self) {
        if matches!(&*lock_ignoring_poison(&self.state), PermitState::Running { .. }) {
            return;
        }
        let permit = Arc::clone(&self.handlers.permits).acquire_owned().await.ok();
        *lock_ignoring_poison(&self.state) = PermitState::Running { _permit: permit };
        self.handlers.update_availability();
    }
}

impl Inner {
    async fn acquire(self: &Arc<Self>) -> Option<JobPermit> {
        let permit = Arc::clone(&self.permits).acquire_owned().await.ok()?;
        self.update_availability();
        let state = Mutex::new(PermitState::Running { _permit: Some(permit) });
        Some(JobPermit { handlers: Arc::clone(self), state })
    }

    fn update_availability(&self) {
        let availability = match () {
            () if self.is_offline.load(Ordering::SeqCst) => Availability::Offline,
            () if self.permits.available_permits() == 0 => Availability::Busy,
            () => Availability::Online,
        };
        self.availability
            .send_if_modified(|known| std::mem::replace(known, availability) != availability);
    }

    fn skills(&self) -> Arc<SkillSet> {
        Arc::clone(&self.skills.read().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Drop for JobPermit {
    fn drop(&mut self) {
        *lock_ignoring_poison(&self.state) = PermitState::Running { _permit: None };
        self.handlers.update_availability();
    }
}

/// How many jobs run at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Concurrency(pub usize);

impl Default for Concurrency {
    fn default() -> Self {
        Self(4)
    }
}

/// Why a job is refused before it starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobRefusal {
    /// No handler has this skill.
    UnknownSkill,
    /// The price exceeds the budget.
    BudgetTooLow {
        /// The price.
        price: Credits,
    },
    /// The input does not match the skill's schema.
    InvalidInput(Vec<String>),
}

impl std::fmt::Display for JobRefusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::UnknownSkill => f.write_str("this agent does not have that skill"),
            Self::BudgetTooLow { price } => {
                write!(f, "the price is {}, which is above the budget", price.to_text(2))
            }
            Self::InvalidInput(wrong) => write!(
                f,
                "the input does not match the worker's input schema: {}",
                wrong.join("; ")
            ),
        }
    }
}

impl std::fmt::Debug for Handlers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Handlers").field("skills", &self.skills().collect::<Vec<_>>()).finish()
    }
}

/// Builds [`Handlers`].
#[derive(Default)]
pub struct HandlersBuilder {
    skills: SkillSet,
    concurrency: Concurrency,
}

impl HandlersBuilder {
    /// Adds a skill and its handler, replacing a skill with the same name.
    pub fn skill(mut self, skill: Skill, handler: impl Handler) -> Self {
        self.skills.retain(|(other, _)| other.name != skill.name);
        self.skills.push((Arc::new(skill), Arc::new(handler)));
        self
    }

    /// Sets how many jobs run at a time.
    pub fn concurrency(mut self, concurrency: Concurrency) -> Self {
        self.concurrency = concurrency;
        self
    }

    /// Builds the handlers.
    pub fn build(self) -> Handlers {
        let concurrency = self.concurrency.0.clamp(1, Semaphore::MAX_PERMITS);
        Handlers(Arc::new(Inner {
            skills: RwLock::new(Arc::new(self.skills)),
            replaced: watch::Sender::new(0),
            permits: Arc::new(Semaphore::new(concurrency)),
            waiting: Arc::new(Semaphore::new(WAITING_MAX)),
            concurrency,
            is_offline: AtomicBool::new(false),
            availability: watch::Sender::new(Availability::Online),
        }))
    }
}

impl Handlers {
    /// Starts a builder.
    pub fn builder() -> HandlersBuilder {
        HandlersBuilder::default()
    }

    /// The skills.
    pub fn skills(&self) -> impl Iterator<Item = Arc<Skill>> + use<> {
        let skills = self.0.skills();
        (0..skills.len()).map(move |at| Arc::clone(&skills[at].0))
    }

    /// Replaces all skills and their handlers. Running jobs go on; those that wait for a permit are
    /// done by the new handler of their skill, and declined if there is none.
    pub fn replace_skills(&self, by: HandlersBuilder) {
        *self.0.skills.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(by.skills);
        self.0.replaced.send_modify(|count| *count += 1);
    }

    /// Counts how often the skills were replaced.
    pub(super) fn watch_skills(&self) -> watch::Receiver<u64> {
        self.0.replaced.subscribe()
    }

    /// Says whether the handlers can work. While they cannot, a hub gives the agent no new jobs.
    pub fn set_offline(&self, is_offline: bool) {
        self.0.is_offline.store(is_offline, Ordering::SeqCst);
        self.0.update_availability();
    }

    /// How many jobs run at a time.
    pub fn concurrency(&self) -> usize {
        self.0.concurrency
    }

    /// A permit, for tests.
    #[cfg(test)]
    pub(super) async fn acquire(&self) -> Arc<JobPermit> {
        Arc::new(self.0.acquire().await.expect("it is open"))
    }

    /// Whether a new job would have to wait.
    pub fn is_full(&self) -> bool {
        self.0.permits.available_permits() == 0
    }

    /// Watches whether the agent takes work.
    pub(super) fn watch_availability(&self) -> watch::Receiver<Availability> {
        self.0.availability.subscribe()
    }

    /// Starts no more jobs: those that wait for a permit are declined.
    pub fn stop_accepting(&self) {
        self.0.permits.close();
    }

    /// Closes all handlers and ends what lives longer than one job.
    pub async fn close_handlers(&self) {
        for (_, handler) in self.0.skills().iter() {
            handler.end().await;
        }
    }

    /// The skill with this name.
    pub fn skill(&self, name: &str) -> Option<Arc<Skill>> {
        self.skills().find(|skill| skill.name == name)
    }

    /// Checks a job's skill and input, whatever its budget.
    pub fn check_input(&self, skill: &str, input: &str) -> Result<Arc<Skill>, JobRefusal> {
        let skill = self.skill(skill).ok_or(JobRefusal::UnknownSkill)?;
        if let Some(schema) = &skill.input_schema {
            check(schema, input).map_err(JobRefusal::InvalidInput)?;
        }
        Ok(skill)
    }

    /// Checks a job's skill, then its budget, then its input.
    pub fn check_job(
        &self,
        skill: &str,
        budget: Credits,
        input: &str,
    ) -> Result<Arc<Skill>, JobRefusal> {
        let known = self.skill(skill).ok_or(JobRefusal::UnknownSkill)?;
        if budget < known.price {
            return Err(JobRefusal::BudgetTooLow { price: known.price });
        }
        self.check_input(skill, input)
    }

    /// Runs a job as soon as a permit is free.
    pub async fn run_job(&self, mut job: Job) -> Outcome {
        let limit = match self.check_input(&job.skill, &job.input) {
            Ok(skill) => skill.time_limit,
            Err(why @ JobRefusal::InvalidInput(_)) => {
                return Outcome::InvalidInput(why.to_string());
            }
            Err(why) => return Outcome::Declined(why.to_string()),
        };
        let Some(permit) = self.0.acquire().await else {
            return Outcome::Declined("the agent is shutting down".to_owned());
        };
        let permit = Arc::new(permit);
        let Some(left) = time_left(job.deadline, clock::now()) else {
            return Outcome::Declined("the deadline has passed".to_owned());
        };
        job.time_limit = limit.min(left);
        let limits = WorkLimits { work: limit, until_deadline: left };
        job.dialogue.begin(limits, &permit).await;
        self.run_handler(job).await
    }

    async fn run_handler(&self, job: Job) -> Outcome {
        let skills = self.0.skills();
        let known = skills.iter().find(|(skill, _)| skill.name == job.skill);
        let Some((skill, handler)) = known else {
            return Outcome::Declined(JobRefusal::UnknownSkill.to_string());
        };
        let limit = job.time_limit;
        let limit_reached = job.dialogue.limit_reached(limit, GRACE);
        let work = AssertUnwindSafe(async { handler.begin(job).await }).catch_unwind();
        tokio::select! {
            biased;
            outcome = work => match outcome {
                Ok(outcome) => check_output(skill, outcome),
                Err(_) => Outcome::Failed("the handler panicked".to_owned()),
            },
            () = limit_reached => Outcome::Failed(time_limit_message(limit)),
        }
    }
}

/// The message for a job that exceeded its time limit.
pub(super) fn time_limit_message(limit: Duration) -> String {
    format!("the job exceeded its time limit of {} s", limit.as_secs_f32())
}

/// The time left; the maximum if there is no deadline.
fn time_left(deadline: Option<Timestamp>, now: Timestamp) -> Option<Duration> {
    let Some(deadline) = deadline else { return Some(Duration::MAX) };
    let Millis(left) = deadline.since(now);
    u64::try_from(left).ok().filter(|left| *left > 0).map(Duration::from_millis)
}

/// Checks the output: one that not all parsers can read, or that does not match the skill's schema,
/// is a failure.
fn check_output(skill: &Skill, outcome: Outcome) -> Outcome {
    let Outcome::Done(output) = outcome else { return outcome };
    let outcome = Outcome::from_json_text(&output);
    let (Outcome::Done(output), Some(schema)) = (&outcome, &skill.output_schema) else {
        return outcome;
    };
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

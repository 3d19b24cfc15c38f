//! Waits for news of a job, and tells the client how far it is.

use std::sync::Arc;
use std::time::Duration;

use rialto_core::id::AgentId;
use rialto_core::job::{Job, State};
use rialto_protocols::adapter::HubContext;
use rialto_protocols::adapter::fidelity::state_name;
use tokio::time::{Instant, interval_at};

use super::error::ToolError;
use crate::mcp::wire::progress::Progress;
use crate::v1::wait::WaitPermit;

/// How often a client is told that a call still waits.
pub const STILL_WAITING_EVERY: Duration = Duration::from_secs(10);
/// How many reports there are at least when a job ends.
const REPORTS_AT_END: u32 = 3;

/// The state as tools show it. A worker that waits for an answer has the job.
pub fn shown_state(job: &Job) -> &'static str {
    match job.state {
        State::InputRequired { .. } => state_name(State::Running),
        State::Withdrawn => state_name(State::Cancelled),
        state => state_name(state),
    }
}

/// Tells a client about one job.
pub struct JobProgress<'p> {
    progress: &'p mut Progress,
    job: String,
    shown: Shown,
    reports: u32,
}

/// What a client was told last.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Shown {
    state: &'static str,
    worker_reports: u32,
}

impl Shown {
    fn of(job: &Job) -> Self {
        Self { state: shown_state(job), worker_reports: job.progress.worker_reports() }
    }
}

impl<'p> JobProgress<'p> {
    /// Begins with a job as it is.
    pub fn of(progress: &'p mut Progress, job: &Job) -> Self {
        Self::begin(progress, job, Shown::of(job))
    }

    /// Begins with a job that was just posted.
    pub fn of_posted(progress: &'p mut Progress, job: &Job) -> Self {
        Self::begin(progress, job, Shown { state: "posted", worker_reports: 0 })
    }

    fn begin(progress: &'p mut Progress, job: &Job, shown: Shown) -> Self {
        let mut told = Self { progress, job: job.uuid.to_string(), shown, reports: 0 };
        told.report(shown.state);
        told
    }

    fn report(&mut self, state: &str) {
        self.reports += 1;
        self.progress.report(&format!("job {} is {state}", self.job));
    }

    /// Tells what has changed.
    fn update(&mut self, job: &Job) {
        let now = Shown::of(job);
        if now == self.shown {
            return;
        }
        if job.state.is_final() {
            // A client that saw only the beginning is told what lay between.
            while self.reports + 1 < REPORTS_AT_END {
                self.report(if job.worker().is_some() { "assigned" } else { "open" });
            }
        }
        self.shown = now;
        match job.progress.fraction.filter(|_| !job.state.is_final()) {
            Some(done) => {
                let percent = done.millionths() / 10_000;
                self.report(&format!("{}, {percent} % done", now.state));
            }
            None => self.report(now.state),
        }
    }

    fn still_waiting(&mut self) {
        let state = format!("still {}", self.shown.state);
        self.report(&state);
    }
}

/// What a caller waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Awaited {
    /// Offers that are there already; more of them are news.
    offers: usize,
}

impl Awaited {
    /// Whatever a job does not have yet.
    pub fn of(job: &Job) -> Self {
        Self { offers: job.candidates.offers.len() }
    }

    /// Whether there is nothing to wait for, or what was waited for has come.
    fn is_there(self, job: &Job) -> bool {
        job.state.is_final()
            || job.open_question().is_some()
            || (job.state == State::Negotiating && job.candidates.offers.len() > self.offers)
    }
}

/// Waits until a job has ended, has a new offer or asks its requester, at most this long. Returns the
/// job as it then is. A caller that hangs up drops this, and nothing else.
pub async fn follow(
    context: &HubContext,
    party: AgentId,
    mut job: Arc<Job>,
    at_most: Duration,
    mut progress: JobProgress<'_>,
) -> Result<Arc<Job>, ToolError> {
    let awaited = Awaited::of(&job);
    let until = Instant::now() + at_most;
    let mut still_waiting = interval_at(Instant::now() + STILL_WAITING_EVERY, STILL_WAITING_EVERY);
    let (mut permit, mut shutdown) = (None, context.shutdown.clone());
    loop {
        let news = context.engine.subscribe_agent(party);
        let told = news.notified();
        tokio::pin!(told);
        // The waiter is registered now, so checking after this cannot miss a signal.
        told.as_mut().enable();
        job = load(context, job).await?;
        progress.update(&job);
        if awaited.is_there(&job) || Instant::now() >= until {
            return Ok(job);
        }
        if permit.is_none() {
            permit = Some(WaitPermit::acquire(context, party)?);
        }
        loop {
            tokio::select! {
                () = &mut told => break,
                () = tokio::time::sleep_until(until) => return load(context, job).await,
                // The client is told how to go on, here after a restart or at another node.
                () = shutdown.wait() => return load(context, job).await,
                _ = still_waiting.tick() => progress.still_waiting(),
            }
        }
    }
}

async fn load(context: &HubContext, known: Arc<Job>) -> Result<Arc<Job>, ToolError> {
    if known.state.is_final() {
        return Ok(known);
    }
    Ok(context.engine.load_job(known.id).await?.unwrap_or(known))
}

//! The log of a job: the worker's reports and the steps of the job, numbered together without gaps.
//!
//! A requester that follows the log reads all that happened to its job from it, in order, and can go
//! on after any entry. Other jobs only log reports, and the steps into and out of a question.

use serde::{Deserialize, Serialize};

use super::progress::ProgressUpdate;
use super::{Job, State, webhook};
use crate::draft::Draft;
use crate::id::NoticeId;
use crate::notice::NoticeKind;

/// What a requester that follows a job tells apart of its states.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Phase {
    /// No worker has started.
    Waiting,
    Working,
    InputRequired,
    Ended,
}

impl Phase {
    pub fn of(state: State) -> Self {
        match state {
            State::Open
            | State::Queued
            | State::Negotiating
            | State::Deferred { .. }
            | State::Assigned => Self::Waiting,
            State::Running => Self::Working,
            State::InputRequired { .. } => Self::InputRequired,
            State::Completed
            | State::Failed
            | State::Expired
            | State::Cancelled
            | State::Withdrawn => Self::Ended,
        }
    }
}

/// One step of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Step {
    /// The job waits for a worker again.
    Waiting,
    Working,
    /// The worker asked the question with this number.
    InputRequired {
        question: u32,
    },
    /// The result is there. The end follows.
    Result,
    Ended,
}

impl Step {
    /// The phase that begins with it.
    pub fn phase(self) -> Option<Phase> {
        match self {
            Self::Waiting => Some(Phase::Waiting),
            Self::Working => Some(Phase::Working),
            Self::InputRequired { .. } => Some(Phase::InputRequired),
            Self::Result => None,
            Self::Ended => Some(Phase::Ended),
        }
    }
}

/// A step as an entry of the log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoggedStep {
    /// Counted together with the reports: 1, 2, 3 … without gaps.
    pub number: u32,
    /// The notice of the entry before.
    pub previous: Option<NoticeId>,
    /// The assignment it is about.
    pub epoch: u32,
    pub step: Step,
}

/// What an entry of the log says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum LogContent {
    Report(ProgressUpdate),
    Step(Step),
}

impl LogContent {
    /// The size of its content.
    pub fn content_bytes(&self) -> usize {
        match self {
            Self::Report(update) => update.content_bytes(),
            Self::Step(_) => 0,
        }
    }
}

/// Adds the phase of the job to its log if it is new there. Called whenever a job is written, and
/// before a report, so that the log has everything in order.
pub fn add_phase(draft: &mut Draft<'_>, job: &mut Job) {
    let now = Phase::of(job.state);
    let before = job.progress.phase.map_or(Phase::Waiting, |(phase, _)| phase);
    let asks = now == Phase::InputRequired || before == Phase::InputRequired;
    if now == before || !(job.policy.requester.follows_log || asks) {
        return;
    }
    job.progress.phase = Some((now, draft.now));
    let step = match now {
        Phase::Waiting => Step::Waiting,
        Phase::Working => Step::Working,
        Phase::InputRequired => Step::InputRequired { question: job.question_count() },
        Phase::Ended => Step::Ended,
    };
    if now == Phase::Ended && has_unreported_result(job) {
        add_step(draft, job, Step::Result);
    }
    add_step(draft, job, step);
}

/// Whether the job ended with a result of its own.
fn has_unreported_result(job: &Job) -> bool {
    job.state == State::Completed
        && job.result.as_ref().is_some_and(|result| result.output.is_some())
}

fn add_step(draft: &mut Draft<'_>, job: &mut Job, step: Step) {
    let number = job.progress.reports + 1;
    webhook::notify_all(draft, job, number, || LogContent::Step(step));
    let (previous, epoch) = (job.progress.newest, job.epoch);
    let step = Box::new(LoggedStep { number, previous, epoch, step });
    let notice = draft.notify(None, NoticeKind::Step { job: job.id, step }, None);
    (job.progress.reports, job.progress.newest) = (number, Some(notice));
    job.progress.steps += 1;
}

//! The log of a job: the worker's reports and the steps of the job, numbered together without gaps.
//!
//! A requester that follows the log reads all that happened to its job from it, in order, and can go
//! on after any entry. Other jobs only log reports, and the steps into and out of a question.

use serde::{Deserialize, Serialize};

use super::progress::ProgressUpdate;
use super::{Job, Original, State, webhook};
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
    /// A report, and the same in the worker's own words.
    Original {
        update: ProgressUpdate,
        original: Original,
    },
}

impl LogContent {
    /// A report, in the worker's own words if there are any.
    pub fn of_report(update: &ProgressUpdate, original: Option<&Original>) -> Self {
        let update = update.clone();
        match original.cloned() {
            None => Self::Report(update),
            Some(original) => Self::Original { update, original },
        }
    }

    /// What a worker reported, if it is a report.
    pub fn update(&self) -> Option<&ProgressUpdate> {
        match self {
            Self::Report(update) | Self::Original { update, .. } => Some(update),
            Self::Step(_) => None,
        }
    }

    /// The same without content, which may be long.
    pub fn without_text(&self) -> Self {
        match self {
            Self::Step(step) => Self::Step(*step),
            Self::Report(_) | Self::Original { .. } => Self::Report(ProgressUpdate::default()),
        }
    }

    /// The size of its content.
    pub fn content_bytes(&self) -> usize {
        let original = match self {
            Self::Original { original, .. } => original.content_bytes(),
            _ => 0,
        };
        self.update().map_or(0, ProgressUpdate::content_bytes) + original
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

/// Whether the job ended with a result of its own. A requester of the worker's protocol gets the
/// result in the worker's words: all parts of it are in the log, and the end has the rest.
fn has_unreported_result(job: &Job) -> bool {
    let in_own_words = |original: &Original| original.protocol == job.request.origin;
    job.state == State::Completed
        && job.result.as_ref().is_some_and(|result| {
            result.output.is_some() && !result.original.as_ref().is_some_and(in_own_words)
        })
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

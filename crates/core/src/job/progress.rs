//! Progress: what a worker reports before its result.
//!
//! The reports of a job are a log of notices. They are numbered without gaps and each names the one
//! before, so a report costs one row, however long the log is. The job's row has the newest
//! progress and the end of the log.

use serde::{Deserialize, Serialize};

use super::log::{self, LogContent, Phase};
use super::{Job, Original, Requester, Selection, State, acceptance, webhook, work};
use crate::answer::Answer;
use crate::command::ReportProgress;
use crate::draft::Draft;
use crate::event::Event;
use crate::id::NoticeId;
use crate::message;
use crate::notice::NoticeKind;
use crate::refusal::Refusal;
use crate::time::Timestamp;

/// What may be reported and asked about one job before its result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProgressLimits {
    /// Reports, and the bytes of their content.
    pub reports: u32,
    pub report_bytes: u64,
    /// Parts of a result that a requester follows.
    pub followed_parts: u32,
    /// Questions, and the bytes of all questions, schemas and answers.
    pub questions: u32,
    pub question_bytes: usize,
}

impl Default for ProgressLimits {
    fn default() -> Self {
        Self {
            reports: 10_000,
            report_bytes: 16 << 20,
            followed_parts: 256,
            questions: 32,
            question_bytes: 1 << 20,
        }
    }
}

/// How much of a job is done, in millionths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Fraction(u32);

impl Fraction {
    pub const WHOLE: Self = Self(1_000_000);

    /// `None` above the whole.
    pub fn from_millionths(millionths: u32) -> Option<Self> {
        Some(Self(millionths)).filter(|fraction| *fraction <= Self::WHOLE)
    }

    pub fn millionths(self) -> u32 {
        self.0
    }
}

/// The newest progress of a job, and the end of its log of reports and steps.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// As the current worker reported it last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fraction: Option<Fraction>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// How many entries the log has, how many of them are steps, and the bytes of their content.
    pub reports: u32,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub steps: u32,
    /// How many parts of the result were begun.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub parts: u32,
    pub bytes: u64,
    /// The notice of the newest entry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub newest: Option<NoticeId>,
    /// The newest phase in the log, and when it began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<(Phase, Timestamp)>,
    /// When the newest report came that is no part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status_at: Option<Timestamp>,
}

fn is_zero(count: &u32) -> bool {
    *count == 0
}

impl Progress {
    /// How many entries of the log are reports of workers.
    pub fn worker_reports(&self) -> u32 {
        self.reports - self.steps
    }

    /// Whether nothing was ever reported.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Another worker begins anew. The log stays.
    pub fn restart(&mut self) {
        (self.fraction, self.text) = (None, None);
    }
}

/// One entry of the log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgressReport {
    /// 1, 2, 3 … without gaps.
    pub number: u32,
    /// The notice of the report before.
    pub previous: Option<NoticeId>,
    /// The assignment it is about.
    pub epoch: u32,
    pub update: ProgressUpdate,
}

/// What a worker reports: how far it is, a part of the result, or both.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgressUpdate {
    pub fraction: Option<Fraction>,
    pub text: Option<String>,
    pub part: Option<ResultPart>,
}

/// A part of a result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResultPart {
    /// A JSON object as text, exactly as received.
    pub content: String,
    /// It continues the part before it.
    pub append: bool,
}

impl ProgressUpdate {
    /// Whether it says nothing.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The size of its content.
    pub fn content_bytes(&self) -> usize {
        self.text.as_ref().map_or(0, String::len)
            + self.part.as_ref().map_or(0, |part| part.content.len())
    }
}

/// The worker reports progress. That is a sign of life, so its lease begins anew. A report without
/// content, also none in the worker's own words, is only that, and no entry of the log.
pub fn report(draft: &mut Draft<'_>, order: ReportProgress) -> Result<Answer, Refusal> {
    let mut job = work::find_assigned_job(draft, &order.job, order.by)?;
    work::ensure_epoch(&job, order.epoch)?;
    work::ensure_can_report(&job)?;
    message::knows_work(draft, order.by);
    begin(draft, &mut job);
    renew_lease(draft, &mut job);
    let has_original = |original: &Original| original.protocol == job.request.origin;
    if order.update.is_empty() && !draft.worker_original.as_ref().is_some_and(has_original) {
        draft.add_event(Event::JobProgressed { job: job.id });
    } else {
        add_to_log(draft, &mut job, order.update)?;
    }
    Ok(work::put(draft, job))
}

/// A worker that reports or asks anything has accepted the job and works on it.
pub fn begin(draft: &mut Draft<'_>, job: &mut Job) {
    if job.acceptance.accepted_at.is_none() {
        acceptance::mark_accepted(draft, job, None);
        acceptance::notify_accepted(draft, job);
    }
    work::hand_over_one(job, draft.now);
    if job.state != State::Running {
        job.state = State::Running;
        draft.add_event(Event::JobStarted { job: job.id });
    }
}

/// The worker may give no response for another lease, counted from now.
pub fn renew_lease(draft: &Draft<'_>, job: &mut Job) {
    let until = draft.now.plus(job.request.lease);
    if let Some(turn) = &mut job.assignment {
        turn.until = turn.until.max(until).min(job.request.deadline);
    }
}

/// Adds a report to the log and tells the requester: with the original text if it uses the same
/// protocol, otherwise with a notice. A log never has a gap, so a full inbox refuses the report.
pub fn add_to_log(
    draft: &mut Draft<'_>,
    job: &mut Job,
    mut update: ProgressUpdate,
) -> Result<(), Refusal> {
    if let Some(part) = &mut update.part {
        // The first piece continues nothing.
        part.append &= job.progress.parts > 0;
    }
    let original = draft.worker_original.take();
    // Only a requester of the same protocol reads it. For others, a part in its words is only in
    // the log.
    let is_read = |original: &Original| original.protocol == job.request.origin;
    let is_only_logged =
        update.part.is_some() && original.as_ref().is_some_and(|original| !is_read(original));
    let original = original.filter(is_read);
    let added = update.content_bytes() + original.as_ref().map_or(0, Original::content_bytes);
    let bytes = job.progress.bytes + added as u64;
    let limits = draft.world.rules.progress;
    if job.progress.worker_reports() >= limits.reports || bytes > limits.report_bytes {
        return Err(Refusal::TooManyReports { max: limits.reports });
    }
    let status_at = if update.part.is_none() { Some(draft.now) } else { job.progress.status_at };
    let begins = update.part.as_ref().is_some_and(|part| !part.append);
    let is_followed = job.policy.requester.follows_log;
    if begins && is_followed && job.progress.parts >= limits.followed_parts {
        return Err(Refusal::TooManyReports { max: limits.followed_parts });
    }
    let requester = match job.request.requester {
        Requester::Agent(agent) => Some(agent),
        Requester::Guest(_) => None,
    };
    log::add_phase(draft, job);
    let requester = requester.filter(|_| !is_followed && !is_only_logged);
    if requester.is_some_and(|agent| message::is_inbox_full(draft, agent)) {
        return Err(Refusal::InboxFull);
    }
    let is_forwarded = requester.is_some_and(|agent| draft.forward_original(agent));
    let to = requester.filter(|_| !is_forwarded);
    // Requesters that follow a job message by message also get this one at their endpoint.
    let follows = matches!(job.selection, Selection::Invited { .. });
    let url = to.filter(|_| follows).and_then(|to| draft.agent(to)?.delivery_url());
    let number = job.progress.reports + 1;
    let (previous, epoch) = (job.progress.newest, job.epoch);
    let (fraction, text) = (update.fraction, update.text.clone());
    job.progress.parts += u32::from(begins);
    webhook::notify_all(draft, job, number, || LogContent::of_report(&update, original.as_ref()));
    let report = Box::new(ProgressReport { number, previous, epoch, update });
    let news = match original {
        None => NoticeKind::Progress { job: job.id, report },
        Some(original) => NoticeKind::OriginalProgress { job: job.id, report, original },
    };
    let notice = draft.notify(to, news, url);
    job.progress = Progress {
        fraction: fraction.or(job.progress.fraction),
        text: text.or(job.progress.text.take()),
        reports: number,
        steps: job.progress.steps,
        parts: job.progress.parts,
        bytes,
        newest: Some(notice),
        phase: job.progress.phase,
        status_at,
    };
    draft.add_event(Event::JobProgressed { job: job.id });
    Ok(())
}

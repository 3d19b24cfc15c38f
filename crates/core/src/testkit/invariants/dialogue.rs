//! Invariants of what the parties of a job exchange before its result: a log of reports without
//! gaps, and questions that are asked and answered once.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::changes::Changes;
use crate::event::Event;
use crate::id::{JobId, NoticeId};
use crate::job::log::Phase;
use crate::job::{Job, Question, Requester, State};
use crate::notice::{Notice, NoticeKind};
use crate::world::World;

/// The end of each job's log, kept from notices alone.
#[derive(Clone, Default)]
pub struct DialogueChecks {
    logs: BTreeMap<JobId, LogEnd>,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
struct LogEnd {
    entries: u32,
    /// Those that are not steps.
    worker_reports: u32,
    bytes: u64,
    newest: Option<NoticeId>,
    phase: Option<Phase>,
}

impl DialogueChecks {
    pub fn check(&mut self, before: &BTreeMap<JobId, Arc<Job>>, changes: &Changes, world: &World) {
        for notice in &changes.notices {
            self.report(notice, changes);
        }
        for job in changes.jobs.values() {
            let log = self.logs.get(&job.id).copied().unwrap_or_default();
            let end = (job.progress.reports, job.progress.bytes, job.progress.newest);
            let expected = (log.entries, log.bytes, log.newest);
            assert_eq!(end, expected, "the row names the end of the log: {job:?}");
            let phase = log.phase.unwrap_or(Phase::Waiting);
            let is_followed = job.policy.requester.follows_log;
            assert!(
                !is_followed || phase == Phase::of(job.state),
                "{job:?} is logged as {phase:?}"
            );
            let limits = world.rules.progress;
            assert!(log.worker_reports <= limits.reports && log.bytes <= limits.report_bytes);
            assert!(job.questions.len() <= limits.questions as usize, "{job:?}");
            questions(before.get(&job.id).map(|old| &**old), job, changes);
        }
    }

    /// Reports are numbered without gaps, name the one before, and are told to the requester only.
    fn report(&mut self, notice: &Notice, changes: &Changes) {
        let (job, number, previous, epoch) = match &notice.news {
            NoticeKind::Progress { job, report }
            | NoticeKind::OriginalProgress { job, report, .. } => {
                (job, report.number, report.previous, report.epoch)
            }
            NoticeKind::Step { job, step } => (job, step.number, step.previous, step.epoch),
            _ => return,
        };
        let log = self.logs.entry(*job).or_default();
        assert_eq!((number, previous), (log.entries + 1, log.newest), "{notice:?}");
        let job = changes.jobs.get(job).expect("an entry of the log changes its job");
        assert!(notice.to.is_none_or(|to| job.is_requested_by(to)), "{notice:?}");
        log.entries += 1;
        log.newest = Some(notice.id);
        match &notice.news {
            NoticeKind::Progress { .. } | NoticeKind::OriginalProgress { .. } => {
                assert_eq!(epoch, job.epoch, "only the current worker reports: {notice:?}");
                log.worker_reports += 1;
                log.bytes += notice.news.content_bytes() as u64;
            }
            NoticeKind::Step { step, .. } => log.phase = step.step.phase().or(log.phase),
            _ => {}
        }
    }
}

/// Asked questions stay, only the last may lack an answer, and an open one stops the job.
fn questions(old: Option<&Job>, job: &Job, changes: &Changes) {
    let is_open = |question: &Question| question.answer.is_none();
    let asked = old.map_or(&[][..], |old| &old.questions);
    for (before, after) in asked.iter().zip(&job.questions) {
        let answered = Question {
            answer: after.answer.clone(),
            answered_at: after.answered_at,
            ..before.clone()
        };
        assert_eq!(*after, answered, "a question never changes: {job:?}");
        assert!(is_open(before) || before == after, "an answer never changes: {job:?}");
    }
    assert!((asked.len()..=asked.len() + 1).contains(&job.questions.len()), "{job:?}");
    let told =
        |wanted: NoticeKind| changes.notices.iter().filter(|notice| notice.news == wanted).count();
    let happened = |wanted: Event| {
        changes.history_lines.iter().flat_map(|line| &line.events).any(|event| *event == wanted)
    };
    let new = job.questions.len() > asked.len();
    assert_eq!(happened(Event::JobInputRequested { job: job.id }), new, "{job:?}");
    if let State::InputRequired { until } = job.state {
        let last = job.questions.last().expect("a job waits for an answer to a question");
        assert!(is_open(last) && last.epoch == job.epoch, "{job:?}");
        assert!(until <= job.request.deadline, "an answer may come until the deadline: {job:?}");
        assert!(matches!(job.request.requester, Requester::Agent(_)), "a guest was asked: {job:?}");
        let question = job.questions.len() as u32;
        let asked = NoticeKind::InputRequested { job: job.id, question, until };
        let is_told = new && !job.policy.requester.follows_log;
        assert_eq!(told(asked), usize::from(is_told), "the requester is told once: {job:?}");
    }
    let Some(old) = old else { return };
    if new {
        assert_eq!(old.payment, job.payment, "a question moves no credits: {job:?}");
    }
    let answered = asked.last().is_some_and(is_open)
        && !job.questions[..asked.len()].last().is_some_and(is_open);
    assert_eq!(happened(Event::JobInputProvided { job: job.id }), answered, "{job:?}");
    if answered {
        assert!(matches!(old.state, State::InputRequired { .. }), "answered without a question");
        assert_eq!((job.state, &job.payment), (State::Running, &old.payment), "{job:?}");
        let question = asked.len() as u32;
        assert_eq!(told(NoticeKind::InputProvided { job: job.id, epoch: job.epoch, question }), 1);
    }
}

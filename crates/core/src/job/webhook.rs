//! Webhooks of a job: URLs at which its requester gets every later entry of the log.

use serde::{Deserialize, Serialize};

use super::Job;
use super::log::LogContent;
use super::{open, work};
use crate::answer::Answer;
use crate::command::{OpenJobWithWebhook, RemoveJobWebhook, SetJobWebhook};
use crate::draft::Draft;
use crate::id::JobId;
use crate::notice::NoticeKind;
use crate::refusal::Refusal;

/// How many webhooks one job may have.
pub const WEBHOOKS_MAX: usize = 8;

/// A URL that gets every later entry of a job's log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobWebhook {
    /// Chosen by the requester, unique in the job.
    pub id: String,
    pub url: String,
    /// Data of the requester's protocol, as JSON text. Its secrets are sealed.
    pub meta: String,
}

impl JobWebhook {
    /// The size of its content.
    pub fn content_bytes(&self) -> usize {
        self.id.len() + self.url.len() + self.meta.len()
    }
}

/// Adds a webhook, or replaces the one with the same id. A job that has ended keeps it, although
/// nothing follows.
pub fn set(draft: &mut Draft<'_>, order: SetJobWebhook) -> Result<Answer, Refusal> {
    let job = work::find_job(draft, &order.job).filter(|job| job.is_requested_by(order.by));
    let mut job = job.ok_or(Refusal::NotFound)?;
    let is_full = job.webhooks.len() >= WEBHOOKS_MAX;
    match job.webhooks.iter_mut().find(|known| known.id == order.webhook.id) {
        Some(known) => *known = order.webhook,
        None if is_full => return Err(Refusal::TooManyReports { max: WEBHOOKS_MAX as u32 }),
        None => job.webhooks.push(order.webhook),
    }
    Ok(work::put(draft, job))
}

/// Opens a job that has a webhook from its first step on. A repeat returns the first job as it is.
pub fn open_with(draft: &mut Draft<'_>, order: OpenJobWithWebhook) -> Result<Answer, Refusal> {
    match open::open(draft, order.job)? {
        Answer::Job { job, repeated: false } => {
            let mut job = (*job).clone();
            job.webhooks.push(order.webhook);
            Ok(work::put(draft, job))
        }
        repeated => Ok(repeated),
    }
}

/// Removes a webhook. Removing one that does not exist changes nothing.
pub fn remove(draft: &mut Draft<'_>, order: &RemoveJobWebhook) -> Result<Answer, Refusal> {
    let job = work::find_job(draft, &order.job).filter(|job| job.is_requested_by(order.by));
    let mut job = job.ok_or(Refusal::NotFound)?;
    job.webhooks.retain(|known| known.id != order.id);
    Ok(work::put(draft, job))
}

/// The receiver says that its URL is gone, so the webhook gets nothing any more.
pub fn remove_gone(draft: &mut Draft<'_>, job: JobId, id: &str) {
    let Some(mut job) = draft.job(job).cloned() else { return };
    job.webhooks.retain(|known| known.id != id);
    draft.put_job(job);
}

/// Sends an entry of the log to all webhooks of the job.
pub fn notify_all(draft: &mut Draft<'_>, job: &Job, number: u32, content: impl Fn() -> LogContent) {
    for JobWebhook { id, url, .. } in &job.webhooks {
        let (webhook, content) = (id.clone(), Box::new(content()));
        let part = job.progress.parts;
        let kind = NoticeKind::LogEntry { job: job.id, webhook, number, part, content };
        draft.notify(None, kind, Some(url.clone()));
    }
}

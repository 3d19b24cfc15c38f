//! What agents and wallets of this market are told, as its messages.

use std::sync::Arc;

use rialto_core::draft::Draft;
use rialto_core::job::{Cause, Job, Selection, State};
use rialto_core::notice::{News, Notice};

use super::outgoing::{Notice as Word, Outgoing};
use super::people::{self, People};
use super::task;

/// All of it, in the order it was told.
pub fn of_all(draft: &Draft<'_>, notices: &[Arc<Notice>]) -> Vec<Outgoing> {
    notices.iter().filter_map(|notice| of(draft, notice, notices)).collect()
}

/// One of them; `None` for what this market does not say.
fn of(draft: &Draft<'_>, notice: &Notice, all: &[Arc<Notice>]) -> Option<Outgoing> {
    let reader = notice.to?;
    let job = draft.job(notice.news.job()?)?;
    let to = people::address(draft, reader);
    match notice.news {
        News::Assigned { .. } => {
            let copies = all.iter().filter(|other| is_copy(draft, job, other)).count();
            let shown = task::task(draft, job, false);
            Some(Outgoing::assignment(task::dialect(job), &to, &shown, copies.max(1)))
        }
        News::OffersWanted { closes, .. } => {
            let query = task::query(draft, job, reader, closes)?;
            Some(Outgoing::query(&to, &query))
        }
        News::OfferClosed { .. } => {
            let agent_id = people::agent_id(draft, reader)?;
            let word = Word::OfferRejected { agent_id: &agent_id };
            Some(Outgoing::notice(&to, &task::id(job), word))
        }
        News::Queued { .. } => Some(Outgoing::notice(&to, &task::id(job), Word::TaskQueued)),
        News::Ended { .. } => ended(draft, job, &to),
        News::Accepted { .. }
        | News::ApprovalWanted { .. }
        | News::TakenBack { .. }
        | News::Offered { .. }
        | News::PriceTaken { .. }
        | News::Message { .. } => None,
    }
}

/// Whether another notice gives somebody a copy of the same task.
fn is_copy(draft: &Draft<'_>, job: &Job, other: &Notice) -> bool {
    let assigned = matches!(other.news, News::Assigned { .. });
    let same = |found: &Job| task::id(found) == task::id(job);
    assigned && other.news.job().and_then(|id| draft.job(id)).is_some_and(same)
}

/// The end, to whoever wanted it.
pub fn ended(people: &impl People, job: &Job, to: &str) -> Option<Outgoing> {
    let id = task::id(job);
    let cause = job.report.as_ref().and_then(|report| report.cause);
    let word = match job.state {
        State::Completed => {
            let done = task::done(people, job)?;
            let fee = job.report.as_ref().map(|report| report.paid);
            let fee = fee.filter(|_| !job.policy.unpaid).or(job.assignment.map(|turn| turn.price));
            let shown = task::task(people, job, false);
            let message = Outgoing::task_result(task::dialect(job), &done, &shown, fee?);
            return Some(message);
        }
        // A copy that is declined is nobody's news (R61).
        _ if task::is_for_many(job) => return None,
        State::Failed if matches!(job.selection, Selection::Auction { .. }) && job.epoch == 0 => {
            Word::QueryFailed
        }
        State::Failed if is_named(job) && was_refused(job, cause) => Word::TaskUnassigned,
        State::Failed if cause == Some(Cause::Policy) => Word::TaskUnassigned,
        // Silence is a no as well, and there was nobody else to ask (R42, R62).
        State::Expired if is_named(job) && job.ended_at.is_some_and(|at| at < job.deadline) => {
            Word::TaskUnassigned
        }
        State::Failed | State::Expired | State::Cancelled => Word::TaskExpired,
        _ => return None,
    };
    Some(Outgoing::notice(to, &id, word))
}

/// Whether its agent never took it on, for whatever reason.
fn was_refused(job: &Job, cause: Option<Cause>) -> bool {
    let blamed = cause.is_some_and(Cause::blames_worker);
    job.worker().is_none() || !blamed && cause != Some(Cause::Cancelled)
}

/// Whether one agent and no other was to do it.
fn is_named(job: &Job) -> bool {
    matches!(job.selection, Selection::Direct(_))
}

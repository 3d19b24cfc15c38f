//! Notices to agents and wallets as this market's messages.

use std::collections::HashMap;
use std::sync::Arc;

use rialto_core::draft::Draft;
use rialto_core::job::{Cause, Job, Selection, State};
use rialto_core::notice::{News, Notice};

use super::outgoing::{Notice as Word, Outgoing};
use super::people::{self, People};
use super::task;

/// All notices as messages, in their order.
pub fn of_all(draft: &Draft<'_>, notices: &[Arc<Notice>]) -> Vec<Outgoing> {
    let copies = copies(draft, notices);
    notices.iter().filter_map(|notice| of(draft, notice, &copies)).collect()
}

/// How many copies of each task were assigned.
fn copies<'d>(draft: &'d Draft<'_>, notices: &[Arc<Notice>]) -> HashMap<&'d str, usize> {
    let mut copies = HashMap::new();
    for notice in notices {
        if let News::Assigned { job, .. } = notice.news
            && let Some(job) = draft.job(job)
        {
            *copies.entry(task::plain(&job.foreign)).or_insert(0) += 1;
        }
    }
    copies
}

/// One notice as a message; `None` when this market has no message for it.
fn of(draft: &Draft<'_>, notice: &Notice, copies: &HashMap<&str, usize>) -> Option<Outgoing> {
    let reader = notice.to?;
    let job = draft.job(notice.news.job()?)?;
    let to = people::address(draft, reader);
    match notice.news {
        News::Assigned { .. } => {
            let copies = copies.get(task::plain(&job.foreign)).copied().unwrap_or(1);
            let shown = task::task(draft, job, false);
            Some(Outgoing::assignment(task::dialect(job), &to, &shown, copies))
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

/// The message that ends a task, to its requester.
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
        // A declined copy is not reported (R61).
        _ if task::is_for_many(job) => return None,
        State::Failed if matches!(job.selection, Selection::Auction { .. }) && job.epoch == 0 => {
            Word::QueryFailed
        }
        State::Failed if is_named(job) && was_refused(job, cause) => Word::TaskUnassigned,
        State::Failed if cause == Some(Cause::Policy) => Word::TaskUnassigned,
        // No response counts as a decline, and there is no other agent to ask (R42, R62).
        State::Expired if is_named(job) && job.ended_at.is_some_and(|at| at < job.deadline) => {
            Word::TaskUnassigned
        }
        State::Failed if is_named(job) => Word::TaskFailed,
        State::Failed | State::Expired | State::Cancelled => Word::TaskExpired,
        _ => return None,
    };
    // The agent's own text is included (B7).
    let said = job.report.as_ref().and_then(|report| report.text.as_deref());
    Some(Outgoing::notice(to, &id, word).because(said))
}

/// Whether its agent never started the task, whatever the reason.
fn was_refused(job: &Job, cause: Option<Cause>) -> bool {
    let blamed = cause.is_some_and(Cause::blames_worker);
    job.worker().is_none() || !blamed && cause != Some(Cause::Cancelled)
}

/// Whether the task was for one named agent.
fn is_named(job: &Job) -> bool {
    matches!(job.selection, Selection::Direct(_))
}

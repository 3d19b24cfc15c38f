//! Notices to agents and wallets as this market's messages. Agents read them by polling, so the hub
//! makes no deliveries.

use std::collections::HashMap;
use std::sync::Arc;

use rialto_core::draft::Draft;
use rialto_core::job::{Cause, Job, Selection, State};
use rialto_core::notice::{Delivery, Notice, NoticeKind};
use rialto_engine::Engine;
use rialto_engine::delivery::egress::{HttpResponse, SendError};
use rialto_engine::delivery::{AttemptResult, DeliveryEncoder, OutboundRequest};

use super::auth::{self, AgentLookup};
use super::task;
use super::wire::outgoing::{OutgoingMessage, TaskNotice};
use crate::adapter::delivery_result;

/// Clara agents poll: there are no deliveries.
pub struct NoDeliveries;

impl DeliveryEncoder for NoDeliveries {
    fn encode(&self, _: &Engine, _: &Delivery, _: Option<&Job>) -> Option<OutboundRequest> {
        None
    }

    fn interpret_response(
        &self,
        _: &Engine,
        _: &Delivery,
        _: Option<&Job>,
        answer: &Result<HttpResponse, SendError>,
    ) -> AttemptResult {
        delivery_result::from_status(answer)
    }
}

/// All notices as messages, in their order.
pub fn notice_messages(draft: &Draft<'_>, notices: &[Arc<Notice>]) -> Vec<OutgoingMessage> {
    let copies = copies(draft, notices);
    notices.iter().filter_map(|notice| notice_message(draft, notice, &copies)).collect()
}

/// How many copies of each task were assigned.
fn copies<'d>(draft: &'d Draft<'_>, notices: &[Arc<Notice>]) -> HashMap<&'d str, usize> {
    let mut copies = HashMap::new();
    for notice in notices {
        if let NoticeKind::Assigned { job, .. } = notice.news
            && let Some(job) = draft.job(job)
        {
            *copies.entry(task::base_task_id(&job.request.foreign_id)).or_insert(0) += 1;
        }
    }
    copies
}

/// One notice as a message; `None` when this market has no message for it.
fn notice_message(
    draft: &Draft<'_>,
    notice: &Notice,
    copies: &HashMap<&str, usize>,
) -> Option<OutgoingMessage> {
    let reader = notice.to?;
    let job = draft.job(notice.news.job()?)?;
    let to = auth::agent_address(draft, reader);
    match notice.news {
        NoticeKind::Assigned { .. } => {
            let copies =
                copies.get(task::base_task_id(&job.request.foreign_id)).copied().unwrap_or(1);
            let shown = task::task_record(draft, job, false);
            Some(OutgoingMessage::assignment(task::dialect(job), &to, &shown, copies))
        }
        NoticeKind::OfferRequested { closes, .. } => {
            let query = task::task_query(draft, job, reader, closes)?;
            Some(OutgoingMessage::query(&to, &query))
        }
        NoticeKind::OfferLost { .. } => {
            let agent_id = auth::agent_id(draft, reader)?;
            let word = TaskNotice::OfferRejected { agent_id: &agent_id };
            Some(OutgoingMessage::notice(&to, &task::task_id(job), word))
        }
        NoticeKind::Queued { .. } => {
            Some(OutgoingMessage::notice(&to, &task::task_id(job), TaskNotice::TaskQueued))
        }
        NoticeKind::Ended { .. } => end_message(draft, job, &to),
        NoticeKind::Accepted { .. }
        | NoticeKind::ApprovalRequested { .. }
        | NoticeKind::Unassigned { .. }
        | NoticeKind::OfferReceived { .. }
        | NoticeKind::PriceAgreed { .. }
        | NoticeKind::Progress { .. }
        | NoticeKind::OriginalProgress { .. }
        | NoticeKind::Step { .. }
        | NoticeKind::LogEntry { .. }
        | NoticeKind::RequesterMessage { .. }
        | NoticeKind::InputRequested { .. }
        | NoticeKind::InputProvided { .. }
        | NoticeKind::Message { .. } => None,
    }
}

/// The message that ends a task, to its requester.
pub fn end_message(lookup: &impl AgentLookup, job: &Job, to: &str) -> Option<OutgoingMessage> {
    let id = task::task_id(job);
    let cause = job.result.as_ref().and_then(|report| report.cause);
    let word = match job.state {
        State::Completed => {
            let done = task::task_result(lookup, job)?;
            let fee = job.result.as_ref().map(|report| report.paid);
            let fee = fee
                .filter(|_| !job.policy.requester.unpaid)
                .or(job.assignment.map(|turn| turn.price));
            let shown = task::task_record(lookup, job, false);
            let message = OutgoingMessage::task_result(task::dialect(job), &done, &shown, fee?);
            return Some(message);
        }
        // A declined copy is not reported (R61).
        _ if task::is_broadcast(job) => return None,
        State::Failed if matches!(job.selection, Selection::Auction { .. }) && job.epoch == 0 => {
            TaskNotice::QueryFailed
        }
        State::Failed if is_named(job) && was_refused(job, cause) => TaskNotice::TaskUnassigned,
        State::Failed if cause == Some(Cause::Policy) => TaskNotice::TaskUnassigned,
        // No response counts as a decline, and there is no other agent to ask (R42, R62).
        State::Expired
            if is_named(job) && job.ended_at.is_some_and(|at| at < job.request.deadline) =>
        {
            TaskNotice::TaskUnassigned
        }
        State::Failed if is_named(job) => TaskNotice::TaskFailed,
        State::Failed | State::Expired | State::Cancelled => TaskNotice::TaskExpired,
        _ => return None,
    };
    // The agent's own text is included (B7).
    let said = job.result.as_ref().and_then(|report| report.text.as_deref());
    Some(OutgoingMessage::notice(to, &id, word).with_reason(said))
}

/// Whether its agent never started the task, whatever the reason.
fn was_refused(job: &Job, cause: Option<Cause>) -> bool {
    let blamed = cause.is_some_and(Cause::is_worker_failure);
    job.worker().is_none() || !blamed && cause != Some(Cause::Cancelled)
}

/// Whether the task was for one named agent.
fn is_named(job: &Job) -> bool {
    matches!(job.selection, Selection::Direct(_))
}

//! Handing over: what the protocol of a worker records while it brings a job to the worker.
//!
//! Some agents are called by their own protocol, which may send a job only once. It records what it
//! is about to do before it does it, so that after a crash it knows what may have happened.

use serde::{Deserialize, Serialize};

use super::{grace_period, progress, work};
use crate::agent::presence;
use crate::alias::{ClaimTarget, Protocol};
use crate::answer::Answer;
use crate::command::{HandoverStage, RecordHandover, ReportOriginal};
use crate::draft::Draft;
use crate::message;
use crate::refusal::Refusal;

/// What the protocol of a worker keeps with the worker's assignment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Handover {
    /// Text of the protocol.
    pub state: String,
    /// How often there was news of the worker that the state does not have.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub news: u32,
}

fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// A report in the worker's own words, for a requester of the same protocol.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Original {
    pub protocol: Protocol,
    /// JSON text.
    pub text: String,
}

impl Original {
    /// The size of its content.
    pub fn content_bytes(&self) -> usize {
        self.text.len()
    }
}

/// Records how far the protocol of the worker is with handing over the job. What the worker shows
/// is a sign of life, so its lease begins anew.
pub fn record(draft: &mut Draft<'_>, order: RecordHandover) -> Result<Answer, Refusal> {
    let mut job = work::find_assigned_job(draft, &order.job, order.by)?;
    work::ensure_epoch(&job, Some(order.epoch))?;
    if !job.state.is_assigned() {
        return Err(Refusal::WrongState { state: job.state });
    }
    let handover = job.handover.get_or_insert_default();
    match order.state {
        Some(state) => handover.state = state,
        None => handover.news = handover.news.wrapping_add(1),
    }
    if let Some(turn) = &mut job.assignment {
        turn.handed_over = true;
    }
    if order.stage != HandoverStage::Sending {
        message::knows_work(draft, order.by);
        grace_period::mark_received(&mut job, draft.now);
        progress::renew_lease(draft, &mut job);
    }
    // A worker that waits for an answer goes on when it has one.
    if order.stage == HandoverStage::Working && work::ensure_can_report(&job).is_ok() {
        progress::begin(draft, &mut job);
    }
    if let Some(name) = order.conversation
        && draft.claim_target(name).is_none()
    {
        draft.add_claim(name, ClaimTarget::Job(job.id));
    }
    let answer = work::put(draft, job);
    let state = draft.agent_state(order.by);
    if order.stage != HandoverStage::Sending
        && state.is_some_and(|state| state.presence.unreachable)
    {
        presence::record_reached(draft, order.by);
    }
    Ok(answer)
}

/// A report of the worker, kept in its own words as well.
pub fn report_original(draft: &mut Draft<'_>, order: ReportOriginal) -> Result<Answer, Refusal> {
    let ReportOriginal { report, original: text } = order;
    let protocol = draft.agent(report.by()).map(|agent| agent.home);
    let protocol = protocol.ok_or(Refusal::NotFound)?;
    draft.worker_original = Some(Original { protocol, text });
    let answer = crate::decide::execute(draft, report.into());
    draft.worker_original = None;
    answer
}

//! Notices as events of the stream: the event's name and the message it carries.

use rialto_core::job::{Job, State as JobState};
use rialto_core::notice::{Notice, NoticeKind};

use super::message::{CollaborationResult, ResultOutcome};
use super::state::State;
use super::stream::{self, Event};
use super::{ID, view};
use crate::adapter::HubContext;
use crate::kit::ijson;
use crate::kit::object::ObjectWriter;
use crate::kit::raw_json;

/// The event name for messages of other protocols. This protocol has no such message.
pub const MESSAGE: &str = "message";

/// An event: its name and its body.
pub struct OutgoingEvent {
    pub event: &'static str,
    pub body: String,
}

/// A notice as an event; `None` when this protocol has no event for it.
pub fn notice_event(
    context: &HubContext,
    notice: &Notice,
    job: Option<&Job>,
) -> Option<OutgoingEvent> {
    if let NoticeKind::Message { protocol: words, body, .. } = &notice.news {
        let said = raw_json::verbatim(body);
        let body = ObjectWriter::new()
            .text("protocol", words.as_str())
            .raw("message", said.get())
            .finish();
        return Some(OutgoingEvent { event: MESSAGE, body });
    }
    let job = job?;
    match notice.news {
        NoticeKind::Assigned { epoch, .. } => assigned(context, job, epoch),
        NoticeKind::ApprovalRequested { .. } => approval(context, job),
        NoticeKind::Accepted { .. } => {
            job.accepted_at?;
            let response = view::response(context, job, job.accepted_at.unwrap_or(notice.at))?;
            Some(envelope(Event::Response, response.write()))
        }
        NoticeKind::Ended { .. } => ended(context, notice, job),
        NoticeKind::Unassigned { .. } => {
            Some(envelope(Event::Cancelled, taken_back(context, notice, job)))
        }
        NoticeKind::Queued { .. }
        | NoticeKind::OfferRequested { .. }
        | NoticeKind::OfferReceived { .. }
        | NoticeKind::PriceAgreed { .. }
        | NoticeKind::OfferLost { .. }
        | NoticeKind::Message { .. } => None,
    }
}

fn envelope(event: Event, body: String) -> OutgoingEvent {
    OutgoingEvent { event: event.as_str(), body }
}

/// Assigned work, if the assignment of this epoch still holds.
fn assigned(context: &HubContext, job: &Job, epoch: u32) -> Option<OutgoingEvent> {
    let theirs = matches!(job.state, JobState::Assigned | JobState::Running) && job.epoch == epoch;
    theirs.then(|| {
        let body = request_body(context, job, job.accepted_at.is_some());
        envelope(Event::Request, body)
    })
}

/// A request as its responder receives it.
pub fn request_body(context: &HubContext, job: &Job, accepted: bool) -> String {
    let request = view::request(context, job);
    let collaboration_id = Some(view::collaboration_ids(job).collaboration_id);
    match ijson::read(request.as_bytes()) {
        Ok(json) => stream::write_request(&json, collaboration_id, accepted),
        Err(_) => request,
    }
}

/// A request that needs approval first.
fn approval(context: &HubContext, job: &Job) -> Option<OutgoingEvent> {
    let JobState::Deferred { until } = job.state else { return None };
    job.pending_assignment.filter(|waits| waits.needs_approval)?;
    let body = request_body(context, job, false);
    let json = ijson::read(body.as_bytes()).ok()?;
    let body = ObjectWriter::copy_without(&json, &["awaiting_approval", "deferred_until"])
        .flag("awaiting_approval", true)
        .time("deferred_until", until);
    Some(envelope(Event::Request, body.finish()))
}

/// The end of a collaboration: its result, or the final response to a request that was never
/// accepted.
fn ended(context: &HubContext, notice: &Notice, job: &Job) -> Option<OutgoingEvent> {
    match view::collaboration_state(job) {
        State::Rejected => {
            let response = view::response(context, job, notice.at)?;
            Some(envelope(Event::Response, response.write()))
        }
        State::Cancelled => Some(envelope(Event::Cancelled, view::result(context, job)?)),
        _ => Some(envelope(Event::Result, view::result(context, job)?)),
    }
}

/// The work is no longer assigned to the reader.
fn taken_back(context: &HubContext, notice: &Notice, job: &Job) -> String {
    if let Some(result) = view::result(context, job) {
        return result;
    }
    let view::CollaborationIds { request_id, correlation_id, collaboration_id } =
        view::collaboration_ids(job);
    let reader = notice.to.and_then(|to| {
        context.engine.with_world(|world| world.alias_of(to, ID).and_then(|name| name.parse().ok()))
    });
    let reason = match view::collaboration_state(job) {
        State::Rejected => "no response arrived in time",
        _ => "the work was assigned to another agent",
    };
    CollaborationResult {
        collaboration_id,
        request_id,
        responder_agent_id: reader.unwrap_or(context.openclaw.hub_id),
        outcome: ResultOutcome::Cancelled { reason: Some(reason.to_owned()) },
        execution_duration_ms: None,
        completed_at: None,
        correlation_id,
        timestamp: notice.at,
    }
    .write()
}

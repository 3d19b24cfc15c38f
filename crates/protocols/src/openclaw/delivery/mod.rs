//! Notices as events, and their webhook deliveries to agents' endpoints: the same bodies as on the
//! stream.

pub mod agent_updates;
pub mod stream;
pub mod update_poster;

use std::sync::Arc;

use rialto_core::job::{Job, State as JobState};
use rialto_core::notice::{Delivery, Notice, NoticeKind};
use rialto_engine::Engine;
use rialto_engine::delivery::egress::{HttpResponse, SendError};
use rialto_engine::delivery::{
    AttemptResult, DeliveryEncoder, OutboundRequest, RESPONSE_BYTES_MAX,
};
use uuid::Uuid;

use super::wire::stream::{Event, write_request};
use super::wire::words::State;
use super::wire::{CollaborationResult, ResultOutcome};
use super::{ID, collaboration};
use crate::adapter::delivery_result;
use crate::kit::object::ObjectWriter;
use crate::kit::{ijson, raw_json};
use crate::openclaw::OpenclawContext;

/// The header that names the event of a body.
pub const EVENT_HEADER: &str = "rialto-event";
/// The event name for messages of other protocols. This protocol has no such message.
pub const MESSAGE: &str = "message";

/// Encodes deliveries for agents of this protocol.
pub struct OpenclawEncoder {
    pub context: OpenclawContext,
}

impl DeliveryEncoder for OpenclawEncoder {
    fn encode_if_due(
        &self,
        engine: &Engine,
        push: &Delivery,
        job: Option<&Job>,
    ) -> Option<OutboundRequest> {
        let agent = push.to?;
        // A notice that the agent has read in the meantime needs no delivery.
        if engine.read_position(agent) >= push.position {
            return None;
        }
        // The agent's current endpoint, which may have changed since the notice was written.
        let url = engine.with_world(|world| world.agent(agent)?.delivery_url())?;
        self.encode(engine, &Delivery { url, ..push.clone() }, job)
    }

    fn encode(&self, _: &Engine, push: &Delivery, job: Option<&Job>) -> Option<OutboundRequest> {
        let OutgoingEvent { event, body } = notice_event(&self.context, &push.to_notice(), job)?;
        let url = push.url.clone();
        let headers = vec![(EVENT_HEADER.to_owned(), event.to_owned())];
        Some(OutboundRequest {
            url,
            body: body.into(),
            id: delivery_id(push),
            headers,
            response_max: RESPONSE_BYTES_MAX,
        })
    }

    fn prefers_streams(&self) -> bool {
        true
    }

    /// A failed delivery is never reported as a message of an agent (R78). It is retried.
    fn interpret_response(
        &self,
        _engine: &Engine,
        _push: &Delivery,
        _job: Option<&Job>,
        answer: &Result<HttpResponse, SendError>,
    ) -> AttemptResult {
        delivery_result::from_status(answer)
    }
}

/// The delivery id, the same for every attempt at one notice.
fn delivery_id(push: &Delivery) -> String {
    const SPACE: Uuid = Uuid::from_u128(0x7a41_90e2_3b7c_5f55_a1a4_a60a_70c1_e003);
    Uuid::new_v5(&SPACE, &push.notice.0.to_be_bytes()).to_string()
}

/// The encoder, shared by all deliveries.
pub fn delivery_encoder(hub_context: &OpenclawContext) -> Arc<dyn DeliveryEncoder> {
    Arc::new(OpenclawEncoder { context: hub_context.clone() })
}

/// An event: its name and its body.
pub struct OutgoingEvent {
    pub event: &'static str,
    pub body: String,
}

/// A notice as an event; `None` when this protocol has no event for it.
pub fn notice_event(
    context: &OpenclawContext,
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
            job.acceptance.accepted_at?;
            let response = collaboration::response(
                context,
                job,
                job.acceptance.accepted_at.unwrap_or(notice.at),
            )?;
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

fn envelope(event: Event, body: String) -> OutgoingEvent {
    OutgoingEvent { event: event.as_str(), body }
}

/// Assigned work, if the assignment of this epoch still holds.
fn assigned(context: &OpenclawContext, job: &Job, epoch: u32) -> Option<OutgoingEvent> {
    let theirs = job.state.is_assigned() && job.epoch == epoch;
    theirs.then(|| {
        let body = request_body(context, job, job.acceptance.accepted_at.is_some());
        envelope(Event::Request, body)
    })
}

/// A request as its responder receives it.
pub fn request_body(context: &OpenclawContext, job: &Job, accepted: bool) -> String {
    let request = collaboration::request(context, job);
    let collaboration_id = Some(collaboration::ids(job).collaboration_id);
    match ijson::read(request.as_bytes()) {
        Ok(json) => write_request(&json, collaboration_id, accepted),
        Err(_) => request,
    }
}

/// A request that needs approval first.
fn approval(context: &OpenclawContext, job: &Job) -> Option<OutgoingEvent> {
    let JobState::Deferred { until } = job.state else { return None };
    job.candidates.pending_assignment.filter(|waits| waits.needs_approval)?;
    let body = request_body(context, job, false);
    let json = ijson::read(body.as_bytes()).ok()?;
    let body = ObjectWriter::copy_without(&json, &["awaiting_approval", "deferred_until"])
        .flag("awaiting_approval", true)
        .time("deferred_until", until);
    Some(envelope(Event::Request, body.finish()))
}

/// The end of a collaboration: its result, or the final response to a request that was never
/// accepted.
fn ended(context: &OpenclawContext, notice: &Notice, job: &Job) -> Option<OutgoingEvent> {
    match collaboration::state(job) {
        State::Rejected => {
            let response = collaboration::response(context, job, notice.at)?;
            Some(envelope(Event::Response, response.write()))
        }
        State::Cancelled => Some(envelope(Event::Cancelled, collaboration::result(context, job)?)),
        _ => Some(envelope(Event::Result, collaboration::result(context, job)?)),
    }
}

/// The work is no longer assigned to the reader.
fn taken_back(context: &OpenclawContext, notice: &Notice, job: &Job) -> String {
    if let Some(result) = collaboration::result(context, job) {
        return result;
    }
    let collaboration::Ids { request_id, correlation_id, collaboration_id } =
        collaboration::ids(job);
    let reader = notice.to.and_then(|to| {
        context.engine.with_world(|world| world.alias_of(to, ID).and_then(|name| name.parse().ok()))
    });
    let reason = match collaboration::state(job) {
        State::Rejected => "no response arrived in time",
        _ => "the work was assigned to another agent",
    };
    CollaborationResult {
        collaboration_id,
        request_id,
        responder_agent_id: reader.unwrap_or(context.state.hub_id),
        outcome: ResultOutcome::Cancelled { reason: Some(reason.to_owned()) },
        execution_duration_ms: None,
        completed_at: None,
        correlation_id,
        timestamp: notice.at,
    }
    .write()
}

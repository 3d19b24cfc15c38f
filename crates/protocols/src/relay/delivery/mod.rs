//! Deliveries: notices as the envelopes their readers get, posted to agents' endpoints, and how the
//! answers of those endpoints are read.

pub mod attempt;
pub mod inbox_stream;
pub mod reply_stream;

use std::borrow::Cow;

use rialto_core::command::{JobRef, WorkerReport};
use rialto_core::id::AgentId;
use rialto_core::job::Job;
use rialto_core::notice::{Delivery, Notice, NoticeKind};
use rialto_core::time::Timestamp;
use rialto_core::world::World;
use rialto_engine::Engine;
use rialto_engine::delivery::egress::{HttpResponse, SendError};
use rialto_engine::delivery::{
    AttemptResult, AttemptStatus, DeliveryEncoder, OutboundRequest, RESPONSE_BYTES_MAX,
};

use super::job::{WorkerError, report_failure};
use super::message::read_stored_message;
use super::translate::{self, JobEnvelope, is_obsolete, job_envelope};
use super::wire::envelope::write_annotated_receive_body;
use super::wire::inbox::{Annotations, MessageEvent, MessageFlags};
use super::wire::reply::Reply;
use super::{Code, EnvelopeFormat, ID, VERSION};
use crate::adapter::bridge;
use crate::kit::ijson::{self, JsonValue};
use crate::kit::object::ObjectWriter;
use crate::relay::RelayContext;

/// Encodes deliveries for agents of this protocol.
pub struct RelayEncoder {
    pub context: RelayContext,
}

impl DeliveryEncoder for RelayEncoder {
    fn encode_if_due(
        &self,
        engine: &Engine,
        push: &Delivery,
        job: Option<&Job>,
    ) -> Option<OutboundRequest> {
        let agent = push.to?;
        // A message that was read in the meantime needs no delivery, and neither does an expired
        // one.
        let expired = push.at.plus(self.context.state.settings.retention) <= engine.now();
        if expired || engine.read_position(agent) >= push.position || is_obsolete(&push.kind, job) {
            return None;
        }
        self.encode(engine, push, job)
    }

    fn encode(
        &self,
        engine: &Engine,
        push: &Delivery,
        job: Option<&Job>,
    ) -> Option<OutboundRequest> {
        let (agent, notice) = (push.to?, push.to_notice());
        let trace = self.context.state.trace_ids.of(push.notice).to_string();
        let body = engine.with_world(|world| {
            let format = world.agent(agent).and_then(|agent| translate::envelope_format(agent));
            let said = OutgoingEnvelope::of(world, &notice, job)?;
            Some(write_annotated_receive_body(&said.envelope, format, &trace, &said.annotations))
        })?;
        Some(OutboundRequest {
            url: push.url.clone(),
            body: body.into(),
            id: trace,
            headers: Vec::new(),
            response_max: RESPONSE_BYTES_MAX,
        })
    }

    /// An open inbox stream takes precedence over an endpoint (R9).
    fn prefers_streams(&self) -> bool {
        true
    }

    fn interpret_response(
        &self,
        engine: &Engine,
        push: &Delivery,
        job: Option<&Job>,
        answer: &Result<HttpResponse, SendError>,
    ) -> AttemptResult {
        let given = job.filter(|_| matches!(push.kind, NoticeKind::Assigned { .. })).zip(push.to);
        if let Some(((job, worker), said)) = given.zip(could_not(answer)) {
            let report = Some(report_failure(job, worker, &said));
            return AttemptResult { status: AttemptStatus::Delivered { reply: None }, report };
        }
        let arrived = match read_answer(answer) {
            Ok(reply) => AttemptStatus::Delivered { reply: Some(reply) },
            Err(_) if is_gone(answer) => AttemptStatus::EndpointGone,
            Err((_, why)) => AttemptStatus::Failed(why),
        };
        let report = match (&arrived, given) {
            // The worker has the job, and answers it with its own message.
            (AttemptStatus::Delivered { .. }, Some((job, worker))) => {
                note_read(engine, worker, push.position);
                Some(WorkerReport::Started { job: JobRef::Id(job.id), by: worker })
            }
            _ => None,
        };
        AttemptResult { status: arrived, report }
    }
}

/// Work that was delivered to the endpoint is not repeated in an inbox stream opened later.
fn note_read(engine: &Engine, agent: AgentId, position: u64) {
    if engine.read_position(agent) + 1 == position {
        engine.record_presented(agent, position);
    }
}

/// A worker's answer that it could not do the work, with any status: a receive endpoint of this
/// protocol reports that with 400 and 500.
fn could_not(answer: &Result<HttpResponse, SendError>) -> Option<WorkerError> {
    let said =
        |answer: &&HttpResponse| !(300..400).contains(&answer.status) && answer.status != 410;
    let answer = answer.as_ref().ok().filter(said)?;
    let reply = Reply::read(&answer.body)?;
    WorkerError::from_http_answer(&reply, answer.status)
}

/// The receiver's own answer (R40), or why the message was not delivered.
pub fn read_answer(answer: &Result<HttpResponse, SendError>) -> Result<String, (Code, String)> {
    let unreachable = |why: String| Err((Code::AgentUnreachable, why));
    match answer {
        Ok(answer) if answer.status == 410 => {
            unreachable("the receiver's endpoint answered 410 Gone and was disabled".to_owned())
        }
        Ok(answer) if answer.status >= 500 || (300..400).contains(&answer.status) => {
            unreachable(format!("the receiver answered HTTP {}", answer.status))
        }
        Ok(answer) => match Reply::read(&answer.body) {
            Some(reply) => Ok(reply.raw().to_owned()),
            None => unreachable("the receiver's answer is not a JSON object".to_owned()),
        },
        Err(SendError::TimedOut) => {
            Err((Code::Timeout, "the receiver did not answer in time".to_owned()))
        }
        Err(SendError::InvalidResponse(_)) => {
            unreachable("the receiver's answer could not be read".to_owned())
        }
        // One text for both errors, so that callers cannot probe what the hub's resolver sees.
        Err(SendError::Blocked(_) | SendError::Unreachable(_)) => {
            unreachable("could not connect to the receiver".to_owned())
        }
    }
}

/// Whether an endpoint answered that it is gone (410).
pub fn is_gone(answer: &Result<HttpResponse, SendError>) -> bool {
    answer.as_ref().is_ok_and(|answer| answer.status == 410)
}

/// The sender and the envelope of a message.
pub struct OutgoingEnvelope<'n> {
    pub sender_id: Cow<'n, str>,
    pub envelope: Cow<'n, str>,
    pub annotations: Annotations,
    pub flags: MessageFlags,
}

impl<'n> OutgoingEnvelope<'n> {
    /// A message of any protocol, or a notice about a job; `None` for other notices.
    pub fn of(world: &'n World, notice: &'n Notice, job: Option<&Job>) -> Option<Self> {
        let NoticeKind::Message { from, protocol: words, body, .. } = &notice.news else {
            // Agents of other protocols get notices about work in their own protocol.
            world.agent(notice.to?).filter(|reader| reader.home == ID)?;
            let JobEnvelope { sender_id, envelope, annotations } =
                job_envelope(world, notice, job?)?;
            let (sender_id, envelope) = (sender_id.into(), envelope.into());
            return Some(Self { sender_id, envelope, annotations, flags: MessageFlags::default() });
        };
        if *words != ID {
            let envelope = foreign(world, *from, body).into();
            let sender_id = translate::address_of(world, *from);
            let bridge =
                from.and_then(|from| world.agent(from)).map(|agent| bridge::bridge_of_agent(agent));
            let annotations = Annotations { bridge, ..Annotations::default() };
            return Some(Self { sender_id, envelope, annotations, flags: MessageFlags::default() });
        }
        let (envelope, marks) = read_stored_message(body);
        Some(Self {
            sender_id: sender(world, *from, envelope),
            envelope: envelope.into(),
            annotations: Annotations::default(),
            flags: marks,
        })
    }
}

/// The sender as registered; for an unregistered sender, the one the envelope names.
fn sender<'n>(world: &'n World, from: Option<AgentId>, envelope: &'n str) -> Cow<'n, str> {
    if from.is_some() {
        return translate::address_of(world, from);
    }
    let said = ijson::read(envelope.as_bytes()).ok();
    let said = said.as_ref().and_then(|said| said.get("sender_id")).map(|id| id.value().clone());
    match said {
        Some(JsonValue::String(name)) => name,
        _ => "".into(),
    }
}

/// A message from an agent of another protocol, as an envelope. A string becomes its text, anything
/// else its JSON.
fn foreign(world: &World, from: Option<AgentId>, body: &str) -> String {
    let json = ijson::read(body.as_bytes());
    let said = match json.as_ref().map(|json| json.value()) {
        Ok(JsonValue::String(said)) => said.as_ref(),
        _ => body,
    };
    ObjectWriter::new()
        .text("chorus_version", VERSION)
        .text("sender_id", &translate::address_of(world, from))
        .text("original_text", said)
        .text("sender_culture", "en")
        .finish()
}

/// Appends a notice as an event. A notice that has no form here, has expired (R49) or is obsolete
/// appends nothing.
pub fn write_event(
    out: &mut Vec<u8>,
    context: &RelayContext,
    world: &World,
    notice: &Notice,
    job: Option<&Job>,
    format: Option<EnvelopeFormat>,
) {
    if is_expired(context, notice) || is_obsolete(&notice.news, job) {
        return;
    }
    let Some(outbound) = OutgoingEnvelope::of(world, notice, job) else { return };
    let trace = context.state.trace_ids.of(notice.id);
    let mut buffer = [0; uuid::fmt::Hyphenated::LENGTH];
    let message = MessageEvent {
        position: notice.position,
        trace_id: trace.hyphenated().encode_lower(&mut buffer),
        sender_id: &outbound.sender_id,
        envelope: &outbound.envelope,
        at: notice.at,
        format,
        annotations: &outbound.annotations,
        flags: outbound.flags,
    };
    message.write(out);
}

/// Until when the loop guard holds a message back (R89), if that is in the future.
pub fn held_until(news: &NoticeKind, at: Timestamp, now: Timestamp) -> Option<Timestamp> {
    let NoticeKind::Message { protocol: ID, body, .. } = news else { return None };
    let until = at.plus(read_stored_message(body).1.loop_guard?);
    (until > now).then_some(until)
}

/// Whether a message's retention time is over.
pub fn is_expired(context: &RelayContext, notice: &Notice) -> bool {
    notice.at.plus(context.state.settings.retention) <= context.engine.now()
}

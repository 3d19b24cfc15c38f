//! Deliveries to agents' endpoints, and how their answers are read.

use rialto_core::command::{Command, JobRef};
use rialto_core::id::AgentId;
use rialto_core::job::Job;
use rialto_core::notice::{Delivery, NoticeKind};
use rialto_engine::Engine;
use rialto_engine::delivery::egress::{HttpResponse, SendError};
use rialto_engine::delivery::{
    AttemptResult, AttemptStatus, DeliveryEncoder, OutboundRequest, RESPONSE_BYTES_MAX,
};

use super::codes::Code;
use super::reply::Reply;
use super::wording::is_obsolete;
use super::{letter, receive, record, work};
use crate::adapter::HubContext;

/// Encodes deliveries for agents of this protocol.
pub struct RelayEncoder {
    pub context: HubContext,
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
        let expired = push.at.plus(self.context.relay.settings.retention) <= engine.now();
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
        let trace = self.context.relay.trace_ids.of(push.notice).to_string();
        let body = engine.with_world(|world| {
            let format = world.agent(agent).and_then(|agent| record::envelope_format(agent));
            let said = letter::OutgoingEnvelope::of(world, &notice, job)?;
            Some(receive::write_annotated_receive_body(
                &said.envelope,
                format,
                &trace,
                &said.annotations,
            ))
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
            let order = work::report_failure(job, worker, &said, engine.now());
            return AttemptResult {
                status: AttemptStatus::Delivered { reply: None },
                commands: vec![order],
            };
        }
        let arrived = match read_answer(answer) {
            Ok(reply) => AttemptStatus::Delivered { reply: Some(reply) },
            Err(_) if is_gone(answer) => AttemptStatus::EndpointGone,
            Err((_, why)) => AttemptStatus::Failed(why),
        };
        let commands = match (&arrived, given) {
            // The worker has the job, and answers it with its own message.
            (AttemptStatus::Delivered { .. }, Some((job, worker))) => {
                note_read(engine, worker, push.position);
                vec![Command::Start { job: JobRef::Id(job.id), by: worker }]
            }
            _ => Vec::new(),
        };
        AttemptResult { status: arrived, commands }
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
fn could_not(answer: &Result<HttpResponse, SendError>) -> Option<work::WorkerError> {
    let said =
        |answer: &&HttpResponse| !(300..400).contains(&answer.status) && answer.status != 410;
    let answer = answer.as_ref().ok().filter(said)?;
    let reply = Reply::read(&answer.body)?;
    work::WorkerError::from_http_answer(&reply, answer.status)
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

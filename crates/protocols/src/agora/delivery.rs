//! Notices as envelopes, signed by their sender, or by the hub for agents of other protocols; and
//! their deliveries to agents' endpoints: the envelope as body, its receipt in a header.
//!
//! Reading a notice twice gives the same envelope: its id and time are the notice's, so no reader
//! sees two messages under one id. The receipt is signed anew each time and states that the
//! envelope was on time.

use std::borrow::Cow;

use rialto_core::alias::Protocol;
use rialto_core::id::AgentId;
use rialto_core::job::progress::ResultPart;
use rialto_core::job::{Cause, Job, Offer, Requester, Selection, State};
use rialto_core::notice::{Delivery, Notice, NoticeKind};
use rialto_core::time::Millis;
use rialto_core::world::World;
use rialto_engine::Engine;
use rialto_engine::delivery::egress::{HttpResponse, SendError};
use rialto_engine::delivery::{
    AttemptResult, DeliveryEncoder, OutboundRequest, RESPONSE_BYTES_MAX,
};
use uuid::Uuid;

use super::AgoraContext;
use super::adapter::bridged_agent_signer;
use super::hub_envelope::{sign_as, signable_object, signable_value, signed_receipt};
use super::stored_envelope::StoredEnvelope;
use super::translate::foreign_id;
use super::wire::envelope::{Bridge, MessageType};
use super::wire::error::{Code, Failure};
use super::wire::payload::{self, ResultPayload, ResultStatus, TIMEOUT_MAX};
use super::wire::receipt::{self, Receipt};
use super::wire::signature::{SignedMessage, UnsignedEnvelope};
use super::wire::status::MessageStatus;
use super::{ID, directory};
use crate::adapter::inbox_stream::JobsById;
use crate::adapter::{delivery_result, fidelity};
use crate::kit::ed25519::PublicKey;
use crate::kit::object::ObjectWriter;
use crate::kit::{ijson, raw_json};

/// The duration in an offer at a listed price, when the agent gave none.
const ETA: Millis = Millis(0);

/// An envelope and its receipt, both as text.
pub struct OutgoingEnvelope<'n> {
    pub envelope: Cow<'n, str>,
    pub receipt: String,
}

/// A notice as an envelope; `None` when this protocol has no message for it.
pub fn notice_envelope<'n>(
    context: &AgoraContext,
    notice: &'n Notice,
    job: Option<&Job>,
) -> Option<OutgoingEnvelope<'n>> {
    let reader = notice.to?;
    let to = key_in(context, reader);
    let pen = EnvelopeWriter { context, notice, reader };
    let (signed, id, sender) = match &notice.news {
        NoticeKind::Message { protocol: words, body, .. } if *words == ID => {
            let stored = StoredEnvelope::read(body)?;
            let receipt = signed_receipt(context, &stored.receipt(notice.at)?, to);
            return Some(OutgoingEnvelope { envelope: stored.envelope().into(), receipt });
        }
        NoticeKind::Message { from, protocol: words, body, .. } => {
            pen.message(*from, *words, body)?
        }
        _ => JobEnvelopeWriter { pen, job: job? }.said()?,
    };
    let receipt = Receipt {
        message_id: &id,
        message_sender: sender,
        received_at: notice.at,
        sha256: signed.sha256(),
    };
    let receipt = signed_receipt(context, &receipt, to);
    Some(OutgoingEnvelope { envelope: signed.text.into(), receipt })
}

/// The same, for a notice whose job is among `jobs`.
pub fn notice_envelope_among<'n>(
    context: &AgoraContext,
    notice: &'n Notice,
    jobs: &JobsById,
) -> Option<OutgoingEnvelope<'n>> {
    let job = notice.news.job().and_then(|id| jobs.get(&id));
    notice_envelope(context, notice, job.map(|job| &**job))
}

/// An agent's key in this protocol.
fn key_in(context: &AgoraContext, agent: AgentId) -> Option<PublicKey> {
    context.engine.with_world(|world| PublicKey::parse(world.alias_of(agent, ID)?).ok())
}

/// Writes the envelope of one notice to its reader.
#[derive(Clone, Copy)]
struct EnvelopeWriter<'v> {
    context: &'v AgoraContext,
    notice: &'v Notice,
    reader: AgentId,
}

/// Writes the envelope of a notice about a job of the reader.
struct JobEnvelopeWriter<'v> {
    pen: EnvelopeWriter<'v>,
    job: &'v Job,
}

type WrittenEnvelope = (SignedMessage, String, PublicKey);

impl EnvelopeWriter<'_> {
    /// A message from an agent of another protocol, in that protocol's own form. It is delivered
    /// even though this protocol has no such message.
    fn message(
        &self,
        from: Option<AgentId>,
        words: Protocol,
        body: &str,
    ) -> Option<WrittenEnvelope> {
        let payload = ObjectWriter::new()
            .text("status", "message")
            .text("protocol", words.as_str())
            .raw("message", &signable_value(raw_json::verbatim(body).get()))
            .finish();
        match from {
            Some(from) => self.held(from, MessageType::Status, self.name(), &payload),
            None => self.own(MessageType::Status, &payload),
        }
    }

    /// The id of the envelope of this notice.
    fn name(&self) -> String {
        const SPACE: Uuid = Uuid::from_u128(0x2f8d_2f4c_7d2e_5b0e_8c53_a60a_70c1_e001);
        Uuid::new_v5(&SPACE, &self.notice.id.0.to_be_bytes()).to_string()
    }

    /// An envelope of the hub itself.
    fn own(&self, kind: MessageType, payload: &str) -> Option<WrittenEnvelope> {
        let (id, at) = (self.name(), self.notice.at);
        let to = key_in(self.context, self.reader);
        let signed = sign_as(self.context, &id, at, kind, payload, to);
        Some((signed, id, self.context.state.signer.key()))
    }

    /// An envelope of an agent without a key of this protocol, signed with the key that the hub
    /// holds for it (R70).
    fn held(
        &self,
        by: AgentId,
        kind: MessageType,
        id: String,
        payload: &str,
    ) -> Option<WrittenEnvelope> {
        let agent = self.context.engine.with_world(|world| world.agent(by).cloned())?;
        // The hub never signs for an agent that has its own key.
        if agent.home == ID {
            return None;
        }
        let composer =
            bridged_agent_signer(self.context.engine.hub_secret(), agent.home, &agent.native_id);
        let bridge = Bridge {
            hub: self.context.state.signer.did(),
            protocol: agent.home.as_str(),
            agent: &agent.native_id,
        };
        let draft = UnsignedEnvelope {
            id: &id,
            timestamp: self.notice.at,
            kind,
            payload,
            recipient: key_in(self.context, self.reader),
            hub: None,
            bridge: Some(bridge),
        };
        let signed = composer.sign(&draft).ok()?;
        Some((signed, id, composer.key()))
    }
}

impl JobEnvelopeWriter<'_> {
    fn said(&self) -> Option<WrittenEnvelope> {
        let job = self.job;
        match &self.pen.notice.news {
            NoticeKind::Assigned { .. } => match self.winning() {
                Some(offer) => self.accept(offer),
                None => self.request(),
            },
            NoticeKind::OfferRequested { .. } => self.request(),
            NoticeKind::OfferReceived { place, .. } => self.offer(self.offer_at(*place)?),
            NoticeKind::OfferLost { place, .. } => {
                let name = &self.offer_at(*place)?.name;
                let request = foreign_id(job);
                let payload = MessageStatus::offer_closed(name, &request).write();
                self.pen.own(MessageType::Status, &payload)
            }
            NoticeKind::Ended { .. } => self.ended(),
            NoticeKind::Unassigned { .. } => {
                self.pen.own(MessageType::Error, &self.failure().payload())
            }
            NoticeKind::PriceAgreed { place, .. } => self.accept(self.offer_at(*place)?),
            NoticeKind::Progress { report, .. } | NoticeKind::OriginalProgress { report, .. } => {
                self.part(report.update.part.as_ref()?)
            }
            NoticeKind::Step { .. }
            | NoticeKind::LogEntry { .. }
            | NoticeKind::RequesterMessage { .. }
            | NoticeKind::InputRequested { .. }
            | NoticeKind::InputProvided { .. }
            | NoticeKind::Accepted { .. }
            | NoticeKind::ApprovalRequested { .. }
            | NoticeKind::Queued { .. }
            | NoticeKind::Message { .. } => None,
        }
    }

    /// The reader's offer that was accepted: the lowest in an auction, the newest where the
    /// requester chooses.
    fn winning(&self) -> Option<&Offer> {
        let own = |offer: &&Offer| offer.by == self.pen.reader && !offer.name.is_empty();
        let mut own = self.job.candidates.offers.iter().filter(own);
        match self.job.selection {
            Selection::Auction { .. } => own.min_by_key(|offer| offer.price),
            Selection::Offers => own.next_back(),
            _ => None,
        }
    }

    fn offer_at(&self, place: u32) -> Option<&Offer> {
        self.job.candidates.offers.get(usize::try_from(place).ok()?)
    }

    /// A REQUEST for a job of another protocol, signed with the key that the hub holds for the
    /// requester.
    fn request(&self) -> Option<WrittenEnvelope> {
        let job = self.job;
        let Requester::Agent(requester) = job.request.requester else { return None };
        let resource = self.resource();
        // The time in which the worker must respond. The same each time the notice is read.
        let left = job.request.deadline.since(self.pen.notice.at).min(job.request.lease);
        let timeout = left.0.clamp(1, TIMEOUT_MAX.0);
        let bid = job.max_payment();
        let budget = (!bid.is_zero()).then(|| ObjectWriter::new().credits("max", bid).finish());
        let payload = ObjectWriter::new()
            .text("resource", &resource)
            .raw("params", &signable_object(&job.request.input, "input"))
            .maybe_raw("budget", budget.as_deref())
            .integer("timeout", timeout)
            .finish();
        let payload = with_meta(payload, fidelity::extras(job).as_deref());
        self.pen.held(requester, MessageType::Request, job.uuid.to_string(), &payload)
    }

    /// The resource of the reader's skill as it is listed, otherwise one made from the job's skill.
    fn resource(&self) -> String {
        let job = self.job;
        let listed = |world: &World| {
            let agent = world.agent(self.pen.reader)?;
            Some(directory::resource_of_skill(agent.home, agent.skill_for(job)?))
        };
        let listed = self.pen.context.engine.with_world(listed);
        listed.unwrap_or_else(|| directory::resource_from_name(&job.request.skill))
    }

    fn offer(&self, offer: &Offer) -> Option<WrittenEnvelope> {
        let request_id = foreign_id(self.job);
        let payload = payload::Offer {
            request_id: &request_id,
            cost: offer.price,
            ttl: offer.valid_until.since(offer.at),
            eta: offer.eta.unwrap_or(ETA),
        };
        self.pen.held(offer.by, MessageType::Offer, offer.name.clone(), &payload.write())
    }

    /// The hub accepts a price for a requester whose protocol cannot do so (B9).
    fn accept(&self, offer: &Offer) -> Option<WrittenEnvelope> {
        let Requester::Agent(requester) = self.job.request.requester else { return None };
        let payload = ObjectWriter::new().text("offer_id", &offer.name).finish();
        self.pen.held(requester, MessageType::Accept, self.pen.name(), &payload)
    }

    /// A part of the result of a worker of another protocol (R42). Progress without a part has no
    /// message.
    fn part(&self, part: &ResultPart) -> Option<WrittenEnvelope> {
        let payload = part_payload(self.job, part);
        self.pen.held(self.job.worker()?, MessageType::Result, self.pen.name(), &payload)
    }

    fn ended(&self) -> Option<WrittenEnvelope> {
        let (job, id) = (self.job, self.pen.name());
        let report = job.result.as_ref()?;
        let bridged = job.worker().filter(|worker| self.home_of(*worker) != Some(ID));
        if report.ok {
            let data = signable_object(report.output.as_deref().unwrap_or("{}"), "result");
            let request_id = foreign_id(job);
            let status = ResultStatus::Success;
            let payload = ResultPayload { request_id: &request_id, status, data: &data }.write();
            return self.pen.held(job.worker()?, MessageType::Result, id, &payload);
        }
        let payload = self.failure().payload();
        match bridged.filter(|_| job.state == State::Failed) {
            Some(worker) => self.pen.held(worker, MessageType::Error, id, &payload),
            None => self.pen.own(MessageType::Error, &payload),
        }
    }

    /// Why the job has no result, by the book's table of refusals.
    fn failure(&self) -> Failure {
        let report = self.job.result.as_ref();
        let cause = report.and_then(|report| report.cause).unwrap_or(Cause::TimedOut);
        let code = match cause {
            // The same request again would lack the same input.
            Cause::NoAnswer if self.job.state == State::Failed => Code::BadRequest,
            Cause::TimedOut | Cause::WithinGracePeriod | Cause::NoAnswer => Code::Timeout,
            Cause::NoSuchSkill => Code::NotFound,
            Cause::BudgetTooLow | Cause::Payment => Code::PaymentRequired,
            Cause::Offline | Cause::NoWorkerLeft | Cause::UnknownFate => Code::Unavailable,
            Cause::InputMisfit => Code::BadRequest,
            Cause::Policy => Code::Unauthorized,
            Cause::Execution | Cause::Unusable | Cause::WorkerLeft | Cause::Cancelled => {
                Code::Internal
            }
        };
        let text = report.and_then(|report| report.text.clone());
        let text = text.unwrap_or_else(|| "the request timed out".to_owned());
        Failure::new(code, text).for_request(&foreign_id(self.job))
    }

    fn home_of(&self, agent: AgentId) -> Option<Protocol> {
        self.pen.context.engine.with_world(|world| world.agent(agent).map(|agent| agent.home))
    }
}

/// The payload of a RESULT that is only a part.
pub fn part_payload(job: &Job, part: &ResultPart) -> String {
    let (request_id, data) = (foreign_id(job), signable_object(&part.content, "result"));
    ResultPayload { request_id: &request_id, status: ResultStatus::Partial, data: &data }.write()
}

/// Adds members of the other protocol that have no counterpart here as `meta` (B11).
pub fn with_meta(payload: String, extras: Option<&str>) -> String {
    let Some(extras) = extras else { return payload };
    match ijson::read(payload.as_bytes()) {
        Ok(json) => ObjectWriter::copy_without(&json, &["meta"])
            .raw("meta", &signable_value(extras))
            .finish(),
        Err(_) => payload,
    }
}

/// Encodes deliveries for agents of this protocol.
pub struct AgoraEncoder {
    pub context: AgoraContext,
}

impl DeliveryEncoder for AgoraEncoder {
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
        let notice = push.to_notice();
        let envelope = notice_envelope(&self.context, &notice, job)?;
        let header = (receipt::HEADER.to_owned(), receipt::to_header(&envelope.receipt));
        Some(OutboundRequest {
            url: push.url.clone(),
            body: envelope.envelope.into_owned().into(),
            id: delivery_id(push),
            headers: vec![header],
            response_max: RESPONSE_BYTES_MAX,
        })
    }

    fn prefers_streams(&self) -> bool {
        true
    }

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
    const SPACE: Uuid = Uuid::from_u128(0x6b2f_0b3c_8f6e_5d1a_9d5e_a60a_70c1_e000);
    Uuid::new_v5(&SPACE, &push.notice.0.to_be_bytes()).to_string()
}

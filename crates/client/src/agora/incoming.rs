//! Received envelopes. One is trusted if its signature is valid, it was fresh when received, and it
//! is not addressed to another agent. The response to a posted envelope is one too.

use std::time::Duration;

use reqwest::StatusCode;
use rialto_core::time::{Millis, Timestamp};
use rialto_protocols::agora::wire::envelope;
use rialto_protocols::agora::wire::receipt::{self, ReceiptError};
use rialto_protocols::agora::wire::status::RequestState;
use rialto_protocols::agora::{Bridge, Envelope, Failure, MessageType, Proof, prove};
use rialto_protocols::kit::ed25519::PublicKey;

use super::payload::EnvelopePayload;
use crate::call::CallError;
use crate::origin_client::{Reply, refusal_from_body};
use crate::webhook_signature::VerifyError;

/// A message from another agent or the hub.
#[derive(Clone, Debug)]
pub struct IncomingEnvelope {
    /// Its position in the inbox; `None` if it did not come from one.
    pub position: Option<u64>,
    /// The sender's id for it.
    pub id: String,
    /// The sender.
    pub sender: PublicKey,
    /// The message type.
    pub kind: MessageType,
    /// The recipient, if it names one; it is then the reader.
    pub recipient: Option<PublicKey>,
    /// The payload.
    pub payload: EnvelopePayload,
    /// When the hub received it, or when it arrived here.
    pub received_at: Timestamp,
    /// Protocol and name of an agent for which the hub signs, as the envelope claims (R70). Any
    /// sender can claim that; check `held_by` in the sender's directory entry.
    pub bridged: Option<(String, String)>,
    raw: String,
}

/// Why an envelope cannot be trusted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TrustError {
    /// It is malformed, not signed by its sender, or not fresh.
    #[error("the envelope is refused: {}", .0.message)]
    Envelope(Box<Failure>),
    /// Its receipt does not prove it.
    #[error("{0}")]
    Receipt(Box<ReceiptError>),
    /// There is no receipt.
    #[error("the envelope has no receipt from the hub")]
    NoReceipt,
    /// It is signed for another receiver.
    #[error("the envelope is addressed to another recipient")]
    WrongRecipient,
    /// A delivery that is not from the hub.
    #[error("{0}")]
    Delivery(VerifyError),
    /// The text does not contain an envelope.
    #[error("not an envelope with a receipt: {0}")]
    Unreadable(String),
}

impl From<Failure> for TrustError {
    fn from(failure: Failure) -> Self {
        Self::Envelope(Box::new(failure))
    }
}

/// The reader's key and the hub's key.
#[derive(Clone, Copy, Debug)]
pub(super) struct TrustContext {
    pub(super) me: PublicKey,
    pub(super) hub: PublicKey,
    pub(super) window: Millis,
}

impl IncomingEnvelope {
    /// The whole envelope as received.
    pub fn raw(&self) -> &str {
        &self.raw
    }

    /// Accepts an envelope that its hub's receipt proves, however old it is by now.
    pub(super) fn verify_receipt(
        text: &str,
        receipt: Option<&str>,
        position: Option<u64>,
        reader: TrustContext,
    ) -> Result<Self, TrustError> {
        let json = envelope::read_json(text.as_bytes())?;
        let envelope = Envelope::read(&json)?;
        let receipt = receipt.ok_or(TrustError::NoReceipt)?;
        let (proof, at) = receipt::check_receipt(receipt, reader.hub, &envelope, reader.window)
            .map_err(|why| TrustError::Receipt(Box::new(why)))?;
        Self::of(&envelope, &proof, position, at, reader)
    }

    /// Accepts an envelope that arrives right now.
    pub(super) fn verify_fresh(
        text: &str,
        now: Timestamp,
        reader: TrustContext,
    ) -> Result<Self, TrustError> {
        let json = envelope::read_json(text.as_bytes())?;
        let envelope = Envelope::read(&json)?;
        let proof = prove(&envelope, now, reader.window)?;
        Self::of(&envelope, &proof, None, now, reader)
    }

    fn of(
        envelope: &Envelope<'_>,
        proof: &Proof,
        position: Option<u64>,
        received_at: Timestamp,
        reader: TrustContext,
    ) -> Result<Self, TrustError> {
        let is_ours = |key| key == reader.me || key == reader.hub;
        if envelope.recipient.is_some_and(|key| !is_ours(key)) {
            return Err(TrustError::WrongRecipient);
        }
        let bridge = envelope.bridge.and_then(Bridge::read);
        let of_hub = |bridge: &Bridge<'_>| PublicKey::parse(bridge.hub) == Ok(reader.hub);
        Ok(Self {
            position,
            id: envelope.id.to_owned(),
            sender: proof.key,
            kind: envelope.message_type,
            recipient: envelope.recipient.filter(|key| *key == reader.me),
            payload: EnvelopePayload::read(envelope)?,
            received_at,
            bridged: bridge
                .filter(of_hub)
                .map(|bridge| (bridge.protocol.to_owned(), bridge.agent.to_owned())),
            raw: envelope.raw().to_owned(),
        })
    }
}

/// A server's response to an envelope.
#[derive(Clone, Debug)]
pub enum EnvelopeResponse {
    /// The server accepted it.
    Accepted(Acceptance),
    /// An agent answered while the call waited.
    Answered(Box<IncomingEnvelope>),
}

/// A server's acceptance of an envelope.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Acceptance {
    /// The id of the envelope.
    pub message_id: Option<String>,
    /// The request it belongs to.
    pub request_id: Option<String>,
    /// The state of that request.
    pub state: Option<RequestState>,
    /// The hub's own id of the job that was created (header `Rialto-Job`).
    pub job: Option<String>,
}

impl EnvelopeResponse {
    /// Reads the response to the envelope with this id.
    pub(super) fn read(
        reply: Reply,
        id: &str,
        now: Timestamp,
        reader: TrustContext,
    ) -> Result<Self, CallError> {
        let job = reply.header("rialto-job").map(str::to_owned);
        let text = reply.text()?;
        let incoming = match IncomingEnvelope::verify_fresh(&text, now, reader) {
            Ok(incoming) => incoming,
            // Another agent's answer to an envelope that is sent again may be old by now. Only the
            // inbox has the receipt that proves it.
            Err(TrustError::Envelope(_)) if is_of_another(&text, reader.hub) => {
                let message_id = Some(id.to_owned());
                return Ok(Self::Accepted(Acceptance { message_id, job, ..Acceptance::default() }));
            }
            Err(why) => return Err(CallError::unreadable(why)),
        };
        match incoming.payload {
            EnvelopePayload::MessageStatus { status, message_id, request_id, state }
                if incoming.sender == reader.hub && status == "accepted" =>
            {
                if message_id.as_deref().is_some_and(|named| named != id) {
                    return Err(CallError::unreadable("it is about another message"));
                }
                Ok(Self::Accepted(Acceptance { message_id, request_id, state, job }))
            }
            _ => Ok(Self::Answered(Box::new(incoming))),
        }
    }
}

/// Whether an envelope claims a sender other than the server.
fn is_of_another(text: &str, hub: PublicKey) -> bool {
    let Ok(json) = envelope::read_json(text.as_bytes()) else { return false };
    Envelope::read(&json).is_ok_and(|envelope| {
        let answers = matches!(
            envelope.message_type,
            MessageType::Offer | MessageType::Result | MessageType::Error
        );
        answers && envelope.sender != hub
    })
}

/// Reads a refusal: an ERROR of this protocol, or the response of a proxy in between.
pub(super) fn parse_refusal(status: StatusCode, after: Option<Duration>, body: &[u8]) -> CallError {
    let Some(EnvelopePayload::Error {
        number, message, retryable, retry_after_seconds, hint, ..
    }) = error_payload(body)
    else {
        return refusal_from_body(status, after, body);
    };
    CallError::Refused {
        status: status.as_u16(),
        code: format!("ERROR {number}"),
        message,
        retryable: retryable.unwrap_or(false),
        hint,
        retry_after: after.or(retry_after_seconds.map(Duration::from_secs)),
    }
}

fn error_payload(body: &[u8]) -> Option<EnvelopePayload> {
    let json = envelope::read_json(body).ok()?;
    let envelope = Envelope::read(&json).ok()?;
    EnvelopePayload::read(&envelope).ok().filter(|_| envelope.message_type == MessageType::Error)
}

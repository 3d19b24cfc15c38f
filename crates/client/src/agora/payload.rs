//! The payload of an envelope, as owned values.

use rialto_core::money::Credits;
use rialto_core::number::parse_integer;
use rialto_core::time::Millis;
use rialto_protocols::agora::wire::hello::{Hello, Welcome};
use rialto_protocols::agora::wire::payload::{Payload, ResultStatus};
use rialto_protocols::agora::wire::status::{
    AgentStatus, MessageStatus, RequestState, StatusUpdate,
};
use rialto_protocols::agora::{Code, Envelope, Failure, MessageType};
use rialto_protocols::kit::ijson;

/// The payload of an envelope. Objects in it are JSON text as received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EnvelopePayload {
    /// An agent announces itself.
    Hello {
        /// The nonce that the WELCOME repeats.
        nonce: Option<String>,
        /// The agent's name.
        name: Option<String>,
    },
    /// The response to a HELLO.
    Welcome {
        /// The nonce of the HELLO.
        nonce: Option<String>,
        /// The id of the HELLO.
        hello_id: Option<String>,
        /// The sender of the HELLO.
        hello_sender: Option<String>,
    },
    /// The status of an agent, if it is one of the five defined words.
    AgentStatus {
        /// The status.
        status: Option<AgentStatus>,
    },
    /// The status of a message: `accepted`, `received`, `offer_closed`.
    MessageStatus {
        /// The status.
        status: String,
        /// The message's id.
        message_id: Option<String>,
        /// The REQUEST it belongs to.
        request_id: Option<String>,
        /// The state of that request.
        state: Option<RequestState>,
    },
    /// A request for work. `has_budget` distinguishes a budget without a maximum from no budget.
    Request {
        /// The kind of work.
        resource: String,
        /// The input.
        params: String,
        /// Whether there is a budget.
        has_budget: bool,
        /// The maximum price.
        max: Option<Credits>,
        /// The currency.
        currency: Option<String>,
        /// The time limit.
        timeout: Option<Millis>,
    },
    /// An offer.
    Offer {
        /// The REQUEST.
        request_id: String,
        /// The price.
        cost: Credits,
        /// How long the offer is valid.
        ttl: Millis,
        /// How long the work would take.
        eta: Millis,
    },
    /// An accepted offer.
    Accept {
        /// The OFFER.
        offer_id: String,
        /// Proof of a payment made elsewhere.
        payment_proof: Option<String>,
    },
    /// A result, complete or partial.
    Result {
        /// The REQUEST.
        request_id: String,
        /// Whether it is complete.
        status: ResultStatus,
        /// The result.
        data: String,
    },
    /// An error. `number` is the code as received, which may be none of the eight.
    Error {
        /// The error code.
        code: Code,
        /// The code's number as received.
        number: i64,
        /// The error message, for people to read.
        message: String,
        /// The REQUEST it is about.
        request_id: Option<String>,
        /// The message it is about.
        message_id: Option<String>,
        /// Whether the same may succeed later.
        retryable: Option<bool>,
        /// When to retry.
        retry_after_seconds: Option<u64>,
        /// Advice on what to do.
        hint: Option<String>,
    },
}

impl EnvelopePayload {
    /// Reads the payload of an envelope.
    pub(super) fn read(envelope: &Envelope<'_>) -> Result<Self, Failure> {
        Ok(match Payload::read(envelope)? {
            Payload::Request(request) => Self::Request {
                resource: request.resource.to_owned(),
                params: request.params.to_owned(),
                has_budget: request.budget.is_some(),
                max: request.budget.and_then(|budget| budget.max),
                currency: request.budget.and_then(|budget| budget.currency.map(str::to_owned)),
                timeout: request.timeout,
            },
            Payload::Offer(offer) => Self::Offer {
                request_id: offer.request_id.to_owned(),
                cost: offer.cost,
                ttl: offer.ttl,
                eta: offer.eta,
            },
            Payload::Accept(accept) => Self::Accept {
                offer_id: accept.offer_id.to_owned(),
                payment_proof: accept.payment_proof.map(str::to_owned),
            },
            Payload::Result(output) => Self::Result {
                request_id: output.request_id.to_owned(),
                status: output.status,
                data: output.data.to_owned(),
            },
            Payload::Error(failed) => Self::Error {
                code: failed.code(),
                number: failed.number,
                message: failed.message.to_owned(),
                request_id: failed.request_id.map(str::to_owned),
                message_id: text(envelope, "message_id"),
                retryable: failed.retryable,
                retry_after_seconds: number(envelope, "retry_after_seconds"),
                hint: failed.hint.map(str::to_owned),
            },
            Payload::Unspecified => open(envelope),
        })
    }

    /// The request this is about, if the payload names it. An ACCEPT names only the offer.
    pub fn request_id(&self) -> Option<&str> {
        match self {
            Self::Offer { request_id, .. } | Self::Result { request_id, .. } => Some(request_id),
            Self::Error { request_id, .. } | Self::MessageStatus { request_id, .. } => {
                request_id.as_deref()
            }
            _ => None,
        }
    }
}

/// HELLO, WELCOME and STATUS may contain anything; only known fields are read (R60).
fn open(envelope: &Envelope<'_>) -> EnvelopePayload {
    let owned = |text: Option<&str>| text.map(str::to_owned);
    let payload = envelope.payload;
    match envelope.message_type {
        MessageType::Hello => {
            let hello = Hello::read(payload).unwrap_or_default();
            EnvelopePayload::Hello { nonce: owned(hello.nonce), name: owned(hello.name) }
        }
        MessageType::Welcome => {
            let welcome = Welcome::read(payload).unwrap_or_default();
            EnvelopePayload::Welcome {
                nonce: owned(welcome.nonce),
                hello_id: owned(welcome.hello_id),
                hello_sender: owned(welcome.hello_sender),
            }
        }
        _ => match MessageStatus::read(payload) {
            Some(notice) => EnvelopePayload::MessageStatus {
                status: notice.status.to_owned(),
                message_id: owned(notice.message_id),
                request_id: owned(notice.request_id),
                state: notice.state,
            },
            None => EnvelopePayload::AgentStatus {
                status: StatusUpdate::read(payload).ok().and_then(|update| update.status),
            },
        },
    }
}

fn text(envelope: &Envelope<'_>, name: &str) -> Option<String> {
    match envelope.payload.get(name)?.value() {
        ijson::JsonValue::String(text) => Some(text.clone().into_owned()),
        _ => None,
    }
}

fn number(envelope: &Envelope<'_>, name: &str) -> Option<u64> {
    match envelope.payload.get(name)?.value() {
        ijson::JsonValue::Number(digits) => {
            parse_integer(digits).ok().and_then(|value| u64::try_from(value).ok())
        }
        _ => None,
    }
}

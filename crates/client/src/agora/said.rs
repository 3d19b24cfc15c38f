//! What an envelope says, kept: the payloads of the wire as values of their own.

use rialto_core::money::Credits;
use rialto_core::number::integer;
use rialto_core::time::Millis;
use rialto_protocols::agora::payload::result::Status;
use rialto_protocols::agora::payload::{Heard, Hello, Mood, Notice, Payload, Welcome};
use rialto_protocols::agora::thread::State;
use rialto_protocols::agora::{Code, Envelope, Failure, Kind};
use rialto_protocols::kit::ijson;

/// What an envelope says. Objects in it are JSON text as it came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    /// Somebody is here.
    Hello {
        /// What a WELCOME to it repeats.
        nonce: Option<String>,
        /// What it is called.
        name: Option<String>,
    },
    /// A HELLO was heard.
    Welcome {
        /// That of the HELLO.
        nonce: Option<String>,
        /// The id of the HELLO.
        hello_id: Option<String>,
        /// Who said it.
        hello_sender: Option<String>,
    },
    /// How an agent is doing, if it said so in one of the five words.
    Doing {
        /// The word.
        mood: Option<Mood>,
    },
    /// What became of a message: `accepted`, `received`, `offer_closed`.
    Notice {
        /// The word for it.
        status: String,
        /// The message.
        message_id: Option<String>,
        /// The REQUEST it belongs to.
        request_id: Option<String>,
        /// How that one stands.
        state: Option<State>,
    },
    /// Work is wanted. `has_budget` tells a budget without a maximum from none.
    Request {
        /// What kind of work.
        resource: String,
        /// The input.
        params: String,
        /// Whether anything is paid.
        has_budget: bool,
        /// The most that is paid.
        max: Option<Credits>,
        /// In what.
        currency: Option<String>,
        /// How long it may take.
        timeout: Option<Millis>,
    },
    /// Terms.
    Offer {
        /// The REQUEST.
        request_id: String,
        /// What it would cost.
        cost: Credits,
        /// How long the offer stands.
        ttl: Millis,
        /// How long the work would take.
        eta: Millis,
    },
    /// Terms taken.
    Accept {
        /// The OFFER.
        offer_id: String,
        /// Proof of a payment made elsewhere.
        payment_proof: Option<String>,
    },
    /// Work done, or a part of it.
    Result {
        /// The REQUEST.
        request_id: String,
        /// Whether this is all of it.
        status: Status,
        /// The work.
        data: String,
    },
    /// Work not done. `number` is the code as it came, which may be none of the eight.
    Error {
        /// What it means.
        code: Code,
        /// The code as it came.
        number: i64,
        /// The same for people.
        message: String,
        /// The REQUEST it is about.
        request_id: Option<String>,
        /// The message it is about.
        message_id: Option<String>,
        /// Whether the same may succeed later.
        retryable: Option<bool>,
        /// When.
        retry_after_seconds: Option<u64>,
        /// What to do about it.
        hint: Option<String>,
    },
}

impl Said {
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
            Payload::Open => open(envelope),
        })
    }

    /// The request this is about, as far as it says so itself. An ACCEPT names only the offer.
    pub fn request_id(&self) -> Option<&str> {
        match self {
            Self::Offer { request_id, .. } | Self::Result { request_id, .. } => Some(request_id),
            Self::Error { request_id, .. } | Self::Notice { request_id, .. } => {
                request_id.as_deref()
            }
            _ => None,
        }
    }
}

/// HELLO, WELCOME and STATUS may say anything; what is ours is read (R60).
fn open(envelope: &Envelope<'_>) -> Said {
    let owned = |text: Option<&str>| text.map(str::to_owned);
    let payload = envelope.payload;
    match envelope.kind {
        Kind::Hello => {
            let hello = Hello::read(payload).unwrap_or_default();
            Said::Hello { nonce: owned(hello.nonce), name: owned(hello.name) }
        }
        Kind::Welcome => {
            let welcome = Welcome::read(payload).unwrap_or_default();
            Said::Welcome {
                nonce: owned(welcome.nonce),
                hello_id: owned(welcome.hello_id),
                hello_sender: owned(welcome.hello_sender),
            }
        }
        _ => match Notice::read(payload) {
            Some(notice) => Said::Notice {
                status: notice.status.to_owned(),
                message_id: owned(notice.message_id),
                request_id: owned(notice.request_id),
                state: notice.state,
            },
            None => Said::Doing { mood: Heard::read(payload).ok().and_then(|heard| heard.status) },
        },
    }
}

fn text(envelope: &Envelope<'_>, name: &str) -> Option<String> {
    match envelope.payload.get(name)?.kind() {
        ijson::Kind::Text(text) => Some(text.clone().into_owned()),
        _ => None,
    }
}

fn number(envelope: &Envelope<'_>, name: &str) -> Option<u64> {
    match envelope.payload.get(name)?.kind() {
        ijson::Kind::Number(digits) => {
            integer(digits).ok().and_then(|value| u64::try_from(value).ok())
        }
        _ => None,
    }
}

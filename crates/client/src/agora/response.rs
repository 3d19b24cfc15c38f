//! The response to a posted envelope: the server's acceptance, or another agent's answer.

use std::time::Duration;

use reqwest::{RequestBuilder, StatusCode};
use rialto_core::time::Timestamp;
use rialto_protocols::agora::wire::envelope;
use rialto_protocols::agora::wire::status::RequestState;
use rialto_protocols::agora::{BODY_MAX, Envelope, MessageType};
use rialto_protocols::kit::ed25519::PublicKey;

use super::incoming::{IncomingEnvelope, TrustContext, TrustError};
use super::payload::EnvelopePayload;
use crate::call::{CallError, refusal_from_text, retry_after};
use crate::origin_client;

/// Maximum response size: the longest envelope plus this much.
const ANSWER_BYTES_MAX: usize = BODY_MAX + (64 << 10);

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

/// The body of a successful response.
#[derive(Debug)]
pub(super) struct ServerResponse {
    pub(super) text: String,
    pub(super) job: Option<String>,
}

impl ServerResponse {
    pub(super) async fn send(request: RequestBuilder) -> Result<Self, CallError> {
        let mut answer = origin_client::send(request).await?;
        let (status, after) = (answer.status(), retry_after(answer.headers()));
        let job = answer.headers().get("rialto-job").and_then(|job| job.to_str().ok());
        let job = job.map(str::to_owned);
        let body = origin_client::read_body(&mut answer, ANSWER_BYTES_MAX).await?;
        if !status.is_success() {
            return Err(parse_refusal(status, after, &body));
        }
        let wrong = |_| CallError::Unreadable("it is not valid UTF-8".to_owned());
        Ok(Self { text: String::from_utf8(body).map_err(wrong)?, job })
    }

    /// Reads the response to the envelope with this id.
    pub(super) fn read(
        self,
        id: &str,
        now: Timestamp,
        reader: TrustContext,
    ) -> Result<EnvelopeResponse, CallError> {
        let incoming = match IncomingEnvelope::verify_fresh(&self.text, now, reader) {
            Ok(incoming) => incoming,
            // Another agent's answer to an envelope that is sent again may be old by now. Only the
            // inbox has the receipt that proves it.
            Err(TrustError::Envelope(_)) if is_of_another(&self.text, reader.hub) => {
                let accepted =
                    Acceptance { message_id: Some(id.to_owned()), ..Acceptance::default() };
                return Ok(EnvelopeResponse::Accepted(Acceptance { job: self.job, ..accepted }));
            }
            Err(why) => return Err(CallError::Unreadable(why.to_string())),
        };
        match incoming.payload {
            EnvelopePayload::MessageStatus { status, message_id, request_id, state }
                if incoming.sender == reader.hub && status == "accepted" =>
            {
                if message_id.as_deref().is_some_and(|named| named != id) {
                    return Err(CallError::Unreadable("it is about another message".to_owned()));
                }
                Ok(EnvelopeResponse::Accepted(Acceptance {
                    message_id,
                    request_id,
                    state,
                    job: self.job,
                }))
            }
            _ => Ok(EnvelopeResponse::Answered(Box::new(incoming))),
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
    }) = error(body)
    else {
        return refusal_from_text(status, after, &String::from_utf8_lossy(body));
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

fn error(body: &[u8]) -> Option<EnvelopePayload> {
    let json = envelope::read_json(body).ok()?;
    let envelope = Envelope::read(&json).ok()?;
    EnvelopePayload::read(&envelope).ok().filter(|_| envelope.message_type == MessageType::Error)
}

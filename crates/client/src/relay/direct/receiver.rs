//! Receives envelopes, independent of the transport: verify, pass to the handler, respond.

use std::future::Future;

use http::HeaderMap;
use rialto_core::time::Timestamp;
use rialto_protocols::kit::ijson;
use rialto_protocols::relay::wire::envelope::{InvalidEnvelope, read_receive_body};
use rialto_protocols::relay::wire::reply;
use rialto_protocols::relay::{Code, InvalidBody};

use super::super::message::EnvelopeContents;
use super::super::turn_dedup::TurnDedup;
use crate::webhook_signature::{ID_HEADER, WebhookSecret};

/// A valid envelope that was received.
#[derive(Clone, Debug)]
pub struct ReceivedEnvelope {
    /// The sender as claimed. Only a signature proves which server confirms it.
    pub sender_id: String,
    /// The sending server's id for the message, if it came from one.
    pub trace_id: Option<String>,
    /// The contents, unwrapped from an A2A message if there was one.
    pub contents: EnvelopeContents,
}

/// A valid envelope that the receiver could not process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdaptError {
    /// The error detail for the sender.
    pub detail: String,
}

/// The response to the caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReceiverResponse {
    /// The HTTP status.
    pub status: u16,
    /// JSON text.
    pub body: Vec<u8>,
}

/// Verifies envelopes and passes valid ones to a handler.
#[derive(Debug)]
pub struct EnvelopeReceiver<H> {
    handle: H,
    secret: Option<WebhookSecret>,
    once: Option<TurnDedup>,
}

impl<H, F> EnvelopeReceiver<H>
where
    H: Fn(ReceivedEnvelope) -> F,
    F: Future<Output = Result<(), AdaptError>>,
{
    /// A receiver that passes every valid envelope to `handle`.
    pub fn new(handle: H) -> Self {
        Self { handle, secret: None, once: None }
    }

    /// Accepts only deliveries signed with this secret, which is returned at registration.
    pub fn with_secret(mut self, secret: WebhookSecret) -> Self {
        self.secret = Some(secret);
        self
    }

    /// Handles the same turn of a conversation once, and gives repeats the same response. A turn
    /// that could not be adapted may be tried again.
    pub fn deduplicate_turns(mut self) -> Self {
        self.once = Some(TurnDedup::default());
        self
    }

    /// Handles one request.
    pub async fn receive(
        &self,
        headers: &HeaderMap,
        body: &[u8],
        now: Timestamp,
    ) -> ReceiverResponse {
        // The signature covers the raw bytes, so it is checked before they are parsed.
        if let Some(secret) = &self.secret
            && let Err(why) = secret.verify(headers, body, now)
        {
            return ReceiverResponse {
                status: 401,
                ..error_response(Code::InvalidEnvelope, &why.to_string())
            };
        }
        let received = match read_envelope(headers, body) {
            Ok(received) => received,
            Err(InvalidEnvelope { body: bad, code }) => {
                return error_response(code, &bad.message());
            }
        };
        match self.hand_over(received).await {
            Ok(()) => ReceiverResponse { status: 200, body: reply::OK.into() },
            Err(why) => error_response(Code::AdaptationFailed, &why.detail),
        }
    }

    async fn hand_over(&self, received: ReceivedEnvelope) -> Result<(), AdaptError> {
        let once = self.once.as_ref();
        let turn = once.and_then(|once| once.entry(&received.sender_id, &received.contents));
        match turn {
            // A repeat that arrives while the first is being handled waits for it.
            Some(turn) => turn.get_or_try_init(|| (self.handle)(received)).await.copied(),
            None => (self.handle)(received).await,
        }
    }
}

impl ReceiverResponse {
    /// The response to a body that is not an envelope at all, with a plain HTTP status.
    pub(super) fn invalid(status: u16, detail: &str) -> Self {
        Self { status, ..error_response(Code::InvalidEnvelope, detail) }
    }
}

/// Parses a request as an envelope.
pub(super) fn read_envelope(
    headers: &HeaderMap,
    body: &[u8],
) -> Result<ReceivedEnvelope, InvalidEnvelope> {
    let json = ijson::read(body).map_err(InvalidBody::from)?;
    let envelope = read_receive_body(&json)?;
    let trace_id = headers.get(ID_HEADER).and_then(|id| id.to_str().ok());
    Ok(ReceivedEnvelope {
        // The canonical form, so that an agent has one name here however it is spelled.
        sender_id: envelope.sender.canonical().to_owned(),
        trace_id: trace_id.map(str::to_owned),
        contents: EnvelopeContents::read(envelope.raw()),
    })
}

/// The response to an envelope that cannot be used.
pub(super) fn error_response(code: Code, detail: &str) -> ReceiverResponse {
    ReceiverResponse { status: code.status(), body: reply::write_error_reply(code, detail) }
}

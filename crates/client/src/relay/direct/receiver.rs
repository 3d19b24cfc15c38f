//! Receives envelopes: verify, pass to the handler, respond.

use std::future::Future;
use std::sync::Arc;

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, Method};
use rialto_core::time::Timestamp;
use rialto_protocols::kit::ijson;
use rialto_protocols::relay::wire::envelope::{InvalidEnvelope, read_receive_body};
use rialto_protocols::relay::wire::reply;
use rialto_protocols::relay::{Code, InvalidBody};
use tokio::net::TcpListener;

use super::BODY_BYTES_MAX;
use crate::clock;
use crate::http_server::{self, BodyError, HttpResponse};
use crate::relay::message::EnvelopeContents;
use crate::relay::turn_dedup::TurnDedup;
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
        let entry = once.and_then(|once| once.entry(&received.sender_id, &received.contents));
        match entry {
            // A repeat that arrives while the first is being handled waits for it.
            Some(entry) => entry.get_or_try_init(|| (self.handle)(received)).await.copied(),
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

impl From<ReceiverResponse> for HttpResponse {
    fn from(ReceiverResponse { status, body }: ReceiverResponse) -> Self {
        Self::new(status, body)
    }
}

/// The response to a method other than POST.
pub(super) fn post_only() -> HttpResponse {
    let refused = ReceiverResponse::invalid(405, "envelopes are sent with POST");
    HttpResponse { allow: Some("POST"), ..refused.into() }
}

/// Receives envelopes on every path of `listener` until `stop`; running requests may then finish.
/// If a caller disconnects, the handling of its envelope is cancelled.
pub async fn serve<H, F>(
    listener: TcpListener,
    receiver: EnvelopeReceiver<H>,
    stop: impl Future<Output = ()>,
) where
    H: Fn(ReceivedEnvelope) -> F + Send + Sync + 'static,
    F: Future<Output = Result<(), AdaptError>> + Send,
{
    let receiver = Arc::new(receiver);
    let answer = move |head: Parts, body: Result<Bytes, BodyError>| {
        let receiver = Arc::clone(&receiver);
        async move {
            match body {
                _ if head.method != Method::POST => post_only(),
                Ok(body) => receiver.receive(&head.headers, &body, clock::now()).await.into(),
                Err(error) => body_error_response(error).into(),
            }
        }
    };
    http_server::serve(listener, BODY_BYTES_MAX, answer, stop).await;
}

/// The response to a body that could not be read.
pub(super) fn body_error_response(error: BodyError) -> ReceiverResponse {
    match error {
        BodyError::TooLong => ReceiverResponse::invalid(
            413,
            &format!("the body has more than {BODY_BYTES_MAX} bytes"),
        ),
        BodyError::Incomplete => ReceiverResponse::invalid(400, "the body is incomplete"),
        BodyError::TimedOut => ReceiverResponse::invalid(408, "the body took too long"),
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

//! The receiving side, apart from how the bytes arrive: check, hand over, answer.

use std::future::Future;

use http::HeaderMap;
use rialto_core::time::Timestamp;
use rialto_protocols::kit::ijson;
use rialto_protocols::relay::envelope::Invalid;
use rialto_protocols::relay::{Bad, Code, receive, reply};

use super::super::message::Contents;
use super::super::once::Once;
use super::super::signature::{ID_HEADER, WebhookSecret};

/// An envelope that arrived and is good.
#[derive(Clone, Debug)]
pub struct Received {
    /// Who says to have written it. Only a signature proves which server vouches for that.
    pub sender_id: String,
    /// The sending server's name for the message, if it came from one.
    pub trace_id: Option<String>,
    /// What it says, taken out of its A2A message if it came in one.
    pub contents: Contents,
}

/// A good envelope that its receiver could not make anything of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CannotAdapt {
    /// What the sender is told.
    pub detail: String,
}

/// What the caller is answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// JSON text.
    pub body: Vec<u8>,
}

/// Checks envelopes and hands the good ones over.
#[derive(Debug)]
pub struct Receiver<H> {
    handle: H,
    secret: Option<WebhookSecret>,
    once: Option<Once>,
}

impl<H, F> Receiver<H>
where
    H: Fn(Received) -> F,
    F: Future<Output = Result<(), CannotAdapt>>,
{
    /// A receiver that gives every good envelope to `handle`.
    pub fn new(handle: H) -> Self {
        Self { handle, secret: None, once: None }
    }

    /// Takes only what is signed with this secret, the one from registration.
    pub fn signed_with(mut self, secret: WebhookSecret) -> Self {
        self.secret = Some(secret);
        self
    }

    /// Hands over the same turn of a conversation once, and answers its repeats alike. A turn that
    /// could not be adapted may be tried again.
    pub fn once_per_turn(mut self) -> Self {
        self.once = Some(Once::default());
        self
    }

    /// Takes one request.
    pub async fn receive(&self, headers: &HeaderMap, body: &[u8], now: Timestamp) -> Answer {
        // A signature is about the bytes that arrived, so it comes before they are read.
        if let Some(secret) = &self.secret
            && let Err(why) = secret.verify(headers, body, now)
        {
            return Answer { status: 401, ..refuse(Code::InvalidEnvelope, &why.to_string()) };
        }
        let received = match read(headers, body) {
            Ok(received) => received,
            Err(Invalid { bad, code }) => return refuse(code, &bad.message()),
        };
        match self.hand_over(received).await {
            Ok(()) => Answer { status: 200, body: reply::OK.into() },
            Err(why) => refuse(Code::AdaptationFailed, &why.detail),
        }
    }

    async fn hand_over(&self, received: Received) -> Result<(), CannotAdapt> {
        let once = self.once.as_ref();
        let turn = once.and_then(|once| once.turn(&received.sender_id, &received.contents));
        match turn {
            // Whoever comes while the first is being handled waits for it.
            Some(turn) => turn.get_or_try_init(|| (self.handle)(received)).await.copied(),
            None => (self.handle)(received).await,
        }
    }
}

impl Answer {
    /// An answer to what cannot be an envelope at all, with a status of HTTP's own.
    pub(super) fn unusable(status: u16, detail: &str) -> Self {
        Self { status, ..refuse(Code::InvalidEnvelope, detail) }
    }
}

/// Reads what arrived as an envelope.
pub(super) fn read(headers: &HeaderMap, body: &[u8]) -> Result<Received, Invalid> {
    let json = ijson::read(body).map_err(Bad::from)?;
    let envelope = receive::read(&json)?;
    let trace_id = headers.get(ID_HEADER).and_then(|id| id.to_str().ok());
    Ok(Received {
        // One agent has one name here, however it is spelled.
        sender_id: envelope.sender.canonical().to_owned(),
        trace_id: trace_id.map(str::to_owned),
        contents: Contents::read(envelope.raw()),
    })
}

/// What is said to an envelope that cannot be used.
pub(super) fn refuse(code: Code, detail: &str) -> Answer {
    Answer { status: code.status(), body: reply::error(code, detail) }
}

//! The response to a posted envelope: the server's acceptance, or another agent's answer.

use std::time::Duration;

use reqwest::{RequestBuilder, StatusCode};
use rialto_core::time::Timestamp;
use rialto_protocols::agora::thread::State;
use rialto_protocols::agora::{BODY_MAX, Envelope, Kind, envelope};
use rialto_protocols::kit::ed25519::PublicKey;

use super::incoming::{Incoming, NotTrusted, Reader};
use super::payload::Said;
use crate::call::{CallError, refused, retry_after};
use crate::origin_client;

/// Maximum response size: the longest envelope plus this much.
const ANSWER_BYTES_MAX: usize = BODY_MAX + (64 << 10);

/// A server's response to an envelope.
#[derive(Clone, Debug)]
pub enum Answered {
    /// The server accepted it.
    Accepted(Accepted),
    /// An agent answered while the call waited.
    By(Box<Incoming>),
}

/// A server's acceptance of an envelope.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Accepted {
    /// The id of the envelope.
    pub message_id: Option<String>,
    /// The request it belongs to.
    pub request_id: Option<String>,
    /// The state of that request.
    pub state: Option<State>,
    /// The hub's own id of the job that was created (header `Rialto-Job`).
    pub job: Option<String>,
}

/// The body of a successful response.
#[derive(Debug)]
pub(super) struct Posted {
    pub(super) text: String,
    pub(super) job: Option<String>,
}

impl Posted {
    pub(super) async fn ask(request: RequestBuilder) -> Result<Self, CallError> {
        let mut answer = origin_client::send(request).await?;
        let (status, after) = (answer.status(), retry_after(answer.headers()));
        let job = answer.headers().get("rialto-job").and_then(|job| job.to_str().ok());
        let job = job.map(str::to_owned);
        let body = origin_client::body(&mut answer, ANSWER_BYTES_MAX).await?;
        if !status.is_success() {
            return Err(refusal(status, after, &body));
        }
        let wrong = |_| CallError::Unreadable("it is not valid UTF-8".to_owned());
        Ok(Self { text: String::from_utf8(body).map_err(wrong)?, job })
    }

    /// Reads the response to the envelope with this id.
    pub(super) fn read(
        self,
        id: &str,
        now: Timestamp,
        reader: Reader,
    ) -> Result<Answered, CallError> {
        let incoming = match Incoming::fresh(&self.text, now, reader) {
            Ok(incoming) => incoming,
            // Another agent's answer to an envelope that is sent again may be old by now. Only the
            // inbox has the receipt that proves it.
            Err(NotTrusted::Envelope(_)) if is_of_another(&self.text, reader.hub) => {
                let accepted = Accepted { message_id: Some(id.to_owned()), ..Accepted::default() };
                return Ok(Answered::Accepted(Accepted { job: self.job, ..accepted }));
            }
            Err(why) => return Err(CallError::Unreadable(why.to_string())),
        };
        match incoming.said {
            Said::Notice { status, message_id, request_id, state }
                if incoming.sender == reader.hub && status == "accepted" =>
            {
                if message_id.as_deref().is_some_and(|named| named != id) {
                    return Err(CallError::Unreadable("it is about another message".to_owned()));
                }
                Ok(Answered::Accepted(Accepted { message_id, request_id, state, job: self.job }))
            }
            _ => Ok(Answered::By(Box::new(incoming))),
        }
    }
}

/// Whether an envelope claims a sender other than the server.
fn is_of_another(text: &str, hub: PublicKey) -> bool {
    let Ok(json) = envelope::parse(text.as_bytes()) else { return false };
    Envelope::read(&json).is_ok_and(|envelope| {
        let answers = matches!(envelope.kind, Kind::Offer | Kind::Result | Kind::Error);
        answers && envelope.sender != hub
    })
}

/// Reads a refusal: an ERROR of this protocol, or the response of a proxy in between.
pub(super) fn refusal(status: StatusCode, after: Option<Duration>, body: &[u8]) -> CallError {
    let Some(Said::Error { number, message, retryable, retry_after_seconds, hint, .. }) =
        error(body)
    else {
        return refused(status, after, &String::from_utf8_lossy(body));
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

fn error(body: &[u8]) -> Option<Said> {
    let json = envelope::parse(body).ok()?;
    let envelope = Envelope::read(&json).ok()?;
    Said::read(&envelope).ok().filter(|_| envelope.kind == Kind::Error)
}

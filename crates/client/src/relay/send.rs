//! Sends messages, with retries; each is counted once. And the outcome of a message, as the server
//! reports it.

use std::time::Duration;

use reqwest::header::{ACCEPT, CONTENT_TYPE};
use reqwest::{Method, RequestBuilder};
use rialto_protocols::relay::Code;
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

use super::message::ValidEnvelope;
use super::server::{Server, ServerResponse};
use super::stream::ReplyStream;
use crate::call::CallError;
use crate::{ids, json, origin_client, retry};

/// The `Accept` header of a request for a streaming reply.
const LIVE_OR_WHOLE: &str = "text/event-stream, application/json";

/// A message to send, and its receiver.
#[derive(Clone, Copy, Debug)]
pub struct SendRequest<'a> {
    /// The receiver's address; a short name is resolved by the server.
    pub receiver_id: &'a str,
    /// The message.
    pub envelope: &'a ValidEnvelope,
    /// An idempotency key, so that the server accepts the message once however often it arrives.
    /// The client generates one by default; set your own to be able to repeat the request later.
    pub idempotency_key: Option<&'a str>,
    /// It is a question about the job of its conversation, and not the result.
    pub question: bool,
}

/// A server's response to a request for a streaming reply.
#[derive(Debug)]
pub enum SendResponse {
    /// There is nothing to stream: the receiver has an inbox, or is offline.
    Complete(SentMessage),
    /// The receiver streams its reply.
    Streaming(Box<ReplyStream>),
}

/// How far a message got.
#[derive(Clone, Debug)]
pub enum DeliveryOutcome {
    /// It was sent to an open inbox (`delivered_sse`).
    DeliveredToInbox,
    /// The receiver's endpoint accepted it.
    Delivered {
        /// The endpoint's reply: JSON text.
        reply: Option<Box<RawValue>>,
    },
    /// It waits for the receiver.
    Queued,
    /// The receiver's endpoint did not accept it.
    Failed {
        /// `ERR_AGENT_UNREACHABLE`, `ERR_TIMEOUT`, or a server's own code.
        code: String,
        /// What happened, and what happens next.
        detail: String,
    },
    /// The server or the receiver refused it: nothing was stored or tried.
    Rejected(Rejection),
}

/// Why a server refused a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejection {
    /// The HTTP status: 200 if the server accepted the request and the receiver refused it.
    pub status: u16,
    /// The server's code.
    pub code: String,
    /// The error message, for people to read.
    pub message: String,
    /// Advice on what to do.
    pub hint: Option<String>,
    /// When to retry.
    pub retry_after: Option<Duration>,
}

/// A message that was sent, and its outcome.
#[derive(Clone, Debug)]
pub struct SentMessage {
    /// The outcome.
    pub outcome: DeliveryOutcome,
    /// The server's id for the message, unless it was rejected.
    pub trace_id: Option<String>,
    /// Whether it was slowed down because two agents seem to be in a loop.
    pub loop_guard: bool,
    /// Whether the server repeated its response to an earlier request with the same key.
    pub replayed: bool,
    /// Number of attempts.
    pub tries: u32,
}

#[derive(Deserialize)]
struct DeliveryBody {
    delivery: String,
    receiver_response: Option<Box<RawValue>>,
    error_code: Option<String>,
    detail: Option<String>,
    trace_id: Option<String>,
    #[serde(default)]
    loop_guard: bool,
}

/// A receiver's reply that refuses.
#[derive(Default, Deserialize)]
struct RefusalReply {
    error_code: Option<String>,
    detail: Option<String>,
}

impl Server {
    /// Sends a message. Temporary failures are retried (see [`super::RetryPolicy`]), always with the same
    /// idempotency key.
    pub async fn send(&self, message: &SendRequest<'_>) -> Result<SentMessage, CallError> {
        let key = idempotency_key(message)?;
        let attempt = || async {
            sent_message(ServerResponse::send(self.send_request(message, &key, false)?).await)
        };
        let delay = |result: &Result<SentMessage, CallError>, tries| {
            self.retry().delay_before_retry(tries, min_retry_delay(result)?)
        };
        let (result, tries) = retry::repeat(attempt, delay).await;
        result.map(|sent| SentMessage { tries, ..sent })
    }

    /// Sends a message and streams the receiver's reply. There are no retries, because parts of the
    /// reply may already have been read.
    pub async fn send_streaming(
        &self,
        message: &SendRequest<'_>,
    ) -> Result<SendResponse, CallError> {
        let request = self.send_request(message, &idempotency_key(message)?, true)?;
        let answer = origin_client::send(request).await?;
        let kind = answer.headers().get(CONTENT_TYPE).map(|kind| kind.as_bytes().to_vec());
        let is_stream = kind.is_some_and(|kind| kind.starts_with(b"text/event-stream"));
        if answer.status().is_success() && is_stream {
            return Ok(SendResponse::Streaming(Box::new(ReplyStream::new(answer))));
        }
        sent_message(ServerResponse::from_response(answer).await).map(SendResponse::Complete)
    }

    fn send_request(
        &self,
        message: &SendRequest<'_>,
        key: &str,
        live: bool,
    ) -> Result<RequestBuilder, CallError> {
        let url = self.url(&self.paths().send)?;
        let (receiver, envelope) = (json!(message.receiver_id), message.envelope.as_str());
        let stream = if live { r#","stream":true"# } else { "" };
        let question = if message.question { r#","question":true"# } else { "" };
        let body =
            format!(r#"{{"receiver_id":{receiver},"envelope":{envelope}{stream}{question}}}"#);
        let request = if live {
            self.client().streaming_request(Method::POST, url)?.header(ACCEPT, LIVE_OR_WHOLE)
        } else {
            self.client().request(Method::POST, url)?
        };
        let request = request.header(CONTENT_TYPE, "application/json");
        Ok(request.header("idempotency-key", key).body(body))
    }
}

/// Reads the outcome of the message from a response.
fn sent_message(answer: Result<ServerResponse, CallError>) -> Result<SentMessage, CallError> {
    match answer {
        Ok(answer) => SentMessage::read(answer.data.get(), answer.replayed),
        Err(error) => SentMessage::from_refusal(error),
    }
}

/// The request's idempotency key, or a new one.
fn idempotency_key(message: &SendRequest<'_>) -> Result<String, CallError> {
    match message.idempotency_key {
        Some(key) => Ok(key.to_owned()),
        None => ids::random_bytes::<16>().map(hex::encode),
    }
}

/// The minimum wait before the same message can succeed; `None` if it cannot.
fn min_retry_delay(result: &Result<SentMessage, CallError>) -> Option<Duration> {
    let busy = |status: u16, after: Option<Duration>| match status {
        429 | 503 => after,
        _ => None,
    };
    match result {
        // A replayed failure is final: a retry with the same key changes nothing, and one with
        // another key would create a second message.
        Ok(SentMessage { outcome: DeliveryOutcome::Failed { .. }, replayed: true, .. }) => None,
        Ok(SentMessage { outcome: DeliveryOutcome::Failed { code, .. }, .. }) => {
            match Code::read(code) {
                Some(Code::AgentUnreachable | Code::Timeout) => Some(Duration::ZERO),
                _ => None,
            }
        }
        Ok(SentMessage { outcome: DeliveryOutcome::Rejected(why), .. }) => {
            busy(why.status, why.retry_after)
        }
        Ok(_) => None,
        Err(CallError::Refused { status, retry_after, .. }) => busy(*status, *retry_after),
        Err(_) => None,
    }
}

impl SentMessage {
    /// Parses the data of a response, or of a stream's last event.
    pub(super) fn read(data: &str, replayed: bool) -> Result<Self, CallError> {
        let wire: DeliveryBody = json::parse(data.as_bytes())?;
        let outcome = match wire.delivery.as_str() {
            "delivered_sse" => DeliveryOutcome::DeliveredToInbox,
            "delivered" => DeliveryOutcome::Delivered { reply: wire.receiver_response },
            "queued" => DeliveryOutcome::Queued,
            "failed" => DeliveryOutcome::Failed {
                code: wire.error_code.unwrap_or_default(),
                detail: wire.detail.unwrap_or_default(),
            },
            "rejected" => DeliveryOutcome::Rejected(Rejection::read(&wire)),
            other => return Err(CallError::unreadable(format!("delivery is {other:?}"))),
        };
        let DeliveryBody { trace_id, loop_guard, .. } = wire;
        Ok(Self { outcome, trace_id, loop_guard, replayed, tries: 1 })
    }

    /// Converts a refused request: servers may also report a failed delivery as an HTTP error. A
    /// refusal that is not about the message stays an error.
    pub(super) fn from_refusal(error: CallError) -> Result<Self, CallError> {
        let CallError::Refused { status, code, message, hint, retry_after, .. } = error else {
            return Err(error);
        };
        let outcome = match Code::read(&code) {
            Some(Code::AgentUnreachable | Code::Timeout) => {
                DeliveryOutcome::Failed { code, detail: message }
            }
            _ if (400..500).contains(&status) => {
                DeliveryOutcome::Rejected(Rejection { status, code, message, hint, retry_after })
            }
            _ => {
                let retryable = Code::read(&code).is_some_and(Code::is_retryable);
                return Err(CallError::Refused {
                    status,
                    code,
                    message,
                    retryable,
                    hint,
                    retry_after,
                });
            }
        };
        Ok(Self::from_outcome(outcome))
    }

    /// An outcome without further data.
    pub(super) fn from_outcome(outcome: DeliveryOutcome) -> Self {
        Self { outcome, trace_id: None, loop_guard: false, replayed: false, tries: 1 }
    }

    /// The protocol's word for the outcome.
    pub fn delivery_status(&self) -> &'static str {
        match self.outcome {
            DeliveryOutcome::DeliveredToInbox => "delivered_sse",
            DeliveryOutcome::Delivered { .. } => "delivered",
            DeliveryOutcome::Queued => "queued",
            DeliveryOutcome::Failed { .. } => "failed",
            DeliveryOutcome::Rejected(_) => "rejected",
        }
    }
}

impl Rejection {
    /// The receiver's refusal: the reason is in its reply or, without one, in the response itself.
    fn read(wire: &DeliveryBody) -> Self {
        let reply = wire.receiver_response.as_deref().map(|reply| reply.get().as_bytes());
        let reply: RefusalReply =
            reply.and_then(|reply| json::parse(reply).ok()).unwrap_or_default();
        let code = reply.error_code.or_else(|| wire.error_code.clone());
        let message = reply.detail.or_else(|| wire.detail.clone());
        Self {
            status: 200,
            code: code.unwrap_or_default(),
            message: message.unwrap_or_else(|| "the receiver gave no reason".to_owned()),
            hint: None,
            retry_after: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    fn refused(status: u16, code: &str, after_s: Option<u64>) -> Result<SentMessage, CallError> {
        SentMessage::from_refusal(testing::refused(status, code, true, after_s))
    }

    #[test]
    fn only_temporary_failures_are_retried() {
        let failed = |code: &str| format!(r#"{{"delivery":"failed","error_code":"{code}"}}"#);
        let unreadable = || Err(CallError::Unreadable(String::new()));
        let timed_out = || Err(CallError::TimedOut { url: String::new() });
        for (what, result, again) in [
            ("unreachable", SentMessage::read(&failed("ERR_AGENT_UNREACHABLE"), false), true),
            ("timeout", SentMessage::read(&failed("ERR_TIMEOUT"), false), true),
            ("remembered", SentMessage::read(&failed("ERR_TIMEOUT"), true), false),
            ("other failure", SentMessage::read(&failed("ERR_OTHER"), false), false),
            ("502", refused(502, "ERR_AGENT_UNREACHABLE", None), true),
            ("504", refused(504, "ERR_TIMEOUT", None), true),
            ("a proxy's 502", refused(502, "unknown", None), false),
            ("404", refused(404, "ERR_AGENT_NOT_FOUND", None), false),
            ("404 in a hurry", refused(404, "ERR_AGENT_NOT_FOUND", Some(1)), false),
            ("400", refused(400, "ERR_VALIDATION", None), false),
            ("401", refused(401, "ERR_UNAUTHORIZED", None), false),
            ("409", refused(409, "ERR_IN_PROGRESS", None), false),
            ("422", refused(422, "ERR_IDEMPOTENCY_CONFLICT", None), false),
            ("429", refused(429, "ERR_RATE_LIMITED", None), false),
            ("429 for a second", refused(429, "ERR_RATE_LIMITED", Some(1)), true),
            ("503", refused(503, "ERR_UNAVAILABLE", None), false),
            ("503 for a second", refused(503, "ERR_UNAVAILABLE", Some(1)), true),
            ("500", refused(500, "ERR_INTERNAL", Some(1)), false),
            ("queued", SentMessage::read(r#"{"delivery":"queued"}"#, false), false),
            ("delivered", SentMessage::read(r#"{"delivery":"delivered"}"#, false), false),
            ("unreadable", unreadable(), false),
            ("timed out", timed_out(), false),
        ] {
            assert_eq!(min_retry_delay(&result).is_some(), again, "{what}");
        }
    }

    #[test]
    fn every_outcome_has_its_word() {
        for (data, word) in [
            (r#"{"delivery":"delivered_sse","trace_id":"t"}"#, "delivered_sse"),
            (r#"{"delivery":"delivered","receiver_response":{"status":"ok"}}"#, "delivered"),
            (r#"{"delivery":"queued","trace_id":"t"}"#, "queued"),
            (r#"{"delivery":"failed","error_code":"ERR_TIMEOUT","detail":"late"}"#, "failed"),
            (r#"{"delivery":"rejected"}"#, "rejected"),
        ] {
            assert_eq!(SentMessage::read(data, false).expect(data).delivery_status(), word);
        }
        for data in ["{}", "[]", r#"{"delivery":"lost"}"#] {
            assert!(SentMessage::read(data, false).is_err(), "{data}");
        }
    }

    #[test]
    fn a_receivers_refusal_has_its_code_and_reason() {
        let reply = r#"{"status":"error","error_code":"ADAPTATION_FAILED","detail":"too dear"}"#;
        let data = format!(r#"{{"delivery":"rejected","receiver_response":{reply}}}"#);
        let DeliveryOutcome::Rejected(why) =
            SentMessage::read(&data, false).expect("an outcome").outcome
        else {
            panic!("it was rejected");
        };
        assert_eq!((why.status, why.code.as_str()), (200, "ADAPTATION_FAILED"));
        assert_eq!(why.message, "too dear");
        // Receivers may reply with anything.
        for reply in ["null", "[]", r#""no""#, r#"{"detail":7}"#] {
            let data = format!(r#"{{"delivery":"rejected","receiver_response":{reply}}}"#);
            assert_eq!(SentMessage::read(&data, false).expect(reply).delivery_status(), "rejected");
        }
    }
}

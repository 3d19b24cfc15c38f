//! The outcome of a message, as the server reports it.

use std::time::Duration;

use rialto_protocols::relay::Code;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::response::from_json;
use crate::call::CallError;

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

impl SentMessage {
    /// Parses the data of a response, or of a stream's last event.
    pub(super) fn read(data: &str, replayed: bool) -> Result<Self, CallError> {
        let wire: DeliveryBody = from_json(data.as_bytes())?;
        let outcome = match wire.delivery.as_str() {
            "delivered_sse" => DeliveryOutcome::DeliveredToInbox,
            "delivered" => DeliveryOutcome::Delivered { reply: wire.receiver_response },
            "queued" => DeliveryOutcome::Queued,
            "failed" => DeliveryOutcome::Failed {
                code: wire.error_code.unwrap_or_default(),
                detail: wire.detail.unwrap_or_default(),
            },
            "rejected" => DeliveryOutcome::Rejected(Rejection::read(&wire)),
            other => return Err(CallError::Unreadable(format!("delivery is {other:?}"))),
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
        let reply: RefusalReply = reply.and_then(|reply| from_json(reply).ok()).unwrap_or_default();
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
    fn a_receivers_no_is_told_with_its_code_and_reason() {
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

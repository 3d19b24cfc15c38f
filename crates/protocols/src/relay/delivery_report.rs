//! The delivery report of a message, as its sender gets it.

use super::codes::Code;
use super::shape::write_json_string;

/// The data of a refused message: nothing was stored or attempted.
pub const REJECTED: &str = r#"{"delivery":"rejected"}"#;

/// How far a message got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeliveryOutcome<'a> {
    /// Handed to an open inbox stream.
    Streamed,
    /// The receiver's endpoint accepted it and answered with this JSON object.
    Delivered {
        /// JSON text as received.
        reply: &'a str,
    },
    /// It waits for the receiver.
    Queued,
    /// The receiver's endpoint did not accept it.
    Failed {
        /// [`Code::AgentUnreachable`] or [`Code::Timeout`].
        code: Code,
        /// What happened, and what happens next.
        detail: &'a str,
    },
}

/// An accepted message, and its outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeliveryReport<'a> {
    /// How far it got.
    pub outcome: DeliveryOutcome<'a>,
    /// The message's public id.
    pub trace_id: &'a str,
    /// Whether it is held back because two agents seem to be in a loop (R89).
    pub loop_guard: bool,
}

impl DeliveryReport<'_> {
    /// The outcome on the wire.
    pub fn as_str(&self) -> &'static str {
        match self.outcome {
            DeliveryOutcome::Streamed => "delivered_sse",
            DeliveryOutcome::Delivered { .. } => "delivered",
            DeliveryOutcome::Queued => "queued",
            DeliveryOutcome::Failed { .. } => "failed",
        }
    }

    /// The HTTP status: a failed delivery is not a failed request (D1).
    pub fn status(&self) -> u16 {
        if self.outcome == DeliveryOutcome::Queued { 202 } else { 200 }
    }

    /// The approximate number of bytes [`Self::write`] adds.
    pub fn size_hint(&self) -> usize {
        let extra = match self.outcome {
            DeliveryOutcome::Delivered { reply } => reply.len() + 24,
            DeliveryOutcome::Failed { detail, .. } => detail.len() + 64,
            DeliveryOutcome::Streamed | DeliveryOutcome::Queued => 0,
        };
        // Both names, the longest outcome, the loop guard's flag.
        self.trace_id.len() + extra + 64
    }

    /// Writes the report as JSON.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"delivery\":\"");
        out.extend_from_slice(self.as_str().as_bytes());
        out.push(b'"');
        match self.outcome {
            DeliveryOutcome::Delivered { reply } => {
                out.extend_from_slice(b",\"receiver_response\":");
                out.extend_from_slice(reply.as_bytes());
            }
            DeliveryOutcome::Failed { code, detail } => {
                out.extend_from_slice(b",\"error_code\":");
                write_json_string(out, code.as_str());
                out.extend_from_slice(b",\"detail\":");
                write_json_string(out, detail);
            }
            DeliveryOutcome::Streamed | DeliveryOutcome::Queued => {}
        }
        out.extend_from_slice(b",\"trace_id\":");
        write_json_string(out, self.trace_id);
        if self.loop_guard {
            out.extend_from_slice(b",\"loop_guard\":true");
        }
        out.push(b'}');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(outcome: DeliveryOutcome<'_>) -> (u16, String) {
        let delivery = DeliveryReport { outcome, trace_id: "t-1", loop_guard: false };
        let mut out = Vec::with_capacity(delivery.size_hint());
        delivery.write(&mut out);
        assert_eq!(out.capacity(), delivery.size_hint(), "the size was enough");
        (delivery.status(), String::from_utf8(out).expect("text"))
    }

    #[test]
    fn every_outcome_is_told_as_the_book_has_it() {
        let presented = r#"{"delivery":"delivered_sse","trace_id":"t-1"}"#;
        assert_eq!(told(DeliveryOutcome::Streamed), (200, presented.to_owned()));
        let queued = r#"{"delivery":"queued","trace_id":"t-1"}"#;
        assert_eq!(told(DeliveryOutcome::Queued), (202, queued.to_owned()));
        let delivered =
            r#"{"delivery":"delivered","receiver_response":{ "status":"ok" },"trace_id":"t-1"}"#;
        let outcome = DeliveryOutcome::Delivered { reply: r#"{ "status":"ok" }"# };
        assert_eq!(told(outcome), (200, delivered.to_owned()));
        let failed = r#"{"delivery":"failed","error_code":"ERR_TIMEOUT","detail":"no \"answer\"","trace_id":"t-1"}"#;
        let outcome = DeliveryOutcome::Failed { code: Code::Timeout, detail: "no \"answer\"" };
        assert_eq!(told(outcome), (200, failed.to_owned()));
    }

    #[test]
    fn a_guarded_message_says_so() {
        let mut out = Vec::new();
        DeliveryReport { outcome: DeliveryOutcome::Queued, trace_id: "t", loop_guard: true }
            .write(&mut out);
        assert_eq!(out, br#"{"delivery":"queued","trace_id":"t","loop_guard":true}"#);
    }
}

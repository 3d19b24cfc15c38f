//! The receive endpoint's answer: `{"status":"ok"}`, or an error.
//!
//! If a receiver answers with any JSON object, it was reached (D13). The object goes back to the
//! sender unchanged.

use super::codes::Code;
use super::shape::write_json_string;
use crate::kit::ijson::{self, Json, JsonValue};

/// The answer of a receiver without an error.
pub const OK: &str = r#"{"status":"ok"}"#;

/// A receiver's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply<'a> {
    raw: &'a str,
    status: ReplyStatus,
}

/// The part of an answer that the protocol defines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReplyStatus {
    /// It accepted the envelope.
    Ok,
    /// It could not use the envelope.
    Error {
        /// One of the protocol's codes, or one of the receiver's own.
        code: String,
        /// Its description of the error.
        detail: String,
    },
    /// Anything the protocol does not define.
    Other,
}

impl<'a> Reply<'a> {
    /// Reads an answer; `None` if it is not a JSON object.
    pub fn read(body: &'a [u8]) -> Option<Self> {
        let json = ijson::read(body).ok()?;
        let JsonValue::Object(_) = json.value() else { return None };
        let member = |name| match json.get(name).map(Json::value) {
            Some(JsonValue::String(text)) => text.as_ref(),
            _ => "",
        };
        let said = match member("status") {
            "ok" => ReplyStatus::Ok,
            "error" => ReplyStatus::Error {
                code: member("error_code").to_owned(),
                detail: member("detail").to_owned(),
            },
            _ => ReplyStatus::Other,
        };
        Some(Self { raw: json.raw(), status: said })
    }

    /// The object as received.
    pub fn raw(&self) -> &'a str {
        self.raw
    }

    /// The part of it that the protocol defines.
    pub fn status(&self) -> &ReplyStatus {
        &self.status
    }
}

/// Writes the answer of a receiver that cannot use the envelope.
pub fn write_error_reply(code: Code, detail: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(detail.len() + 80);
    out.extend_from_slice(br#"{"status":"error","error_code":"#);
    write_json_string(&mut out, code.as_str());
    out.extend_from_slice(br#","detail":"#);
    write_json_string(&mut out, detail);
    out.push(b'}');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_object_is_an_answer() {
        let said = |body: &str| Reply::read(body.as_bytes()).map(|reply| reply.status);
        assert_eq!(said(" {\"status\":\"ok\"}\n"), Some(ReplyStatus::Ok));
        assert_eq!(said("{}"), Some(ReplyStatus::Other));
        assert_eq!(said(r#"{"status":1}"#), Some(ReplyStatus::Other));
        let empty = ReplyStatus::Error { code: String::new(), detail: String::new() };
        assert_eq!(said(r#"{"status":"error"}"#), Some(empty));
        for body in ["", "[]", "\"ok\"", "ok", "<html>", "null", "{\"a\":1"] {
            assert_eq!(said(body), None, "{body}");
        }
    }

    #[test]
    fn an_answer_is_kept_as_it_came() {
        let body = b" { \"status\" : \"ok\", \"n\":1.0 }\n";
        let reply = Reply::read(body).expect("an answer");
        assert_eq!(reply.raw(), "{ \"status\" : \"ok\", \"n\":1.0 }");
        assert_eq!(reply.status(), &ReplyStatus::Ok);
    }

    #[test]
    fn a_written_error_is_read_back() {
        let detail = "missing \"sender_culture\"\n";
        let body = write_error_reply(Code::InvalidEnvelope, detail);
        let said = Reply::read(&body).expect("an answer").status;
        let code = "INVALID_ENVELOPE".to_owned();
        assert_eq!(said, ReplyStatus::Error { code, detail: detail.to_owned() });
        assert_eq!(Reply::read(OK.as_bytes()).expect("an answer").status, ReplyStatus::Ok);
    }
}

//! The receive endpoint's answer: `{"status":"ok"}`, or an error.
//!
//! If a receiver answers with any JSON object, it was reached (D13). The object goes back to the
//! sender unchanged.

use super::codes::Code;
use super::shape::text;
use crate::kit::ijson::{self, Json, Kind};

/// The answer of a receiver without an error.
pub const OK: &str = r#"{"status":"ok"}"#;

/// A receiver's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply<'a> {
    raw: &'a str,
    said: Said,
}

/// The part of an answer that the protocol defines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
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
        let Kind::Object(_) = json.kind() else { return None };
        let member = |name| match json.get(name).map(Json::kind) {
            Some(Kind::Text(text)) => text.as_ref(),
            _ => "",
        };
        let said = match member("status") {
            "ok" => Said::Ok,
            "error" => Said::Error {
                code: member("error_code").to_owned(),
                detail: member("detail").to_owned(),
            },
            _ => Said::Other,
        };
        Some(Self { raw: json.raw(), said })
    }

    /// The object as received.
    pub fn raw(&self) -> &'a str {
        self.raw
    }

    /// The part of it that the protocol defines.
    pub fn said(&self) -> &Said {
        &self.said
    }
}

/// Writes the answer of a receiver that cannot use the envelope.
pub fn error(code: Code, detail: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(detail.len() + 80);
    out.extend_from_slice(br#"{"status":"error","error_code":"#);
    text(&mut out, code.as_str());
    out.extend_from_slice(br#","detail":"#);
    text(&mut out, detail);
    out.push(b'}');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_object_is_an_answer() {
        let said = |body: &str| Reply::read(body.as_bytes()).map(|reply| reply.said);
        assert_eq!(said(" {\"status\":\"ok\"}\n"), Some(Said::Ok));
        assert_eq!(said("{}"), Some(Said::Other));
        assert_eq!(said(r#"{"status":1}"#), Some(Said::Other));
        let empty = Said::Error { code: String::new(), detail: String::new() };
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
        assert_eq!(reply.said(), &Said::Ok);
    }

    #[test]
    fn a_written_error_is_read_back() {
        let detail = "missing \"sender_culture\"\n";
        let body = error(Code::InvalidEnvelope, detail);
        let said = Reply::read(&body).expect("an answer").said;
        let code = "INVALID_ENVELOPE".to_owned();
        assert_eq!(said, Said::Error { code, detail: detail.to_owned() });
        assert_eq!(Reply::read(OK.as_bytes()).expect("an answer").said, Said::Ok);
    }
}

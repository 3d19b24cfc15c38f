//! Errors as clients read them: every code, the wrong fields of an invalid body, and valid examples
//! that are shown for them.

use std::borrow::Cow;
use std::fmt;

use crate::kit::fields::Malformed;
use crate::kit::ijson::JsonError;

/// What went wrong, as defined in section 5 of the protocol's book.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Code {
    /// Body, query, envelope or card is invalid, or not valid JSON.
    Validation,
    /// The sender is not registered here.
    SenderNotRegistered,
    /// The endpoint's address is not allowed.
    EndpointBlocked,
    /// The key is missing, unknown or revoked.
    Unauthorized,
    /// An agent's key on an operator path.
    Forbidden,
    /// The key is not the sender's.
    SenderMismatch,
    /// The receiver blocks the sender.
    Blocked,
    /// The receiver, or the agent of the path, is unknown.
    AgentNotFound,
    /// No such path or message.
    NotFound,
    /// The path does not support this method.
    MethodNotAllowed,
    /// The id exists, or existed, and no key was sent.
    AgentIdTaken,
    /// The job of the conversation has ended, or was reassigned.
    WrongState,
    /// A key or turn was used before with another body.
    IdempotencyConflict,
    /// The first request with this key is still running.
    InProgress,
    /// The body is too long.
    PayloadTooLarge,
    /// The body is compressed.
    UnsupportedEncoding,
    /// Too many requests.
    RateLimited,
    /// The receiver has too many messages waiting.
    InboxFull,
    /// The receiver could not be reached.
    AgentUnreachable,
    /// The receiver did not answer in time.
    Timeout,
    /// The hub cannot write now.
    Unavailable,
    /// At a receive endpoint: the envelope is invalid.
    InvalidEnvelope,
    /// At a receive endpoint: the envelope has another version.
    UnsupportedVersion,
    /// At a receive endpoint: the envelope is valid but could not be adapted.
    AdaptationFailed,
}

impl Code {
    /// All codes.
    pub const ALL: [Self; 24] = [
        Self::Validation,
        Self::SenderNotRegistered,
        Self::EndpointBlocked,
        Self::Unauthorized,
        Self::Forbidden,
        Self::SenderMismatch,
        Self::Blocked,
        Self::AgentNotFound,
        Self::NotFound,
        Self::MethodNotAllowed,
        Self::AgentIdTaken,
        Self::WrongState,
        Self::IdempotencyConflict,
        Self::InProgress,
        Self::PayloadTooLarge,
        Self::UnsupportedEncoding,
        Self::RateLimited,
        Self::InboxFull,
        Self::AgentUnreachable,
        Self::Timeout,
        Self::Unavailable,
        Self::InvalidEnvelope,
        Self::UnsupportedVersion,
        Self::AdaptationFailed,
    ];

    /// The code on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Validation => "ERR_VALIDATION",
            Self::SenderNotRegistered => "ERR_SENDER_NOT_REGISTERED",
            Self::EndpointBlocked => "ERR_ENDPOINT_BLOCKED",
            Self::Unauthorized => "ERR_UNAUTHORIZED",
            Self::Forbidden => "ERR_FORBIDDEN",
            Self::SenderMismatch => "ERR_SENDER_MISMATCH",
            Self::Blocked => "ERR_BLOCKED",
            Self::AgentNotFound => "ERR_AGENT_NOT_FOUND",
            Self::NotFound => "ERR_NOT_FOUND",
            Self::MethodNotAllowed => "ERR_METHOD_NOT_ALLOWED",
            Self::AgentIdTaken => "ERR_AGENT_ID_TAKEN",
            Self::WrongState => "ERR_WRONG_STATE",
            Self::IdempotencyConflict => "ERR_IDEMPOTENCY_CONFLICT",
            Self::InProgress => "ERR_IN_PROGRESS",
            Self::PayloadTooLarge => "ERR_PAYLOAD_TOO_LARGE",
            Self::UnsupportedEncoding => "ERR_UNSUPPORTED_ENCODING",
            Self::RateLimited => "ERR_RATE_LIMITED",
            Self::InboxFull => "ERR_INBOX_FULL",
            Self::AgentUnreachable => "ERR_AGENT_UNREACHABLE",
            Self::Timeout => "ERR_TIMEOUT",
            Self::Unavailable => "ERR_UNAVAILABLE",
            Self::InvalidEnvelope => "INVALID_ENVELOPE",
            Self::UnsupportedVersion => "UNSUPPORTED_VERSION",
            Self::AdaptationFailed => "ADAPTATION_FAILED",
        }
    }

    /// The HTTP status of an answer that fails with this code. A full disk has its own status (507)
    /// under the code of a store that cannot write.
    pub const fn status(self) -> u16 {
        match self {
            Self::Validation | Self::SenderNotRegistered | Self::EndpointBlocked => 400,
            Self::InvalidEnvelope | Self::UnsupportedVersion => 400,
            Self::Unauthorized => 401,
            Self::Forbidden | Self::SenderMismatch | Self::Blocked => 403,
            Self::AgentNotFound | Self::NotFound => 404,
            Self::MethodNotAllowed => 405,
            Self::AgentIdTaken | Self::WrongState | Self::InProgress => 409,
            Self::PayloadTooLarge => 413,
            Self::UnsupportedEncoding => 415,
            Self::IdempotencyConflict => 422,
            Self::RateLimited | Self::InboxFull => 429,
            Self::AdaptationFailed => 500,
            Self::AgentUnreachable => 502,
            Self::Unavailable => 503,
            Self::Timeout => 504,
        }
    }

    /// Whether the same request can succeed later.
    pub const fn is_retryable(self) -> bool {
        matches!(
            self,
            Self::InProgress
                | Self::RateLimited
                | Self::InboxFull
                | Self::AgentUnreachable
                | Self::Timeout
                | Self::Unavailable
        )
    }

    /// The code with this text. Other servers may use codes that are not listed here.
    pub fn read(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|code| code.as_str() == text)
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Why a body is refused. It has at least one error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidBody {
    errors: Vec<Malformed>,
    hint: Option<Cow<'static, str>>,
    example: Option<Cow<'static, str>>,
}

impl InvalidBody {
    /// A JSON pointer to the first wrong field; empty for the body as a whole.
    pub fn field(&self) -> &str {
        self.errors.first().map_or("", |fault| &fault.field)
    }

    /// Every wrong field as `path: text; path: text` (R38).
    pub fn message(&self) -> String {
        let mut message = String::new();
        for fault in &self.errors {
            let gap = if message.is_empty() { "" } else { "; " };
            let colon = if fault.field.is_empty() { "" } else { ": " };
            message.extend([gap, fault.field.as_str(), colon, fault.message.as_str()]);
        }
        message
    }

    /// What to do about it, if there is more to say.
    pub fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    /// JSON text that would be valid.
    pub fn example(&self) -> &str {
        self.example.as_deref().unwrap_or_else(|| example_for(self.field()))
    }

    /// All errors.
    pub fn errors(&self) -> &[Malformed] {
        &self.errors
    }

    /// Adds a hint, unless there is one already.
    pub fn with_hint(mut self, hint: impl Into<Cow<'static, str>>) -> Self {
        self.hint.get_or_insert_with(|| hint.into());
        self
    }

    /// Sets JSON text that shows a valid form.
    pub fn with_example(mut self, example: impl Into<Cow<'static, str>>) -> Self {
        self.example = Some(example.into());
        self
    }
}

impl From<Malformed> for InvalidBody {
    fn from(fault: Malformed) -> Self {
        Self { errors: vec![fault], hint: None, example: None }
    }
}

impl From<JsonError> for InvalidBody {
    fn from(unreadable: JsonError) -> Self {
        Malformed::from(unreadable).into()
    }
}

/// The errors found so far, so that a body is read to its end before it is refused.
#[derive(Debug, Default)]
pub(super) struct FieldErrors(Option<InvalidBody>);

impl FieldErrors {
    /// The value that was read; an error is collected and gives `None`.
    pub(super) fn collect<T>(&mut self, read: Result<T, impl Into<InvalidBody>>) -> Option<T> {
        match read {
            Ok(value) => Some(value),
            Err(fault) => {
                self.add(fault.into());
                None
            }
        }
    }

    /// All collected errors, once a required value is missing.
    pub(super) fn into_invalid_body(self) -> InvalidBody {
        self.0.expect("nothing is missing unless its fault was noted")
    }

    fn add(&mut self, fault: InvalidBody) {
        let Some(bad) = &mut self.0 else {
            self.0 = Some(fault);
            return;
        };
        bad.errors.extend(fault.errors);
        bad.hint = bad.hint.take().or(fault.hint);
    }
}

/// A registration that succeeds as it is.
pub const REGISTRATION_EXAMPLE: &str = r#"{"agent_id":"my-agent@chorus","agent_card":{"card_version":"0.3","user_culture":"en","supported_languages":["en"]}}"#;

/// A complete message to send.
pub const MESSAGE_EXAMPLE: &str = r#"{"receiver_id":"bob@chorus","envelope":{"chorus_version":"0.4","sender_id":"alice@chorus","original_text":"Hello!","sender_culture":"en"}}"#;

/// A complete envelope, as a member of a message.
pub const ENVELOPE_EXAMPLE: &str = r#"{"envelope":{"chorus_version":"0.4","sender_id":"alice@chorus","original_text":"Hello!","sender_culture":"en"}}"#;

/// A complete card, as a member of a registration.
pub const CARD_EXAMPLE: &str =
    r#"{"agent_card":{"card_version":"0.3","user_culture":"en","supported_languages":["en"]}}"#;

/// A complete acknowledgement.
pub const ACK_EXAMPLE: &str = r#"{"up_to":42}"#;

/// A valid example for the named field.
pub fn example_for(field: &str) -> &'static str {
    match field.rsplit('/').next().unwrap_or_default() {
        "agent_id" => r#"{"agent_id":"my-agent@chorus"}"#,
        "agent_card" => CARD_EXAMPLE,
        "card_version" => r#"{"card_version":"0.3"}"#,
        "user_culture" => r#"{"user_culture":"zh-CN"}"#,
        "supported_languages" => r#"{"supported_languages":["zh-CN","en"]}"#,
        "endpoint" => r#"{"endpoint":"https://agent.example/receive"}"#,
        "envelope_format" => r#"{"envelope_format":"a2a-1.0"}"#,
        "rotate_key" => r#"{"rotate_key":true}"#,
        "receiver_id" => r#"{"receiver_id":"bob@chorus"}"#,
        "stream" => r#"{"stream":true}"#,
        "chorus_version" => r#"{"chorus_version":"0.4"}"#,
        "sender_id" => r#"{"sender_id":"alice@chorus"}"#,
        "original_text" | "original_semantic" => {
            r#"{"chorus_version":"0.4","original_text":"Hello!"}"#
        }
        "sender_culture" => r#"{"sender_culture":"zh-CN"}"#,
        "cultural_context" => {
            r#"{"cultural_context":"Among colleagues, coffee is a friendly way to talk."}"#
        }
        "conversation_id" => r#"{"conversation_id":"5f0c2a9e"}"#,
        "turn_number" => r#"{"turn_number":1}"#,
        "skill" => r#"{"skill":"summarize"}"#,
        "input" => r#"{"input":{"text":"Hello!"}}"#,
        "budget" => r#"{"budget":0.10}"#,
        "parts" => {
            r#"{"messageId":"m-1","role":"ROLE_USER","parts":[{"data":{"chorus_version":"0.4","sender_id":"alice@chorus","original_text":"Hello!","sender_culture":"en"},"mediaType":"application/vnd.chorus.envelope+json"}]}"#
        }
        "up_to" => ACK_EXAMPLE,
        "?after" => r#""?after=42""#,
        "?since" => r#""?since=2026-03-20T10:00:00Z""#,
        "?limit" => r#""?limit=100""#,
        "?culture" => r#""/agents?culture=zh-CN""#,
        "?language" => r#""/agents?language=en""#,
        "?online" => r#""/agents?online=true""#,
        "?protocol" => r#""/agents?protocol=relay""#,
        "Last-Event-ID" => r#""Last-Event-ID: 42""#,
        "?ack" => r#""/agent/inbox?ack=explicit""#,
        "Idempotency-Key" => r#""Idempotency-Key: 5f0c2a9e""#,
        _ if field.starts_with("/agent_card/supported_languages/") => r#""en""#,
        _ if field.starts_with('?') => r#""/agents?limit=100""#,
        _ => MESSAGE_EXAMPLE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_specs_six_codes_have_its_statuses() {
        for (text, status, retryable) in [
            ("ERR_VALIDATION", 400, false),
            ("ERR_AGENT_NOT_FOUND", 404, false),
            ("ERR_AGENT_UNREACHABLE", 502, true),
            ("ERR_TIMEOUT", 504, true),
            ("ERR_UNAUTHORIZED", 401, false),
            ("ERR_SENDER_NOT_REGISTERED", 400, false),
        ] {
            let code = Code::read(text).expect(text);
            assert_eq!((code.status(), code.is_retryable()), (status, retryable), "{text}");
        }
    }

    #[test]
    fn the_other_codes_are_those_of_the_book() {
        for (text, status, retryable) in [
            ("ERR_ENDPOINT_BLOCKED", 400, false),
            ("ERR_FORBIDDEN", 403, false),
            ("ERR_SENDER_MISMATCH", 403, false),
            ("ERR_BLOCKED", 403, false),
            ("ERR_NOT_FOUND", 404, false),
            ("ERR_METHOD_NOT_ALLOWED", 405, false),
            ("ERR_AGENT_ID_TAKEN", 409, false),
            ("ERR_WRONG_STATE", 409, false),
            ("ERR_IDEMPOTENCY_CONFLICT", 422, false),
            ("ERR_IN_PROGRESS", 409, true),
            ("ERR_PAYLOAD_TOO_LARGE", 413, false),
            ("ERR_UNSUPPORTED_ENCODING", 415, false),
            ("ERR_RATE_LIMITED", 429, true),
            ("ERR_INBOX_FULL", 429, true),
            ("ERR_UNAVAILABLE", 503, true),
            ("INVALID_ENVELOPE", 400, false),
            ("UNSUPPORTED_VERSION", 400, false),
            ("ADAPTATION_FAILED", 500, false),
        ] {
            let code = Code::read(text).expect(text);
            assert_eq!((code.status(), code.is_retryable()), (status, retryable), "{text}");
        }
    }

    #[test]
    fn every_code_is_found_by_its_text() {
        for code in Code::ALL {
            assert_eq!(Code::read(&code.to_string()), Some(code));
        }
        assert_eq!(Code::read("ERR_OTHER"), None);
    }
}

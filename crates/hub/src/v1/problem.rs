//! Error responses in the format of RFC 9457 (`application/problem+json`).
//!
//! This module defines the format. `errors` decides which problem a refusal becomes.

use std::borrow::Cow;

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use http::header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderValue, StatusCode};
use rialto_protocols::adapter::operation::{self, ErrorInfo};
use rialto_protocols::kit::fields::Malformed;
use rialto_protocols::kit::raw_json;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;
use serde_json::value::RawValue;

use super::errors::{self, ProblemKind};
use super::examples;

/// The content type.
pub const MEDIA_TYPE: HeaderValue = HeaderValue::from_static("application/problem+json");

/// Why a request failed.
#[derive(Clone, Debug)]
pub struct Problem {
    pub kind: &'static ProblemKind,
    pub detail: String,
    /// The same request may succeed later.
    pub retryable: bool,
    pub retry_after_seconds: Option<u64>,
    /// The invalid field: a JSON pointer, `?name` of a query parameter, or the name of a header.
    pub field: Option<String>,
    /// JSON text with a valid value of the field.
    pub example: Option<Cow<'static, str>>,
    /// Boxed, so that a problem stays a small error.
    pub request_id: Option<Box<str>>,
}

impl Problem {
    pub fn new(kind: &'static ProblemKind, detail: impl Into<String>) -> Self {
        Self {
            kind,
            detail: detail.into(),
            retryable: false,
            retry_after_seconds: None,
            field: None,
            example: None,
            request_id: None,
        }
    }

    /// Missing, malformed, unknown and revoked keys get the same response.
    pub fn unauthorized() -> Self {
        Self::new(
            &errors::UNAUTHORIZED,
            "missing or invalid key; send `Authorization: Bearer rk_…`",
        )
    }

    /// The same for an operation that needs the operator's key.
    pub fn operator_unauthorized() -> Self {
        Self::new(&errors::UNAUTHORIZED, "operator key required; send `Authorization: Bearer ro_…`")
    }

    pub fn forbidden(detail: &str) -> Self {
        Self::new(&errors::FORBIDDEN, detail)
    }

    /// Things that do not exist and things of other callers get the same response.
    pub fn not_found() -> Self {
        Self::new(&errors::NOT_FOUND, "not found, or not visible to this key")
    }

    /// Something the operator named does not exist: nothing is hidden from the operator.
    pub fn no_such(what: &str) -> Self {
        Self::new(&errors::NOT_FOUND, format!("{what} not found"))
    }

    /// An invalid field, with a correct example.
    pub fn invalid_field(field: &str, message: impl Into<String>) -> Self {
        Malformed { field: field.to_owned(), message: message.into() }.into()
    }

    /// Marks it as retryable after this many seconds.
    pub fn with_retry_after(self, seconds: u64) -> Self {
        Self { retryable: true, retry_after_seconds: Some(seconds), ..self }
    }

    /// Marks it as retryable at once.
    pub fn with_retry(self) -> Self {
        Self { retryable: true, ..self }
    }
}

impl From<Malformed> for Problem {
    fn from(malformed: Malformed) -> Self {
        let example = examples::example_for(&malformed.field);
        let field = Some(malformed.field);
        Self { field, example, ..Self::new(&errors::MALFORMED, malformed.message) }
    }
}

/// The code of a problem.
enum CodeName {}

impl JsonSchema for CodeName {
    fn schema_name() -> Cow<'static, str> {
        "ProblemCode".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let codes: Vec<&str> = errors::ALL.iter().map(|kind| kind.code).collect();
        json_schema!({"type": "string", "enum": codes})
    }
}

/// How all operations of this API answer errors.
pub fn errors() -> ErrorInfo {
    let codes = errors::ALL.iter().map(|kind| (kind.status, kind.code)).collect();
    let content_type = "application/problem+json";
    ErrorInfo { content_type, schema: operation::schema::<ProblemBody<'static>>, codes }
}

/// An error (RFC 9457).
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Problem")]
struct ProblemBody<'a> {
    r#type: String,
    title: &'a str,
    status: u16,
    detail: &'a str,
    #[schemars(with = "CodeName")]
    code: &'a str,
    retryable: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after_seconds: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    field: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    example: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    request_id: Option<&'a str>,
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let ProblemKind { status, code, title } = *self.kind;
        let shown = ProblemBody {
            r#type: format!("urn:rialto:problem:{code}"),
            title,
            status,
            detail: &self.detail,
            code,
            retryable: self.retryable,
            retry_after_seconds: self.retry_after_seconds,
            field: self.field.as_deref(),
            example: self.example.as_deref().map(raw_json::verbatim),
            request_id: self.request_id.as_deref(),
        };
        let text = serde_json::to_vec(&shown).unwrap_or_default();
        let mut answer = Response::new(Body::from(text));
        *answer.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_REQUEST);
        let headers = answer.headers_mut();
        headers.insert(CONTENT_TYPE, MEDIA_TYPE);
        if let Some(seconds) = self.retry_after_seconds {
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        if status == StatusCode::UNAUTHORIZED {
            // RFC 9110 section 15.5.2: a 401 names the authentication scheme.
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        // `V1Api` rewrites the body with the request id.
        answer.extensions_mut().insert(self);
        answer
    }
}

//! Envelopes and responses of the hub itself. Every envelope is signed.

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use rialto_core::time::Timestamp;

use super::compose::{SignedMessage, UnsignedEnvelope};
use super::failure::Failure;
use super::kind::MessageType;
use super::receipt::Receipt;
use crate::adapter::HubContext;
use crate::kit::ed25519::PublicKey;

/// The header with the id of the job that an answer is about.
pub const JOB_HEADER: &str = "rialto-job";

/// Signs an envelope of the hub with the current time.
pub fn sign_now(
    context: &HubContext,
    kind: MessageType,
    payload: &str,
    to: Option<PublicKey>,
) -> SignedMessage {
    let id = context.engine.random().new_uuid().to_string();
    sign_as(context, &id, context.engine.wall_time(), kind, payload, to)
}

/// Signs an envelope of the hub with a given id and time, so that it is the same every time.
pub fn sign_as(
    context: &HubContext,
    id: &str,
    timestamp: Timestamp,
    kind: MessageType,
    payload: &str,
    recipient: Option<PublicKey>,
) -> SignedMessage {
    let draft =
        UnsignedEnvelope { id, timestamp, kind, payload, recipient, hub: None, bridge: None };
    context.agora.signer.sign(&draft).expect("payloads that the hub writes are valid")
}

/// A receipt, signed now so that its reader finds it fresh.
pub fn signed_receipt(
    context: &HubContext,
    receipt: &Receipt<'_>,
    to: Option<PublicKey>,
) -> String {
    sign_now(context, MessageType::Status, &receipt.write(), to).text
}

/// An ERROR that answers an envelope that was not accepted.
pub fn signed_error(context: &HubContext, failure: &Failure, to: Option<PublicKey>) -> String {
    sign_now(context, MessageType::Error, &failure.payload(), to).text
}

/// An error as a response.
pub fn error_response(context: &HubContext, failure: &Failure, to: Option<PublicKey>) -> Response {
    let mut answer = json_response(failure.http_status, signed_error(context, failure, to));
    if let Some(seconds) = failure.retry_after_seconds {
        answer.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    answer
}

/// JSON text as a response.
pub fn json_response(status: u16, text: String) -> Response {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let kind = [(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))];
    (status, kind, Body::from(text)).into_response()
}

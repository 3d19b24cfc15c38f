//! The echo's handler for relay messages: it parses the whole message and answers that it is
//! queued.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use serde::{Deserialize, Serialize};

/// As long as the hub's own trace id.
const DEFAULT_TRACE: &str = "6f1c2d3e-4a5b-4c6d-8e7f-901234567890";
const DEFAULT_TIME: &str = "2026-01-01T00:00:00.000Z";

/// A message to send, as far as the echo has to parse it.
#[derive(Deserialize)]
#[expect(dead_code, reason = "parsed because the hub has to parse it too")]
struct Message {
    receiver_id: String,
    envelope: Envelope,
    stream: Option<bool>,
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "parsed because the hub has to parse it too")]
struct Envelope {
    chorus_version: String,
    sender_id: String,
    original_text: String,
    sender_culture: String,
    cultural_context: Option<String>,
    conversation_id: Option<String>,
    turn_number: Option<u64>,
}

#[derive(Serialize)]
struct QueuedResponse {
    success: bool,
    data: DeliveryBody,
    metadata: Metadata,
}

#[derive(Serialize)]
struct DeliveryBody {
    delivery: &'static str,
    trace_id: &'static str,
}

#[derive(Serialize)]
struct Metadata {
    timestamp: &'static str,
}

/// `POST /relay/messages`, without any of the hub's work.
pub async fn accept_message(body: Bytes) -> Response {
    match serde_json::from_slice::<Message>(&body) {
        Ok(_) => {
            let data = DeliveryBody { delivery: "queued", trace_id: DEFAULT_TRACE };
            let metadata = Metadata { timestamp: DEFAULT_TIME };
            (StatusCode::ACCEPTED, Json(QueuedResponse { success: true, data, metadata }))
                .into_response()
        }
        Err(error) => (StatusCode::BAD_REQUEST, error.to_string()).into_response(),
    }
}

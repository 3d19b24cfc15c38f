//! Accepts any of the six messages at one path; their members tell them apart (R90).

use axum::extract::State;

use super::aside::run_blocking_limited;
use super::{answers, ask, identity, reports};
use crate::adapter::HubContext;
use crate::adapter::peer::Peer;
use crate::openclaw::failure::Failure;
use crate::openclaw::message::AnyMessage;
use crate::openclaw::proof::{BodyBytes, OptionalCaller};
use crate::openclaw::say::{ErrorResponse, HandlerResult};

/// `POST /messages`.
pub async fn post_message(
    State(context): State<HubContext>,
    anyone: OptionalCaller,
    Peer(peer): Peer,
    BodyBytes(body): BodyBytes,
) -> HandlerResult {
    let refuse = |failure| ErrorResponse::new(&context, failure);
    let read = run_blocking_limited(move || AnyMessage::read(&body)).await;
    let message = read.unwrap_or_else(|| Err(Failure::internal("reading"))).map_err(refuse)?;
    if let AnyMessage::Identity(message) = &message {
        return identity::publish_from_messages(&context, anyone, peer, message).await;
    }
    let known = anyone.require_known().map_err(refuse)?;
    match message {
        AnyMessage::Identity(message) => {
            identity::publish_from_messages(&context, anyone, peer, &message).await
        }
        AnyMessage::Status(message) => reports::handle_status(&context, known, &message).await,
        AnyMessage::Reputation(message) => {
            reports::handle_reputation(&context, known, &message).await
        }
        AnyMessage::Request(message) => ask::handle_request(&context, known, message, None).await,
        AnyMessage::Response(message) => {
            let id = message.body.request_id;
            answers::handle_response(&context, known, id, &message).await
        }
        AnyMessage::Result(message) => {
            let id = message.body.collaboration_id;
            answers::handle_result(&context, known, id, &message).await
        }
    }
}

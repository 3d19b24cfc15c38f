//! Accepts any of the six messages at one path; their members tell them apart (R90).

use axum::extract::State;

use super::aside::aside;
use super::{answers, ask, identity, reports};
use crate::adapter::Floor;
use crate::adapter::peer::Peer;
use crate::openclaw::failure::Failure;
use crate::openclaw::message::Any;
use crate::openclaw::proof::{Anyone, Sent};
use crate::openclaw::say::{Answered, Refused};

/// `POST /messages`.
pub async fn post(
    State(floor): State<Floor>,
    anyone: Anyone,
    Peer(peer): Peer,
    Sent(body): Sent,
) -> Answered {
    let refuse = |failure| Refused::new(&floor, failure);
    let read = aside(move || Any::read(&body)).await;
    let message = read.unwrap_or_else(|| Err(Failure::fault("reading"))).map_err(refuse)?;
    if let Any::Identity(message) = &message {
        return identity::post_among_others(&floor, anyone, peer, message).await;
    }
    let known = anyone.known().map_err(refuse)?;
    match message {
        Any::Identity(message) => identity::post_among_others(&floor, anyone, peer, &message).await,
        Any::Status(message) => reports::status(&floor, known, &message).await,
        Any::Reputation(message) => reports::reputation(&floor, known, &message).await,
        Any::Request(message) => ask::ask(&floor, known, message, None).await,
        Any::Response(message) => {
            let id = message.said.request_id;
            answers::respond(&floor, known, id, &message).await
        }
        Any::Result(message) => {
            let id = message.said.collaboration_id;
            answers::result(&floor, known, id, &message).await
        }
    }
}

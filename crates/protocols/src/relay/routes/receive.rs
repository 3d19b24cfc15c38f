//! `POST /relay/receive/{id}`: the hub as the receive endpoint of an agent it hosts (R75, R85).

use axum::extract::{Extension, State};
use axum::response::{IntoResponse, Response};
use rialto_core::alias::Digest;
use rialto_core::command::{Command, MessageIdentity, SendMessage};
use rialto_core::time::Millis;

use super::{error_response, read_address};
use crate::adapter::idempotency::RequestIdempotency;
use crate::adapter::{EdgeError, HubContext};
use crate::kit::ijson;
use crate::relay::event::MessageFlags;
use crate::relay::proof::{BodyBytes, PathParam, listed_agent};
use crate::relay::{Code, Envelope, ID, InvalidBody, receive, record, refusals, reply, stored};

/// An envelope from a peer, whose identity cannot be checked.
pub async fn receive_envelope(
    State(context): State<HubContext>,
    PathParam(id): PathParam,
    once: Option<Extension<RequestIdempotency>>,
    BodyBytes(body): BodyBytes,
) -> Response {
    if !context.relay.settings.accept_direct {
        return error_response(&context, refusals::from_edge(&EdgeError::NotFound)).into_response();
    }
    let json = match ijson::read(&body) {
        Ok(json) => json,
        Err(unreadable) => return invalid(&InvalidBody::from(unreadable).message()),
    };
    let envelope = match receive::read_receive_body(&json) {
        Ok(envelope) => envelope,
        Err(bad) => return said(bad.code.status(), bad.code, &bad.body.message()),
    };
    let known = context.engine.with_world(|world| {
        if world.agent_by_alias(ID, envelope.sender.canonical()).is_some() {
            return Err("sender_id is registered at this hub; send to /messages with its key");
        }
        let to = read_address(&context, &id).and_then(|to| listed_agent(world, to.canonical()));
        let to = to.and_then(|to| world.agent(to)).ok_or("no agent has this address here")?;
        Ok((to.id, record::callable_endpoint(to).map(str::to_owned)))
    });
    let (to, endpoint) = match known {
        Ok(found) => found,
        Err(why) => return invalid(why),
    };
    let marks = MessageFlags { unverified: true, ..MessageFlags::default() };
    let order = SendMessage {
        from: None,
        to,
        protocol: ID,
        body: stored::write_stored_message(envelope.raw(), marks),
        url: endpoint.filter(|_| !context.engine.has_inbox_reader(to)),
        first_try: Millis(0),
        identity: peer_turn(&envelope),
        by_operator: false,
    };
    let once = once.map(|Extension(RequestIdempotency(once))| once);
    match context.engine.run_once(Command::SendMessage(Box::new(order)), once).await {
        Ok(_) => refusals::json_response(200, reply::OK.as_bytes().to_vec()),
        Err(failure) => {
            let failure = refusals::from_engine(failure);
            said(failure.status, Code::AdaptationFailed, &failure.message)
        }
    }
}

/// The same turn of the same sender is one message (R55).
fn peer_turn(envelope: &Envelope<'_>) -> Option<MessageIdentity> {
    let (conversation, number) = envelope.conversation_id.zip(envelope.turn_number)?;
    // The sender has no id here, so its address is stored with the conversation id.
    let conversation = format!("{}\n{conversation}", envelope.sender.canonical());
    let content = Digest::of(&[envelope.raw().as_bytes()]);
    Some(MessageIdentity { conversation, number, content })
}

fn invalid(detail: &str) -> Response {
    said(400, Code::InvalidEnvelope, detail)
}

fn said(status: u16, code: Code, detail: &str) -> Response {
    refusals::json_response(status, reply::write_error_reply(code, detail))
}

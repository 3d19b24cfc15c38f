//! `POST /relay/receive/{id}`: the hub as the receive endpoint of an agent it hosts (R75, R85).

use axum::extract::{Extension, State};
use axum::response::{IntoResponse, Response};
use rialto_core::alias::Digest;
use rialto_core::command::{Command, SendMessage, Turn};
use rialto_core::time::Millis;

use super::{address, refuse};
use crate::adapter::idempotency::Once;
use crate::adapter::{Floor, Trouble};
use crate::kit::ijson;
use crate::relay::event::Marks;
use crate::relay::proof::{Named, Sent, listed};
use crate::relay::{Bad, Code, Envelope, ID, receive, record, refusals, reply, stored};

/// An envelope from a peer, whose identity cannot be checked.
pub async fn post(
    State(floor): State<Floor>,
    Named(id): Named,
    once: Option<Extension<Once>>,
    Sent(body): Sent,
) -> Response {
    if !floor.relay.settings.accept_direct {
        return refuse(&floor, refusals::trouble(&Trouble::NotFound)).into_response();
    }
    let json = match ijson::read(&body) {
        Ok(json) => json,
        Err(unreadable) => return invalid(&Bad::from(unreadable).message()),
    };
    let envelope = match receive::read(&json) {
        Ok(envelope) => envelope,
        Err(bad) => return said(bad.code.status(), bad.code, &bad.bad.message()),
    };
    let known = floor.engine.look(|world| {
        if world.agent_named(ID, envelope.sender.canonical()).is_some() {
            return Err("sender_id is registered at this hub; send to /messages with its key");
        }
        let to = address(&floor, &id).and_then(|to| listed(world, to.canonical()));
        let to = to.and_then(|to| world.agent(to)).ok_or("no agent has this address here")?;
        Ok((to.id, record::endpoint(to).map(str::to_owned)))
    });
    let (to, endpoint) = match known {
        Ok(found) => found,
        Err(why) => return invalid(why),
    };
    let marks = Marks { unverified: true, ..Marks::default() };
    let order = SendMessage {
        from: None,
        to,
        words: ID,
        body: stored::write(envelope.raw(), marks),
        url: endpoint.filter(|_| !floor.engine.is_heard(to)),
        first_try: Millis(0),
        turn: turn(&envelope),
        by_operator: false,
    };
    let once = once.map(|Extension(Once(once))| once);
    match floor.engine.run_once(Command::Send(Box::new(order)), once).await {
        Ok(_) => refusals::json(200, reply::OK.as_bytes().to_vec()),
        Err(failure) => {
            let failure = refusals::failed(failure);
            said(failure.status, Code::AdaptationFailed, &failure.message)
        }
    }
}

/// The same turn of the same sender is one message (R55).
fn turn(envelope: &Envelope<'_>) -> Option<Turn> {
    let (conversation, number) = envelope.conversation_id.zip(envelope.turn_number)?;
    // The sender has no id here, so its address is stored with the conversation id.
    let conversation = format!("{}\n{conversation}", envelope.sender.canonical());
    let content = Digest::of(&[envelope.raw().as_bytes()]);
    Some(Turn { conversation, number, content })
}

fn invalid(detail: &str) -> Response {
    said(400, Code::InvalidEnvelope, detail)
}

fn said(status: u16, code: Code, detail: &str) -> Response {
    refusals::json(status, reply::error(code, detail))
}

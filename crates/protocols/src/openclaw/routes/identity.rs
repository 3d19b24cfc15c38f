//! Publishes identities.

use std::net::SocketAddr;

use axum::extract::State;
use axum::response::Response;
use rialto_core::agent::Liveness;
use rialto_core::answer::Answer;
use rialto_engine::keys::{Key, Kind};

use super::aside::aside;
use super::{about, failed};
use crate::adapter::{Floor, Newcomer, aliases};
use crate::openclaw::answers::Published;
use crate::openclaw::codes::Code;
use crate::openclaw::common::Common;
use crate::openclaw::failure::Failure;
use crate::openclaw::message::{self, Identity, Message};
use crate::openclaw::proof::{Anyone, Sent};
use crate::openclaw::refusals;
use crate::openclaw::say::{self, Answered, Refused};
use crate::openclaw::translate::{self, Publication};
use crate::openclaw::{ID, IDENTITY_MAX};

/// `POST /identity`.
pub async fn post(State(floor): State<Floor>, anyone: Anyone, Sent(body): Sent) -> Answered {
    let read = aside(move || message::read(&body)).await;
    let read = read.unwrap_or_else(|| Err(Failure::fault("reading")));
    let message = read.map_err(|bad| Refused::new(&floor, bad))?;
    publish(&floor, anyone, &message).await
}

/// The same from `POST /messages`. A new agent counts against the registration limits.
pub async fn post_among_others(
    floor: &Floor,
    anyone: Anyone,
    from: Option<SocketAddr>,
    message: &Message<Identity>,
) -> Answered {
    let named = message.said.agent_id.to_string();
    if floor.engine.look(|world| world.agent_named(ID, &named).is_none()) {
        let counted = floor.writes.count_newcomer(from);
        counted.map_err(|trouble| Refused::new(floor, refusals::trouble(&trouble)))?;
    }
    publish(floor, anyone, message).await
}

/// Registers a new agent, or updates a known one (R24).
async fn publish(floor: &Floor, anyone: Anyone, message: &Message<Identity>) -> Answered {
    let correlation_id = message.correlation_id;
    if message.raw.len() > IDENTITY_MAX {
        let text = format!(
            "the identity has more than {IDENTITY_MAX} bytes; shorten the descriptions and schemas in \
             capabilities"
        );
        return Err(about(floor, Failure::new(Code::TooLarge, text), correlation_id));
    }
    if let Some(url) = &message.said.endpoint {
        floor.egress.check(url).map_err(|why| {
            let failure = Failure::violated(vec![format!("endpoint {why}")]);
            about(floor, failure, correlation_id)
        })?;
    }
    let engine = &floor.engine;
    let key = Key::make(Kind::Registry, engine.ids().key_bits());
    let native = message.said.agent_id.to_string();
    let newcomer = Newcomer { home: ID, native: &native, name: &message.said.agent_name };
    let common = say::common(floor, correlation_id);
    let publication = Publication {
        actor: anyone.actor(),
        aliases: aliases(engine, newcomer),
        key: key.hash(),
        correlation_id: common.correlation_id,
        at: common.timestamp,
    };
    let ran = engine.run_once(translate::enrol(message, publication), anyone.once).await;
    let ran = ran.map_err(|failure| failed(floor, &failure, correlation_id))?;
    let Answer::Agent { agent, new, .. } = ran.answer else {
        return Err(about(floor, Failure::not_found("agent"), correlation_id));
    };
    // After a crash, a repeat finds the agent registered, but its key can no longer be shown.
    let api_key = (new && !ran.replayed).then(|| key.expose().to_owned());
    let webhook_secret = (agent.liveness == Liveness::Reached)
        .then(|| engine.secret().webhook_secret(agent.id, agent.secret_generation).text());
    let status = Published::STATUS.to_owned();
    let common = Common { timestamp: engine.now(), ..common };
    // The same time as in the directory (R23).
    let at = Published::at(if new { agent.registered_at } else { common.timestamp });
    let body = Published::new(common, status, native, api_key, webhook_secret, at);
    let answer: Response = say::json(if new { 201 } else { 200 }, &body);
    Ok(answer)
}

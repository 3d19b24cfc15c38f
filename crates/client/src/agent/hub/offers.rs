//! The inbox of a working agent: it answers requests for offers with its price.

use std::convert::Infallible;

use reqwest::Method;
use rialto_protocols::kit::raw_json;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tokio::time::sleep;

use super::report::{may_pass, pause};
use super::event::{Tell, Told};
use crate::agent::handlers::Workshop;
use crate::call::{CallError, Hub};
use crate::notice_stream::{Events, Notice};

/// A requester wants offers for a job.
const WANTED: &str = "offers_wanted";
/// A message to the agent. This program cannot read it, but the agent's operator can.
const MESSAGE: &str = "message";

#[derive(Deserialize)]
struct Asked {
    job: String,
}

#[derive(Deserialize)]
struct Wanted<'a> {
    skill: String,
    #[serde(borrow)]
    input: &'a RawValue,
}

#[derive(Serialize)]
struct Offer {
    price: Box<RawValue>,
}

/// Reads the inbox and sends offers until the hub no longer knows the agent.
pub(super) async fn name_prices(hub: &Hub, shop: &Workshop, tell: &Tell) {
    while let Some(mut inbox) = opened(hub).await {
        match read(&mut inbox, hub, shop, tell).await {
            // An agent that was suspended continues after its last acknowledgement.
            Err(error) if may_pass(&error) => {}
            _ => return,
        }
    }
}

/// Reads the inbox until an error.
async fn read(
    inbox: &mut Events,
    hub: &Hub,
    shop: &Workshop,
    tell: &Tell,
) -> Result<Infallible, CallError> {
    // Messages stay in the inbox for the operator, so nothing after the first message is
    // acknowledged.
    let mut all_mine = true;
    loop {
        let notice = inbox.next().await?;
        if notice.kind == WANTED {
            name_price(hub, shop, &notice, tell).await;
        }
        all_mine &= notice.kind != MESSAGE;
        if all_mine {
            inbox.ack(notice.position).await?;
        }
    }
}

async fn opened(hub: &Hub) -> Option<Events> {
    let mut failures = 0;
    loop {
        match Events::open(hub).await {
            Err(error) if may_pass(&error) => {
                failures += 1;
                sleep(pause(&error, failures)).await;
            }
            opened => return opened.ok(),
        }
    }
}

/// Sends an offer if the agent has the skill and the input is valid; ignores the rest. Retries
/// until the hub accepts it, because an offer is requested only once.
async fn name_price(hub: &Hub, shop: &Workshop, notice: &Notice, tell: &Tell) {
    let Ok(asked) = serde_json::from_str::<Asked>(&notice.data) else { return };
    let mut failures = 0;
    loop {
        match offered(hub, shop, &asked.job).await {
            Ok(Some(price)) => return tell(Told::Offered { job: asked.job, price }),
            Err(error) if may_pass(&error) => {
                failures += 1;
                tell(Told::trouble("cannot send an offer", &error));
                sleep(pause(&error, failures)).await;
            }
            Ok(None) | Err(_) => return,
        }
    }
}

async fn offered(hub: &Hub, shop: &Workshop, job: &str) -> Result<Option<String>, CallError> {
    let path = format!("/v1/jobs/{job}");
    let (_, text) = hub.call_text(Method::GET, &path, None).await?;
    let wanted: Wanted<'_> =
        serde_json::from_str(&text).map_err(|error| CallError::Unreadable(error.to_string()))?;
    let input = wanted.input.get();
    let Ok(skill) = shop.fits(&wanted.skill, input) else { return Ok(None) };
    let price = skill.price_of(input);
    let offer = Offer { price: raw_json::amount(price, 2) };
    let body = serde_json::to_string(&offer);
    let body = body.map_err(|error| CallError::invalid(error.to_string(), None))?;
    hub.call_text(Method::POST, &format!("{path}/offers"), Some(body)).await?;
    Ok(Some(price.text(2)))
}

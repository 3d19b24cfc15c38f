//! The inbox of a working agent: it answers requests for offers with its price.

use std::convert::Infallible;

use reqwest::Method;
use rialto_protocols::kit::raw_json;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tokio::time::sleep;

use super::event::{AgentEvent, EventCallback};
use super::report::{is_retryable, retry_delay};
use crate::agent::handlers::Handlers;
use crate::call::{CallError, Hub};
use crate::notice_stream::{Notice, NoticeStream};

/// A requester wants offers for a job.
const OFFERS_WANTED: &str = "offers_wanted";
/// A message to the agent. This program cannot read it, but the agent's operator can.
const MESSAGE: &str = "message";

#[derive(Deserialize)]
struct OffersWantedNotice {
    job: String,
}

#[derive(Deserialize)]
struct OfferedJob<'a> {
    skill: String,
    #[serde(borrow)]
    input: &'a RawValue,
}

#[derive(Serialize)]
struct OfferBody {
    price: raw_json::Number,
}

/// Reads the inbox and sends offers until the hub no longer knows the agent.
pub(super) async fn answer_offer_requests(hub: &Hub, shop: &Handlers, tell: &EventCallback) {
    while let Some(mut inbox) = open_inbox(hub).await {
        match read_inbox(&mut inbox, hub, shop, tell).await {
            // An agent that was suspended continues after its last acknowledgement.
            Err(error) if is_retryable(&error) => {}
            _ => return,
        }
    }
}

/// Reads the inbox until an error.
async fn read_inbox(
    inbox: &mut NoticeStream,
    hub: &Hub,
    shop: &Handlers,
    tell: &EventCallback,
) -> Result<Infallible, CallError> {
    // Messages stay in the inbox for the operator, so nothing after the first message is
    // acknowledged.
    let mut all_mine = true;
    loop {
        let notice = inbox.next().await?;
        if notice.kind == OFFERS_WANTED {
            answer_offer_request(hub, shop, &notice, tell).await;
        }
        all_mine &= notice.kind != MESSAGE;
        if all_mine {
            inbox.ack(notice.position).await?;
        }
    }
}

async fn open_inbox(hub: &Hub) -> Option<NoticeStream> {
    let mut failures = 0;
    loop {
        match NoticeStream::open(hub).await {
            Err(error) if is_retryable(&error) => {
                failures += 1;
                sleep(retry_delay(&error, failures)).await;
            }
            opened => return opened.ok(),
        }
    }
}

/// Sends an offer if the agent has the skill and the input is valid; ignores the rest. Retries
/// until the hub accepts it, because an offer is requested only once.
async fn answer_offer_request(hub: &Hub, shop: &Handlers, notice: &Notice, tell: &EventCallback) {
    let Ok(asked) = serde_json::from_str::<OffersWantedNotice>(&notice.data) else { return };
    let mut failures = 0;
    loop {
        match send_offer(hub, shop, &asked.job).await {
            Ok(Some(price)) => return tell(AgentEvent::OfferSent { job: asked.job, price }),
            Err(error) if is_retryable(&error) => {
                failures += 1;
                tell(AgentEvent::from_error("cannot send an offer", &error));
                sleep(retry_delay(&error, failures)).await;
            }
            Ok(None) | Err(_) => return,
        }
    }
}

async fn send_offer(hub: &Hub, shop: &Handlers, job: &str) -> Result<Option<String>, CallError> {
    let path = format!("/v1/jobs/{job}");
    let (_, text) = hub.call_text(Method::GET, &path, None).await?;
    let wanted: OfferedJob<'_> =
        serde_json::from_str(&text).map_err(|error| CallError::Unreadable(error.to_string()))?;
    let input = wanted.input.get();
    let Ok(skill) = shop.check_input(&wanted.skill, input) else { return Ok(None) };
    let price = skill.price_for(input);
    let offer = OfferBody { price: raw_json::amount(price, 2) };
    let body = serde_json::to_string(&offer);
    let body = body.map_err(|error| CallError::invalid(error.to_string(), None))?;
    hub.call_text(Method::POST, &format!("{path}/offers"), Some(body)).await?;
    Ok(Some(price.to_text(2)))
}

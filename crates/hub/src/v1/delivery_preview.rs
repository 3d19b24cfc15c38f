//! A notice as the hub would deliver it to an endpoint: the same bytes and headers, signed now.
//!
//! For programs that the hub cannot reach: `rialto listen` fetches deliveries for them.

use axum::extract::{RawQuery, State};
use rialto_core::notice::{Notice, Push};
use rialto_engine::delivery::{headers, worded_by};
use rialto_protocols::adapter::{Floor, couriers};
use serde::Serialize;

use super::response::{Answered, ok};
use super::page;
use super::auth::AsAgent;

/// The endpoint if none is given. It is never called.
const SOMEWHERE: &str = "http://localhost";

#[derive(Serialize)]
struct Worded {
    /// `None` if the notice would not be delivered to an endpoint.
    delivery: Option<DeliveryView>,
}

#[derive(Serialize)]
struct DeliveryView {
    url: String,
    headers: Vec<(String, String)>,
    body: String,
}

/// `GET /v1/inbox/delivery`: the notice at `position`, or the first that is not acknowledged, as it
/// would be delivered to `url`.
pub async fn show(State(floor): State<Floor>, by: AsAgent, RawQuery(raw): RawQuery) -> Answered {
    let query = page::query(raw.as_deref(), &["url", "position"])?;
    let url = query.text("url").unwrap_or(SOMEWHERE).to_owned();
    let position = query.integer("position", 1..=i64::MAX)?.map(i64::unsigned_abs);
    let acked = floor.engine.look(|world| world.mailbox(by.id).acked);
    let after = position.map_or(acked, |position| position - 1);
    let Some(notice) = floor.engine.notices_of(by.id, after, 1).await?.pop() else {
        return Ok(ok(&Worded { delivery: None }));
    };
    let Notice { id: notice, to, position, at, news, .. } = Notice::clone(&notice);
    let (attempts, next_try, trouble) = (0, None, None);
    let push = Push { notice, to, position, at, url, news, attempts, next_try, trouble };
    let job = match push.news.job() {
        Some(job) => floor.engine.job(job).await?,
        None => None,
    };
    let protocol = worded_by(&floor.engine, &push, job.as_deref());
    let courier = protocol.and_then(|protocol| couriers(&floor).remove(&protocol));
    let letter = courier.and_then(|courier| courier.worded(&floor.engine, &push, job.as_deref()));
    let delivery = letter.map(|letter| DeliveryView {
        headers: headers(&floor.engine, Some(by.id), &letter),
        body: String::from_utf8_lossy(&letter.body).into_owned(),
        url: letter.url,
    });
    Ok(ok(&Worded { delivery }))
}

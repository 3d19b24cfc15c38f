//! A notice as the hub would deliver it to an endpoint: the same bytes and headers, signed now.
//!
//! For programs that the hub cannot reach: `rialto listen` fetches deliveries for them.

use axum::extract::{RawQuery, State};
use rialto_core::notice::{Delivery, Notice};
use rialto_engine::delivery::{encoding_protocol, signed_headers};
use rialto_protocols::adapter::{HubContext, delivery_encoders};
use schemars::JsonSchema;
use serde::Serialize;

use super::auth::AgentCaller;
use super::page;
use super::response::{HandlerResult, ok_response};

/// The endpoint if none is given. It is never called.
const DEFAULT_URL: &str = "http://localhost";

#[derive(Serialize, JsonSchema)]
pub struct DeliveryPreview {
    /// `None` if the notice would not be delivered to an endpoint.
    delivery: Option<DeliveryView>,
}

#[derive(Serialize, JsonSchema)]
pub struct DeliveryView {
    url: String,
    headers: Vec<(String, String)>,
    body: String,
}

rialto_protocols::request_members! {
    /// Which notice to preview.
    PreviewQuery {
        /// The endpoint; it is not called.
        url: Option<String>,
        /// The position of the notice; by default the first that is not acknowledged.
        #[schemars(range(min = 1))]
        position: Option<u64>,
    }
}

/// `GET /v1/inbox/delivery`: the notice at `position`, or the first that is not acknowledged, as it
/// would be delivered to `url`.
pub async fn show_delivery(
    State(context): State<HubContext>,
    by: AgentCaller,
    RawQuery(raw): RawQuery,
) -> HandlerResult {
    let query = page::parse_query(raw.as_deref(), PreviewQuery::MEMBERS)?;
    let url = query.text("url").unwrap_or(DEFAULT_URL).to_owned();
    let position = query.integer("position", 1..=i64::MAX)?.map(i64::unsigned_abs);
    let acked = context.engine.with_world(|world| world.inbox(by.id).acked);
    let after = position.map_or(acked, |position| position - 1);
    let Some(notice) = context.engine.load_notices(by.id, after, 1).await?.pop() else {
        return Ok(ok_response(&DeliveryPreview { delivery: None }));
    };
    let Notice { id: notice, to, position, at, news, .. } = Notice::clone(&notice);
    let (attempts, next_try, error) = (0, None, None);
    let push = Delivery {
        notice,
        to,
        position,
        at,
        url,
        kind: news,
        attempts,
        next_try,
        last_error: error,
    };
    let job = match push.kind.job() {
        Some(job) => context.engine.load_job(job).await?,
        None => None,
    };
    let protocol = encoding_protocol(&context.engine, &push, job.as_deref());
    let encoder = protocol.and_then(|protocol| delivery_encoders(&context).remove(&protocol));
    let envelope =
        encoder.and_then(|encoder| encoder.encode(&context.engine, &push, job.as_deref()));
    let delivery = envelope.map(|envelope| DeliveryView {
        headers: signed_headers(&context.engine, Some(by.id), &envelope),
        body: String::from_utf8_lossy(&envelope.body).into_owned(),
        url: envelope.url,
    });
    Ok(ok_response(&DeliveryPreview { delivery }))
}

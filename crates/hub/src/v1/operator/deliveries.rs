//! Deliveries that are waiting, and those that were given up.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::{RawQuery, State};
use rialto_core::command::Command;
use rialto_core::id::NoticeId;
use rialto_core::notice::Delivery;
use rialto_core::world::World;
use rialto_protocols::adapter::HubContext;
use rialto_protocols::adapter::request::PathParam;
use rialto_protocols::kit::api_doc::Time;
use schemars::JsonSchema;
use serde::Serialize;
use uuid::Uuid;

use crate::v1::auth::OperatorCaller;
use crate::v1::notices;
use crate::v1::page::{self, Cursor, Page, parse_choice};
use crate::v1::params::{PageCursor, PageLimit};
use crate::v1::problem::Problem;
use crate::v1::public_ids::PublicIds;
use crate::v1::response::{HandlerResult, format_time, ok_response};

/// The list's tag in cursors.
const DELIVERY_LIST: char = 'p';

/// A delivery as the operator sees it, without the URL's path and the content.
#[derive(Serialize, JsonSchema)]
pub struct OperatorDeliveryView {
    id: u64,
    #[schemars(with = "OpenDeliveryState")]
    state: &'static str,
    #[schemars(with = "notices::NoticeName")]
    kind: &'static str,
    job: Option<Uuid>,
    to: Option<u64>,
    /// Scheme and host; the rest of the URL may contain secrets.
    destination: String,
    attempts: u32,
    next_try: Option<Time>,
    #[serde(rename = "trouble")]
    error: Option<String>,
}

impl OperatorDeliveryView {
    fn of(push: &Delivery, refs: &PublicIds) -> Self {
        Self {
            id: push.notice.0,
            state: if push.next_try.is_some() { "waiting" } else { "given_up" },
            kind: notices::kind_name(&push.kind),
            job: push.kind.job().and_then(|id| refs.job(id)),
            to: push.to.map(|id| id.0),
            destination: url_origin(&push.url).to_owned(),
            attempts: push.attempts,
            next_try: push.next_try.map(format_time),
            error: push.last_error.clone(),
        }
    }
}

rialto_protocols::words! {
    /// The state of a delivery that is not completed.
    OpenDeliveryState: "waiting" | "given_up"
}

rialto_protocols::request_members! {
    /// Which deliveries to list.
    DeliveryQuery {
        state: Option<OpenDeliveryState>,
        limit: Option<PageLimit>,
        cursor: Option<PageCursor>,
    }
}

/// `GET /v1/operator/pushes`: oldest first.
pub async fn list_deliveries(
    State(context): State<HubContext>,
    _by: OperatorCaller,
    RawQuery(raw): RawQuery,
) -> HandlerResult {
    let query = page::parse_query(raw.as_deref(), DeliveryQuery::MEMBERS)?;
    let waiting = parse_choice(&query, "state", &[("waiting", true), ("given_up", false)])?;
    let limit = page::parse_limit(&query)?;
    let after = page::parse_cursor(&query, DELIVERY_LIST)?.map_or(0, |[after]| after);
    let fits = |push: &Delivery| waiting.is_none_or(|waiting| push.next_try.is_some() == waiting);
    let mut pushes = context
        .engine
        .with_world(|world| oldest_deliveries(world, NoticeId(after), limit + 1, fits));
    let more = pushes.len() > limit;
    pushes.truncate(limit);
    let last = pushes.last().filter(|_| more);
    let next_cursor = last.map(|last| Cursor::new(DELIVERY_LIST, [last.notice.0]));
    let jobs = pushes.iter().filter_map(|push| push.kind.job());
    let refs = PublicIds::load(&context.engine, jobs, []).await?;
    let items: Vec<_> = pushes.iter().map(|push| OperatorDeliveryView::of(push, &refs)).collect();
    Ok(ok_response(&Page { items, next_cursor }))
}

/// The first deliveries after a given one, in order; never more than that in memory.
pub fn oldest_deliveries(
    world: &World,
    after: NoticeId,
    count: usize,
    fits: impl Fn(&Delivery) -> bool,
) -> Vec<Arc<Delivery>> {
    let mut found = BTreeMap::new();
    for push in world.deliveries().filter(|push| push.notice > after && fits(push)) {
        found.insert(push.notice, push);
        if found.len() > count {
            found.pop_last();
        }
    }
    found.into_values().cloned().collect()
}

/// `POST /v1/operator/pushes/{id}/retry`: makes a delivery due now, whether it waits or was given
/// up.
pub async fn retry_delivery(
    State(context): State<HubContext>,
    by: OperatorCaller,
    PathParam(id): PathParam,
) -> HandlerResult {
    let notice = id.parse().map(NoticeId);
    let notice =
        notice.map_err(|_| Problem::invalid_field("push", "the delivery id must be a number"))?;
    let push = context.engine.with_world(|world| world.delivery(notice).cloned());
    let push = push.ok_or_else(|| Problem::no_such("delivery"))?;
    context.engine.run_once(Command::RetryDelivery { notice }, by.once).await?;
    let refs = PublicIds::load(&context.engine, push.kind.job(), []).await?;
    let now = context.engine.with_world(|world| world.delivery(notice).cloned());
    // It may have been delivered just now.
    Ok(ok_response(&OperatorDeliveryView::of(&now.unwrap_or(push), &refs)))
}

/// The origin of a URL, such as `https://agent.example:8443`.
fn url_origin(url: &str) -> &str {
    let host = url.find("://").map_or(0, |at| at + 3);
    let end = url[host..].find(['/', '?', '#', '\\']).map_or(url.len(), |at| host + at);
    // URLs with user info are never accepted; should one get here, its host is not shown.
    if url[host..end].contains('@') { &url[..host] } else { &url[..end] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_scheme_and_host_of_a_url_are_shown() {
        for (url, shown) in [
            ("https://a.example/hook?token=s3cret", "https://a.example"),
            ("http://127.0.0.1:8010", "http://127.0.0.1:8010"),
            ("https://a.example?x=1", "https://a.example"),
            ("https://a.example#x", "https://a.example"),
            ("https://me:pw@a.example/", "https://"),
            ("local://me", "local://me"),
            ("", ""),
        ] {
            assert_eq!(url_origin(url), shown);
        }
    }
}

//! Webhooks: the caller's deliveries that are waiting, given up or completed.

mod delivered;
pub mod secret;
pub mod test_call;

use std::sync::Arc;

use axum::extract::{RawQuery, State};
use rialto_core::command::Command;
use rialto_core::id::NoticeId;
use rialto_core::notice::Delivery;
use rialto_protocols::adapter::HubContext;
use rialto_protocols::adapter::request::PathParam;
use rialto_protocols::kit::api_doc::Time;
use schemars::JsonSchema;
use serde::Serialize;
use uuid::Uuid;

use super::auth::AgentCaller;
use super::notices;
use super::operator::deliveries::oldest_deliveries;
use super::page::{self, Cursor, Page, parse_choice};
use super::problem::Problem;
use super::public_ids::PublicIds;
use super::response::{HandlerResult, format_time, ok_response};
use crate::v1::params::{PageCursor, PageLimit};

/// The list's tag in cursors.
const WEBHOOK_LIST: char = 'w';

/// A delivery as its receiver sees it, with the full URL.
#[derive(Serialize, JsonSchema)]
pub struct WebhookView {
    id: u64,
    #[schemars(with = "DeliveryState")]
    state: &'static str,
    #[schemars(with = "notices::NoticeName")]
    kind: &'static str,
    job: Option<Uuid>,
    url: String,
    tries: u32,
    next_try: Option<Time>,
    /// The last error.
    error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    delivered_at: Option<Time>,
}

impl WebhookView {
    fn of(push: &Delivery, refs: &PublicIds) -> Self {
        Self {
            id: push.notice.0,
            state: if push.next_try.is_some() { "waiting" } else { "given_up" },
            kind: notices::kind_name(&push.kind),
            job: push.kind.job().and_then(|id| refs.job(id)),
            url: push.url.clone(),
            tries: push.attempts,
            next_try: push.next_try.map(format_time),
            error: push.last_error.clone(),
            delivered_at: None,
        }
    }
}

/// Which deliveries to list.
#[derive(Clone, Copy, PartialEq, Eq)]
enum WebhookStateFilter {
    Waiting,
    GivenUp,
    Delivered,
}

rialto_protocols::words! {
    /// The state of a delivery.
    DeliveryState: "waiting" | "given_up" | "delivered"
}

rialto_protocols::request_members! {
    /// Which deliveries to list.
    WebhookQuery {
        /// By default all that are not completed.
        state: Option<DeliveryState>,
        limit: Option<PageLimit>,
        cursor: Option<PageCursor>,
    }
}

/// `GET /v1/webhooks`: the caller's deliveries that are not completed, oldest first; with
/// `state=delivered` the completed ones, newest first.
pub async fn list_webhooks(
    State(context): State<HubContext>,
    by: AgentCaller,
    RawQuery(raw): RawQuery,
) -> HandlerResult {
    let query = page::parse_query(raw.as_deref(), WebhookQuery::MEMBERS)?;
    let limit = page::parse_limit(&query)?;
    let wanted = parse_choice(
        &query,
        "state",
        &[
            ("waiting", WebhookStateFilter::Waiting),
            ("given_up", WebhookStateFilter::GivenUp),
            ("delivered", WebhookStateFilter::Delivered),
        ],
    )?;
    if wanted == Some(WebhookStateFilter::Delivered) {
        return delivered::list_delivered(&context, by.id, &query, limit).await;
    }
    let after = page::parse_cursor(&query, WEBHOOK_LIST)?.map_or(0, |[after]| after);
    let state = |push: &Delivery| match push.next_try {
        Some(_) => WebhookStateFilter::Waiting,
        None => WebhookStateFilter::GivenUp,
    };
    let own = |push: &Delivery| {
        push.to == Some(by.id) && wanted.is_none_or(|wanted| wanted == state(push))
    };
    let mut pushes = context
        .engine
        .with_world(|world| oldest_deliveries(world, NoticeId(after), limit + 1, own));
    let more = pushes.len() > limit;
    pushes.truncate(limit);
    let last = pushes.last().filter(|_| more);
    let next_cursor = last.map(|last| Cursor::new(WEBHOOK_LIST, [last.notice.0]));
    let jobs = pushes.iter().filter_map(|push| push.kind.job());
    let refs = PublicIds::load(&context.engine, jobs, []).await?;
    let items: Vec<_> = pushes.iter().map(|push| WebhookView::of(push, &refs)).collect();
    Ok(ok_response(&Page { items, next_cursor }))
}

/// `POST /v1/webhooks/{id}/resend`: makes a delivery due now, whether it waits or was given up.
pub async fn resend_webhook(
    State(context): State<HubContext>,
    by: AgentCaller,
    PathParam(id): PathParam,
) -> HandlerResult {
    let notice = id.parse().map(NoticeId).map_err(|_| Problem::not_found())?;
    let find = || context.engine.with_world(|world| world.delivery(notice).cloned());
    let own = find().filter(|push: &Arc<Delivery>| push.to == Some(by.id));
    let push = own.ok_or_else(Problem::not_found)?;
    context.engine.run_once(Command::RetryDelivery { notice }, by.once).await?;
    let refs = PublicIds::load(&context.engine, push.kind.job(), []).await?;
    // It may have been delivered just now.
    Ok(ok_response(&WebhookView::of(&find().unwrap_or(push), &refs)))
}

//! Webhooks: the caller's deliveries that are waiting, given up or completed.

mod delivered;
pub mod secret;
pub mod test_call;

use std::sync::Arc;

use axum::extract::{RawQuery, State};
use rialto_core::command::Command;
use rialto_core::id::NoticeId;
use rialto_core::notice::Push;
use rialto_protocols::adapter::Floor;
use serde::Serialize;
use uuid::Uuid;

use super::response::{Answered, ok, time};
use super::notices;
use super::operator::deliveries::oldest;
use super::page::{self, Cursor, Page, choice};
use super::problem::Problem;
use super::auth::{AsAgent, Part};
use super::public_ids::Refs;

/// The list's tag in cursors.
const WEBHOOKS: char = 'w';

/// A delivery as its receiver sees it, with the full URL.
#[derive(Serialize)]
struct WebhookView {
    id: u64,
    state: &'static str,
    kind: &'static str,
    job: Option<Uuid>,
    url: String,
    tries: u32,
    next_try: Option<String>,
    /// The last error.
    error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    delivered_at: Option<String>,
}

impl WebhookView {
    fn of(push: &Push, refs: &Refs) -> Self {
        Self {
            id: push.notice.0,
            state: if push.next_try.is_some() { "waiting" } else { "given_up" },
            kind: notices::kind(&push.news),
            job: push.news.job().and_then(|id| refs.job(id)),
            url: push.url.clone(),
            tries: push.attempts,
            next_try: push.next_try.map(time),
            error: push.trouble.clone(),
            delivered_at: None,
        }
    }
}

/// Which deliveries to list.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wanted {
    Waiting,
    GivenUp,
    Delivered,
}

/// `GET /v1/webhooks`: the caller's deliveries that are not completed, oldest first; with
/// `state=delivered` the completed ones, newest first.
pub async fn list(State(floor): State<Floor>, by: AsAgent, RawQuery(raw): RawQuery) -> Answered {
    let query = page::query(raw.as_deref(), &["state", "limit", "cursor"])?;
    let limit = page::limit(&query)?;
    let wanted = choice(
        &query,
        "state",
        &[
            ("waiting", Wanted::Waiting),
            ("given_up", Wanted::GivenUp),
            ("delivered", Wanted::Delivered),
        ],
    )?;
    if wanted == Some(Wanted::Delivered) {
        return delivered::list(&floor, by.id, &query, limit).await;
    }
    let after = page::place(&query, WEBHOOKS)?.map_or(0, |[after]| after);
    let state = |push: &Push| match push.next_try {
        Some(_) => Wanted::Waiting,
        None => Wanted::GivenUp,
    };
    let own =
        |push: &Push| push.to == Some(by.id) && wanted.is_none_or(|wanted| wanted == state(push));
    let mut pushes = floor.engine.look(|world| oldest(world, NoticeId(after), limit + 1, own));
    let more = pushes.len() > limit;
    pushes.truncate(limit);
    let last = pushes.last().filter(|_| more);
    let next_cursor = last.map(|last| Cursor::new(WEBHOOKS, [last.notice.0]));
    let jobs = pushes.iter().filter_map(|push| push.news.job());
    let refs = Refs::look_up(&floor.engine, jobs, []).await?;
    let items: Vec<_> = pushes.iter().map(|push| WebhookView::of(push, &refs)).collect();
    Ok(ok(&Page { items, next_cursor }))
}

/// `POST /v1/webhooks/{id}/resend`: makes a delivery due now, whether it waits or was given up.
pub async fn resend(State(floor): State<Floor>, by: AsAgent, Part(id): Part) -> Answered {
    let notice = id.parse().map(NoticeId).map_err(|_| Problem::not_found())?;
    let find = || floor.engine.look(|world| world.push(notice).cloned());
    let own = find().filter(|push: &Arc<Push>| push.to == Some(by.id));
    let push = own.ok_or_else(Problem::not_found)?;
    floor.engine.run_once(Command::PushAgain { notice }, by.once).await?;
    let refs = Refs::look_up(&floor.engine, push.news.job(), []).await?;
    // It may have been delivered just now.
    Ok(ok(&WebhookView::of(&find().unwrap_or(push), &refs)))
}

//! Deliveries that are waiting, and those that were given up.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::{RawQuery, State};
use rialto_core::command::Command;
use rialto_core::id::NoticeId;
use rialto_core::notice::Push;
use rialto_core::world::World;
use rialto_protocols::adapter::Floor;
use serde::Serialize;
use uuid::Uuid;

use crate::v1::response::{Answered, ok, time};
use crate::v1::notices;
use crate::v1::page::{self, Cursor, Page, choice};
use crate::v1::problem::Problem;
use crate::v1::auth::{AsOperator, Part};
use crate::v1::public_ids::Refs;

/// The list's tag in cursors.
const PUSHES: char = 'p';

/// A delivery as the operator sees it, without the URL's path and the content.
#[derive(Serialize)]
struct PushView {
    id: u64,
    state: &'static str,
    kind: &'static str,
    job: Option<Uuid>,
    to: Option<u64>,
    /// Scheme and host; the rest of the URL may contain secrets.
    destination: String,
    attempts: u32,
    next_try: Option<String>,
    trouble: Option<String>,
}

impl PushView {
    fn of(push: &Push, refs: &Refs) -> Self {
        Self {
            id: push.notice.0,
            state: if push.next_try.is_some() { "waiting" } else { "given_up" },
            kind: notices::kind(&push.news),
            job: push.news.job().and_then(|id| refs.job(id)),
            to: push.to.map(|id| id.0),
            destination: origin(&push.url).to_owned(),
            attempts: push.attempts,
            next_try: push.next_try.map(time),
            trouble: push.trouble.clone(),
        }
    }
}

/// `GET /v1/operator/pushes`: oldest first.
pub async fn list(
    State(floor): State<Floor>,
    _by: AsOperator,
    RawQuery(raw): RawQuery,
) -> Answered {
    let query = page::query(raw.as_deref(), &["state", "limit", "cursor"])?;
    let waiting = choice(&query, "state", &[("waiting", true), ("given_up", false)])?;
    let limit = page::limit(&query)?;
    let after = page::place(&query, PUSHES)?.map_or(0, |[after]| after);
    let fits = |push: &Push| waiting.is_none_or(|waiting| push.next_try.is_some() == waiting);
    let mut pushes = floor.engine.look(|world| oldest(world, NoticeId(after), limit + 1, fits));
    let more = pushes.len() > limit;
    pushes.truncate(limit);
    let last = pushes.last().filter(|_| more);
    let next_cursor = last.map(|last| Cursor::new(PUSHES, [last.notice.0]));
    let jobs = pushes.iter().filter_map(|push| push.news.job());
    let refs = Refs::look_up(&floor.engine, jobs, []).await?;
    let items: Vec<_> = pushes.iter().map(|push| PushView::of(push, &refs)).collect();
    Ok(ok(&Page { items, next_cursor }))
}

/// The first deliveries after a given one, in order; never more than that in memory.
pub fn oldest(
    world: &World,
    after: NoticeId,
    count: usize,
    fits: impl Fn(&Push) -> bool,
) -> Vec<Arc<Push>> {
    let mut found = BTreeMap::new();
    for push in world.pushes().filter(|push| push.notice > after && fits(push)) {
        found.insert(push.notice, push);
        if found.len() > count {
            found.pop_last();
        }
    }
    found.into_values().cloned().collect()
}

/// `POST /v1/operator/pushes/{id}/retry`: makes a delivery due now, whether it waits or was given
/// up.
pub async fn retry(State(floor): State<Floor>, by: AsOperator, Part(id): Part) -> Answered {
    let notice = id.parse().map(NoticeId);
    let notice = notice.map_err(|_| Problem::field("push", "the delivery id must be a number"))?;
    let push = floor.engine.look(|world| world.push(notice).cloned());
    let push = push.ok_or_else(|| Problem::no_such("delivery"))?;
    floor.engine.run_once(Command::PushAgain { notice }, by.once).await?;
    let refs = Refs::look_up(&floor.engine, push.news.job(), []).await?;
    let now = floor.engine.look(|world| world.push(notice).cloned());
    // It may have been delivered just now.
    Ok(ok(&PushView::of(&now.unwrap_or(push), &refs)))
}

/// The origin of a URL, such as `https://agent.example:8443`.
fn origin(url: &str) -> &str {
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
            assert_eq!(origin(url), shown);
        }
    }
}

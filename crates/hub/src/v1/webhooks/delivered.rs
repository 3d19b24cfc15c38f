//! Completed deliveries of the caller, found by walking back through its inbox.

use rialto_core::id::{AgentId, NoticeId};
use rialto_core::notice::{Arrival, Notice};
use rialto_engine::Failure;
use rialto_engine::store::{Key, Row};
use rialto_protocols::adapter::Floor;
use rialto_protocols::kit::query::Query;

use super::WebhookView;
use crate::v1::response::{Answered, ok, time};
use crate::v1::notices;
use crate::v1::page::{self, Cursor, Page};
use crate::v1::public_ids::Refs;

/// The list's tag in cursors.
const DELIVERED: char = 'd';
/// Notices read for one page: most inboxes contain some that were never delivered to an endpoint.
const LOOKED_AT_MAX: usize = 2_000;

/// Completed deliveries, newest first. A page may be short and still have a next one.
pub async fn list(floor: &Floor, agent: AgentId, query: &Query, limit: usize) -> Answered {
    let newest = floor.engine.look(|world| world.mailbox(agent).newest);
    let from = match page::place(query, DELIVERED)? {
        // A cursor is not secret: the notice it points to must be the caller's.
        Some([id]) => own(floor, agent, id).await?,
        None => newest,
    };
    let (found, next) = floor
        .engine
        .read(move |reader| {
            let (mut found, mut next): (Vec<(Notice, Arrival)>, _) = (Vec::new(), from);
            for _ in 0..LOOKED_AT_MAX {
                let Some(id) = next.filter(|_| found.len() < limit) else { break };
                let Some(Row::Notice(notice)) = reader.load(Key::Notice(id))? else {
                    next = None;
                    break;
                };
                next = notice.before;
                if let Some(Row::Arrival(arrival)) = reader.load(Key::Arrival(id))? {
                    found.push((notice, arrival));
                }
            }
            Ok((found, next))
        })
        .await?;
    let jobs = found.iter().filter_map(|(notice, _)| notice.news.job());
    let refs = Refs::look_up(&floor.engine, jobs, []).await?;
    let items: Vec<_> =
        found.iter().map(|(notice, arrival)| shown(notice, arrival, &refs)).collect();
    let next_cursor = next.map(|id| Cursor::new(DELIVERED, [id.0]));
    Ok(ok(&Page { items, next_cursor }))
}

/// A notice of the caller's own inbox; `None` for any other.
async fn own(floor: &Floor, agent: AgentId, id: u64) -> Result<Option<NoticeId>, Failure> {
    let id = NoticeId(id);
    let row = floor.engine.row(Key::Notice(id)).await?;
    Ok(matches!(row, Some(Row::Notice(notice)) if notice.to == Some(agent)).then_some(id))
}

fn shown(notice: &Notice, arrival: &Arrival, refs: &Refs) -> WebhookView {
    WebhookView {
        id: notice.id.0,
        state: "delivered",
        kind: notices::kind(&notice.news),
        job: notice.news.job().and_then(|id| refs.job(id)),
        url: arrival.url.clone(),
        tries: arrival.attempts,
        next_try: None,
        error: None,
        delivered_at: Some(time(arrival.at)),
    }
}

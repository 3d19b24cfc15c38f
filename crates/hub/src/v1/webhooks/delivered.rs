//! Completed deliveries of the caller, found by walking back through its inbox.

use rialto_core::id::{AgentId, NoticeId};
use rialto_core::notice::{CompletedDelivery, Notice};
use rialto_engine::Failure;
use rialto_engine::store::{Row, RowKey};
use rialto_protocols::adapter::HubContext;
use rialto_protocols::kit::query::Query;

use super::WebhookView;
use crate::v1::notices;
use crate::v1::page::{self, Cursor, Page};
use crate::v1::public_ids::PublicIds;
use crate::v1::response::{HandlerResult, format_time, ok_response};

/// The list's tag in cursors.
const DELIVERED_LIST: char = 'd';
/// Notices read for one page: most inboxes contain some that were never delivered to an endpoint.
const NOTICES_READ_MAX: usize = 2_000;

/// Completed deliveries, newest first. A page may be short and still have a next one.
pub async fn list_delivered(
    context: &HubContext,
    agent: AgentId,
    query: &Query,
    limit: usize,
) -> HandlerResult {
    let newest = context.engine.with_world(|world| world.inbox(agent).newest);
    let from = match page::parse_cursor(query, DELIVERED_LIST)? {
        // A cursor is not secret: the notice it points to must be the caller's.
        Some([id]) => find_own_notice(context, agent, id).await?,
        None => newest,
    };
    let (found, next) = context
        .engine
        .read_store(move |reader| {
            let (mut found, mut next): (Vec<(Notice, CompletedDelivery)>, _) = (Vec::new(), from);
            for _ in 0..NOTICES_READ_MAX {
                let Some(id) = next.filter(|_| found.len() < limit) else { break };
                let Some(Row::Notice(notice)) = reader.load(RowKey::Notice(id))? else {
                    next = None;
                    break;
                };
                next = notice.before;
                if let Some(Row::Arrival(arrival)) = reader.load(RowKey::Arrival(id))? {
                    found.push((notice, arrival));
                }
            }
            Ok((found, next))
        })
        .await?;
    let jobs = found.iter().filter_map(|(notice, _)| notice.news.job());
    let refs = PublicIds::load(&context.engine, jobs, []).await?;
    let items: Vec<_> =
        found.iter().map(|(notice, arrival)| delivered_view(notice, arrival, &refs)).collect();
    let next_cursor = next.map(|id| Cursor::new(DELIVERED_LIST, [id.0]));
    Ok(ok_response(&Page { items, next_cursor }))
}

/// A notice of the caller's own inbox; `None` for any other.
async fn find_own_notice(
    context: &HubContext,
    agent: AgentId,
    id: u64,
) -> Result<Option<NoticeId>, Failure> {
    let id = NoticeId(id);
    let row = context.engine.load_row(RowKey::Notice(id)).await?;
    Ok(matches!(row, Some(Row::Notice(notice)) if notice.to == Some(agent)).then_some(id))
}

fn delivered_view(notice: &Notice, arrival: &CompletedDelivery, refs: &PublicIds) -> WebhookView {
    WebhookView {
        id: notice.id.0,
        state: "delivered",
        kind: notices::kind_name(&notice.news),
        job: notice.news.job().and_then(|id| refs.job(id)),
        url: arrival.url.clone(),
        tries: arrival.attempts,
        next_try: None,
        error: None,
        delivered_at: Some(format_time(arrival.at)),
    }
}

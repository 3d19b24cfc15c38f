//! `GET /agent/messages`: the messages an agent sent and received, oldest first.
//!
//! A page ends when it is long enough. `metadata.next_cursor` then leads to later messages.

use std::collections::VecDeque;
use std::sync::Arc;

use axum::extract::{RawQuery, State};
use rialto_core::id::{AgentId, NoticeId};
use rialto_core::notice::{CompletedDelivery, Notice, NoticeKind};
use rialto_core::time::Timestamp;
use rialto_core::world::World;
use rialto_engine::store::{Reader, Row, RowKey, StoreError};

use super::{HandlerResult, engine_error, malformed_error, read_query};
use crate::adapter::inbox_stream::load_jobs;
use crate::adapter::{HubContext, RowsRead};
use crate::kit::budget::{ANSWER_BYTES, ByteBudget};
use crate::kit::fields::Malformed;
use crate::kit::query::Query;
use crate::kit::rfc3339;
use crate::relay::letter::OutgoingEnvelope;
use crate::relay::proof::AgentCaller;
use crate::relay::shape::{self, write_json_string};
use crate::relay::state::{self, MessageState as Standing};
use crate::relay::{record, refusals};

/// The default and the maximum number of messages on one page.
const LIMIT: i64 = 100;
const LIMIT_MAX: i64 = 500;
/// How many messages are read for one page. A reader with more of them asks from a later time.
const WALK_MAX: usize = 20_000;

/// The parameters of the request.
#[derive(Clone, Copy, Debug)]
struct HistoryQuery {
    agent: AgentId,
    since: Option<Timestamp>,
    after: Option<u64>,
    /// The last message of the previous page.
    from: Option<NoticeId>,
    limit: usize,
}

impl HistoryQuery {
    fn read(agent: AgentId, query: &Query) -> Result<Self, Malformed> {
        let wrong = |why| Malformed { field: "?since".to_owned(), message: format!("since {why}") };
        let since = query.text("since").map(rfc3339::parse).transpose().map_err(wrong)?;
        let after = query.integer("after", 0..=i64::MAX)?.map(i64::unsigned_abs);
        let from = query.integer("cursor", 0..=i64::MAX)?.map(|id| NoticeId(id.unsigned_abs()));
        let limit = query.integer("limit", 1..=LIMIT_MAX)?.unwrap_or(LIMIT).unsigned_abs();
        Ok(Self { agent, since, after, from, limit: limit as usize })
    }

    /// Whether the newest messages are wanted, and not those from a given point on.
    fn newest(&self) -> bool {
        self.since.is_none() && self.after.is_none() && self.from.is_none()
    }
}

type HistoryRows = Vec<(Arc<Notice>, Option<CompletedDelivery>)>;

pub async fn list(
    State(context): State<HubContext>,
    by: AgentCaller,
    RawQuery(raw): RawQuery,
) -> HandlerResult {
    let query = read_query(&context, raw.as_deref())?;
    let wanted = HistoryQuery::read(by.id, &query).map_err(|bad| malformed_error(&context, bad))?;
    let mailbox = context.engine.with_world(|world| world.inbox(by.id));
    let (newest, sent) = (mailbox.newest, mailbox.last_sent);
    let found = context.engine.read_store(move |reader| {
        let received = walk(reader, newest, &wanted, wanted.from, |notice| notice.before)?;
        // What the agent sent before the last message it has seen is excluded too.
        let from = received.last_seen.max(wanted.from);
        let own = walk(reader, sent, &wanted, from, |notice| match notice.news {
            NoticeKind::Message { previous: follows, .. } => follows,
            _ => None,
        })?;
        let left_out = [received.left_out, own.left_out].into_iter().flatten().min();
        let rows_read = received.rows_read + own.rows_read;
        let mut found = received.found;
        // A message to oneself is in both chains.
        found.extend(own.found.into_iter().filter(|own| own.to != Some(wanted.agent)));
        // Nothing later than a left-out message is shown: the cursor would skip the latter.
        found.retain(|notice| left_out.is_none_or(|first| notice.id < first));
        found.sort_by_key(|notice| notice.id);
        let more = left_out.is_some() || found.len() > wanted.limit;
        let spare = found.len().saturating_sub(wanted.limit);
        match wanted.newest() {
            true => drop(found.drain(..spare)),
            false => found.truncate(wanted.limit),
        }
        let mut rows: HistoryRows = Vec::with_capacity(found.len());
        for notice in found {
            let arrival = match reader.load(RowKey::Arrival(notice.id))? {
                Some(Row::Arrival(arrival)) => Some(arrival),
                _ => None,
            };
            rows.push((Arc::new(notice), arrival));
        }
        Ok((rows, more, rows_read))
    });
    let (mut found, more, rows_read) =
        found.await.map_err(|failure| engine_error(&context, failure))?;
    // Of the newest messages the last are kept, of others the first.
    if wanted.newest() {
        found.reverse();
    }
    let (mut texts, mut budget, mut last) = (Vec::new(), ByteBudget::default(), None);
    let all = found.len();
    for (taken, (notice, arrival)) in found.into_iter().enumerate() {
        let jobs = load_jobs(&context.engine, std::slice::from_ref(&notice)).await;
        let jobs = jobs.map_err(|failure| engine_error(&context, failure))?;
        let job = notice.news.job().and_then(|job| jobs.get(&job)).map(|job| &**job);
        let mut text = Vec::new();
        let handed_over = state::is_handed_over(&context, &notice);
        context.engine.with_world(|world| {
            if let Some(envelope) = OutgoingEnvelope::of(world, &notice, job) {
                let standing = state::derive_state(world, &notice, arrival, false, handed_over);
                write(&mut text, &context, world, by.id, &envelope, &notice, &standing);
            }
        });
        if !text.is_empty() && !budget.take(text.len()) {
            break;
        }
        last = Some((taken + 1, notice.id));
        texts.extend((!text.is_empty()).then_some(text));
    }
    if wanted.newest() {
        texts.reverse();
    }
    let cut = last.is_some_and(|(taken, _)| taken < all);
    let next = last.filter(|_| (more || cut) && !wanted.newest()).map(|(_, id)| id.to_string());
    let data = [b"[".as_slice(), &texts.join(&b","[..]), b"]"].concat();
    let data = String::from_utf8(data).unwrap_or_default();
    let page = shape::page_response(&data, next.as_deref(), context.engine.now());
    let mut answer = refusals::json_response(200, page);
    answer.extensions_mut().insert(RowsRead(rows_read));
    Ok(answer)
}

/// The result of a walk back along a chain.
struct HistoryScan {
    found: Vec<Notice>,
    /// The received message before the first wanted one, if the walk ended there.
    last_seen: Option<NoticeId>,
    /// The first of those left for the next page.
    left_out: Option<NoticeId>,
    rows_read: usize,
}

/// Walks back along a chain of messages to the first wanted one; the result is oldest first. Holds
/// no more than one page shows.
fn walk(
    reader: &mut dyn Reader,
    mut at: Option<NoticeId>,
    wanted: &HistoryQuery,
    from: Option<NoticeId>,
    before: impl Fn(&Notice) -> Option<NoticeId>,
) -> Result<HistoryScan, StoreError> {
    let (mut found, mut bytes) = (VecDeque::<Notice>::new(), 0);
    let (mut last_seen, mut left_out, mut rows_read) = (None, None, 0);
    while rows_read < WALK_MAX {
        let Some(id) = at.filter(|id| from.is_none_or(|from| *id > from)) else { break };
        let Some(Row::Notice(notice)) = reader.load(RowKey::Notice(id))? else {
            return Err(StoreError::Corrupt(format!("notice {id} is referenced but missing")));
        };
        rows_read += 1;
        let received = notice.to == Some(wanted.agent);
        if received && wanted.after.is_some_and(|after| notice.position <= after) {
            last_seen = Some(id);
            break;
        }
        let full = found.len() >= wanted.limit || bytes > ANSWER_BYTES;
        let early = wanted.since.is_some_and(|since| notice.at < since);
        if early || wanted.newest() && full {
            break;
        }
        at = before(&notice);
        if !is_said(&notice.news) {
            continue;
        }
        bytes += notice.news.content_bytes();
        found.push_front(notice);
        // When reading from a given point on, the later ones are left for the next page.
        let too_many = |found: &VecDeque<Notice>, bytes: usize| {
            found.len() > wanted.limit || bytes > ANSWER_BYTES && found.len() > 1
        };
        while !wanted.newest() && too_many(&found, bytes) {
            let Some(later) = found.pop_back() else { break };
            bytes -= later.news.content_bytes();
            left_out = Some(later.id);
        }
    }
    Ok(HistoryScan { found: found.into(), last_seen, left_out, rows_read })
}

/// Whether it is a message, or is shown as one.
fn is_said(news: &NoticeKind) -> bool {
    use NoticeKind::*;
    matches!(news, Message { .. } | Assigned { .. } | Unassigned { .. } | Ended { .. })
}

fn write(
    out: &mut Vec<u8>,
    context: &HubContext,
    world: &World,
    reader: AgentId,
    envelope: &OutgoingEnvelope<'_>,
    notice: &Notice,
    standing: &Standing,
) {
    let received = notice.to == Some(reader);
    let id = if received { notice.position.to_string() } else { "null".to_owned() };
    let via = match standing {
        Standing::Delivered { .. } | Standing::Acked { attempts: 1.., .. } => "webhook",
        Standing::Streamed | Standing::Acked { .. } => "sse",
        Standing::Queued | Standing::Failed { .. } | Standing::Expired => "queued",
    };
    out.extend_from_slice(format!("{{\"id\":{id}").as_bytes());
    for (name, value) in [
        (",\"trace_id\":", context.relay.trace_ids.of(notice.id).to_string().as_str()),
        (",\"sender_id\":", &envelope.sender_id),
        (",\"receiver_id\":", &record::address_of(world, notice.to)),
        (",\"delivered_via\":", via),
        (",\"timestamp\":", &rfc3339::format_millis(notice.at)),
    ] {
        out.extend_from_slice(name.as_bytes());
        write_json_string(out, value);
    }
    out.extend_from_slice(b",\"envelope\":");
    out.extend_from_slice(envelope.envelope.as_bytes());
    envelope.annotations.write(out);
    out.push(b'}');
}

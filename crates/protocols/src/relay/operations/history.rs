//! Past messages: the list of an agent's own, and the state of one.

use std::collections::VecDeque;
use std::sync::Arc;

use axum::extract::{RawQuery, State};
use rialto_core::command::JobRef;
use rialto_core::id::{AgentId, NoticeId};
use rialto_core::job::{Job, State as JobState};
use rialto_core::notice::{CompletedDelivery, Notice, NoticeKind};
use rialto_core::time::Timestamp;
use rialto_core::world::World;
use rialto_engine::store::{Reader, Row, RowKey, StoreError};
use uuid::fmt::Hyphenated;

use super::{read_query, success};
use crate::adapter::RowsRead;
use crate::adapter::inbox_stream::load_jobs;
use crate::adapter::request::PathParam;
use crate::kit::budget::{ANSWER_BYTES, ByteBudget};
use crate::kit::fields::Malformed;
use crate::kit::object::ObjectWriter;
use crate::kit::query::Query;
use crate::kit::rfc3339;
use crate::relay::RelayContext;
use crate::relay::auth::AgentCaller;
use crate::relay::delivery::OutgoingEnvelope;
use crate::relay::errors::{
    ErrorResponse, HandlerResult, engine_error, error_response, json_response, malformed_error,
};
use crate::relay::message::{self, MessageState};
use crate::relay::wire::response::{page_response, write_json_string};
use crate::relay::{Code, Failure, ID, translate};

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

/// `GET /agent/messages`: the messages an agent sent and received, oldest first. A page ends when it
/// is long enough; `metadata.next_cursor` then leads to later messages.
pub async fn list_messages(
    State(context): State<RelayContext>,
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
        if wanted.newest() {
            found.drain(..spare);
        } else {
            found.truncate(wanted.limit);
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
        let handed_over = message::is_handed_over(&context, &notice);
        context.engine.with_world(|world| {
            if let Some(envelope) = OutgoingEnvelope::of(world, &notice, job) {
                let state = message::derive_state(world, &notice, arrival, false, handed_over);
                write_message(&mut text, &context, world, by.id, &envelope, &notice, &state);
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
    let page = page_response(&data, next.as_deref(), context.engine.now());
    let mut answer = json_response(200, page);
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
    matches!(
        news,
        Message { .. }
            | Assigned { .. }
            | Unassigned { .. }
            | InputRequested { .. }
            | InputProvided { .. }
            | Ended { .. }
    )
}

fn write_message(
    out: &mut Vec<u8>,
    context: &RelayContext,
    world: &World,
    reader: AgentId,
    envelope: &OutgoingEnvelope<'_>,
    notice: &Notice,
    state: &MessageState,
) {
    let received = notice.to == Some(reader);
    let id = if received { notice.position.to_string() } else { "null".to_owned() };
    let via = match state {
        MessageState::Delivered { .. } | MessageState::Acked { attempts: 1.., .. } => "webhook",
        MessageState::Streamed | MessageState::Acked { .. } => "sse",
        MessageState::Queued | MessageState::Failed { .. } | MessageState::Expired => "queued",
    };
    out.extend_from_slice(format!("{{\"id\":{id}").as_bytes());
    for (name, value) in [
        (",\"trace_id\":", context.state.trace_ids.of(notice.id).to_string().as_str()),
        (",\"sender_id\":", &envelope.sender_id),
        (",\"receiver_id\":", &translate::address_of(world, notice.to)),
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

/// `GET /messages/{trace_id}`: the state of a message, for its sender and its receiver.
pub async fn show_message(
    State(context): State<RelayContext>,
    by: AgentCaller,
    PathParam(trace): PathParam,
) -> HandlerResult {
    let unknown = || error_response(&context, Failure::new(Code::NotFound, "message not found"));
    let Some(notice) = context.state.trace_ids.read_text(&trace) else {
        let job = find_job(&context, by.id, &trace).await?.ok_or_else(unknown)?;
        let shown = context.engine.with_world(|world| write_job(world, &job));
        return Ok(success(&context, 200, |out| out.extend_from_slice(shown.as_bytes())));
    };
    let found = message::load_message(&context, notice).await;
    let found = found.map_err(|failure| engine_error(&context, failure))?;
    let message = found.filter(|message| message.is_visible_to(by.id)).ok_or_else(unknown)?;
    let state = message::message_state(&context, notice).await;
    let state = state.map_err(|failure| engine_error(&context, failure))?;
    Ok(success(&context, 200, |out| message.write(out, &context, &trace, &state)))
}

/// A message that is work has the job's id as its trace id, for the job's two parties.
async fn find_job(
    context: &RelayContext,
    reader: AgentId,
    trace: &str,
) -> Result<Option<Arc<Job>>, ErrorResponse> {
    let Ok(uuid) = trace.parse::<Hyphenated>() else { return Ok(None) };
    let found = context.engine.find_job(&JobRef::Uuid(uuid.into_uuid())).await;
    let found = found.map_err(|failure| engine_error(context, failure))?;
    Ok(found.filter(|job| job.is_requested_by(reader) || job.worker() == Some(reader)))
}

fn write_job(world: &World, job: &Job) -> String {
    let word = match job.state {
        JobState::Open | JobState::Queued | JobState::Negotiating | JobState::Deferred { .. } => {
            "queued"
        }
        JobState::Assigned
        | JobState::Running
        | JobState::InputRequired { .. }
        | JobState::Completed => "delivered",
        JobState::Failed | JobState::Cancelled | JobState::Withdrawn => "failed",
        JobState::Expired => "expired",
    };
    let parties = translate::party_addresses(world, job);
    ObjectWriter::new()
        .uuid("trace_id", job.uuid)
        .text("sender_id", &parties.requester)
        .text("receiver_id", &parties.worker)
        .text("state", word)
        .time("timestamp", job.request.opened_at)
        .integer("attempts", 0)
        .maybe_raw("envelope", (job.request.origin == ID).then_some(job.request.meta.as_str()))
        .finish()
}

//! `GET /agent/messages`: what an agent sent and received, oldest first.

use std::sync::Arc;

use axum::extract::{RawQuery, State};
use rialto_core::id::{AgentId, NoticeId};
use rialto_core::notice::{Arrival, News, Notice};
use rialto_core::time::Timestamp;
use rialto_core::world::World;
use rialto_engine::store::{Key, Reader, Row, StoreError};

use super::{Answered, done, failed, malformed, query};
use crate::face::Floor;
use crate::face::feed::jobs_of;
use crate::kit::fields::Malformed;
use crate::kit::query::Query;
use crate::kit::stamp;
use crate::relay::letter::Letter;
use crate::relay::proof::AsAgent;
use crate::relay::record;
use crate::relay::shape::text;
use crate::relay::state::{self, State as Standing};

/// Messages on one page.
const LIMIT: i64 = 100;
const LIMIT_MAX: i64 = 500;
/// Messages looked at for one page; whoever has more of them asks from a later moment.
const WALK_MAX: usize = 20_000;

/// What is asked for.
#[derive(Clone, Copy, Debug)]
struct Wanted {
    agent: AgentId,
    since: Option<Timestamp>,
    after: Option<u64>,
    limit: usize,
}

impl Wanted {
    fn read(agent: AgentId, query: &Query) -> Result<Self, Malformed> {
        let wrong = |why| Malformed { field: "?since".to_owned(), message: format!("since {why}") };
        let since = query.text("since").map(stamp::parse).transpose().map_err(wrong)?;
        let after = query.integer("after", 0..=i64::MAX)?.map(i64::unsigned_abs);
        let limit = query.integer("limit", 1..=LIMIT_MAX)?.unwrap_or(LIMIT).unsigned_abs();
        Ok(Self { agent, since, after, limit: limit as usize })
    }
}

type Found = Vec<(Arc<Notice>, Option<Arrival>)>;

pub async fn list(State(floor): State<Floor>, by: AsAgent, RawQuery(raw): RawQuery) -> Answered {
    let query = query(&floor, raw.as_deref())?;
    let wanted = Wanted::read(by.id, &query).map_err(|bad| malformed(&floor, bad))?;
    let mailbox = floor.engine.look(|world| world.mailbox(by.id));
    let (newest, sent) = (mailbox.newest, mailbox.sent);
    let found = floor.engine.read(move |reader| {
        let (mut found, last_seen) = walk(reader, newest, &wanted, None, |notice| notice.before)?;
        // What the agent wrote before the last message it has seen is not wanted either.
        let (own, _) = walk(reader, sent, &wanted, last_seen, |notice| match notice.news {
            News::Message { follows, .. } => follows,
            _ => None,
        })?;
        // A message to oneself is in both walks.
        found.extend(own.into_iter().filter(|own| own.to != Some(wanted.agent)));
        found.sort_by_key(|notice| notice.id);
        let spare = found.len().saturating_sub(wanted.limit);
        match wanted.since.is_some() || wanted.after.is_some() {
            true => found.truncate(wanted.limit),
            false => drop(found.drain(..spare)),
        }
        let mut rows: Found = Vec::with_capacity(found.len());
        for notice in found {
            let arrival = match reader.load(Key::Arrival(notice.id))? {
                Some(Row::Arrival(arrival)) => Some(arrival),
                _ => None,
            };
            rows.push((Arc::new(notice), arrival));
        }
        Ok(rows)
    });
    let found = found.await.map_err(|failure| failed(&floor, failure))?;
    let page: Vec<_> = found.iter().map(|(notice, _)| notice.clone()).collect();
    let jobs = jobs_of(&floor.engine, &page).await.map_err(|failure| failed(&floor, failure))?;
    Ok(done(&floor, 200, |out| {
        out.push(b'[');
        floor.engine.look(|world| {
            for (notice, arrival) in found {
                let job = notice.news.job().and_then(|job| jobs.get(&job)).map(|job| &**job);
                let Some(letter) = Letter::of(world, &notice, job) else { continue };
                out.extend_from_slice(if out.ends_with(b"[") { b"" } else { b"," });
                write(out, &floor, world, by.id, &letter, &notice, arrival);
            }
        });
        out.push(b']');
    }))
}

/// Back along a chain of messages to the first wanted one, oldest first; and the received one
/// before it, if the way ended there.
fn walk(
    reader: &mut dyn Reader,
    mut at: Option<NoticeId>,
    wanted: &Wanted,
    last_seen: Option<NoticeId>,
    before: impl Fn(&Notice) -> Option<NoticeId>,
) -> Result<(Vec<Notice>, Option<NoticeId>), StoreError> {
    let mut found = std::collections::VecDeque::new();
    let open_ended = wanted.since.is_none() && wanted.after.is_none();
    for _ in 0..WALK_MAX {
        let Some(id) = at.filter(|id| last_seen.is_none_or(|seen| *id > seen)) else { break };
        let Some(Row::Notice(notice)) = reader.load(Key::Notice(id))? else {
            return Err(StoreError::Corrupt(format!("notice {id} is named and not there")));
        };
        let received = notice.to == Some(wanted.agent);
        if received && wanted.after.is_some_and(|after| notice.position <= after) {
            return Ok((found.into(), Some(id)));
        }
        let early = wanted.since.is_some_and(|since| notice.at < since)
            || open_ended && found.len() >= wanted.limit;
        if early {
            break;
        }
        at = before(&notice);
        if is_said(&notice.news) {
            found.push_front(notice);
        }
    }
    Ok((found.into(), None))
}

/// Whether it is a message, or told as one.
fn is_said(news: &News) -> bool {
    use News::*;
    matches!(news, Message { .. } | Assigned { .. } | TakenBack { .. } | Ended { .. })
}

fn write(
    out: &mut Vec<u8>,
    floor: &Floor,
    world: &World,
    reader: AgentId,
    letter: &Letter<'_>,
    notice: &Notice,
    arrival: Option<Arrival>,
) {
    let received = notice.to == Some(reader);
    let id = if received { notice.position.to_string() } else { "null".to_owned() };
    let via = match state::derive(world, notice, arrival, false) {
        Standing::Delivered { .. } | Standing::Acked { attempts: 1.., .. } => "webhook",
        Standing::Presented | Standing::Acked { .. } => "sse",
        Standing::Queued | Standing::Failed { .. } | Standing::Expired => "queued",
    };
    out.extend_from_slice(format!("{{\"id\":{id}").as_bytes());
    for (name, value) in [
        (",\"trace_id\":", floor.relay.traces.of(notice.id).to_string().as_str()),
        (",\"sender_id\":", &letter.sender_id),
        (",\"receiver_id\":", &record::address_of(world, notice.to)),
        (",\"delivered_via\":", via),
        (",\"timestamp\":", &stamp::millis(notice.at)),
    ] {
        out.extend_from_slice(name.as_bytes());
        text(out, value);
    }
    out.extend_from_slice(b",\"envelope\":");
    out.extend_from_slice(letter.envelope.as_bytes());
    out.push(b'}');
}

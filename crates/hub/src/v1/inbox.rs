//! The inbox: read after a position, acknowledged up to a position.

use axum::extract::{RawQuery, State};
use rialto_core::command::Command;
use rialto_protocols::adapter::Floor;
use rialto_protocols::kit::budget::ByteBudget;
use rialto_protocols::kit::fields::Malformed;
use rialto_protocols::kit::ijson;
use rialto_protocols::kit::query::Query;
use serde::Serialize;
use serde_json::value::RawValue;

use super::response::{Answered, ok};
use super::strict_fields;
use super::me::InboxView;
use super::notices;
use super::page::{self, Cursor};
use super::auth::{AsAgent, Sent};

/// The list's tag in cursors.
const NOTICES: char = 'n';

#[derive(Serialize)]
struct Inbox {
    items: Vec<Box<RawValue>>,
    next_cursor: Option<Cursor>,
    #[serde(flatten)]
    stands: InboxView,
}

/// `GET /v1/inbox`: notices after a position; by default those not yet acknowledged.
pub async fn list(State(floor): State<Floor>, by: AsAgent, RawQuery(raw): RawQuery) -> Answered {
    let query = page::query(raw.as_deref(), &["after", "limit", "cursor"])?;
    let limit = page::limit(&query)?;
    let inbox = floor.engine.look(|world| world.mailbox(by.id));
    let after = match page::place(&query, NOTICES)? {
        Some([after]) => after,
        None => position(&query)?.unwrap_or(inbox.acked),
    };
    let told = notices::after(&floor.engine, by.id, after, limit).await?;
    let (mut items, mut last, mut budget) = (Vec::new(), after, ByteBudget::default());
    for told in told {
        let Some(text) = budget.write(&told.members) else { break };
        items.push(text);
        last = told.position;
    }
    let next_cursor = (last < inbox.head).then(|| Cursor::new(NOTICES, [last]));
    Ok(ok(&Inbox { items, next_cursor, stands: InboxView::of(inbox) }))
}

/// `?after=`: the last position the caller has.
pub fn position(query: &Query) -> Result<Option<u64>, Malformed> {
    Ok(query.integer("after", 0..=i64::MAX)?.map(i64::unsigned_abs))
}

/// `POST /v1/inbox/ack`: acknowledges all notices up to a position.
pub async fn ack(State(floor): State<Floor>, by: AsAgent, Sent(body): Sent) -> Answered {
    let json = ijson::read(&body).map_err(Malformed::from)?;
    let f = strict_fields::fields(&json, &["up_to"])?;
    let up_to = f.required("up_to", f.integer("up_to")?)?;
    let up_to = u64::try_from(up_to).map_err(|_| f.fail("up_to", "must not be negative"))?;
    floor.engine.run_once(Command::Ack { agent: by.id, up_to }, by.once).await?;
    Ok(ok(&InboxView::of(floor.engine.look(|world| world.mailbox(by.id)))))
}

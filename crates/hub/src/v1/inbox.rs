//! The inbox: read after a position, acknowledged up to a position.

use axum::extract::{RawQuery, State};
use rialto_core::command::Command;
use rialto_protocols::adapter::HubContext;
use rialto_protocols::adapter::request::BodyBytes;
use rialto_protocols::kit::budget::ByteBudget;
use rialto_protocols::kit::fields::Malformed;
use rialto_protocols::kit::ijson;
use rialto_protocols::kit::query::Query;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::value::RawValue;

use super::auth::AgentCaller;
use super::me::InboxView;
use super::notices;
use super::notices::NoticeView;
use super::page::{self, Cursor};
use super::response::{HandlerResult, ok_response};
use super::strict_fields;
use crate::v1::params::{PageCursor, PageLimit, Position};

/// The list's tag in cursors.
const NOTICE_LIST: char = 'n';

#[derive(Serialize, JsonSchema)]
pub struct InboxPage {
    #[schemars(with = "Vec<NoticeView>")]
    items: Vec<Box<RawValue>>,
    next_cursor: Option<Cursor>,
    #[serde(flatten)]
    positions: InboxView,
}

rialto_protocols::request_members! {
    /// Which notices to list.
    InboxQuery {
        /// The last position read; by default the last that was acknowledged.
        after: Option<Position>,
        limit: Option<PageLimit>,
        cursor: Option<PageCursor>,
    }
}

rialto_protocols::request_members! {
    /// The body of `POST /v1/inbox/ack`.
    #[schemars(deny_unknown_fields)]
    AckBody {
        /// The last position that is acknowledged.
        up_to: u64,
    }
}

/// `GET /v1/inbox`: notices after a position; by default those not yet acknowledged.
pub async fn list_notices(
    State(context): State<HubContext>,
    by: AgentCaller,
    RawQuery(raw): RawQuery,
) -> HandlerResult {
    let query = page::parse_query(raw.as_deref(), InboxQuery::MEMBERS)?;
    let limit = page::parse_limit(&query)?;
    let inbox = context.engine.with_world(|world| world.inbox(by.id));
    let after = match page::parse_cursor(&query, NOTICE_LIST)? {
        Some([after]) => after,
        None => parse_after(&query)?.unwrap_or(inbox.acked),
    };
    let notices = notices::load_after(&context.engine, by.id, after, limit).await?;
    let (mut items, mut last, mut budget) = (Vec::new(), after, ByteBudget::default());
    for notice in notices {
        let Some(text) = budget.write(&notice) else { break };
        items.push(text);
        last = notice.position;
    }
    let next_cursor = (last < inbox.head).then(|| Cursor::new(NOTICE_LIST, [last]));
    Ok(ok_response(&InboxPage { items, next_cursor, positions: InboxView::of(inbox) }))
}

/// `?after=`: the last position the caller has.
pub fn parse_after(query: &Query) -> Result<Option<u64>, Malformed> {
    Ok(query.integer("after", 0..=i64::MAX)?.map(i64::unsigned_abs))
}

/// `POST /v1/inbox/ack`: acknowledges all notices up to a position.
pub async fn ack_notices(
    State(context): State<HubContext>,
    by: AgentCaller,
    BodyBytes(body): BodyBytes,
) -> HandlerResult {
    let json = ijson::read(&body).map_err(Malformed::from)?;
    let f = strict_fields::parse_fields(&json, AckBody::MEMBERS)?;
    let up_to = f.required("up_to", f.integer("up_to")?)?;
    let up_to = u64::try_from(up_to).map_err(|_| f.malformed("up_to", "must not be negative"))?;
    context.engine.run_once(Command::Ack { agent: by.id, up_to }, by.once).await?;
    Ok(ok_response(&InboxView::of(context.engine.with_world(|world| world.inbox(by.id)))))
}

//! Agents of this protocol: list, unregister.

use axum::extract::{RawQuery, State};
use axum::response::Response;
use rialto_core::command::Command;
use rialto_core::id::AgentId;

use super::PathNames;
use crate::a2a::auth;
use crate::a2a::directory::{self, AgentFilter, Words};
use crate::a2a::errors::{self, http_response, json_response};
use crate::a2a::wire::error::{A2aError, Reason};
use crate::a2a::wire::message::write_array;
use crate::a2a::{A2aContext, ID};
use crate::adapter::RowsRead;
use crate::adapter::caller::{Caller, KnownCaller};
use crate::adapter::request::MatchedOperation;
use crate::kit::object::ObjectWriter;
use crate::kit::query::Query;

/// Agents on a page of the list.
const LIMIT: i64 = 50;
const LIMIT_MAX: i64 = 200;

/// `DELETE /a2a/agents/{name}`.
pub async fn remove(
    State(context): State<A2aContext>,
    known: KnownCaller,
    names: PathNames,
    matched: Matched,
) -> Response {
    match try_remove(&context, known, &names).await {
        Ok(response) => response,
        Err(RemoveError::NotItsKey) => auth::other_key_response(&context, known, &matched.0),
        Err(RemoveError::Other(error)) => http_response(&error),
    }
}

enum RemoveError {
    NotItsKey,
    Other(A2aError),
}

async fn try_remove(
    context: &A2aContext,
    known: KnownCaller,
    names: &PathNames,
) -> Result<Response, RemoveError> {
    let name = names.agent.clone().unwrap_or_default();
    let missing = || RemoveError::Other(A2aError::new(Reason::NotFound, "agent not found"));
    let found = context.engine.with_world(|world| directory::find_agent(world, &name));
    let is_own = |agent: &AgentId| known.0.caller == Caller::Agent(*agent);
    let by_operator = known.0.is_operator();
    let agent = match found {
        Some(agent) if agent.home == ID && (by_operator || is_own(&agent.id)) => agent.id,
        None if by_operator => return Err(missing()),
        // Agents of other protocols are unregistered there.
        Some(agent) if by_operator || is_own(&agent.id) => {
            let text = format!("this agent is registered with {}; unregister it there", agent.home);
            return Err(RemoveError::Other(A2aError::new(Reason::Conflict, text)));
        }
        _ => return Err(RemoveError::NotItsKey),
    };
    let done = context.engine.run(Command::Remove { agent, by_operator }).await;
    done.map_err(|failure| RemoveError::Other(errors::from_engine(&failure)))?;
    let body = ObjectWriter::new().text("status", "unregistered").text("name", &name).finish();
    Ok(json_response(200, body))
}

/// The operation of a request, for its errors.
pub struct Matched(pub crate::adapter::OperationInfo);

impl<S: Sync> axum::extract::FromRequestParts<S> for Matched {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(
        parts: &mut axum::http::request::Parts,
        _: &S,
    ) -> Result<Self, Self::Rejection> {
        Ok(Self(MatchedOperation::of(&parts.extensions).operation.info.clone()))
    }
}

/// `GET /a2a/agents`.
pub async fn list(State(context): State<A2aContext>, RawQuery(raw): RawQuery) -> Response {
    match try_list(&context, raw.as_deref().unwrap_or_default()) {
        Ok(response) => response,
        Err(error) => http_response(&error),
    }
}

fn try_list(context: &A2aContext, raw: &str) -> Result<Response, A2aError> {
    let query = Query::read(raw).map_err(|bad| A2aError::malformed("query", &bad))?;
    let text = |name: &str| query.text(name).filter(|text| !text.is_empty()).map(str::to_owned);
    let limit = query.integer("limit", 1..=LIMIT_MAX);
    let limit = limit.map_err(|bad| A2aError::malformed("limit", &bad))?;
    let limit = usize::try_from(limit.unwrap_or(LIMIT)).unwrap_or_default();
    let after = text("cursor").map_or(Ok(0), |cursor| cursor.parse::<u64>());
    let wrong = |_| A2aError::invalid_field("cursor", "must be a next_cursor of this list");
    let after = AgentId(after.map_err(wrong)?);
    let filter = AgentFilter {
        skill: text("skill"),
        words: Words::of(text("text").as_deref().unwrap_or_default()),
        protocol: text("protocol"),
        ..AgentFilter::default()
    };
    let now = context.engine.now();
    let page = directory::list(context, &filter, after, limit, |world, agent, skill| {
        Some(directory::write_listed(context, world, agent, skill, now))
    });
    let body = ObjectWriter::new()
        .raw("agents", &write_array(page.items))
        .maybe_text("next_cursor", page.next.map(|next| next.0.to_string()).as_deref())
        .finish();
    let mut response = json_response(200, body);
    response.extensions_mut().insert(RowsRead(page.rows_read));
    Ok(response)
}

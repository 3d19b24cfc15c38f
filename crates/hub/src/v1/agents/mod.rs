//! Public view of agents: search, list, show.

pub mod ranking;
pub mod reputation;
pub mod search;
pub mod view;

use axum::extract::{RawQuery, State};
use rialto_protocols::adapter::request::PathParam;
use rialto_protocols::adapter::{HubContext, RowsRead};
use rialto_protocols::kit::budget::ByteBudget;
use rialto_protocols::kit::fields::Malformed;
use rialto_protocols::kit::query::Query;

use super::auth::is_registered;
use super::page::{self, Page};
use super::problem::Problem;
use super::response::{HandlerResult, ok_response};
use super::{agent_names, page::parse_choice};
use crate::v1::params::{PageCursor, PageLimit};
use search::AgentFilter;
use view::AgentView;

/// Longest search text.
const TEXT_MAX: usize = 128;

rialto_protocols::request_members! {
    /// Which agents to list.
    AgentQuery {
        /// A skill that they offer; with it, the best come first.
        #[schemars(length(min = 1, max = TEXT_MAX))]
        skill: Option<String>,
        /// A text in the agent's name or in the name of a skill.
        #[schemars(length(min = 1, max = TEXT_MAX))]
        q: Option<String>,
        /// Their home protocol.
        protocol: Option<String>,
        /// Whether they are reachable now.
        online: Option<bool>,
        limit: Option<PageLimit>,
        cursor: Option<PageCursor>,
    }
}

/// `GET /v1/agents`: with `skill` the best first, otherwise in the order of registration.
pub async fn list_agents(
    State(context): State<HubContext>,
    RawQuery(raw): RawQuery,
) -> HandlerResult {
    let query = page::parse_query(raw.as_deref(), AgentQuery::MEMBERS)?;
    let wanted = parse_filter(&query)?;
    let limit = page::parse_limit(&query)?;
    let found = match wanted.ranked_skill() {
        Some(skill) => {
            let after = page::parse_cursor(&query, ranking::RANKED_LIST)?;
            ranking::rank_agents(&context.engine, skill, &wanted, after, limit)
        }
        None => {
            let after = page::parse_cursor(&query, search::AGENT_LIST)?.map_or(0, |[after]| after);
            search::search_agents(&context.engine, &wanted, after, limit)
        }
    };
    let now = context.engine.now();
    let (mut items, mut next_cursor, mut last) = (Vec::new(), found.next, None);
    let mut budget = ByteBudget::default();
    for (id, cursor) in found.agents {
        // One agent at a time, so that a long list does not block writers.
        let view = context.engine.with_world(|world| AgentView::summary(world, id, now));
        let Some(view) = view else { continue };
        match budget.write(&view) {
            Some(text) => items.push(text),
            None => {
                next_cursor = last;
                break;
            }
        }
        last = Some(cursor);
    }
    let mut answer = ok_response(&Page { items, next_cursor });
    answer.extensions_mut().insert(RowsRead(found.rows_read));
    Ok(answer)
}

/// `GET /v1/agents/{id}`: by number, or by any name in any protocol.
pub async fn show_agent(
    State(context): State<HubContext>,
    PathParam(name): PathParam,
) -> HandlerResult {
    let now = context.engine.now();
    let view = context.engine.with_world(|world| {
        let id = agent_names::find_agent(world, &name, "agent")?;
        let listed = is_registered(world, id).then(|| AgentView::full(world, id, now)).flatten();
        listed.ok_or_else(Problem::not_found)
    })?;
    Ok(ok_response(&view))
}

fn parse_filter(query: &Query) -> Result<AgentFilter, Malformed> {
    let text = |name: &str| match query.text(name) {
        Some(given) if given.is_empty() || given.chars().count() > TEXT_MAX => Err(Malformed {
            field: format!("?{name}"),
            message: format!("{name} must have 1 to {TEXT_MAX} characters"),
        }),
        given => Ok(given),
    };
    let unknown =
        || Malformed { field: "?protocol".to_owned(), message: "unknown protocol".to_owned() };
    let protocol =
        query.text("protocol").map(|id| agent_names::find_protocol(id).ok_or_else(unknown));
    Ok(AgentFilter {
        skill: text("skill")?.map(str::to_owned),
        text: text("q")?.map(str::to_lowercase),
        protocol: protocol.transpose()?,
        online: parse_choice(query, "online", &[("true", true), ("false", false)])?,
        ..AgentFilter::default()
    })
}

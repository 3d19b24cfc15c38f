//! The catalog of all agents, for crawlers (R13).

use axum::extract::{RawQuery, State};
use axum::http::{HeaderValue, header};
use axum::response::Response;
use rialto_core::agent::Agent;
use rialto_core::id::AgentId;
use rialto_core::world::World;

use crate::a2a::directory::AgentFilter;
use crate::a2a::errors::{http_response, json_response};
use crate::a2a::wire::error::A2aError;
use crate::a2a::wire::message::write_array;
use crate::a2a::{A2aContext, ID, directory};
use crate::adapter::RowsRead;
use crate::kit::object::{ObjectWriter, string_array};
use crate::kit::query::Query;
use crate::kit::rfc3339;

/// The content type of a catalog.
pub const CATALOG_TYPE: &str = "application/ai-catalog+json";
/// The content type of a card, as the catalog names it.
const CARD_TYPE: &str = "application/a2a-agent-card+json";
/// Agents on a page.
const PAGE: usize = 1_000;

/// `GET /.well-known/ai-catalog.json`.
pub async fn show(State(context): State<A2aContext>, RawQuery(raw): RawQuery) -> Response {
    let wrong = || A2aError::invalid_field("page", "must be a page that the catalog links to");
    let page = match Query::read(raw.as_deref().unwrap_or_default()) {
        Ok(query) => match query.text("page") {
            None => Ok(0),
            Some(text) => text.parse::<u64>().map_err(|_| wrong()),
        },
        Err(bad) => Err(A2aError::malformed("query", &bad)),
    };
    match page {
        Ok(page) => catalog(&context, AgentId(page)),
        Err(error) => http_response(&error),
    }
}

fn catalog(context: &A2aContext, after: AgentId) -> Response {
    let host = context.hub_url.split("://").last().unwrap_or_default().to_owned();
    let entry = |world: &World, agent: &Agent, _: Option<&str>| {
        let name = world.alias_of(agent.id, ID)?;
        let identifier = format!("urn:air:{host}:{}:{name}", agent.home);
        let skills = agent.skills_for_other_protocols().map(|skill| skill.name.as_str());
        let updated_at = agent.changed_at.unwrap_or(agent.registered_at);
        let object = ObjectWriter::new()
            .text("identifier", &identifier)
            .text("displayName", &agent.name)
            .text("mediaType", CARD_TYPE)
            .text("type", CARD_TYPE)
            .text("url", &directory::card_url(context, name))
            .text("description", &directory::description(agent))
            .raw("tags", &string_array(skills))
            .text("updatedAt", &rfc3339::format_millis(updated_at));
        Some(object.finish())
    };
    let page = directory::list(context, &AgentFilter::default(), after, PAGE, entry);
    let mut entries = page.items;
    if let Some(next) = page.next {
        let url = format!("{}/.well-known/ai-catalog.json?page={}", context.hub_url, next.0);
        entries.push(
            ObjectWriter::new()
                .text("identifier", &format!("urn:air:{host}:catalog:{}", next.0))
                .text("displayName", "The next page of this catalog")
                .text("mediaType", CATALOG_TYPE)
                .text("type", CATALOG_TYPE)
                .text("url", &url)
                .finish(),
        );
    }
    let body = ObjectWriter::new()
        .text("specVersion", "1.0")
        .raw("host", &ObjectWriter::new().text("displayName", &host).finish())
        .raw("entries", &write_array(entries))
        .finish();
    let mut response = json_response(200, body);
    let kind = HeaderValue::from_static(CATALOG_TYPE);
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response.extensions_mut().insert(RowsRead(page.rows_read));
    response
}

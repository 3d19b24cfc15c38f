//! Cards of agents and of the hub.

use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use rialto_core::id::AgentId;
use rialto_core::time::Timestamp;
use sha2::{Digest, Sha256};

use super::rpc::stated_version;
use super::{Answer, Call, PathNames, called_agent};
use crate::a2a::A2aContext;
use crate::a2a::directory::{self, CardAudience};
use crate::a2a::errors::{self, http_response, json_response};
use crate::a2a::operations::http::HttpCall;
use crate::a2a::settings::CardMembers;
use crate::a2a::wire::Version;
use crate::a2a::wire::agent_card::{AgentCard, CardForm, write_jwks};
use crate::a2a::wire::error::{A2aError, Reason};
use crate::kit::{base64url, rfc3339};

/// `GET /.well-known/agent-card.json` of the hub.
pub async fn hub_card(
    State(context): State<A2aContext>,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
) -> Response {
    let card = directory::hub_card(&context);
    let dated = DatedCard { card, changed_at: context.state.opened_at(&context.engine) };
    public_card(&context, &headers, query.as_deref(), &dated)
}

/// The card of an agent.
pub async fn agent_card(
    State(context): State<A2aContext>,
    names: PathNames,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
) -> Response {
    let load = async {
        let missing = || A2aError::new(Reason::NotFound, "agent not found");
        let id = called_agent(&context, &names)?.ok_or_else(missing)?;
        load_card(&context, id, CardAudience::Public).await
    };
    match load.await {
        Ok(dated) => public_card(&context, &headers, query.as_deref(), &dated),
        Err(error) => http_response(&error),
    }
}

/// A card, and when it last changed.
struct DatedCard {
    card: AgentCard,
    changed_at: Timestamp,
}

async fn load_card(
    context: &A2aContext,
    id: AgentId,
    audience: CardAudience,
) -> Result<DatedCard, A2aError> {
    let failed = |failure| errors::from_engine(&failure);
    let scores = directory::scores(context, id).await.map_err(failed)?;
    let outcome = directory::last_outcome(context, id).await.map_err(failed)?;
    let found = context.engine.with_world(|world| {
        let agent = world.agent(id)?;
        let registered = agent.changed_at.unwrap_or(agent.registered_at);
        let changed_at = outcome.map_or(registered, |outcome| outcome.ended_at.max(registered));
        let card = directory::agent_card(context, world, agent, &scores, audience)?;
        Some(DatedCard { card, changed_at })
    });
    found.ok_or_else(|| A2aError::new(Reason::NotFound, "agent not found"))
}

/// The form of cards for readers who state this version.
fn card_form(context: &A2aContext, stated: Option<&str>) -> CardForm {
    let reads_new = stated.is_some_and(|text| text.trim().starts_with("1."));
    match context.state.settings.card {
        CardMembers::Both if !reads_new => CardForm::Both,
        CardMembers::Both | CardMembers::Strict => CardForm::Strict,
    }
}

fn public_card(
    context: &A2aContext,
    headers: &HeaderMap,
    query: Option<&str>,
    dated: &DatedCard,
) -> Response {
    let DatedCard { card, changed_at } = dated;
    let form = card_form(context, stated_version(headers, query).as_deref());
    // Over all but the signature, and different for the two forms.
    let digest = Sha256::digest(card.write_unsigned(form));
    let tag = format!("W/\"{}\"", base64url::encode(&digest[..16]));
    let mut response = if has_tag(headers, &tag) {
        let mut response = Response::default();
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        response
    } else {
        json_response(200, card.write_signed(form, &context.state.card_key))
    };
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("public, max-age=60"));
    headers.insert(header::VARY, HeaderValue::from_static("A2A-Version"));
    let texts = [(header::ETAG, tag), (header::LAST_MODIFIED, rfc3339::format_http(*changed_at))];
    for (name, text) in texts {
        if let Ok(value) = HeaderValue::from_str(&text) {
            headers.insert(name, value);
        }
    }
    response
}

/// Whether a reader has the card already. Weak and strong tags are equal here (RFC 9110, section
/// 13.1.2).
fn has_tag(headers: &HeaderMap, tag: &str) -> bool {
    let opaque = |tag: &str| tag.strip_prefix("W/").unwrap_or(tag).to_owned();
    let given = headers.get_all(header::IF_NONE_MATCH).iter();
    let mut given = given.filter_map(|value| value.to_str().ok()).flat_map(|text| text.split(','));
    given.any(|one| one.trim() == "*" || opaque(one.trim()) == opaque(tag))
}

/// `GET {base}/extendedAgentCard`.
pub async fn extended_card(call: HttpCall) -> Response {
    call.answer_extended().await
}

/// GetExtendedAgentCard.
pub async fn extended(call: &Call) -> Result<Answer, A2aError> {
    let context = &call.context;
    if context.state.settings.is_open() {
        let text = "this hub has no extended cards, because it wants no keys";
        return Err(A2aError::new(Reason::UnsupportedOperation, text));
    }
    let card = match call.agent {
        Some(id) => load_card(context, id, CardAudience::Extended).await?.card,
        None => directory::hub_card(context),
    };
    let form = match call.binding.version() {
        Version::V1 => CardForm::Strict,
        Version::V03 => CardForm::Both,
    };
    Ok(Answer::Card(card.write_signed(form, &context.state.card_key)))
}

/// `GET /a2a/jwks.json`.
pub async fn jwks(State(context): State<A2aContext>) -> Response {
    json_response(200, write_jwks(&context.state.card_key))
}

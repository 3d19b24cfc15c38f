//! Cards of agents and of the hub.

use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use sha2::{Digest, Sha256};

use super::{Answer, Call, PathNames, called_agent};
use crate::a2a::A2aContext;
use crate::a2a::directory::{self, CardAudience};
use crate::a2a::errors::{self, http_response, json_response};
use crate::a2a::operations::http::HttpCall;
use crate::a2a::settings::CardForm;
use crate::a2a::wire::agent_card::{AgentCard, write_jwks};
use crate::a2a::wire::error::{A2aError, Reason};
use crate::a2a::wire::{Version, agent_card as card_format};
use crate::kit::base64url;

/// `GET /.well-known/agent-card.json` of the hub.
pub async fn hub_card(State(context): State<A2aContext>, headers: HeaderMap) -> Response {
    let card = directory::hub_card(&context);
    public_card(&context, &headers, &card)
}

/// The card of an agent.
pub async fn agent_card(
    State(context): State<A2aContext>,
    names: PathNames,
    headers: HeaderMap,
) -> Response {
    match load_card(&context, &names, CardAudience::Public).await {
        Ok(card) => public_card(&context, &headers, &card),
        Err(error) => http_response(&error),
    }
}

async fn load_card(
    context: &A2aContext,
    names: &PathNames,
    audience: CardAudience,
) -> Result<AgentCard, A2aError> {
    let missing = || A2aError::new(Reason::NotFound, "agent not found");
    let id = called_agent(context, names)?.ok_or_else(missing)?;
    card_of(context, id, audience).await
}

async fn card_of(
    context: &A2aContext,
    id: rialto_core::id::AgentId,
    audience: CardAudience,
) -> Result<AgentCard, A2aError> {
    let missing = || A2aError::new(Reason::NotFound, "agent not found");
    let scores = directory::scores(context, id).await;
    let scores = scores.map_err(|failure| errors::from_engine(&failure))?;
    let card = context.engine.with_world(|world| {
        let agent = world.agent(id)?;
        directory::agent_card(context, world, agent, &scores, audience)
    });
    card.ok_or_else(missing)
}

/// The text of a card in the form that a reader of this version wants.
fn write_card(context: &A2aContext, stated: Option<&str>, card: &AgentCard) -> String {
    let is_strict = context.state.settings.card == CardForm::Strict
        || stated.and_then(Version::parse) == Some(Version::V1);
    card.write_signed(!is_strict, &context.state.card_key)
}

fn public_card(context: &A2aContext, headers: &HeaderMap, card: &AgentCard) -> Response {
    let stated = headers.get("a2a-version").and_then(|value| value.to_str().ok());
    let text = write_card(context, stated, card);
    // Over all but the signature, and different for the two forms.
    let form = if text.contains("\"preferredTransport\"") { "both" } else { "strict" };
    let digest = Sha256::digest(format!("{form}{}", card_format::canonical(&card.write_strict())));
    let tag = format!("W/\"{}\"", base64url::encode(&digest[..16]));
    let known = headers.get(header::IF_NONE_MATCH).and_then(|value| value.to_str().ok());
    let is_known = known
        .is_some_and(|known| known.split(',').any(|one| one.trim() == tag || one.trim() == "*"));
    let mut response = if is_known {
        let mut response = Response::default();
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        response
    } else {
        json_response(200, text)
    };
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("public, max-age=60"));
    headers.insert(header::VARY, HeaderValue::from_static("A2A-Version"));
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        headers.insert(header::ETAG, tag);
    }
    response
}

/// `GET {base}/extendedAgentCard`.
pub async fn extended_card(call: HttpCall) -> Response {
    call.answer_extended().await
}

/// GetExtendedAgentCard.
pub async fn extended(call: &Call) -> Result<Answer, A2aError> {
    if call.context.state.settings.is_open() {
        let text = "this hub has no extended cards, because it wants no keys";
        return Err(A2aError::new(Reason::UnsupportedOperation, text));
    }
    let card = match call.agent {
        Some(id) => card_of(&call.context, id, CardAudience::Extended).await?,
        None => directory::hub_card(&call.context),
    };
    let stated = match call.binding.version() {
        Version::V1 => Some("1.0"),
        Version::V03 => None,
    };
    Ok(Answer::Card(write_card(&call.context, stated, &card)))
}

/// `GET /a2a/jwks.json`.
pub async fn jwks(State(context): State<A2aContext>) -> Response {
    json_response(200, write_jwks(&context.state.card_key))
}

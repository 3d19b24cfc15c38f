//! Access tokens that the hub gets with the credentials of a client (RFC 6749, section 4.4). They
//! are in memory only.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rialto_core::id::AgentId;
use rialto_core::time::{Millis, Timestamp};
use url::form_urlencoded;

use super::credentials::ClientCredentials;
use crate::a2a::A2aContext;
use crate::kit::ijson::{self, JsonValue};

/// The longest answer of a token endpoint, and the longest token.
const ANSWER_BYTES_MAX: usize = 64 << 10;
const TOKEN_MAX: usize = 16 << 10;
/// How long a token lasts whose endpoint does not say.
const LIFETIME: Millis = Millis::minutes(5);
/// A token is not used in the last seconds of its life.
const MARGIN: Millis = Millis::seconds(30);
/// Tokens that are kept.
const TOKENS_MAX: usize = 4_096;

/// The tokens of agents.
#[derive(Default)]
pub struct AccessTokens(Mutex<HashMap<AgentId, CachedToken>>);

struct CachedToken {
    token: String,
    /// The client that it was given to.
    client: ClientCredentials,
    until: Timestamp,
}

impl AccessTokens {
    fn get(&self, agent: AgentId, client: &ClientCredentials, now: Timestamp) -> Option<String> {
        let tokens = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let cached = tokens.get(&agent).filter(|one| one.client == *client && now < one.until);
        cached.map(|one| one.token.clone())
    }

    fn put(&self, agent: AgentId, token: CachedToken) {
        let mut tokens = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if tokens.len() >= TOKENS_MAX {
            tokens.clear();
        }
        tokens.insert(agent, token);
    }

    /// A token was refused.
    pub fn forget(&self, agent: AgentId) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&agent);
    }
}

/// A token for calls to an agent, or why there is none.
pub async fn get(
    context: &A2aContext,
    agent: AgentId,
    client: &ClientCredentials,
) -> Result<String, String> {
    let tokens = &context.state.access_tokens;
    let now = context.engine.now();
    if let Some(token) = tokens.get(agent, client, now) {
        return Ok(token);
    }
    while let Err(wait) = context.egress.try_acquire_call(&client.token_url, context.engine.now()) {
        tokio::time::sleep(Duration::from_millis(wait.0.unsigned_abs())).await;
    }
    let (headers, form) = token_request(client);
    let sent = context.egress.post(&client.token_url, headers, form.into(), ANSWER_BYTES_MAX);
    let answer = sent.await.map_err(|_| "its token endpoint did not answer".to_owned())?;
    if answer.status != 200 {
        return Err(format!("its token endpoint answered HTTP {}", answer.status));
    }
    let unreadable = || "the answer of its token endpoint cannot be read".to_owned();
    let json = ijson::read(&answer.body).map_err(|_| unreadable())?;
    let token = match json.get("access_token").map(|token| token.value()) {
        Some(JsonValue::String(token)) => token.clone().into_owned(),
        _ => return Err(unreadable()),
    };
    let is_plain = token.bytes().all(|byte| (0x21..0x7f).contains(&byte));
    if token.is_empty() || token.len() > TOKEN_MAX || !is_plain {
        return Err(unreadable());
    }
    let seconds = match json.get("expires_in").map(|life| life.value()) {
        Some(JsonValue::Number(digits)) => digits.parse::<i64>().ok(),
        _ => None,
    };
    let life = seconds.map_or(LIFETIME, |seconds| Millis::seconds(seconds.clamp(0, 86_400)));
    let until = now.plus(Millis(life.0 - MARGIN.0));
    tokens.put(agent, CachedToken { token: token.clone(), client: client.clone(), until });
    Ok(token)
}

/// The headers and the body of a request for a token.
fn token_request(client: &ClientCredentials) -> (Vec<(String, String)>, String) {
    let encoded = |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
    let pair = format!("{}:{}", encoded(&client.client_id), encoded(&client.client_secret));
    let mut form = form_urlencoded::Serializer::new(String::new());
    form.append_pair("grant_type", "client_credentials");
    if let Some(scope) = &client.scope {
        form.append_pair("scope", scope);
    }
    let headers = vec![
        ("content-type".to_owned(), "application/x-www-form-urlencoded".to_owned()),
        ("accept".to_owned(), "application/json".to_owned()),
        ("authorization".to_owned(), format!("Basic {}", STANDARD.encode(pair))),
    ];
    (headers, form.finish())
}

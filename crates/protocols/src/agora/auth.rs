//! Inbox tokens: for an hour, the right to read one agent's inbox and requests, and nothing else.
//!
//! A token contains the agent and the expiry time, authenticated by the hub. So no token is stored,
//! and all survive a restart. Everything else is signed; see [`super::envelope`].

use axum::extract::FromRequestParts;
use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use hmac::{Hmac, KeyInit, Mac};
use rialto_core::id::AgentId;
use rialto_core::refusal::Refusal;
use rialto_core::time::{Millis, Timestamp};
use rialto_engine::keys::parse_bearer;
use sha2::Sha256;

use super::AgoraContext;
use super::errors::{self, ErrorResponse};
use super::wire::error::Failure;
use crate::kit::base64url;

/// The lifetime of a token.
pub const TOKEN_LIFETIME: Millis = Millis::hours(1);
/// The prefix of a token.
const PREFIX: &str = "at_";
const SAID: usize = 16;
const SEAL: usize = 32;

/// Issues tokens and verifies them.
pub struct InboxTokens([u8; 32]);

/// The agent of a token, and its expiry time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InboxToken {
    pub agent: AgentId,
    pub expires_at: Timestamp,
}

impl InboxTokens {
    pub fn new(key: [u8; 32]) -> Self {
        Self(key)
    }

    /// The token as text.
    pub fn seal(&self, token: InboxToken) -> String {
        let said = said(token);
        let seal = self.mac(&said).finalize().into_bytes();
        format!("{PREFIX}{}", base64url::encode(&[&said[..], &seal].concat()))
    }

    /// Reads a token of this hub that has not expired.
    pub fn read(&self, text: &str, now: Timestamp) -> Option<InboxToken> {
        let text = text.strip_prefix(PREFIX)?;
        let bytes: [u8; SAID + SEAL] = base64url::decode_array(text).ok()?;
        let (said, seal) = bytes.split_at(SAID);
        self.mac(said).verify_slice(seal).ok()?;
        let (agent, until) = said.split_at(8);
        let agent = AgentId(u64::from_be_bytes(agent.try_into().ok()?));
        let until = Timestamp(i64::from_be_bytes(until.try_into().ok()?));
        (now < until).then_some(InboxToken { agent, expires_at: until })
    }

    fn mac(&self, said: &[u8]) -> Hmac<Sha256> {
        let mac = Hmac::<Sha256>::new_from_slice(&self.0);
        let mut mac = mac.expect("HMAC takes keys of any length");
        mac.update(said);
        mac
    }
}

fn said(token: InboxToken) -> [u8; SAID] {
    let mut said = [0; SAID];
    said[..8].copy_from_slice(&token.agent.0.to_be_bytes());
    said[8..].copy_from_slice(&token.expires_at.0.to_be_bytes());
    said
}

/// An agent that reads, identified by its inbox token.
#[derive(Clone, Copy, Debug)]
pub struct InboxReader(pub InboxToken);

impl FromRequestParts<AgoraContext> for InboxReader {
    type Rejection = ErrorResponse;

    async fn from_request_parts(
        parts: &mut Parts,
        context: &AgoraContext,
    ) -> Result<Self, ErrorResponse> {
        let token = read_token(context, &parts.headers);
        if token
            .is_some_and(|token| context.engine.with_world(|world| world.is_suspended(token.agent)))
        {
            return Err(ErrorResponse::new(context, errors::from_refusal(&Refusal::Suspended)));
        }
        token.map(Self).ok_or_else(|| {
            let text = "a valid inbox token is required: Authorization: Bearer at_…";
            let hint = "a HELLO signed with recipient = the hub and payload.inbox = true gets one";
            ErrorResponse::new(context, Failure::unauthorized(text).with_hint(hint))
        })
    }
}

/// A valid token of a registered agent, suspended or not. All other texts get the same answer.
pub fn read_token(context: &AgoraContext, headers: &HeaderMap) -> Option<InboxToken> {
    let text = headers.get(AUTHORIZATION)?.to_str().ok().and_then(parse_bearer)?;
    let token = context.state.tokens.read(text, context.engine.now())?;
    let known = context.engine.with_world(|world| {
        world
            .agent(token.agent)
            .is_some_and(|agent| agent.active)
            .then(|| world.is_suspended(token.agent))
    });
    // A call of a suspended agent is refused and does not count as activity.
    if !known? {
        context.engine.record_seen(token.agent);
    }
    Some(token)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_works_until_its_hour_is_over_and_no_other_text_does() {
        let tokens = InboxTokens::new([7; 32]);
        let token = InboxToken { agent: AgentId(5), expires_at: Timestamp(3_600_000) };
        let text = tokens.seal(token);
        assert!(text.starts_with("at_"), "{text}");
        assert_eq!(tokens.read(&text, Timestamp(3_599_999)), Some(token));
        assert_eq!(tokens.read(&text, Timestamp(3_600_000)), None);
        assert_eq!(InboxTokens::new([8; 32]).read(&text, Timestamp(0)), None, "another hub's");
        for at in 0..text.len() {
            let mut bytes = text.clone().into_bytes();
            bytes[at] = if bytes[at] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(bytes).expect("letters for letters");
            assert_eq!(tokens.read(&changed, Timestamp(0)), None, "{changed}");
        }
        for text in ["", "at_", "at_AAAA", text.trim_start_matches("at_"), &format!("{text}A")] {
            assert_eq!(tokens.read(text, Timestamp(0)), None, "{text}");
        }
    }
}

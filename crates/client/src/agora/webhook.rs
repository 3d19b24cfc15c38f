//! Webhooks: envelopes that a hub posts to an agent's endpoint while no inbox is open.
//!
//! A webhook is trusted if the hub's receipt in its header proves the envelope. If the WELCOME
//! contained a webhook secret, the call must also be signed with it.

use std::sync::{Mutex, PoisonError};

use http::HeaderMap;
use rialto_core::time::Timestamp;
use rialto_protocols::agora::wire::receipt;
use rialto_protocols::kit::ed25519::PublicKey;

use super::agent::Agent;
use super::incoming::{IncomingEnvelope, TrustContext, TrustError};
use crate::recent_set::RecentSet;
use crate::webhook_signature::WebhookSecret;

/// Verifies the webhooks of a hub.
#[derive(Debug)]
pub struct WebhookReceiver {
    reader: TrustContext,
    secret: Option<WebhookSecret>,
    /// Envelopes that were returned, by sender and id.
    seen: Mutex<RecentSet<(PublicKey, String)>>,
}

impl WebhookReceiver {
    /// Accepts webhooks from the agent's own server, signed with the secret of the WELCOME.
    pub fn new(agent: &Agent, secret: Option<WebhookSecret>) -> Self {
        Self { reader: agent.trust_context(), secret, seen: Mutex::default() }
    }

    /// Verifies one call. `None` is an envelope that was returned before: the hub retries until it
    /// gets a 2xx. Respond with 200 to both, and with 401 to errors.
    pub fn receive(
        &self,
        headers: &HeaderMap,
        body: &[u8],
        now: Timestamp,
    ) -> Result<Option<IncomingEnvelope>, TrustError> {
        // The signature covers the raw bytes, so it is checked before they are parsed.
        if let Some(secret) = &self.secret {
            secret.verify(headers, body, now).map_err(TrustError::Delivery)?;
        }
        let text =
            std::str::from_utf8(body).map_err(|error| TrustError::Unreadable(error.to_string()))?;
        let header = headers.get(receipt::HEADER).and_then(|value| value.to_str().ok());
        let receipt = header.and_then(receipt::from_header);
        let incoming =
            IncomingEnvelope::verify_receipt(text, receipt.as_deref(), None, self.reader)?;
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(seen.insert((incoming.sender, incoming.id.clone())).then_some(incoming))
    }
}

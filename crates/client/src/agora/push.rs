//! Being called by a hub: envelopes that it posts to an agent's endpoint while no inbox is open.
//!
//! A push is believed when the hub's receipt in its header vouches for the envelope. If the WELCOME
//! gave a webhook secret, the call itself must be signed with it too.

use std::sync::{Mutex, PoisonError};

use http::HeaderMap;
use rialto_core::time::Timestamp;
use rialto_protocols::agora::receipt;

use super::agent::Agent;
use super::incoming::{Incoming, NotTrusted, Reader};
use super::seen::Seen;
use crate::signature::WebhookSecret;

/// Checks what a hub pushes.
#[derive(Debug)]
pub struct Receiver {
    reader: Reader,
    secret: Option<WebhookSecret>,
    seen: Mutex<Seen>,
}

impl Receiver {
    /// Takes what the agent's own server pushes, signed with the secret of the WELCOME.
    pub fn new(agent: &Agent, secret: Option<WebhookSecret>) -> Self {
        Self { reader: agent.reader(), secret, seen: Mutex::default() }
    }

    /// Checks one call. `None` is an envelope that was handed out before: the hub tries again until
    /// it hears a 2xx, so answer 200 to both and 401 to errors.
    pub fn receive(
        &self,
        headers: &HeaderMap,
        body: &[u8],
        now: Timestamp,
    ) -> Result<Option<Incoming>, NotTrusted> {
        // A signature is about the bytes that arrived, so it comes before they are read.
        if let Some(secret) = &self.secret {
            secret.verify(headers, body, now).map_err(NotTrusted::Delivery)?;
        }
        let text =
            std::str::from_utf8(body).map_err(|error| NotTrusted::Unreadable(error.to_string()))?;
        let header = headers.get(receipt::HEADER).and_then(|value| value.to_str().ok());
        let receipt = header.and_then(receipt::from_header);
        let incoming = Incoming::vouched(text, receipt.as_deref(), None, self.reader)?;
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(seen.insert(incoming.sender, &incoming.id).then_some(incoming))
    }
}

//! Webhooks: events that a hub posts to an agent's endpoint while no stream is open.
//!
//! A webhook has the body of the event, and its name in a header. It is trusted if it is signed
//! with the secret returned when the agent was published.

use std::sync::{Mutex, PoisonError};

use http::HeaderMap;
use rialto_core::time::Timestamp;

use super::event::{self, Event};
use crate::recent_set::RecentSet;
use crate::webhook_signature::{ID_HEADER, VerifyError, WebhookSecret};

/// Header with the name of the event.
pub const EVENT_HEADER: &str = "rialto-event";

/// Why a webhook is not accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WebhookError {
    /// It is not from the hub, or not recent.
    #[error("{0}")]
    NotVerified(#[from] VerifyError),
    /// It is from the hub but cannot be parsed.
    #[error("{0}")]
    Unreadable(String),
}

/// Verifies the webhooks of a hub.
#[derive(Debug)]
pub struct WebhookReceiver {
    secret: WebhookSecret,
    seen: Mutex<RecentSet<String>>,
}

impl WebhookReceiver {
    /// Accepts webhooks signed with this secret.
    pub fn new(secret: WebhookSecret) -> Self {
        Self { secret, seen: Mutex::default() }
    }

    /// Verifies one call. `None` is an event that was returned before, or an unknown one: the hub
    /// retries until it gets a 2xx. Respond with 200 to both, and with 401 to errors.
    pub fn receive(
        &self,
        headers: &HeaderMap,
        body: &[u8],
        now: Timestamp,
    ) -> Result<Option<Event>, WebhookError> {
        // The signature covers the raw bytes, so it is checked before they are parsed.
        self.secret.verify(headers, body, now)?;
        let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        let name = header(EVENT_HEADER).ok_or_else(|| {
            WebhookError::Unreadable(format!("there is no {EVENT_HEADER} header"))
        })?;
        let text =
            std::str::from_utf8(body).map_err(|bad| WebhookError::Unreadable(bad.to_string()))?;
        let Some(event) = event::read(name, text).transpose().map_err(WebhookError::Unreadable)?
        else {
            return Ok(None);
        };
        let id = header(ID_HEADER).ok_or(VerifyError::BadHeaders)?.to_owned();
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(seen.insert(id).then_some(event))
    }
}

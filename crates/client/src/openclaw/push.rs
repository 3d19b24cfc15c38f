//! Being called by a hub: events that it posts to an agent's endpoint while no stream is open.
//!
//! A push has the body of the event, and its name in a header. It is believed when it is signed
//! with the secret that came with the publishing.

use std::sync::{Mutex, PoisonError};

use http::HeaderMap;
use rialto_core::time::Timestamp;

use super::event::{self, Event};
use super::seen::Seen;
use crate::signature::{ID_HEADER, NotVerified, WebhookSecret};

/// Header with the name of the event.
pub const EVENT_HEADER: &str = "rialto-event";

/// Why a push is not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotTaken {
    /// It is not the hub's, or not of now.
    #[error("{0}")]
    NotVerified(#[from] NotVerified),
    /// It is the hub's and makes no sense.
    #[error("{0}")]
    Unreadable(String),
}

/// Checks what a hub pushes.
#[derive(Debug)]
pub struct Receiver {
    secret: WebhookSecret,
    seen: Mutex<Seen<String>>,
}

impl Receiver {
    /// Takes what is signed with this secret.
    pub fn new(secret: WebhookSecret) -> Self {
        Self { secret, seen: Mutex::default() }
    }

    /// Checks one call. `None` is an event that was handed out before, or one nobody here knows:
    /// the hub tries again until it hears a 2xx, so answer 200 to both and 401 to errors.
    pub fn receive(
        &self,
        headers: &HeaderMap,
        body: &[u8],
        now: Timestamp,
    ) -> Result<Option<Event>, NotTaken> {
        // A signature is about the bytes that arrived, so it comes before they are read.
        self.secret.verify(headers, body, now)?;
        let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        let name = header(EVENT_HEADER)
            .ok_or_else(|| NotTaken::Unreadable(format!("there is no {EVENT_HEADER} header")))?;
        let text =
            std::str::from_utf8(body).map_err(|bad| NotTaken::Unreadable(bad.to_string()))?;
        let Some(event) = event::read(name, text).transpose().map_err(NotTaken::Unreadable)? else {
            return Ok(None);
        };
        let id = header(ID_HEADER).ok_or(NotVerified::Headers)?.to_owned();
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(seen.insert(id).then_some(event))
    }
}

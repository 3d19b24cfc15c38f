//! WELCOME: the answer to a HELLO. It proves that the intended receiver got it.

use rialto_core::time::Timestamp;

use super::fields;
use crate::agora::failure::Failure;
use crate::kit::ijson::Json;
use crate::kit::object::ObjectWriter;
use crate::kit::rfc3339;

/// The content of a WELCOME. Peers that are not a hub leave out what they do not know.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Welcome<'a> {
    /// The nonce of the HELLO.
    pub nonce: Option<&'a str>,
    /// The id of the HELLO.
    pub hello_id: Option<&'a str>,
    /// The sender of the HELLO, as did:key.
    pub hello_sender: Option<&'a str>,
    /// A token to read the agent's inbox.
    pub inbox_token: Option<&'a str>,
    /// When the token expires.
    pub inbox_token_expires_at: Option<Timestamp>,
    /// The hub, as did:key.
    pub hub: Option<&'a str>,
    /// The secret that signs webhook deliveries to the endpoint.
    pub webhook_secret: Option<&'a str>,
}

impl<'a> Welcome<'a> {
    /// Reads a payload. Members of another type are ignored (R60).
    pub fn read(payload: &'a Json<'_>) -> Result<Self, Failure> {
        let f = fields(payload)?;
        let text = |name| f.text(name).ok().flatten();
        Ok(Self {
            nonce: text("nonce"),
            hello_id: text("hello_id"),
            hello_sender: text("hello_sender"),
            inbox_token: text("inbox_token"),
            inbox_token_expires_at: f.time("inbox_token_expires_at").ok().flatten(),
            hub: text("hub"),
            webhook_secret: text("webhook_secret"),
        })
    }

    /// Writes a payload.
    pub fn write(&self) -> String {
        let expires = self.inbox_token_expires_at.map(rfc3339::format_millis);
        ObjectWriter::new()
            .maybe_text("nonce", self.nonce)
            .maybe_text("hello_id", self.hello_id)
            .maybe_text("hello_sender", self.hello_sender)
            .maybe_text("inbox_token", self.inbox_token)
            .maybe_text("inbox_token_expires_at", expires.as_deref())
            .maybe_text("hub", self.hub)
            .maybe_text("webhook_secret", self.webhook_secret)
            .finish()
    }
}

//! HELLO to the hub: an agent announces itself, its capabilities and its endpoint.
//!
//! The spec defines no payload for HELLO (R60, D11), so any object is accepted. The hub reads it
//! only if it is addressed to the hub, and only members of the known shape. Members of another type
//! and capabilities of another shape are ignored; they stay in the envelope. A member of the right
//! shape with an invalid value (a price below zero, an endpoint that is not a URL) is refused by
//! name.

use super::capability::{CAPABILITIES_BYTES_MAX, Capability};
use super::fields;
use crate::agora::failure::Failure;
use crate::kit::fields::{Fields, Malformed};
use crate::kit::ijson::Json;
use crate::kit::name::check_name;
use crate::kit::object::ObjectWriter;

/// The most characters of a nonce.
pub const NONCE_MAX: usize = 256;
/// The most characters of a name.
pub const NAME_MAX: usize = 128;
/// The most bytes of an endpoint.
pub const ENDPOINT_MAX: usize = 2_048;

/// The content of a HELLO.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hello<'a> {
    /// Returned in the WELCOME.
    pub nonce: Option<&'a str>,
    /// The agent's name.
    pub name: Option<&'a str>,
    /// Its capabilities; `None` leaves the earlier ones.
    pub capabilities: Option<Vec<Capability<'a>>>,
    /// Where envelopes are delivered when no stream is open. Whether the hub may call this URL is
    /// checked elsewhere.
    pub endpoint: Option<&'a str>,
    /// Whether the agent asks for an inbox token.
    pub inbox: bool,
}

impl<'a> Hello<'a> {
    /// Reads the payload of a HELLO to the hub.
    pub fn read(payload: &'a Json<'_>) -> Result<Self, Failure> {
        let f = fields(payload)?;
        let text = |name| f.text(name).ok().flatten();
        let (nonce, name) = (text("nonce"), text("name").filter(|name| !name.is_empty()));
        if nonce.is_some_and(|nonce| nonce.chars().count() > NONCE_MAX) {
            return Err(f.malformed("nonce", "has more than 256 characters").into());
        }
        if let Some(name) = name {
            check_name(name, NAME_MAX).map_err(|bad| f.malformed("name", bad))?;
        }
        let capabilities = f.get("capabilities").map_or(0, |json| json.raw().len());
        if capabilities > CAPABILITIES_BYTES_MAX {
            let why = format!("has more than {CAPABILITIES_BYTES_MAX} bytes; send less");
            return Err(Failure { http_status: 413, ..f.malformed("capabilities", why).into() });
        }
        Ok(Self {
            nonce,
            name,
            capabilities: Capability::read_list(&f)?,
            endpoint: endpoint(&f)?,
            inbox: f.flag("inbox").ok().flatten().unwrap_or(false),
        })
    }

    /// Writes a payload.
    pub fn write(&self) -> String {
        let capabilities = self.capabilities.as_deref().map(Capability::write_list);
        ObjectWriter::new()
            .maybe_text("nonce", self.nonce)
            .maybe_text("name", self.name)
            .maybe_raw("capabilities", capabilities.as_deref())
            .maybe_text("endpoint", self.endpoint)
            .maybe_raw("inbox", self.inbox.then_some("true"))
            .finish()
    }
}

fn endpoint<'b>(f: &Fields<'_, 'b>) -> Result<Option<&'b str>, Malformed> {
    let Some(text) = f.text("endpoint").ok().flatten() else { return Ok(None) };
    let url = (text.len() <= ENDPOINT_MAX).then(|| url::Url::parse(text).ok()).flatten();
    match url.is_some_and(|url| matches!(url.scheme(), "http" | "https")) {
        true => Ok(Some(text)),
        false => Err(f.malformed("endpoint", "must be an http or https URL of at most 2048 bytes")),
    }
}

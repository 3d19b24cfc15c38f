//! HELLO, with which an agent announces itself, its capabilities and its endpoint to the hub, and
//! WELCOME, the answer to it.
//!
//! The spec defines no payload for HELLO (R60, D11), so any object is accepted. The hub reads it
//! only if it is addressed to the hub, and only members of the known shape. Members of another type
//! and capabilities of another shape are ignored; they stay in the envelope. A member of the right
//! shape with an invalid value (a price below zero, an endpoint that is not a URL) is refused by
//! name.

use std::collections::HashSet;

use rialto_core::money::Credits;
use rialto_core::time::Timestamp;

use super::error::Failure;
use super::payload::{RESOURCE_MAX, amount, fields};
use crate::kit::fields::{Fields, Malformed};
use crate::kit::ijson::{Json, JsonValue};
use crate::kit::name::check_name;
use crate::kit::object::ObjectWriter;
use crate::kit::rfc3339;

/// The most characters of a nonce.
pub const NONCE_MAX: usize = 256;
/// The most characters of a name.
pub const NAME_MAX: usize = 128;
/// The most bytes of an endpoint.
pub const ENDPOINT_MAX: usize = 2_048;
/// The most capabilities of one agent.
pub const CAPABILITIES_MAX: usize = 100;
/// The most bytes of all of them together, because the hub keeps them in memory.
pub const CAPABILITIES_BYTES_MAX: usize = 64 << 10;
/// The most characters of a description.
pub const DESCRIPTION_MAX: usize = 1_024;

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
    if !url.is_some_and(|url| matches!(url.scheme(), "http" | "https")) {
        return Err(f.malformed("endpoint", "must be an http or https URL of at most 2048 bytes"));
    }
    Ok(Some(text))
}

/// The content of a WELCOME, which proves that the intended receiver got the HELLO. Peers that are
/// not a hub leave out what they do not know.
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

/// One capability of an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capability<'a> {
    /// Its name, such as `agora:search:v1`.
    pub resource: &'a str,
    /// Its price where none is negotiated.
    pub price: Option<Credits>,
    /// Its description, for people.
    pub description: Option<&'a str>,
}

impl<'a> Capability<'a> {
    /// Reads the member `capabilities`: resources, or objects with more members. A resource may
    /// occur only once, because it has one price. A list of other values, or a value that is not a
    /// list, is ignored: the spec does not define it (R60).
    pub fn read_list(f: &Fields<'_, 'a>) -> Result<Option<Vec<Self>>, Malformed> {
        const NAME: &str = "capabilities";
        let Some(JsonValue::Array(items)) = f.get(NAME).map(Json::value) else { return Ok(None) };
        let known: Vec<_> = items.iter().enumerate().filter(|(_, item)| is_known(item)).collect();
        if known.is_empty() && !items.is_empty() {
            return Ok(None);
        }
        if known.len() > CAPABILITIES_MAX {
            let why = format_args!("has more than {CAPABILITIES_MAX} items");
            return Err(f.malformed(NAME, why));
        }
        let mut seen = HashSet::with_capacity(known.len());
        let mut read = Vec::with_capacity(known.len());
        for (at, item) in known {
            let place = format!("{}/{at}", f.pointer(NAME));
            let bad =
                |why: String| Malformed { message: format!("{at} {why}"), field: place.clone() };
            let capability = match item.value() {
                JsonValue::String(text) => {
                    check_name(text, RESOURCE_MAX).map_err(|why| bad(why.to_string()))?;
                    Self { resource: text, price: None, description: None }
                }
                _ => Self::read(&Fields::read(item, place.clone())?)?,
            };
            if !seen.insert(capability.resource) {
                return Err(bad("is listed twice".to_owned()));
            }
            read.push(capability);
        }
        Ok(Some(read))
    }

    fn read(f: &Fields<'_, 'a>) -> Result<Self, Malformed> {
        let description = f.text("description")?;
        if description.is_some_and(|text| text.chars().count() > DESCRIPTION_MAX) {
            return Err(f.malformed("description", "has more than 1024 characters"));
        }
        let resource = f.required_name("resource", RESOURCE_MAX)?;
        Ok(Self { resource, price: amount(f, "price")?, description })
    }

    /// Writes a list of capabilities.
    pub fn write_list(list: &[Self]) -> String {
        let items: Vec<String> = list.iter().map(Self::write).collect();
        format!("[{}]", items.join(","))
    }

    fn write(&self) -> String {
        ObjectWriter::new()
            .text("resource", self.resource)
            .maybe_credits("price", self.price)
            .maybe_text("description", self.description)
            .finish()
    }
}

/// Whether an item has one of the two known shapes.
fn is_known(item: &Json<'_>) -> bool {
    let is_text = |json: &Json<'_>| matches!(json.value(), JsonValue::String(_));
    is_text(item) || item.get("resource").is_some_and(is_text)
}

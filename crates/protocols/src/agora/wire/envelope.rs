//! Envelopes: reads one signed message, checks its members and keeps its text.
//!
//! Reading does not verify the signature or the timestamp; the module `signature` does. The checks
//! are in the order of R73: the JSON with its numbers, the members, then the key that they name. A
//! missing member and `null` are the same, as everywhere in the hub.

use std::borrow::Cow;
use std::fmt;

use rialto_core::time::Timestamp;

use super::error::Failure;
use crate::agora::{BODY_MAX, ID_MAX, VERSION};
use crate::kit::ed25519::{BadKey, PublicKey};
use crate::kit::fields::{Fields, Malformed};
use crate::kit::ijson::{self, Json, JsonValue};
use crate::kit::jcs::{self, Edit};
use crate::kit::rfc3339;

/// The path of the signature.
const SIGNATURE: &[&str] = &["sender", "signature"];
/// Members of envelopes of another protocol that has the same name (section 7).
const OF_OTHERS: [&str; 3] = ["version", "ts", "sig"];

/// A message whose form is valid. Its signature is not yet verified.
#[derive(Clone, Debug)]
pub struct Envelope<'a> {
    /// The id that its sender gave it.
    pub id: &'a str,
    /// When it was created, according to its sender.
    pub timestamp: Timestamp,
    /// The timestamp as it was received.
    pub timestamp_text: &'a str,
    /// The message type.
    pub message_type: MessageType,
    /// The sender's key, unproven.
    pub sender: PublicKey,
    /// The sender as it was received: a did:key or a raw key.
    pub sender_text: &'a str,
    /// The sender as did:key.
    pub sender_did: Cow<'a, str>,
    /// The signature as it was received.
    pub signature: &'a str,
    /// The payload, an object.
    pub payload: &'a Json<'a>,
    /// The recipient's key, if it names one.
    pub recipient: Option<PublicKey>,
    /// The only hub that may act on it, if it names one.
    pub hub: Option<PublicKey>,
    /// The mark of a hub that signs for another agent; see [`Bridge`].
    pub bridge: Option<&'a Json<'a>>,
    json: &'a Json<'a>,
    canonical: String,
}

/// Parses the bytes of an envelope as JSON, for [`Envelope::read`].
pub fn read_json(bytes: &[u8]) -> Result<Json<'_>, Failure> {
    if bytes.len() > BODY_MAX {
        return Err(Failure::too_large());
    }
    Ok(ijson::read(bytes)?)
}

impl<'a> Envelope<'a> {
    /// Reads an envelope.
    pub fn read(json: &'a Json<'_>) -> Result<Self, Failure> {
        // First, because this finds the numbers that are not allowed (R19).
        let canonical =
            jcs::canonicalize_with(json, Edit { path: SIGNATURE, replacement: Some("\"\"") })?;
        let f = Fields::read(json, "")?;
        version(&f)?;
        let id = f.required_name("id", ID_MAX)?;
        let timestamp_text = f.required_text("timestamp")?;
        let timestamp = utc(timestamp_text).map_err(|why| f.malformed("timestamp", why))?;
        let kind = kind(&f)?;
        let sender = f.required("sender", f.object("sender")?)?;
        let sender_text = sender.required_text("id")?;
        let signature = sender.required_text("signature")?;
        let payload = f.required("payload", f.get("payload"))?;
        f.object("payload")?;
        let (recipient, hub) = recipient(&f)?;
        let bridge = f.get("bridge");
        let key = PublicKey::parse(sender_text).map_err(|bad| refused_key(&sender, bad))?;
        Ok(Self {
            id,
            timestamp,
            timestamp_text,
            message_type: kind,
            sender: key,
            sender_text,
            sender_did: key.did_from(sender_text),
            signature,
            payload,
            recipient,
            hub,
            bridge,
            json,
            canonical,
        })
    }

    /// The whole envelope as it was received.
    pub fn raw(&self) -> &'a str {
        self.json.raw()
    }

    /// The whole envelope as a JSON tree.
    pub fn json(&self) -> &'a Json<'a> {
        self.json
    }

    /// The canonical text with an empty signature. It does not depend on formatting.
    pub fn canonical(&self) -> &str {
        &self.canonical
    }

    /// The canonical text without the signature member, which some clients sign instead (R12).
    pub(in crate::agora) fn canonical_without_signature(&self) -> Result<String, Failure> {
        Ok(jcs::canonicalize_with(self.json, Edit { path: SIGNATURE, replacement: None })?)
    }
}

fn version(f: &Fields<'_, '_>) -> Result<(), Failure> {
    const WANTED: &str = "must be the string \"agora/1.0\"";
    let given = f.text("protocol").map_err(|_| f.malformed("protocol", WANTED))?;
    if given == Some(VERSION) {
        return Ok(());
    }
    let message = if given.is_none() { "is required and must be \"agora/1.0\"" } else { WANTED };
    let failure = Failure::from(f.malformed("protocol", message));
    if !OF_OTHERS.iter().any(|name| f.has_value(name)) {
        return Err(failure);
    }
    Err(failure.with_hint(
        "this is an envelope of another protocol; an Agora envelope has protocol: \"agora/1.0\", id, \
         timestamp, type, sender {id, signature} and payload",
    ))
}

fn kind(f: &Fields<'_, '_>) -> Result<MessageType, Failure> {
    const WANTED: &str =
        "must be HELLO, WELCOME, STATUS, REQUEST, OFFER, ACCEPT, RESULT or ERROR, in capitals";
    let text = f.required_text("type")?;
    MessageType::read(text).ok_or_else(|| {
        let failure = Failure::from(f.malformed("type", WANTED));
        match text {
            "DEBATE" => failure.with_hint(
                "DEBATE is in some schemas, but not in \"agora/1.0\"; send a REQUEST instead",
            ),
            _ => failure,
        }
    })
}

/// Section 2.2 requires RFC 3339 with `Z` or `+00:00`. RFC 3339 also allows `t` and `z`, and
/// `-00:00` for an unknown zone. The spec says ISO 8601 UTC, which has none of the three, and a
/// receiver may reject them.
fn utc(text: &str) -> Result<Timestamp, &'static str> {
    const WANTED: &str = "must be an ISO 8601 time in UTC like 2024-01-01T00:00:00Z";
    /// Longer than any real timestamp with its decimals.
    const TEXT_MAX: usize = 64;
    let utc = text.ends_with('Z') || text.ends_with("+00:00");
    if !utc || text.len() > TEXT_MAX || text.as_bytes().get(10) != Some(&b'T') {
        return Err(WANTED);
    }
    rfc3339::parse(text).map_err(|bad| match bad {
        rfc3339::BadTime::OutOfRange => "is outside the years 1970 to 9999",
        _ => WANTED,
    })
}

/// The recipient and the hub that may act on it.
fn recipient(f: &Fields<'_, '_>) -> Result<(Option<PublicKey>, Option<PublicKey>), Malformed> {
    let Some(given) = f.get("recipient") else { return Ok((None, None)) };
    let key = |f: &Fields<'_, '_>, name, text| {
        PublicKey::parse(text).map_err(|bad| f.malformed(name, bad))
    };
    if let JsonValue::String(text) = given.value() {
        return Ok((Some(key(f, "recipient", text)?), None));
    }
    let wanted = |_| f.malformed("recipient", "must be {\"id\":\"did:key:…\"} or a string");
    let inner = Fields::read(given, f.pointer("recipient")).map_err(wanted)?;
    let id = key(&inner, "id", inner.required_text("id")?)?;
    let hub = inner.text("hub")?.map(|hub| key(&inner, "hub", hub)).transpose()?;
    Ok((Some(id), hub))
}

/// Text that is not a key is malformed (400). A valid key of another type cannot be verified (401).
fn refused_key(sender: &Fields<'_, '_>, bad: BadKey) -> Failure {
    match bad {
        BadKey::Malformed => sender.malformed("id", bad).into(),
        BadKey::OtherType | BadKey::Weak => Failure::unauthorized(format!("sender.id {bad}")),
    }
}

/// The type of an envelope.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MessageType {
    /// An agent announces itself.
    Hello,
    /// The answer to a HELLO.
    Welcome,
    /// The status of an agent, or of a message.
    Status,
    /// Work is requested.
    Request,
    /// Terms for the requested work.
    Offer,
    /// The terms are accepted.
    Accept,
    /// The result of the work.
    Result,
    /// There will be no result.
    Error,
}

impl MessageType {
    /// All types, in the spec's order.
    pub const ALL: [Self; 8] = [
        Self::Hello,
        Self::Welcome,
        Self::Status,
        Self::Request,
        Self::Offer,
        Self::Accept,
        Self::Result,
        Self::Error,
    ];

    /// The type on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Hello => "HELLO",
            Self::Welcome => "WELCOME",
            Self::Status => "STATUS",
            Self::Request => "REQUEST",
            Self::Offer => "OFFER",
            Self::Accept => "ACCEPT",
            Self::Result => "RESULT",
            Self::Error => "ERROR",
        }
    }

    /// The type with this text.
    pub fn read(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text)
    }
}

impl fmt::Display for MessageType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The mark on envelopes that the hub signs for an agent without a key of this protocol (R70): the
/// agent, and the hub that signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bridge<'a> {
    /// The hub that holds the key, as did:key.
    pub hub: &'a str,
    /// The agent's home protocol.
    pub protocol: &'a str,
    /// The agent's id in its home protocol.
    pub agent: &'a str,
}

impl<'a> Bridge<'a> {
    /// Reads an envelope's `bridge`. Any sender can write this member. It is valid only if the
    /// named hub confirms that it holds the sender's key.
    pub fn read(json: &'a Json<'_>) -> Option<Self> {
        let text = |name| match json.get(name)?.value() {
            JsonValue::String(text) => Some(text.as_ref()),
            _ => None,
        };
        Some(Self { hub: text("hub")?, protocol: text("protocol")?, agent: text("agent")? })
    }

    /// Appends it in canonical form.
    pub(super) fn write(&self, out: &mut String) {
        out.push_str("{\"agent\":");
        jcs::push_string(out, self.agent);
        out.push_str(",\"hub\":");
        jcs::push_string(out, self.hub);
        out.push_str(",\"protocol\":");
        jcs::push_string(out, self.protocol);
        out.push('}');
    }
}

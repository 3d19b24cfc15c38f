//! Envelopes: one signed message, checked member by member and kept as it came.
//!
//! Reading proves nothing: who really sent it, and when, is for `proof` to say. The order is that of
//! R73: the JSON with its numbers, the members, then the key they name. Absent members and `null`
//! are the same, as everywhere in the hub.

use rialto_core::time::Timestamp;

use super::failure::Failure;
use super::kind::Kind;
use super::{BODY_MAX, ID_MAX, VERSION};
use crate::kit::ed25519::{BadKey, PublicKey};
use crate::kit::fields::{Fields, Malformed};
use crate::kit::ijson::{self, Json};
use crate::kit::jcs::{self, Edit};
use crate::kit::stamp;

/// Where the signature stands.
const SIGNATURE: &[&str] = &["sender", "signature"];
/// Members of envelopes that call themselves by the same name and are of another kind (section 7).
const OF_OTHERS: [&str; 3] = ["version", "ts", "sig"];

/// A message whose form is right.
#[derive(Clone, Debug)]
pub struct Envelope<'a> {
    /// Its sender's name for it.
    pub id: &'a str,
    /// When its sender says it was made.
    pub timestamp: Timestamp,
    /// The same as it came.
    pub timestamp_text: &'a str,
    /// What it is for.
    pub kind: Kind,
    /// Who its sender says it is.
    pub sender: PublicKey,
    /// The same as it came: a did:key or a raw key.
    pub sender_text: &'a str,
    /// What is to prove that, as it came.
    pub signature: &'a str,
    /// What it says: an object.
    pub payload: &'a Json<'a>,
    /// Whom it is for, if it says so.
    pub recipient: Option<PublicKey>,
    /// The one hub it may be acted on, if it says so.
    pub hub: Option<PublicKey>,
    /// The mark of a hub that signs for somebody else; see [`super::Bridge`].
    pub bridge: Option<&'a Json<'a>>,
    json: &'a Json<'a>,
    canonical: String,
}

/// Reads the bytes of an envelope as JSON; [`Envelope::read`] goes on from there.
pub fn parse(bytes: &[u8]) -> Result<Json<'_>, Failure> {
    if bytes.len() > BODY_MAX {
        return Err(Failure::too_large());
    }
    Ok(ijson::read(bytes)?)
}

impl<'a> Envelope<'a> {
    /// Reads an envelope.
    pub fn read(json: &'a Json<'_>) -> Result<Self, Failure> {
        // First of all, since it finds the numbers that must not be there (R19).
        let canonical = jcs::canonical_with(json, Edit { path: SIGNATURE, to: Some("\"\"") })?;
        let f = Fields::of(json, "")?;
        version(&f)?;
        let id = f.required_name("id", ID_MAX)?;
        let timestamp_text = f.required_text("timestamp")?;
        let timestamp = utc(timestamp_text).map_err(|why| f.fail("timestamp", why))?;
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
            kind,
            sender: key,
            sender_text,
            signature,
            payload,
            recipient,
            hub,
            bridge,
            json,
            canonical,
        })
    }

    /// The whole envelope as it came.
    pub fn raw(&self) -> &'a str {
        self.json.raw()
    }

    /// The whole envelope as a tree.
    pub fn json(&self) -> &'a Json<'a> {
        self.json
    }

    /// The canonical text with the signature empty: what it says, whatever it looked like.
    pub fn canonical(&self) -> &str {
        &self.canonical
    }

    /// The canonical text without any signature, which some sign instead (R12).
    pub(super) fn canonical_without_signature(&self) -> Result<String, Failure> {
        Ok(jcs::canonical_with(self.json, Edit { path: SIGNATURE, to: None })?)
    }
}

fn version(f: &Fields<'_, '_>) -> Result<(), Failure> {
    const WANTED: &str = "must be the string \"agora/1.0\"";
    let given = f.text("protocol").map_err(|_| f.fail("protocol", WANTED))?;
    if given == Some(VERSION) {
        return Ok(());
    }
    let message = if given.is_none() { "is required and must be \"agora/1.0\"" } else { WANTED };
    let failure = Failure::from(f.fail("protocol", message));
    if !OF_OTHERS.iter().any(|name| f.has(name)) {
        return Err(failure);
    }
    Err(failure.with_hint(
        "this is the envelope of another protocol; here it has protocol: \"agora/1.0\", id, \
         timestamp, type, sender {id, signature} and payload",
    ))
}

fn kind(f: &Fields<'_, '_>) -> Result<Kind, Failure> {
    const WANTED: &str =
        "must be HELLO, WELCOME, STATUS, REQUEST, OFFER, ACCEPT, RESULT or ERROR, in capitals";
    let text = f.required_text("type")?;
    Kind::read(text).ok_or_else(|| {
        let failure = Failure::from(f.fail("type", WANTED));
        match text {
            "DEBATE" => failure.with_hint(
                "DEBATE is in some schemas and not in protocol: \"agora/1.0\"; say it in a REQUEST",
            ),
            _ => failure,
        }
    })
}

/// Section 2.2 wants RFC 3339 with `Z` or `+00:00`. RFC 3339 would take `t` and `z` as well, and
/// `-00:00` for a zone nobody knows; the spec says ISO 8601 UTC, which has none of the three, and
/// whoever receives the envelope may hold its sender to that.
fn utc(text: &str) -> Result<Timestamp, &'static str> {
    const WANTED: &str = "must be an ISO 8601 time in UTC like 2024-01-01T00:00:00Z";
    /// No clock needs as many decimals as would fit into this.
    const TEXT_MAX: usize = 64;
    let utc = text.ends_with('Z') || text.ends_with("+00:00");
    if !utc || text.len() > TEXT_MAX || text.as_bytes().get(10) != Some(&b'T') {
        return Err(WANTED);
    }
    stamp::parse(text).map_err(|bad| match bad {
        stamp::BadTime::OutOfRange => "is outside the years 1970 to 9999",
        _ => WANTED,
    })
}

/// Whom it is for, and the hub it may be acted on.
fn recipient(f: &Fields<'_, '_>) -> Result<(Option<PublicKey>, Option<PublicKey>), Malformed> {
    let Some(given) = f.get("recipient") else { return Ok((None, None)) };
    let key =
        |f: &Fields<'_, '_>, name, text| PublicKey::parse(text).map_err(|bad| f.fail(name, bad));
    if let ijson::Kind::Text(text) = given.kind() {
        return Ok((Some(key(f, "recipient", text)?), None));
    }
    let wanted = |_| f.fail("recipient", "must be {\"id\":\"did:key:…\"} or a string");
    let inner = Fields::of(given, f.pointer("recipient")).map_err(wanted)?;
    let id = key(&inner, "id", inner.required_text("id")?)?;
    let hub = inner.text("hub")?.map(|hub| key(&inner, "hub", hub)).transpose()?;
    Ok((Some(id), hub))
}

/// Text that is no key is malformed (400); a good key of another type is nobody we can know (401).
fn refused_key(sender: &Fields<'_, '_>, bad: BadKey) -> Failure {
    match bad {
        BadKey::Malformed => sender.fail("id", bad).into(),
        BadKey::OtherType | BadKey::Weak => Failure::unauthorized(format!("sender.id {bad}")),
    }
}

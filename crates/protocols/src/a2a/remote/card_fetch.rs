//! Fetches cards of other servers, and verifies their signatures (R86 to R92).

use std::collections::BTreeMap;
use std::net::{IpAddr, UdpSocket};
use std::time::Duration;

use rialto_core::money::Credits;
use rialto_engine::delivery::egress::{HttpResponse, REFUSED, SendError};
use url::Url;

use super::credentials::{self, Credentials, origin_of};
use super::{OWNER, RemoteAgent, StoredExtension, StoredInterface, owner_token};
use crate::a2a::A2aContext;
use crate::a2a::wire::error::A2aError;
use crate::a2a::wire::remote_card::{self, CardSignature, Interface, RemoteCard};
use crate::kit::ijson;
use crate::kit::jws::{self, JwkSet, ProtectedHeader};

/// The largest card and key set, and how long fetching one may take.
const CARD_BYTES_MAX: usize = 256 << 10;
const KEYS_BYTES_MAX: usize = 64 << 10;
const FETCH_TIMEOUT: Duration = Duration::from_secs(10);
/// Where servers have their cards (R1).
const CARD_PATH: &str = "/.well-known/agent-card.json";
/// What the URIs of this hub's own extensions begin with.
const OWN_EXTENSIONS: &str = "urn:rialto:a2a:";
/// The most signatures of a card that are tried.
const SIGNATURES_MAX: usize = 4;

/// A card that can be used.
pub struct FetchedCard {
    pub card: RemoteCard,
    pub interface: Interface,
    /// Whether it has a good signature; otherwise it has none.
    pub verified: bool,
}

/// Why a card cannot be used.
#[derive(Debug)]
pub enum FetchError {
    /// The server is there, but at this URL it has no card.
    NoCard(String),
    Unusable(String),
}

impl FetchError {
    /// The text, which follows the name of a field.
    pub fn into_text(self) -> String {
        match self {
            Self::NoCard(text) | Self::Unusable(text) => text,
        }
    }
}

impl From<String> for FetchError {
    fn from(text: String) -> Self {
        Self::Unusable(text)
    }
}

/// Fetches the card of a new agent. Where the URL is that of its server, the card is looked for at
/// the path that cards have. Returns the URL of the card, too.
pub async fn find(context: &A2aContext, url: &str) -> Result<(String, FetchedCard), String> {
    let why = match fetch(context, url).await {
        Ok(fetched) => return Ok((url.to_owned(), fetched)),
        Err(FetchError::Unusable(why)) => return Err(why),
        Err(FetchError::NoCard(why)) => why,
    };
    let Some(other) = usual_url(url) else { return Err(why) };
    match fetch(context, &other).await {
        Ok(fetched) => Ok((other, fetched)),
        Err(FetchError::NoCard(_)) => Err(format!("{why}, and {other} has no card either")),
        Err(FetchError::Unusable(other_why)) => Err(format!("{why}, and {other} {other_why}")),
    }
}

/// Where the card of a server usually is; `None` for the URL of a card.
fn usual_url(url: &str) -> Option<String> {
    let mut url = Url::parse(url).ok().filter(|url| !url.path().ends_with(".json"))?;
    let path = format!("{}{CARD_PATH}", url.path().trim_end_matches('/'));
    url.set_path(&path);
    url.set_query(None);
    url.set_fragment(None);
    Some(url.into())
}

/// Fetches the card at a URL, or says why it cannot be used.
pub async fn fetch(context: &A2aContext, url: &str) -> Result<FetchedCard, FetchError> {
    if is_own(context, url).await {
        let text = "is at this hub, whose agents are here already; give the card of a server \
                    elsewhere";
        return Err(text.to_owned().into());
    }
    let headers = vec![
        ("accept".to_owned(), "application/json".to_owned()),
        ("a2a-version".to_owned(), "1.0".to_owned()),
    ];
    let no_card = |why: String| FetchError::NoCard(format!("is not a card: {why}"));
    let body = get(context, url, headers, CARD_BYTES_MAX).await?;
    let json = ijson::read(&body).map_err(|bad| no_card(format!("not valid JSON: {bad}")))?;
    let card =
        RemoteCard::read(&json).map_err(|wrong| no_card(A2aError::invalid(wrong).message))?;
    let interface = card.usable_interface().cloned().ok_or_else(|| {
        "has no usable interface: the hub speaks JSONRPC and HTTP+JSON of 1.0, and JSONRPC of 0.3"
            .to_owned()
    })?;
    if is_own(context, &interface.url).await {
        return Err("has an interface at this hub; its agents are here already".to_owned().into());
    }
    context.egress.check_url(&interface.url).map_err(|why| {
        let url = &interface.url;
        format!(
            "has the interface {url}, which {why}; write the address under which others reach it \
             into the card"
        )
    })?;
    let verified = verify(context, url, &json, &card.signatures).await?;
    if !verified && context.state.settings.require_signed {
        return Err("is not signed, and this hub takes only signed cards".to_owned().into());
    }
    Ok(FetchedCard { card, interface, verified })
}

/// Gets a document, or says why it cannot be had. What a name resolves to stays unknown.
async fn get(
    context: &A2aContext,
    url: &str,
    headers: Vec<(String, String)>,
    max_bytes: usize,
) -> Result<bytes::Bytes, FetchError> {
    context.egress.check_url(url).map_err(|why| why.to_string())?;
    if context.egress.try_acquire_call(url, context.engine.now()).is_err() {
        let text = "is at a host that got too many calls this minute; try again later";
        return Err(text.to_owned().into());
    }
    let why = match context.egress.get(url, headers, max_bytes, FETCH_TIMEOUT).await {
        Ok(HttpResponse { status: 200, body }) => return Ok(body),
        Ok(HttpResponse { status: status @ (404 | 405), .. }) => {
            return Err(FetchError::NoCard(format!("answered HTTP {status}")));
        }
        Ok(HttpResponse { status, .. }) => format!("answered HTTP {status}"),
        Err(SendError::Unreachable(why)) if why == REFUSED => {
            format!("could not be reached: {REFUSED}")
        }
        Err(SendError::Blocked(_) | SendError::Unreachable(_)) => "could not be reached".to_owned(),
        Err(SendError::TimedOut) => format!("did not answer within {} s", FETCH_TIMEOUT.as_secs()),
        Err(SendError::InvalidResponse(why)) => format!("cannot be read: {why}"),
    };
    Err(why.into())
}

/// Whether a URL is one of this hub, by its name or by an address that it leads to (R88).
async fn is_own(context: &A2aContext, url: &str) -> bool {
    let (Ok(target), Ok(hub)) = (Url::parse(url), Url::parse(&context.hub_url)) else {
        return false;
    };
    let has_same_port = target.port_or_known_default() == hub.port_or_known_default()
        || target.port().is_none() && hub.port().is_none();
    if has_same_port && host_name(&target) == host_name(&hub) {
        return true;
    }
    if target.port_or_known_default() != Some(context.listens_on.port()) {
        return false;
    }
    let found = context.egress.addresses(url).await.unwrap_or_default();
    found.into_iter().any(|ip| leads_to(context.listens_on.ip(), ip))
}

/// The host of a URL, which is in small letters, without a final dot.
fn host_name(url: &Url) -> &str {
    let name = url.host_str().unwrap_or_default();
    name.strip_suffix('.').unwrap_or(name)
}

/// Whether a server that listens on `listens_on` can be reached at an address.
fn leads_to(listens_on: IpAddr, address: IpAddr) -> bool {
    let (listens_on, address) = (listens_on.to_canonical(), address.to_canonical());
    let is_local = address.is_loopback() || address.is_unspecified();
    if listens_on.is_unspecified() {
        // Only addresses of this machine can be bound.
        return is_local || UdpSocket::bind((address, 0)).is_ok();
    }
    address == listens_on || listens_on.is_loopback() && is_local
}

/// Whether a card has a good signature: `false` if it has none, an error if all are bad (R90).
async fn verify(
    context: &A2aContext,
    card_url: &str,
    card: &ijson::Json<'_>,
    signatures: &[CardSignature],
) -> Result<bool, String> {
    if signatures.is_empty() {
        return Ok(false);
    }
    let texts = remote_card::signed_texts(card);
    let mut why = "has no good signature".to_owned();
    for signature in signatures.iter().take(SIGNATURES_MAX) {
        match verify_one(context, card_url, &texts, signature).await {
            Ok(()) => return Ok(true),
            Err(bad) => why = format!("has no good signature: the last one {bad}"),
        }
    }
    Err(why)
}

async fn verify_one(
    context: &A2aContext,
    card_url: &str,
    texts: &[String],
    signature: &CardSignature,
) -> Result<(), String> {
    let header = ProtectedHeader::parse(&signature.protected).map_err(|bad| bad.to_string())?;
    let jku = header.jku.clone().ok_or("names no key set in jku")?;
    let trusted = &context.state.settings.trust_jku;
    let is_trusted = trusted.iter().any(|one| one.as_str() == jku);
    if !is_trusted && !is_on_host_of(&jku, card_url) {
        return Err("has its key at another host, which a2a.trust_jku does not list".to_owned());
    }
    let headers = vec![("accept".to_owned(), "application/json".to_owned())];
    let keys = get(context, &jku, headers, KEYS_BYTES_MAX).await;
    let keys = keys.map_err(|why| format!("has a key set that {}", why.into_text()))?;
    let keys = JwkSet::parse(&keys).map_err(|bad| format!("has a key set that {bad}"))?;
    let key = keys.find(&header).ok_or("names no key of its key set")?;
    let is_good = |text: &String| {
        jws::verify(&signature.protected, text.as_bytes(), &signature.signature, key).is_ok()
    };
    if texts.iter().any(is_good) { Ok(()) } else { Err("does not fit the card".to_owned()) }
}

/// Whether two URLs have one host, and the first is as secure as the second.
fn is_on_host_of(url: &str, other: &str) -> bool {
    let (Ok(url), Ok(other)) = (Url::parse(url), Url::parse(other)) else { return false };
    let is_secure = url.scheme() == "https" || other.scheme() == "http";
    is_secure && url.host_str().is_some() && url.host_str() == other.host_str()
}

/// What a registration states besides the card.
pub struct Terms<'a> {
    /// The agent's name.
    pub name: &'a str,
    pub card_url: &'a str,
    pub asks: &'a BTreeMap<String, Credits>,
    pub credentials: Option<&'a Credentials>,
    /// Credentials that are kept as they were sealed.
    pub sealed: Option<credentials::SealedCredentials>,
}

/// What is kept of an agent with a card, or why it cannot be.
pub fn remote_agent(
    context: &A2aContext,
    fetched: &FetchedCard,
    terms: Terms<'_>,
) -> Result<RemoteAgent, String> {
    let FetchedCard { card, interface, verified } = fetched;
    if let Some(missing) = credentials::missing_credentials(&card.security, terms.credentials) {
        return Err(missing);
    }
    let secret = context.engine.hub_secret();
    let auth = match (terms.sealed, terms.credentials) {
        (Some(sealed), _) => Some(sealed),
        (None, Some(credentials)) => {
            let origin = origin_of(&interface.url).ok_or("the interface has no origin")?;
            credentials.seal(secret, terms.name, &origin, context.engine.random())
        }
        (None, None) => None,
    };
    let token = owner_token(secret, terms.name);
    let is_shown = card.owner_token(OWNER) == Some(token);
    let own_modes = card.skills.iter().filter(|skill| !skill.input_modes.is_empty());
    let foreign = card.extensions.iter().filter(|one| !one.uri.starts_with(OWN_EXTENSIONS));
    Ok(RemoteAgent {
        card_url: terms.card_url.to_owned(),
        interface: StoredInterface::from(interface),
        streaming: card.streaming,
        push: card.push,
        input_modes: card.input_modes.clone(),
        output_modes: card.output_modes.clone(),
        skill_modes: own_modes.map(|skill| (skill.id.clone(), skill.input_modes.clone())).collect(),
        extensions: foreign.map(StoredExtension::from).collect(),
        asks: terms.asks.clone(),
        verified: *verified,
        proven: is_shown || !context.state.settings.owner_proof,
        auth,
        fetched_at: context.engine.now(),
        problem: None,
    })
}

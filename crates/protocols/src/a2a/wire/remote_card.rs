//! Cards of other servers, of either version, as far as the hub needs them.

use std::collections::BTreeMap;

use super::Version;
use super::reader::{Reader, Violations};
use crate::kit::ijson::{self, Json, JsonValue};
use crate::kit::object::ObjectWriter;
use crate::kit::{jcs, name};

/// The most skills of a card (R89).
pub const SKILLS_MAX: usize = 64;
/// The longest id of a skill and name of a card, in characters.
const NAME_MAX: usize = 128;
/// The longest description of a skill or a card, in characters.
const DESCRIPTION_MAX: usize = 4_096;
/// The longest URL of an interface, and the most interfaces, modes, extensions and signatures.
const URL_MAX: usize = 2_048;
const LIST_MAX: usize = 64;
/// The skill of an agent that names none.
const MESSAGE_SKILL: &str = "message";

/// A card of another server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteCard {
    pub name: String,
    pub description: String,
    pub version: String,
    /// Where it can be called, in the order of the card.
    pub interfaces: Vec<Interface>,
    pub streaming: bool,
    pub push: bool,
    pub extensions: Vec<RemoteExtension>,
    pub input_modes: Vec<String>,
    pub output_modes: Vec<String>,
    pub skills: Vec<RemoteSkill>,
    /// What a caller needs: one of these sets of schemes. Empty if it needs nothing.
    pub security: Vec<Vec<Scheme>>,
    pub signatures: Vec<CardSignature>,
}

/// How an interface is spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Binding {
    JsonRpc,
    HttpJson,
}

impl Binding {
    pub fn name(self) -> &'static str {
        match self {
            Self::JsonRpc => "JSONRPC",
            Self::HttpJson => "HTTP+JSON",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        [Self::JsonRpc, Self::HttpJson].into_iter().find(|binding| binding.name() == text)
    }
}

/// Where an agent is called, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    pub url: String,
    pub binding: Binding,
    pub version: Version,
    pub tenant: Option<String>,
}

/// An extension that another agent has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteExtension {
    pub uri: String,
    pub description: String,
    pub required: bool,
    /// A JSON object as text, without what is empty.
    pub params: Option<String>,
}

/// A skill of another agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteSkill {
    pub id: String,
    pub description: String,
    /// Empty where those of the card apply.
    pub input_modes: Vec<String>,
}

/// What a caller has to present.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scheme {
    Bearer,
    Basic,
    /// A key in this header.
    Header(String),
    /// An access token that clients get with their own credentials.
    ClientCredentials,
    /// An access token that a person gets.
    LogIn,
    /// What the hub cannot present.
    Unsupported(String),
}

/// One signature of a card.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CardSignature {
    pub protected: String,
    pub signature: String,
}

impl RemoteCard {
    /// Reads a card, or returns everything that is wrong with it.
    pub fn read(json: &Json<'_>) -> Result<Self, Violations> {
        let mut wrong = Violations::new();
        let card = read_card(json, &mut wrong);
        match card {
            Some(card) if wrong.is_empty() => Ok(card),
            _ => Err(wrong),
        }
    }

    /// The interface that the hub uses: the first of 1.0, else one of 0.3 over JSON-RPC (R87).
    pub fn usable_interface(&self) -> Option<&Interface> {
        let new = self.interfaces.iter().find(|one| one.version == Version::V1);
        new.or_else(|| self.interfaces.iter().find(|one| one.binding == Binding::JsonRpc))
    }

    /// The token with which an owner shows that the card is its own (R91).
    pub fn owner_token(&self, uri: &str) -> Option<String> {
        let extension = self.extensions.iter().find(|one| one.uri == uri)?;
        let json = ijson::read(extension.params.as_deref()?.as_bytes()).ok()?;
        match json.get("token")?.value() {
            JsonValue::String(token) => Some(token.clone().into_owned()),
            _ => None,
        }
    }
}

fn read_card(json: &Json<'_>, wrong: &mut Violations) -> Option<RemoteCard> {
    let r = Reader::new(json, "", wrong)?;
    let card_name = r.required_text("name", wrong);
    if !card_name.is_empty()
        && let Err(bad) = name::check_name(&card_name, NAME_MAX)
    {
        r.reject("name", bad.to_string(), wrong);
    }
    let capabilities = r.object("capabilities", wrong);
    let flag = |name: &str, wrong: &mut Violations| {
        capabilities.as_ref().and_then(|r| r.flag(name, wrong)).unwrap_or(false)
    };
    let extensions = capabilities.as_ref().map(|r| r.list("extensions", wrong));
    let streaming = flag("streaming", wrong);
    let push = flag("pushNotifications", wrong);
    Some(RemoteCard {
        name: card_name,
        description: description(&r, wrong),
        version: r.short_text("version", NAME_MAX, wrong).unwrap_or_default(),
        interfaces: read_interfaces(&r, wrong),
        streaming,
        push,
        extensions: read_extensions(extensions.unwrap_or_default(), wrong),
        input_modes: read_modes(&r, "defaultInputModes", wrong),
        output_modes: read_modes(&r, "defaultOutputModes", wrong),
        skills: read_skills(&r, wrong),
        security: read_security(&r, wrong),
        signatures: read_signatures(&r, wrong),
    })
}

/// A description without anything that hides or reorders text, at its longest length.
fn description(r: &Reader<'_, '_>, wrong: &mut Violations) -> String {
    let text = r.text("description", wrong).unwrap_or_default();
    let is_shown = |c: &char| matches!(c, '\n' | '\t') || !name::is_invisible(*c);
    text.chars().filter(is_shown).take(DESCRIPTION_MAX).collect()
}

/// The items of a list, at most as many as are read.
fn items<'b, 'a>(
    r: &Reader<'a, 'b>,
    name: &str,
    wrong: &mut Violations,
) -> Vec<(&'b Json<'a>, String)> {
    let list = r.list(name, wrong);
    if list.len() > LIST_MAX {
        r.reject(name, format!("must have at most {LIST_MAX} items"), wrong);
    }
    list.into_iter().take(LIST_MAX).collect()
}

fn read_interfaces(r: &Reader<'_, '_>, wrong: &mut Violations) -> Vec<Interface> {
    let mut all = Vec::new();
    for (item, place) in items(r, "supportedInterfaces", wrong) {
        let Some(r) = Reader::new(item, place, wrong) else { continue };
        let url = r.short_text("url", URL_MAX, wrong).unwrap_or_default();
        let binding = r.text("protocolBinding", wrong).unwrap_or_default();
        let version = r.text("protocolVersion", wrong).unwrap_or_default();
        let tenant = r.short_text("tenant", NAME_MAX, wrong).filter(|text| !text.is_empty());
        // Bindings and versions that the hub does not speak are passed over.
        if let (Some(binding), Some(version)) = (Binding::parse(&binding), Version::parse(&version))
            && !url.is_empty()
        {
            all.push(Interface { url, binding, version, tenant });
        }
    }
    all.extend(read_old_interfaces(r, wrong));
    all
}

/// The interfaces of a card of 0.3, or of the members of 0.3 in a card of both versions.
fn read_old_interfaces(r: &Reader<'_, '_>, wrong: &mut Violations) -> Vec<Interface> {
    let version = r.text("protocolVersion", wrong);
    let version = version.map_or(Some(Version::V03), |text| Version::parse(&text));
    if version != Some(Version::V03) {
        return Vec::new();
    }
    let given = |text: &String| !text.is_empty();
    let main = r.short_text("url", URL_MAX, wrong).filter(given);
    let transport = r.text("preferredTransport", wrong).filter(given);
    let mut all: Vec<(String, String)> = Vec::new();
    all.extend(main.map(|url| (url, transport.unwrap_or_else(|| "JSONRPC".to_owned()))));
    for (item, place) in items(r, "additionalInterfaces", wrong) {
        let Some(r) = Reader::new(item, place, wrong) else { continue };
        let url = r.short_text("url", URL_MAX, wrong).filter(given);
        all.extend(url.zip(r.text("transport", wrong)));
    }
    let is_spoken = |(_, transport): &(String, String)| transport == Binding::JsonRpc.name();
    let interface = |(url, _)| Interface {
        url,
        binding: Binding::JsonRpc,
        version: Version::V03,
        tenant: None,
    };
    all.into_iter().filter(is_spoken).map(interface).collect()
}

fn read_extensions(list: Vec<(&Json<'_>, String)>, wrong: &mut Violations) -> Vec<RemoteExtension> {
    let mut all = Vec::new();
    for (item, place) in list.into_iter().take(LIST_MAX) {
        let Some(r) = Reader::new(item, place, wrong) else { continue };
        let uri = r.short_text("uri", URL_MAX, wrong).unwrap_or_default();
        let extension = RemoteExtension {
            description: description(&r, wrong),
            required: r.flag("required", wrong).unwrap_or(false),
            params: r.get("params").and_then(|params| keep_known(params, &Map(&Any))),
            uri,
        };
        if !extension.uri.is_empty() {
            all.push(extension);
        }
    }
    all
}

fn read_modes(r: &Reader<'_, '_>, name: &str, wrong: &mut Violations) -> Vec<String> {
    let modes = r.texts(name, wrong);
    if modes.len() > LIST_MAX || modes.iter().any(|mode| mode.chars().count() > NAME_MAX) {
        let text = format!("must have at most {LIST_MAX} items of {NAME_MAX} characters");
        r.reject(name, text, wrong);
        return Vec::new();
    }
    modes
}

fn read_skills(r: &Reader<'_, '_>, wrong: &mut Violations) -> Vec<RemoteSkill> {
    let list = r.list("skills", wrong);
    if list.len() > SKILLS_MAX {
        r.reject("skills", format!("must have at most {SKILLS_MAX} skills"), wrong);
        return Vec::new();
    }
    let mut all: Vec<RemoteSkill> = Vec::new();
    for (item, place) in list {
        let Some(r) = Reader::new(item, place, wrong) else { continue };
        let id = r.required_text("id", wrong);
        if !id.is_empty()
            && let Err(bad) = name::check_name(&id, NAME_MAX)
        {
            r.reject("id", bad.to_string(), wrong);
        }
        if all.iter().any(|known| known.id == id) {
            r.reject("id", "is the id of another skill, too", wrong);
        }
        let text = description(&r, wrong);
        let shown = r.text("name", wrong).unwrap_or_default();
        let text = if text.is_empty() { shown } else { text };
        let input_modes = read_modes(&r, "inputModes", wrong);
        all.push(RemoteSkill { id, description: text, input_modes });
    }
    if all.is_empty() {
        let (id, description) = (MESSAGE_SKILL.to_owned(), String::new());
        all.push(RemoteSkill { id, description, input_modes: Vec::new() });
    }
    all
}

/// What the card wants of callers. Members of 1.0 count before those of 0.3.
fn read_security(r: &Reader<'_, '_>, wrong: &mut Violations) -> Vec<Vec<Scheme>> {
    let schemes = r.object("securitySchemes", wrong);
    let known: BTreeMap<String, Scheme> = schemes.map_or_else(BTreeMap::new, |all| {
        let names: Vec<String> = all.names().take(LIST_MAX).map(str::to_owned).collect();
        let read = |name: String| {
            let scheme = all.object(&name, wrong).map(|r| read_scheme(&r, wrong))?;
            Some((name, scheme))
        };
        names.into_iter().filter_map(read).collect()
    });
    let wanted: Vec<Vec<String>> = if r.get("securityRequirements").is_some() {
        let list = items(r, "securityRequirements", wrong);
        let read = |(item, place): (&Json<'_>, String)| {
            let r = Reader::new(item, place, wrong)?;
            let schemes = r.object("schemes", wrong);
            Some(schemes.map_or_else(Vec::new, |all| all.names().map(str::to_owned).collect()))
        };
        list.into_iter().filter_map(read).collect()
    } else {
        let list = items(r, "security", wrong);
        let read = |(item, place): (&Json<'_>, String)| {
            Some(Reader::new(item, place, wrong)?.names().map(str::to_owned).collect())
        };
        list.into_iter().filter_map(read).collect()
    };
    // One empty set means that nothing is needed.
    if wanted.iter().any(Vec::is_empty) {
        return Vec::new();
    }
    let scheme = |name: &String| {
        let missing =
            || Scheme::Unsupported(format!("the scheme {name:?}, which it does not define"));
        known.get(name).cloned().unwrap_or_else(missing)
    };
    wanted.iter().map(|set| set.iter().map(scheme).collect()).collect()
}

fn read_scheme(r: &Reader<'_, '_>, wrong: &mut Violations) -> Scheme {
    let unsupported = |what: &str| Scheme::Unsupported(what.to_owned());
    let of_http = |scheme: String| match scheme.to_ascii_lowercase().as_str() {
        "bearer" => Scheme::Bearer,
        "basic" => Scheme::Basic,
        other => Scheme::Unsupported(format!("HTTP authentication with {other:?}")),
    };
    let of_key = |place: &str, name: String| match place {
        "header" if !name.is_empty() => Scheme::Header(name.to_ascii_lowercase()),
        "query" => unsupported("a key in the query of the URL"),
        "cookie" => unsupported("a cookie"),
        _ => unsupported("a key in an unknown place"),
    };
    let of_flows = |flows: Option<Reader<'_, '_>>| match flows {
        Some(flows) if flows.get("clientCredentials").is_some() => Scheme::ClientCredentials,
        _ => Scheme::LogIn,
    };
    if let Some(r) = r.object("httpAuthSecurityScheme", wrong) {
        return of_http(r.text("scheme", wrong).unwrap_or_default());
    }
    if let Some(r) = r.object("apiKeySecurityScheme", wrong) {
        let place = r.text("location", wrong).or_else(|| r.text("in", wrong)).unwrap_or_default();
        return of_key(&place, r.text("name", wrong).unwrap_or_default());
    }
    if let Some(r) = r.object("oauth2SecurityScheme", wrong) {
        return of_flows(r.object("flows", wrong));
    }
    if r.get("openIdConnectSecurityScheme").is_some() {
        return Scheme::LogIn;
    }
    if r.get("mtlsSecurityScheme").is_some() {
        return unsupported("a client certificate");
    }
    match r.text("type", wrong).unwrap_or_default().as_str() {
        "http" => of_http(r.text("scheme", wrong).unwrap_or_default()),
        "apiKey" => {
            let place = r.text("in", wrong).unwrap_or_default();
            of_key(&place, r.text("name", wrong).unwrap_or_default())
        }
        "oauth2" => of_flows(r.object("flows", wrong)),
        "openIdConnect" => Scheme::LogIn,
        "mutualTLS" => unsupported("a client certificate"),
        _ => unsupported("an unknown scheme"),
    }
}

fn read_signatures(r: &Reader<'_, '_>, wrong: &mut Violations) -> Vec<CardSignature> {
    let mut all = Vec::new();
    for (item, place) in items(r, "signatures", wrong) {
        let Some(r) = Reader::new(item, place, wrong) else { continue };
        let protected = r.text("protected", wrong).unwrap_or_default();
        all.push(CardSignature {
            protected,
            signature: r.text("signature", wrong).unwrap_or_default(),
        });
    }
    all
}

/// The texts that a signature may be over: the card as it is without `signatures`, and the card as
/// the members of 1.0 alone, without what is empty. Both are in use.
pub fn signed_texts(json: &Json<'_>) -> Vec<String> {
    let whole = ObjectWriter::copy_without(json, &["signatures"]).finish();
    let strict = keep_known(json, &Object(CARD));
    let texts = [Some(whole), strict].into_iter().flatten();
    let canonical = |text: String| jcs::canonicalize(&ijson::read(text.as_bytes()).ok()?).ok();
    let mut all: Vec<String> = texts.filter_map(canonical).collect();
    all.dedup();
    all
}

/// What a member of a card holds.
enum Shape {
    /// Anything.
    Any,
    /// A flag that is left out when it is false.
    Flag,
    Object(&'static [(&'static str, Shape)]),
    List(&'static Shape),
    /// An object with any names.
    Map(&'static Shape),
}

use Shape::{Any, Flag, List, Map, Object};

const CARD: &[(&str, Shape)] = &[
    ("name", Any),
    ("description", Any),
    ("supportedInterfaces", List(&Object(INTERFACE))),
    ("provider", Object(&[("url", Any), ("organization", Any)])),
    ("version", Any),
    ("documentationUrl", Any),
    ("capabilities", Object(CAPABILITIES)),
    ("securitySchemes", Map(&Object(SCHEME))),
    ("securityRequirements", REQUIREMENTS),
    ("defaultInputModes", Any),
    ("defaultOutputModes", Any),
    ("skills", List(&Object(SKILL))),
    ("iconUrl", Any),
];
const INTERFACE: &[(&str, Shape)] =
    &[("url", Any), ("protocolBinding", Any), ("tenant", Any), ("protocolVersion", Any)];
const CAPABILITIES: &[(&str, Shape)] = &[
    ("streaming", Any),
    ("pushNotifications", Any),
    ("extensions", List(&Object(EXTENSION))),
    ("extendedAgentCard", Any),
];
const EXTENSION: &[(&str, Shape)] =
    &[("uri", Any), ("description", Any), ("required", Flag), ("params", Any)];
const SKILL: &[(&str, Shape)] = &[
    ("id", Any),
    ("name", Any),
    ("description", Any),
    ("tags", Any),
    ("examples", Any),
    ("inputModes", Any),
    ("outputModes", Any),
    ("securityRequirements", REQUIREMENTS),
];
const REQUIREMENTS: Shape = List(&Object(&[("schemes", Map(&Object(&[("list", Any)])))]));
const SCHEME: &[(&str, Shape)] = &[
    ("apiKeySecurityScheme", Object(&[("description", Any), ("location", Any), ("name", Any)])),
    (
        "httpAuthSecurityScheme",
        Object(&[("description", Any), ("scheme", Any), ("bearerFormat", Any)]),
    ),
    (
        "oauth2SecurityScheme",
        Object(&[("description", Any), ("flows", Object(FLOWS)), ("oauth2MetadataUrl", Any)]),
    ),
    ("openIdConnectSecurityScheme", Object(&[("description", Any), ("openIdConnectUrl", Any)])),
    ("mtlsSecurityScheme", Object(&[("description", Any)])),
];
const FLOWS: &[(&str, Shape)] = &[
    ("authorizationCode", Object(FLOW)),
    ("clientCredentials", Object(FLOW)),
    ("implicit", Object(FLOW)),
    ("password", Object(FLOW)),
    ("deviceCode", Object(FLOW)),
];
const FLOW: &[(&str, Shape)] = &[
    ("authorizationUrl", Any),
    ("deviceAuthorizationUrl", Any),
    ("tokenUrl", Any),
    ("refreshUrl", Any),
    ("scopes", Any),
    ("pkceRequired", Flag),
];

/// A value with its known members alone; `None` if nothing is left of it.
fn keep_known(json: &Json<'_>, shape: &Shape) -> Option<String> {
    let members = |of: &dyn Fn(&str) -> Option<&'static Shape>| {
        let JsonValue::Object(members) = json.value() else { return None };
        let kept =
            members.iter().filter_map(|(name, value)| Some((name, keep_known(value, of(name)?)?)));
        let object = kept.fold(ObjectWriter::new(), |all, (name, text)| all.raw(name, &text));
        Some(object.finish()).filter(|text| text != "{}")
    };
    match (shape, json.value()) {
        (_, JsonValue::Null) | (Flag, JsonValue::Bool(false)) => None,
        (Object(known), _) => {
            members(&|name| known.iter().find(|(one, _)| *one == name).map(|(_, shape)| shape))
        }
        (Map(each), _) => members(&|_| Some(each)),
        (List(each), JsonValue::Array(items)) => {
            let kept: Vec<String> =
                items.iter().filter_map(|item| keep_known(item, each)).collect();
            (!kept.is_empty()).then(|| super::message::write_array(kept))
        }
        (List(_), _) => None,
        (Any, JsonValue::String(text)) => (!text.is_empty()).then(|| json.raw().to_owned()),
        (Any, JsonValue::Object(_)) => members(&|_| Some(&Any)),
        (Any, JsonValue::Array(_)) => keep_known(json, &List(&Any)),
        (Any | Flag, _) => Some(json.raw().to_owned()),
    }
}

//! Agent cards, for readers of 1.0 alone or of both versions, and their signature.

use super::message::write_array;
use crate::kit::ed25519::SecretKey;
use crate::kit::object::{ObjectWriter, string_array};
use crate::kit::{base64url, ijson, jcs};

/// The id of the key that signs cards.
const KEY_ID: &str = "card-1";
/// The security scheme of a hub that wants keys.
const SCHEME: &str = "key";
const SCHEME_TEXT: &str = "A key of any agent of this hub";

/// What an agent offers, as its card says it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentCard {
    pub name: String,
    pub description: String,
    pub version: String,
    pub organization: String,
    /// The hub's base URL.
    pub hub_url: String,
    /// Where the agent is called.
    pub url: String,
    /// Whether callers need a key.
    pub needs_key: bool,
    pub extensions: Vec<Extension>,
    pub input_modes: Vec<String>,
    pub output_modes: Vec<String>,
    pub skills: Vec<CardSkill>,
}

/// An extension of the protocol that an agent has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extension {
    pub uri: String,
    pub description: String,
    pub required: bool,
    /// A JSON object as text.
    pub params: Option<String>,
}

/// A skill on a card.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CardSkill {
    pub id: String,
    pub name: String,
    pub description: String,
    pub tags: Vec<String>,
}

impl AgentCard {
    /// The members of 1.0 and no others. Nothing is empty, so that all verifiers see the same text
    /// (R4).
    pub fn write_strict(&self) -> String {
        self.write_members(false).finish()
    }

    /// The card with its signature. The signature covers the members of 1.0.
    pub fn write_signed(&self, with_members_of_0_3: bool, key: &SecretKey) -> String {
        let signature = self.sign(key);
        self.write_members(with_members_of_0_3)
            .raw("signatures", &write_array([signature]))
            .finish()
    }

    fn sign(&self, key: &SecretKey) -> String {
        let header = ObjectWriter::new()
            .text("alg", "EdDSA")
            .text("jku", &format!("{}/a2a/jwks.json", self.hub_url))
            .text("kid", KEY_ID)
            .text("typ", "JOSE")
            .finish();
        let protected = base64url::encode(header.as_bytes());
        let payload = base64url::encode(canonical(&self.write_strict()).as_bytes());
        let signature = key.sign(format!("{protected}.{payload}").as_bytes());
        ObjectWriter::new()
            .text("protected", &protected)
            .text("signature", &base64url::encode(&signature))
            .finish()
    }

    fn write_members(&self, with_members_of_0_3: bool) -> ObjectWriter {
        let interface = |binding: &str, version: &str| {
            ObjectWriter::new()
                .text("url", &self.url)
                .text("protocolBinding", binding)
                .text("protocolVersion", version)
                .finish()
        };
        let interfaces = [
            interface("JSONRPC", "1.0"),
            interface("HTTP+JSON", "1.0"),
            interface("JSONRPC", "0.3"),
        ];
        let provider = ObjectWriter::new()
            .text("organization", &self.organization)
            .text("url", &self.hub_url)
            .finish();
        let mut card = ObjectWriter::new()
            .text("name", &self.name)
            .text("description", &self.description)
            .raw("supportedInterfaces", &write_array(interfaces))
            .raw("provider", &provider)
            .text("version", &self.version)
            .raw("capabilities", &self.write_capabilities());
        if self.needs_key {
            card = card
                .raw("securitySchemes", &write_schemes(with_members_of_0_3))
                .raw("securityRequirements", r#"[{"schemes":{"key":{"list":["agent"]}}}]"#);
        }
        let list = |texts: &[String]| string_array(texts.iter().map(String::as_str));
        card = card
            .raw("defaultInputModes", &list(&self.input_modes))
            .raw("defaultOutputModes", &list(&self.output_modes))
            .raw("skills", &write_array(self.skills.iter().map(CardSkill::write)));
        if !with_members_of_0_3 {
            return card;
        }
        let additional = |transport: &str| {
            ObjectWriter::new().text("url", &self.url).text("transport", transport).finish()
        };
        card = card
            .text("url", &self.url)
            .text("preferredTransport", "JSONRPC")
            .text("protocolVersion", "0.3.0")
            .raw("additionalInterfaces", &write_array([additional("JSONRPC")]));
        match self.needs_key {
            true => card
                .flag("supportsAuthenticatedExtendedCard", true)
                .raw("security", r#"[{"key":["agent"]}]"#),
            false => card,
        }
    }

    fn write_capabilities(&self) -> String {
        let extended = self.needs_key.then_some("true");
        ObjectWriter::new()
            .flag("streaming", true)
            .flag("pushNotifications", true)
            .maybe_raw("extendedAgentCard", extended)
            .raw("extensions", &write_array(self.extensions.iter().map(Extension::write)))
            .finish()
    }
}

fn write_schemes(with_members_of_0_3: bool) -> String {
    let http =
        ObjectWriter::new().text("scheme", "Bearer").text("description", SCHEME_TEXT).finish();
    let scheme = ObjectWriter::new().raw("httpAuthSecurityScheme", &http);
    let scheme = match with_members_of_0_3 {
        true => {
            scheme.text("type", "http").text("scheme", "Bearer").text("description", SCHEME_TEXT)
        }
        false => scheme,
    };
    ObjectWriter::new().raw(SCHEME, &scheme.finish()).finish()
}

impl Extension {
    fn write(&self) -> String {
        ObjectWriter::new()
            .text("uri", &self.uri)
            .maybe_text("description", Some(&*self.description).filter(|text| !text.is_empty()))
            .maybe_raw("required", self.required.then_some("true"))
            .maybe_raw("params", self.params.as_deref())
            .finish()
    }
}

impl CardSkill {
    fn write(&self) -> String {
        ObjectWriter::new()
            .text("id", &self.id)
            .text("name", &self.name)
            .text("description", &self.description)
            .raw("tags", &string_array(self.tags.iter().map(String::as_str)))
            .finish()
    }
}

/// The canonical form of JSON text; the text itself where it has none.
pub fn canonical(text: &str) -> String {
    let json = ijson::read(text.as_bytes()).ok();
    json.and_then(|json| jcs::canonicalize(&json).ok()).unwrap_or_else(|| text.to_owned())
}

/// The public key of the hub's cards as a JSON Web Key Set.
pub fn write_jwks(key: &SecretKey) -> String {
    let key = ObjectWriter::new()
        .text("kty", "OKP")
        .text("crv", "Ed25519")
        .text("alg", "EdDSA")
        .text("use", "sig")
        .text("kid", KEY_ID)
        .text("x", &base64url::encode(key.public().as_bytes()))
        .finish();
    ObjectWriter::new().raw("keys", &write_array([key])).finish()
}

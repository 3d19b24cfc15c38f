//! Agent cards, for readers of 1.0 alone or of both versions, and their signature.

use super::message::write_array;
use crate::kit::ed25519::SecretKey;
use crate::kit::object::{ObjectWriter, string_array};
use crate::kit::{ijson, jcs, jws};

/// The id of the key that signs cards.
const KEY_ID: &str = "card-1";
/// The security scheme of a hub that wants keys.
const SCHEME: &str = "key";
const SCHEME_TEXT: &str = "A key of any agent of this hub";

/// For whom a card is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CardForm {
    /// For readers of 1.0 and of 0.3.
    Both,
    /// For readers of 1.0 alone.
    Strict,
}

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
    /// The members of 1.0 and no others, without a signature. Nothing is empty, so that all
    /// verifiers see the same text (R4).
    fn write_strict(&self) -> String {
        self.write_members(CardForm::Strict).finish()
    }

    /// The card without its signature, in one of its forms.
    pub fn write_unsigned(&self, form: CardForm) -> String {
        self.add_old_members(self.write_members(form), form).finish()
    }

    /// The card with its signature. The signature covers the members of 1.0.
    pub fn write_signed(&self, form: CardForm, key: &SecretKey) -> String {
        let card = self.write_members(form).raw("signatures", &write_array([self.sign(key)]));
        self.add_old_members(card, form).finish()
    }

    fn sign(&self, key: &SecretKey) -> String {
        let url = format!("{}/a2a/jwks.json", self.hub_url);
        let header = [("jku", url.as_str()), ("kid", KEY_ID), ("typ", "JOSE")];
        let signed = jws::sign_ed25519(key, &header, canonical(&self.write_strict()).as_bytes());
        ObjectWriter::new()
            .text("protected", &signed.protected)
            .text("signature", &signed.signature)
            .finish()
    }

    fn write_members(&self, form: CardForm) -> ObjectWriter {
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
                .raw("securitySchemes", &write_schemes(form))
                .raw("securityRequirements", r#"[{"schemes":{"key":{"list":["agent"]}}}]"#);
        }
        let list = |texts: &[String]| string_array(texts.iter().map(String::as_str));
        card.raw("defaultInputModes", &list(&self.input_modes))
            .raw("defaultOutputModes", &list(&self.output_modes))
            .raw("skills", &write_array(self.skills.iter().map(CardSkill::write)))
    }

    /// Adds what readers of 0.3 look for.
    fn add_old_members(&self, card: ObjectWriter, form: CardForm) -> ObjectWriter {
        if form == CardForm::Strict {
            return card;
        }
        let additional = |transport: &str| {
            ObjectWriter::new().text("url", &self.url).text("transport", transport).finish()
        };
        let card = card
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

fn write_schemes(form: CardForm) -> String {
    let http =
        ObjectWriter::new().text("scheme", "Bearer").text("description", SCHEME_TEXT).finish();
    let scheme = ObjectWriter::new().raw("httpAuthSecurityScheme", &http);
    let scheme = match form {
        CardForm::Both => {
            scheme.text("type", "http").text("scheme", "Bearer").text("description", SCHEME_TEXT)
        }
        CardForm::Strict => scheme,
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
fn canonical(text: &str) -> String {
    let json = ijson::read(text.as_bytes()).ok();
    json.and_then(|json| jcs::canonicalize(&json).ok()).unwrap_or_else(|| text.to_owned())
}

/// The public key of the hub's cards as a JSON Web Key Set.
pub fn write_jwks(key: &SecretKey) -> String {
    let key = jws::write_ed25519_jwk(key.public(), KEY_ID);
    ObjectWriter::new().raw("keys", &write_array([key])).finish()
}

//! Credentials for servers of other agents: sealed on disk, and sent only to the origin that they
//! were registered for (R92).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rialto_engine::delivery::egress::can_send_header;
use rialto_engine::random::RandomSource;
use rialto_engine::secret::HubSecret;
use serde::{Deserialize, Serialize};
use url::Url;

use crate::a2a::wire::reader::{Reader, Violations};
use crate::a2a::wire::remote_card::Scheme;

/// The longest credential in characters.
const CREDENTIAL_MAX: usize = 4_096;
/// How a registration presents a bearer token.
const BEARER_EXAMPLE: &str = r#""auth":{"scheme":"bearer","token":"…"}"#;
/// What seals them.
const PURPOSE: &str = "a2a worker";
/// Headers that the hub sets itself, besides those of the connection.
const RESERVED_HEADERS: [&str; 7] = [
    "accept",
    "content-type",
    "a2a-version",
    "a2a-extensions",
    "x-a2a-extensions",
    "user-agent",
    "cookie",
];

/// What the hub presents to the server of an agent. It has no `Debug`.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "scheme", rename_all = "lowercase")]
pub enum Credentials {
    Bearer { token: String },
    Basic { username: String, password: String },
    Header { name: String, value: String },
    OAuth2(ClientCredentials),
}

/// With these a client gets access tokens (RFC 6749, section 4.4).
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientCredentials {
    pub token_url: String,
    pub client_id: String,
    pub client_secret: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
}

/// Credentials as they are stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SealedCredentials {
    pub scheme: String,
    /// The only origin that gets them.
    pub origin: String,
    pub sealed: String,
}

impl Credentials {
    /// Reads the `auth` of a registration.
    pub fn read(r: &Reader<'_, '_>, wrong: &mut Violations) -> Option<Self> {
        let scheme = r.required_text("scheme", wrong);
        let count = wrong.len();
        let mut text = |name: &str| {
            let text = r.required_text(name, wrong);
            if text.chars().count() > CREDENTIAL_MAX {
                let most = format!("must have at most {CREDENTIAL_MAX} characters");
                r.reject(name, most, wrong);
            }
            if !text.bytes().all(|byte| (0x20..0x7f).contains(&byte)) {
                r.reject(name, "must be plain ASCII without control characters", wrong);
            }
            text
        };
        let credentials = match scheme.as_str() {
            "bearer" => Self::Bearer { token: text("token") },
            "basic" => Self::Basic { username: text("username"), password: text("password") },
            "header" => Self::Header { name: text("name"), value: text("value") },
            "oauth2" => Self::OAuth2(ClientCredentials {
                token_url: text("token_url"),
                client_id: text("client_id"),
                client_secret: text("client_secret"),
                scope: r.get("scope").is_some().then(|| text("scope")),
            }),
            "" => return None,
            _ => {
                r.reject("scheme", "must be bearer, basic, header or oauth2", wrong);
                return None;
            }
        };
        if let Self::Header { name, .. } = &credentials
            && wrong.len() == count
            && !is_own_header(name)
        {
            r.reject(
                "name",
                "must be the name of a header that the hub does not set itself",
                wrong,
            );
        }
        (wrong.len() == count).then_some(credentials)
    }

    /// The name of the scheme, as it is registered.
    pub fn scheme(&self) -> &'static str {
        match self {
            Self::Bearer { .. } => "bearer",
            Self::Basic { .. } => "basic",
            Self::Header { .. } => "header",
            Self::OAuth2(_) => "oauth2",
        }
    }

    /// Whether a scheme of a card is satisfied.
    fn satisfies(&self, scheme: &Scheme) -> bool {
        match (self, scheme) {
            (Self::Bearer { .. } | Self::OAuth2(_), Scheme::Bearer | Scheme::ClientCredentials)
            | (Self::Bearer { .. }, Scheme::LogIn)
            | (Self::Basic { .. }, Scheme::Basic) => true,
            (Self::Header { name, .. }, Scheme::Header(wanted)) => {
                name.eq_ignore_ascii_case(wanted)
            }
            _ => false,
        }
    }

    /// The header that presents them; `None` for those that first get an access token.
    pub fn header(&self) -> Option<(String, String)> {
        let authorization = |value: String| Some(("authorization".to_owned(), value));
        match self {
            Self::Bearer { token } => authorization(format!("Bearer {token}")),
            Self::Basic { username, password } => authorization(format!(
                "Basic {}",
                STANDARD.encode(format!("{username}:{password}"))
            )),
            Self::Header { name, value } => Some((name.to_ascii_lowercase(), value.clone())),
            Self::OAuth2(_) => None,
        }
    }

    /// Seals them for an agent.
    pub fn seal(
        &self,
        secret: &HubSecret,
        agent: &str,
        origin: &str,
        random: &dyn RandomSource,
    ) -> Option<SealedCredentials> {
        let plain = serde_json::to_vec(self).ok()?;
        let context = sealing_context(agent, origin);
        Some(SealedCredentials {
            scheme: self.scheme().to_owned(),
            origin: origin.to_owned(),
            sealed: secret.seal(PURPOSE, context.as_bytes(), &plain, random),
        })
    }
}

impl SealedCredentials {
    /// The credentials of an agent.
    pub fn open(&self, secret: &HubSecret, agent: &str) -> Option<Credentials> {
        let context = sealing_context(agent, &self.origin);
        let plain = secret.open(PURPOSE, context.as_bytes(), &self.sealed)?;
        serde_json::from_slice(&plain).ok()
    }
}

fn sealing_context(agent: &str, origin: &str) -> String {
    format!("{agent} {origin}")
}

fn is_own_header(name: &str) -> bool {
    let is_reserved = RESERVED_HEADERS.iter().any(|one| name.eq_ignore_ascii_case(one));
    can_send_header(name) && !is_reserved
}

/// The scheme, host and port of a URL.
pub fn origin_of(url: &str) -> Option<String> {
    let origin = Url::parse(url).ok()?.origin();
    origin.is_tuple().then(|| origin.ascii_serialization())
}

/// Why a card wants more than the credentials of a registration, if it does.
pub fn missing_credentials(
    security: &[Vec<Scheme>],
    credentials: Option<&Credentials>,
) -> Option<String> {
    let satisfied = |set: &Vec<Scheme>| {
        let by = |scheme: &Scheme| credentials.is_some_and(|given| given.satisfies(scheme));
        set.iter().all(by)
    };
    if security.is_empty() || security.iter().any(satisfied) {
        return None;
    }
    let sets = security.iter().map(|set| {
        let names: Vec<String> = set.iter().map(describe).collect();
        names.join(" together with ")
    });
    let sets: Vec<String> = sets.collect();
    Some(format!("the card wants {}", sets.join(", or ")))
}

fn describe(scheme: &Scheme) -> String {
    match scheme {
        Scheme::Bearer => format!("a bearer token; send {BEARER_EXAMPLE}, or the scheme oauth2"),
        Scheme::Basic => "a user name and a password; send \"auth\":{\"scheme\":\"basic\",\
                          \"username\":\"…\",\"password\":\"…\"}"
            .to_owned(),
        Scheme::Header(name) => format!(
            "a key in the header {name}; send \"auth\":{{\"scheme\":\"header\",\"name\":\
             \"{name}\",\"value\":\"…\"}}"
        ),
        Scheme::ClientCredentials => {
            "an access token; send auth with the scheme oauth2 or bearer".to_owned()
        }
        Scheme::LogIn => {
            "an access token that a person logs in for; send auth with the scheme bearer if you \
             have one that lasts"
                .to_owned()
        }
        Scheme::Unsupported(what) => format!("{what}, which the hub cannot present"),
    }
}

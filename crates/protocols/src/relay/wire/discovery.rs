//! `/.well-known/chorus.json`: the paths of all operations. Written by the hub, read by clients.

use std::num::NonZeroU64;

use schemars::JsonSchema;
use serde::Serialize;

use super::work::as_string;
use crate::kit::ijson::Json;
use crate::relay::VERSION;

/// The hub's discovery document.
#[derive(Clone, Copy, Debug)]
pub struct HubDocument<'a> {
    /// Its name.
    pub server_name: &'a str,
    /// `ok`, unless the hub cannot write.
    pub server_status: &'a str,
    /// The longest body it reads.
    pub max_message_bytes: usize,
    /// Writes per minute for one key. Omitted from the document when there is no limit, since a
    /// client would read 0 as none allowed.
    pub rate_limit_per_minute: Option<NonZeroU64>,
    /// The ids of the protocols it speaks; each is served under its own name.
    pub protocols: &'a [&'a str],
}

/// The paths of the operations.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Paths {
    /// Operators register agents here.
    pub register: String,
    /// The list of agents; a single agent is below it.
    pub discover: String,
    /// Messages are sent here.
    pub send: String,
    /// The server's health.
    pub health: String,
    /// Agents register themselves here.
    pub self_register: String,
    /// The inbox.
    pub inbox: String,
    /// Acknowledgements are sent here.
    pub ack: String,
    /// Past messages.
    pub history: String,
}

/// The paths of the spec, which are also the hub's.
impl Default for Paths {
    fn default() -> Self {
        Self {
            register: "/agents".to_owned(),
            discover: "/agents".to_owned(),
            send: "/messages".to_owned(),
            health: "/health".to_owned(),
            self_register: "/register".to_owned(),
            inbox: "/agent/inbox".to_owned(),
            ack: "/agent/inbox/ack".to_owned(),
            history: "/agent/messages".to_owned(),
        }
    }
}

/// The document as the hub writes it.
#[derive(Serialize, JsonSchema)]
pub struct Document<'a> {
    chorus_version: &'static str,
    server_name: &'a str,
    server_status: &'a str,
    endpoints: Paths,
    limits: Limits,
    protocols: serde_json::Map<String, serde_json::Value>,
}

#[derive(Serialize, JsonSchema)]
struct Limits {
    max_message_bytes: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    rate_limit_per_minute: Option<NonZeroU64>,
}

/// A server's discovery document, as a client reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerDocument {
    /// The version it speaks, if given.
    pub chorus_version: Option<String>,
    /// Its name, if given.
    pub server_name: Option<String>,
    /// The paths of its operations; the spec's paths where none are given.
    pub paths: Paths,
}

impl HubDocument<'_> {
    /// The document, which is not wrapped in a response envelope (D15).
    pub fn write(&self) -> Vec<u8> {
        let document = Document {
            chorus_version: VERSION,
            server_name: self.server_name,
            server_status: self.server_status,
            endpoints: Paths::default(),
            limits: Limits {
                max_message_bytes: self.max_message_bytes,
                rate_limit_per_minute: self.rate_limit_per_minute,
            },
            protocols: self
                .protocols
                .iter()
                .map(|id| ((*id).to_owned(), format!("/{id}").into()))
                .collect(),
        };
        serde_json::to_vec(&document).expect("texts and numbers are JSON")
    }
}

impl ServerDocument {
    /// Reads a server's document. Nothing in it is required.
    pub fn read(json: &Json<'_>) -> Self {
        let mut paths = Paths::default();
        for (name, path) in [
            ("register", &mut paths.register),
            ("discover", &mut paths.discover),
            ("send", &mut paths.send),
            ("health", &mut paths.health),
            ("self_register", &mut paths.self_register),
            ("inbox", &mut paths.inbox),
            ("ack", &mut paths.ack),
            ("history", &mut paths.history),
        ] {
            let given = json.get("endpoints").and_then(|endpoints| text(endpoints, name));
            if let Some(given) = given.filter(|given| is_path(given)) {
                *path = given;
            }
        }
        Self {
            chorus_version: text(json, "chorus_version"),
            server_name: text(json, "server_name"),
            paths,
        }
    }
}

fn text(json: &Json<'_>, name: &str) -> Option<String> {
    as_string(json.get(name)?).map(str::to_owned)
}

/// Whether a text is a path on the same server: a client sends its key with every request, and must
/// not be led to another server.
fn is_path(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_graphic() && c != '\\';
    text.starts_with('/') && !text.starts_with("//") && text.chars().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kit::ijson;

    #[test]
    fn the_hubs_document_is_that_of_the_book() {
        let hub = HubDocument {
            server_name: "Rialto",
            server_status: "ok",
            max_message_bytes: 65_536,
            rate_limit_per_minute: NonZeroU64::new(600),
            protocols: &["registry", "relay", "openclaw", "clara", "agora"],
        };
        let book = r#"{"chorus_version":"0.4","server_name":"Rialto","server_status":"ok",
 "endpoints":{"register":"/agents","discover":"/agents","send":"/messages","health":"/health","self_register":"/register",
  "inbox":"/agent/inbox","ack":"/agent/inbox/ack","history":"/agent/messages"},
 "limits":{"max_message_bytes":65536,"rate_limit_per_minute":600},
 "protocols":{"registry":"/registry","relay":"/relay","openclaw":"/openclaw","clara":"/clara","agora":"/agora"}}"#;
        let value =
            |bytes: &[u8]| -> serde_json::Value { serde_json::from_slice(bytes).expect("JSON") };
        assert_eq!(value(&hub.write()), value(book.as_bytes()));
    }

    #[test]
    fn a_client_takes_the_paths_it_is_given() {
        let json = ijson::read(br#"{"server_name":"x","endpoints":{"send":"/v2/messages","inbox":"/in","more":"/more"}}"#).expect("JSON");
        let server = ServerDocument::read(&json);
        assert_eq!(server.server_name.as_deref(), Some("x"));
        assert_eq!(
            (server.paths.send.as_str(), server.paths.inbox.as_str()),
            ("/v2/messages", "/in")
        );
        assert_eq!(server.paths.self_register, "/register");
    }

    #[test]
    fn a_client_is_not_led_to_another_server() {
        for path in
            ["https://evil.example/m", "//evil.example/m", "messages", "/\\\\evil", "", "/a b"]
        {
            let document = format!(r#"{{"endpoints":{{"send":"{path}"}}}}"#);
            let json = ijson::read(document.as_bytes()).expect("JSON");
            assert_eq!(ServerDocument::read(&json).paths, Paths::default(), "{path}");
        }
        for document in ["{}", "[]", "7", r#"{"endpoints":[]}"#, r#"{"endpoints":{"send":7}}"#] {
            let json = ijson::read(document.as_bytes()).expect("JSON");
            assert_eq!(ServerDocument::read(&json).paths, Paths::default());
        }
    }
}

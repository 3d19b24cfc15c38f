//! Messages as texts: what a client writes, and the few members of the hub's messages that matter.
//!
//! Numbers keep their digits, because values are passed on as the texts they were read from.

use std::fmt;

use rialto_hub::mcp::wire::META_PREFIX;
use rialto_hub::mcp::wire::error::{INVALID_REQUEST, PARSE_ERROR, RpcError};
use rialto_protocols::kit::ijson::{self, Json, JsonValue};
use rialto_protocols::kit::object::ObjectWriter;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// A request of the client.
#[derive(Clone, Debug)]
pub struct Request {
    /// JSON text.
    pub id: String,
    pub method: String,
    /// JSON text of an object.
    pub params: String,
    /// The whole message.
    pub text: String,
    /// Whether it states a version of the new era, or asks for what only the new era has.
    pub is_new: bool,
    /// What the header `Mcp-Name` repeats.
    pub name: Option<String>,
}

/// What a client writes.
#[derive(Clone, Debug)]
pub enum ClientMessage {
    Request(Request),
    Notification {
        method: String,
        /// For `notifications/cancelled`: JSON text.
        request_id: Option<String>,
    },
    /// The response to a request of the bridge.
    Response {
        /// JSON text.
        id: String,
        /// JSON text; `None` if the client answered with an error.
        result: Option<String>,
    },
}

/// Why a line is refused: the whole message of the answer.
#[derive(Debug)]
pub struct Refused(pub String);

impl ClientMessage {
    pub fn read(line: &[u8]) -> Result<Self, Refused> {
        let refuse = |id: Option<&str>, error: RpcError| Refused(error.write(id));
        let invalid =
            |text: &str| RpcError::new(INVALID_REQUEST, format!("Invalid Request: {text}"));
        let json = ijson::read(line).map_err(|bad| {
            refuse(None, RpcError::new(PARSE_ERROR, format!("Parse error: {bad}")))
        })?;
        if text_of(json.get("jsonrpc")) != Some("2.0") {
            return Err(refuse(None, invalid("send one JSON-RPC 2.0 message per line, no batch")));
        }
        let id = json.get("id").map(read_id);
        let Some(method) = text_of(json.get("method")) else {
            let is_response = json.get("result").or(json.get("error")).is_some();
            return match id.flatten() {
                Some(id) if is_response => Ok(Self::Response {
                    id: id.to_owned(),
                    result: json.get("result").map(|result| result.raw().to_owned()),
                }),
                _ => Err(refuse(None, invalid("method must be a string"))),
            };
        };
        let params = json.get("params");
        let Some(id) = id else {
            let request_id = params.and_then(|params| params.get("requestId")).and_then(read_id);
            let request_id = request_id.map(str::to_owned);
            return Ok(Self::Notification { method: method.to_owned(), request_id });
        };
        let id = id
            .ok_or_else(|| refuse(None, invalid("id must be a string or an integer")))?
            .to_owned();
        if params.is_some_and(|params| !matches!(params.value(), JsonValue::Object(_))) {
            let error = RpcError::invalid_params("Invalid params: params must be an object");
            return Err(refuse(Some(&id), error));
        }
        let member = |name: &str| params.and_then(|params| params.get(name));
        let version = member("_meta").and_then(|meta| meta.get(&meta_name("protocolVersion")));
        let name = ["name", "uri", "taskId"].iter().find_map(|name| text_of(member(name)));
        Ok(Self::Request(Request {
            is_new: version.is_some() || method == "server/discover",
            method: method.to_owned(),
            params: params.map_or("{}", Json::raw).to_owned(),
            text: json.raw().to_owned(),
            name: name.map(str::to_owned),
            id,
        }))
    }
}

/// A name of the protocol itself in `_meta`.
pub fn meta_name(name: &str) -> String {
    format!("{META_PREFIX}{name}")
}

/// A string or an integer, as JSON text.
fn read_id<'a>(id: &Json<'a>) -> Option<&'a str> {
    match id.value() {
        JsonValue::String(_) => Some(id.raw()),
        JsonValue::Number(digits) if digits.bytes().all(|b| b == b'-' || b.is_ascii_digit()) => {
            Some(id.raw())
        }
        _ => None,
    }
}

/// The text of a JSON string.
pub fn text_of<'a>(json: Option<&'a Json<'_>>) -> Option<&'a str> {
    match json?.value() {
        JsonValue::String(text) => Some(text),
        _ => None,
    }
}

/// A notification.
pub fn notification(method: &str, params: &str) -> String {
    ObjectWriter::new().text("jsonrpc", "2.0").text("method", method).raw("params", params).finish()
}

/// A response with a result.
pub fn response(id: &str, result: &str) -> String {
    ObjectWriter::new().text("jsonrpc", "2.0").raw("id", id).raw("result", result).finish()
}

/// The members of a JSON object as texts, in their order. Unlike [`Json`] it has no limits, for
/// messages of the hub around outputs that have their own.
#[derive(Clone, Debug, Default)]
pub struct Members<'a>(Vec<(String, &'a str)>);

impl<'a> Members<'a> {
    /// Reads an object; `None` for anything else.
    pub fn read(text: &'a str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    /// The text of a member.
    pub fn get(&self, name: &str) -> Option<&'a str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| *value)
    }

    /// The value of a member that is a string.
    pub fn text(&self, name: &str) -> Option<String> {
        serde_json::from_str(self.get(name)?).ok()
    }

    /// The members of a member that is an object.
    pub fn members(&self, name: &str) -> Option<Self> {
        Self::read(self.get(name)?)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &'a str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), *value))
    }

    /// Whether it has no members.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Leaves members out.
    pub fn without(mut self, names: &[&str]) -> Self {
        self.0.retain(|(name, _)| !names.contains(&name.as_str()));
        self
    }

    /// Begins an object with these members.
    pub fn begin(&self) -> ObjectWriter {
        self.iter().fold(ObjectWriter::new(), |object, (name, value)| object.raw(name, value))
    }
}

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Texts;

        impl<'de> Visitor<'de> for Texts {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some((name, value)) = map.next_entry::<String, &'de RawValue>()? {
                    members.push((name, value.get()));
                }
                Ok(Members(members))
            }
        }

        from.deserialize_map(Texts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> ClientMessage {
        ClientMessage::read(line.as_bytes()).unwrap_or_else(|refused| panic!("{refused:?}"))
    }

    #[test]
    fn requests_keep_their_ids_and_their_digits() {
        let line = r#" {"jsonrpc":"2.0","id":"a\u0062","method":"tools/call","params":{"name":"hire","arguments":{"n":1.50e0}}} "#;
        let ClientMessage::Request(request) = read(line) else { panic!("a request") };
        assert_eq!(request.id, r#""a\u0062""#);
        assert_eq!(request.params, r#"{"name":"hire","arguments":{"n":1.50e0}}"#);
        assert_eq!((request.text.as_str(), request.name.as_deref()), (line.trim(), Some("hire")));
        assert!(!request.is_new);
    }

    #[test]
    fn the_era_shows_in_the_message() {
        for (line, is_new) in [
            (r#"{"jsonrpc":"2.0","id":1,"method":"server/discover"}"#, true),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}"#,
                false,
            ),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2027-01-01"}}}"#,
                true,
            ),
        ] {
            let ClientMessage::Request(request) = read(line) else { panic!("{line}") };
            assert_eq!(request.is_new, is_new, "{line}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_answered_without_an_id() {
        for (line, code) in [
            ("{nope", -32700),
            ("\u{feff}{}", -32700),
            (r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, -32600),
            (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, -32600),
            (r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#, -32600),
            (r#"{"id":1,"method":"ping"}"#, -32600),
            (r#"{"jsonrpc":"2.0","id":1}"#, -32600),
        ] {
            let Refused(text) = ClientMessage::read(line.as_bytes()).expect_err(line);
            assert!(text.contains(&format!("\"code\":{code}")), "{line}: {text}");
            assert!(!text.contains("\"id\""), "{line}: {text}");
        }
        let listed = br#"{"jsonrpc":"2.0","id":7,"method":"ping","params":[1]}"#;
        let Refused(text) = ClientMessage::read(listed).expect_err("a list");
        assert!(text.contains("\"id\":7") && text.contains("-32602"), "{text}");
    }

    #[test]
    fn members_are_copied_as_they_stand() {
        let text = r#"{ "a" : 1.00 , "b\u0020c":{"x" : [1, 2]},"gone":null}"#;
        let members = Members::read(text).expect("an object").without(&["gone"]);
        assert_eq!(members.begin().finish(), r#"{"a":1.00,"b c":{"x" : [1, 2]}}"#);
        assert_eq!(members.get("a"), Some("1.00"));
        assert!(Members::read("[1]").is_none());
    }
}

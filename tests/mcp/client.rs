//! A small client of both eras: every test says exactly what it sends.

use serde_json::{Map, Value, json};

use crate::kit::{Reply, TestHub};

const NEW: &str = "2026-07-28";
const OLD: &str = "2025-11-25";
const META: &str = "io.modelcontextprotocol";

/// Which rules a client follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Era {
    Old,
    New,
}

/// A client of one endpoint.
#[derive(Clone, Debug)]
pub struct McpClient {
    pub url: String,
    pub key: Option<String>,
    pub era: Era,
    /// What the client states that it can do, in the new era.
    pub capabilities: Value,
    http: reqwest::Client,
}

impl McpClient {
    /// A client of `/mcp`, or of another path of the hub.
    pub fn new(hub: &TestHub, path: &str, key: Option<&str>, era: Era) -> Self {
        Self {
            url: format!("{}{path}", hub.url),
            key: key.map(str::to_owned),
            era,
            capabilities: json!({}),
            http: hub.http.clone(),
        }
    }

    /// States capabilities in every request.
    pub fn with(self, capabilities: Value) -> Self {
        Self { capabilities, ..self }
    }

    /// The message of a request, and its headers.
    pub fn message(&self, method: &str, params: Value) -> (Value, Vec<(&'static str, String)>) {
        let mut params = match params {
            Value::Object(members) => members,
            Value::Null => Map::new(),
            other => panic!("parameters are an object: {other}"),
        };
        let mut headers = vec![("accept", "application/json, text/event-stream".to_owned())];
        if self.era == Era::Old {
            headers.push(("mcp-protocol-version", OLD.to_owned()));
        } else {
            headers.push(("mcp-protocol-version", NEW.to_owned()));
            headers.push(("mcp-method", method.to_owned()));
            let name =
                ["name", "uri", "taskId"].iter().find_map(|name| params.get(*name)?.as_str());
            if let Some(name) = name {
                headers.push(("mcp-name", name.to_owned()));
            }
            let meta = params.entry("_meta").or_insert_with(|| json!({}));
            meta[format!("{META}/protocolVersion")] = NEW.into();
            meta[format!("{META}/clientCapabilities")] = self.capabilities.clone();
        }
        (json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}), headers)
    }

    /// The request, ready to be sent or changed.
    pub fn request(&self, method: &str, params: Value) -> reqwest::RequestBuilder {
        let (message, headers) = self.message(method, params);
        let mut request = self.http.post(&self.url).body(message.to_string());
        request = request.header("content-type", "application/json");
        for (name, value) in headers {
            request = request.header(name, value);
        }
        match &self.key {
            Some(key) => request.bearer_auth(key),
            None => request,
        }
    }

    /// Status and text of what is answered.
    pub async fn send(&self, method: &str, params: Value) -> Reply {
        Reply::to(self.request(method, params)).await
    }

    /// All messages that are answered: the response is the last one.
    pub async fn messages(&self, method: &str, params: Value) -> Vec<Value> {
        let reply = self.send(method, params).await;
        match reply.text.starts_with('{') {
            true => vec![serde_json::from_str(&reply.text).expect("JSON")],
            false => data_of(&reply.text),
        }
    }

    /// The response: `result` or `error`.
    pub async fn respond(&self, method: &str, params: Value) -> Value {
        self.messages(method, params).await.pop().expect("a response")
    }

    /// The result of a request that succeeds.
    pub async fn result(&self, method: &str, params: Value) -> Value {
        let mut response = self.respond(method, params).await;
        assert!(response.get("error").is_none(), "{method}: {response}");
        response["result"].take()
    }

    /// The result of a tool, whether it succeeded or failed.
    pub async fn call(&self, tool: &str, arguments: Value) -> Value {
        self.result("tools/call", json!({"name": tool, "arguments": arguments})).await
    }

    /// The structured content of a tool that succeeds; its text is the same value.
    pub async fn ok(&self, tool: &str, arguments: Value) -> Value {
        let mut result = self.call(tool, arguments).await;
        assert_ne!(result["isError"], true, "{tool}: {result}");
        let text = result["content"][0]["text"].as_str().expect("a text");
        let said: Value = serde_json::from_str(text).expect("JSON");
        assert_eq!(said, result["structuredContent"], "{tool}");
        assert_fits_output_schema(tool, &said);
        result["structuredContent"].take()
    }

    /// The text of a tool that fails. It begins with its code.
    pub async fn fail(&self, tool: &str, arguments: Value, code: &str) -> String {
        let result = self.call(tool, arguments).await;
        assert_eq!(result["isError"], true, "{tool}: {result}");
        assert!(result.get("structuredContent").is_none(), "{result}");
        assert_eq!(result["_meta"]["rialto/error"]["code"], code, "{result}");
        let text = result["content"][0]["text"].as_str().expect("a text").to_owned();
        assert!(text.starts_with(&format!("{code}: ")), "{text}");
        text
    }
}

/// The tools as they are listed, and what else belongs to them.
pub fn catalog() -> Value {
    let file = include_str!("../../crates/hub/src/mcp/fixtures/tools.json");
    serde_json::from_str(file).expect("JSON")
}

/// Every success of a tool of the hub is what the tool's output schema says.
fn assert_fits_output_schema(tool: &str, said: &Value) {
    let catalog = catalog();
    let mut tools = catalog["tools"].as_array().expect("tools").iter();
    let Some(tool) = tools.find(|known| known["name"] == tool) else { return };
    let schema = jsonschema::validator_for(&tool["outputSchema"]).expect("a schema");
    if let Err(wrong) = schema.validate(said) {
        panic!("{}: {wrong} in {said}", tool["name"]);
    }
}

/// The messages of an event stream.
pub fn data_of(stream: &str) -> Vec<Value> {
    let data = stream.lines().filter_map(|line| line.strip_prefix("data:"));
    data.map(|text| serde_json::from_str(text.trim_start()).expect("JSON")).collect()
}

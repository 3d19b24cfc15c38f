//! The captures of the book, sent again: what unmodified clients sent, and every error of the
//! transport.

use serde_json::{Map, Value, json};

use crate::client::data_of;
use crate::kit::{Behaviour, Reply, TestHub, Worker};

const TOOLS: &str = include_str!("../../crates/hub/src/mcp/fixtures/tools.json");
const ERRORS: &str = include_str!("../../crates/hub/src/mcp/fixtures/errors.json");

/// What clients sent, by the name of the file.
const CAPTURES: [(&str, &str); 9] = [
    ("claude-code", include_str!("../../crates/hub/src/mcp/fixtures/claude-code-2.1.325.json")),
    ("codex", include_str!("../../crates/hub/src/mcp/fixtures/codex-0.166.0.json")),
    ("inspector", include_str!("../../crates/hub/src/mcp/fixtures/inspector-2.12.0.json")),
    ("python old", include_str!("../../crates/hub/src/mcp/fixtures/python-mcp-1.30.0-legacy.json")),
    ("python auto", include_str!("../../crates/hub/src/mcp/fixtures/python-mcp-2.3.0-auto.json")),
    (
        "python elicitation",
        include_str!("../../crates/hub/src/mcp/fixtures/python-mcp-2.3.0-elicitation.json"),
    ),
    ("python new", include_str!("../../crates/hub/src/mcp/fixtures/python-mcp-2.3.0-modern.json")),
    (
        "ts client old",
        include_str!("../../crates/hub/src/mcp/fixtures/ts-client-2.4.0-legacy.json"),
    ),
    (
        "ts client new",
        include_str!("../../crates/hub/src/mcp/fixtures/ts-client-2.4.0-modern.json"),
    ),
];
const TS_SDK: (&str, &str) =
    ("ts sdk", include_str!("../../crates/hub/src/mcp/fixtures/ts-sdk-1.32.2-legacy.json"));

/// Members whose value is the same at every hub.
const EXACT: [&str; 22] = [
    "code",
    "message",
    "data",
    "jsonrpc",
    "id",
    "resultType",
    "ttlMs",
    "cacheScope",
    "isError",
    "type",
    "role",
    "mimeType",
    "uri",
    "method",
    "protocolVersion",
    "supportedVersions",
    "capabilities",
    "instructions",
    "serverInfo",
    "tools",
    "prompts",
    "progressToken",
];

/// A hub with the agents of the captures.
struct Scene {
    hub: TestHub,
    key: String,
    counter: Worker,
    _echo: Worker,
    tools: Value,
}

impl Scene {
    async fn set() -> Self {
        let flags = [("mcp.per_job", "10.00"), ("mcp.per_day", "100.00")];
        let hub = TestHub::open(&flags).await;
        let counter = Worker::start(Behaviour::Succeed(json!({"words": 2}), "0.05")).await;
        let echo = Worker::start(Behaviour::Succeed(json!({"n": 1}), "0")).await;
        let agent = |name: &str, owner: &str, skill: Value, url: &str| {
            json!({"agent_name": name, "owner_id": owner, "version": "0.1", "skills": [skill],
                "api_endpoint": url})
        };
        let counts = json!({"skill_name": "count_words", "cost_per_call": 0.05,
            "description": "Counts the words of a text"});
        let echoes = json!({"skill_name": "echo", "cost_per_call": 0,
            "description": "Gives back what it is given"});
        hub.enrol(&agent("word-counter", "word-counter", counts, &counter.url), None).await;
        hub.enrol(&agent("echo", "rialto-demo-echo", echoes, &echo.url), None).await;
        let me = hub.orchestrator("me").await;
        let tools = serde_json::from_str(TOOLS).expect("JSON");
        Self { hub, key: me.key, counter, _echo: echo, tools }
    }

    async fn send(&self, request: &Value) -> Reply {
        let method = request["method"].as_str().expect("a method");
        let method = reqwest::Method::from_bytes(method.as_bytes()).expect("a method");
        let path = request["path"].as_str().expect("a path");
        let mut sent = self.hub.http.request(method, format!("{}{path}", self.hub.url));
        for (name, value) in request["headers"].as_object().expect("headers") {
            let value = value.as_str().expect("a value");
            sent = match value {
                // Keys of captures were cut or replaced.
                "Bearer rk_…" | "Bearer <key>" => sent.bearer_auth(&self.key),
                _ => sent.header(name, value),
            };
        }
        let body = match &request["body"] {
            Value::String(text) => text.clone(),
            Value::Null => String::new(),
            json => json.to_string(),
        };
        Reply::to(sent.body(body)).await
    }

    /// The expected response, with what a capture leaves out.
    fn completed(&self, expected: &Value) -> Value {
        match expected {
            Value::String(text) if text == "<that of tools.json>" => {
                self.tools["instructions"].clone()
            }
            Value::String(text) if text == "<the 17 of tools.json>" => self.tools["tools"].clone(),
            Value::Array(items) => items.iter().map(|item| self.completed(item)).collect(),
            Value::Object(members) => {
                let members = members.iter();
                let members = members.map(|(name, value)| (name.clone(), self.completed(value)));
                Value::Object(members.collect())
            }
            other => other.clone(),
        }
    }

    async fn replay(&self, name: &str, exchange: &Value) -> Value {
        let reply = self.send(&exchange["request"]).await;
        let response = self.completed(&exchange["response"]);
        assert_eq!(response["status"], reply.status, "{name}: {}", reply.text);
        for (header, value) in response["headers"].as_object().expect("headers") {
            // Which of two words for "do not keep this" is not said.
            if !header.eq_ignore_ascii_case("cache-control") {
                let found = reply.headers.get(header).and_then(|value| value.to_str().ok());
                assert_eq!(found, value.as_str(), "{name}: {header}");
            }
        }
        match &response["body"] {
            Value::Null => {
                assert_eq!(reply.text, "", "{name}");
                Value::Null
            }
            Value::Array(messages) => {
                let sent = data_of(&reply.text);
                let last = sent.last().expect("a response").clone();
                assert!(sent.len() > 2, "{name}: {}", reply.text);
                for message in &sent[..sent.len() - 1] {
                    compare(&messages[0], message, name, "");
                }
                compare(messages.last().expect("a response"), &last, name, "");
                last
            }
            body => {
                let got = serde_json::from_str(&reply.text).expect("JSON");
                compare(body, &got, name, "");
                got
            }
        }
    }
}

fn exchanges(file: &str) -> Vec<Value> {
    serde_json::from_str(file).expect("JSON")
}

fn members(json: &Value) -> Map<String, Value> {
    json.as_object().cloned().unwrap_or_default()
}

/// Compares structure and values, but for ids, times, scores, and text in words of the mock.
fn compare(expected: &Value, got: &Value, name: &str, place: &str) {
    let member = place.rsplit('/').next().unwrap_or_default();
    let context = || format!("{name}: {place}: expected {expected}, got {got}");
    // The content of a tool may have members that depend on the state of the hub.
    let is_content = place.contains("/structuredContent") || place.contains("/text");
    match (expected, got) {
        (Value::Object(_), Value::Object(_)) => {
            let (expected, got) = (members(expected), members(got));
            // Only a key has limits, and the mock's guest had one.
            let limits = place.ends_with("/limits");
            for (key, value) in expected.iter().filter(|(key, _)| !limits || got.contains_key(*key))
            {
                let found = got.get(key).unwrap_or_else(|| panic!("{} lacks {key}", context()));
                compare(value, found, name, &format!("{place}/{key}"));
            }
            let unexpected = got.keys().find(|key| !expected.contains_key(*key));
            assert!(is_content || unexpected.is_none(), "{}: {unexpected:?}", context());
        }
        (Value::Array(all), Value::Array(found)) if EXACT.contains(&member) => {
            assert_eq!(all, found, "{}", context());
        }
        (Value::Array(all), Value::Array(found)) => {
            for (expected, got) in all.iter().zip(found) {
                compare(expected, got, name, place);
            }
            assert!(is_content || all.is_empty() || !found.is_empty(), "{}", context());
        }
        (Value::String(expected), Value::String(got)) => {
            match serde_json::from_str::<Value>(expected) {
                // JSON as text.
                Ok(expected @ Value::Object(_)) => {
                    let got = serde_json::from_str(got).expect("JSON");
                    compare(&expected, &got, name, place);
                }
                _ if member == "text" => {
                    // A failure begins with its code.
                    let code = |text: &str| text.split_once(": ").map(|(code, _)| code.to_owned());
                    let is_failure = expected.contains(". Fix: ");
                    assert!(!is_failure || code(expected) == code(got), "{}", context());
                }
                // The reasons of parsers differ, and the ids of jobs.
                _ if expected.starts_with("Parse error: ") => {
                    assert!(got.starts_with("Parse error: "), "{}", context());
                }
                _ if expected.starts_with("job ") => {
                    assert!(got.starts_with("job "), "{}", context())
                }
                _ => {
                    let is_free = is_content || !EXACT.contains(&member);
                    assert!(is_free || expected == got, "{}", context());
                }
            }
        }
        (Value::Number(_), Value::Number(_)) if !EXACT.contains(&member) || is_content => {}
        _ => assert_eq!(expected, got, "{}", context()),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_error_of_the_book_is_answered_with_its_status_code_and_words() {
    let scene = Scene::set().await;
    for exchange in exchanges(ERRORS) {
        let name = exchange["name"].as_str().expect("a name").to_owned();
        let fails = name == "job that fails";
        let behaviour = match fails {
            true => Behaviour::Fail(None),
            false => Behaviour::Succeed(json!({"words": 2}), "0.05"),
        };
        scene.counter.behave(behaviour);
        scene.replay(&name, &exchange).await;
    }
    scene.hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_unmodified_clients_sent_is_answered_as_they_were_answered() {
    let scene = Scene::set().await;
    for (client, file) in CAPTURES.into_iter().chain([TS_SDK]) {
        let mut state = Value::Null;
        for (at, mut exchange) in exchanges(file).into_iter().enumerate() {
            // What the hub gave out is sent back, not what the mock gave out.
            if let Some(sent) = exchange.pointer_mut("/request/body/params/requestState") {
                *sent = state.take();
            }
            let response = scene.replay(&format!("{client} {at}"), &exchange).await;
            state = response["result"]["requestState"].clone();
        }
    }
    scene.hub.stop().await;
}

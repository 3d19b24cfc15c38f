//! Shared by the tests of traces: parties of each protocol on one hub, and their notes.

use std::ops::Deref;

use serde_json::{Value, json};

use crate::agora::kit::{Hub as AgoraHub, Key, Token};
use crate::clara::kit::Wallet;
use crate::kit::{Agent, Reply};
use crate::openclaw::kit::{Hub as ClawHub, fresh_id, identity, with};

/// A hub with agents of all protocols.
pub struct Hub(pub AgoraHub);

impl Deref for Hub {
    type Target = AgoraHub;

    fn deref(&self) -> &AgoraHub {
        &self.0
    }
}

/// An openclaw agent.
pub struct Claw {
    pub id: String,
    pub key: String,
}

impl Hub {
    pub async fn serve() -> Self {
        Self(AgoraHub::serve(&[]).await)
    }

    /// A registry orchestrator with a hundred credits.
    pub async fn boss(&self) -> Agent {
        let boss = self.orchestrator("boss").await;
        self.grant("boss", "100").await;
        boss
    }

    /// An openclaw agent that sums.
    pub async fn claw(&self, name: &str) -> Claw {
        let body = identity(name, ClawHub::time_of(self));
        let reply = self.post("/openclaw/identity", None, &body).await.expect(201);
        Claw { id: reply.str("/agent_id"), key: reply.str("/api_key") }
    }

    /// Posts a request of an openclaw agent.
    pub async fn collaborate(&self, by: &Claw, more: Value) -> (Value, Reply) {
        let request = json!({
            "request_id": fresh_id(), "requester_agent_id": by.id, "capability_id": "sum",
            "input_data": {"a": 0.50}, "correlation_id": fresh_id(),
            "timestamp": ClawHub::stamp_of(self),
        });
        let request = with(&request, more);
        let reply = self.post("/openclaw/collaborations", Some(&by.key), &request).await;
        (request, reply.expect(200))
    }

    /// Posts a registry job for the agent with this alias.
    pub async fn job(&self, by: &Agent, worker: &str, more: Value) -> Reply {
        let job = json!({"orchestrator_id": by.id, "skill_name": "sum", "budget": 6,
            "input_data": {"a": 0.5}});
        let path = format!("/registry/agents/{worker}/jobs");
        let reply = self.post(&path, Some(&by.key), &with(&job, more)).await;
        assert!(reply.status < 300, "{} {}", reply.status, reply.text);
        reply
    }

    /// An agent's alias in another protocol, from that protocol's own list.
    pub async fn alias(&self, list: &str, native: &str) -> String {
        let page = self.get(list, None).await.expect(200).json();
        let all = page["agents"].as_array().or(page["data"].as_array()).expect("a list");
        let found = all.iter().find(|one| one["native_id"] == native || one["agent_id"] == native);
        let found = found.unwrap_or_else(|| panic!("{native} is not in {page}"));
        let id = found.get("id").unwrap_or(&found["agent_id"]);
        id.as_str().expect("an id").to_owned()
    }

    /// The registry alias of the first agent with a skill.
    pub async fn offering(&self, skill: &str) -> String {
        let path = format!("/registry/discover?skill={skill}");
        self.get(&path, Some(&self.operator)).await.expect(200).str("/agents/0/agent_id")
    }

    /// The first job that waits for a registry agent.
    pub async fn work(&self, of: &Agent) -> Value {
        let path = format!("/registry/agents/{}/jobs", of.id);
        self.get(&path, Some(&of.key)).await.expect(200).at("/jobs/0")
    }

    /// Posts a wallet's message to the market: its id and the answer.
    pub async fn market(&self, by: &Wallet, tags: &[(&str, &str)], data: &str) -> (String, Reply) {
        let request = self.http.post(format!("{}/clara/mu", self.url));
        let reply = request.body(by.item(tags, data.as_bytes())).send().await.expect("an answer");
        let reply = Reply::of(reply).await.expect(202);
        (reply.str("/id"), reply)
    }

    /// The result of a message to the market.
    pub async fn came_of(&self, id: &str) -> Value {
        let process = rialto_protocols::clara::PROCESS;
        let path = format!("/clara/cu/result/{id}?process-id={process}");
        self.get(&path, None).await.expect(200).json()
    }

    /// The trace of a job, for the holder of this credential.
    pub async fn trace(&self, id: &str, key: &str) -> Value {
        self.get(&format!("/v1/jobs/{id}/trace"), Some(key)).await.expect(200).json()
    }

    /// Alice of agora with credits, and her token.
    pub async fn alice(&self) -> (Key, Token) {
        let alice = Key::of(1);
        self.fund(&alice, "10").await;
        let token = self.hello(&alice, json!({})).await;
        (alice, token)
    }
}

/// The hub's id of the job an answer opened.
#[track_caller]
pub fn opened(reply: &Reply) -> String {
    reply.header("rialto-job").unwrap_or_else(|| panic!("no header: {}", reply.text)).to_owned()
}

/// The fate of a field in a hop, and where it went.
#[track_caller]
pub fn fate(hop: &Value, field: &str) -> (String, Option<String>) {
    let notes = hop["notes"].as_array().expect("notes");
    let found: Vec<_> = notes.iter().filter(|note| note["field"] == field).collect();
    // Both protocols may have a field of this name; the first note is about the sender's.
    let found = found.first().unwrap_or_else(|| panic!("no note of {field} in {hop}"));
    let to = found["to"].as_str().map(str::to_owned);
    (found["fate"].as_str().expect("a fate").to_owned(), to)
}

#[track_caller]
pub fn assert_renamed(hop: &Value, field: &str, to: &str) {
    assert_eq!(fate(hop, field), ("renamed".to_owned(), Some(to.to_owned())), "{field}");
}

#[track_caller]
pub fn assert_fate(hop: &Value, field: &str, wanted: &str) {
    assert_eq!(fate(hop, field).0, wanted, "{field} in {hop}");
}

/// Checks that exactly one note covers every member of an object, apart from defaulted ones, or one
/// note each of its own members.
#[track_caller]
pub fn assert_accounted(sent: &Value, notes: &Value, within: &str) {
    for (name, value) in sent.as_object().expect("an object") {
        let pointer = format!("{within}/{}", name.replace('~', "~0").replace('/', "~1"));
        let told = |field: &str| {
            let all = notes.as_array().expect("notes").iter();
            all.filter(|note| note["field"] == field && note["fate"] != "defaulted").count()
        };
        match (told(&pointer), value) {
            (1, _) => {}
            (0, Value::Object(inner)) if !inner.is_empty() => {
                assert_accounted(value, notes, &pointer);
            }
            (count, _) => panic!("{pointer} has {count} notes in {notes}"),
        }
    }
}

/// Checks a whole hop: its two protocols, and that the notes cover every member of the request.
#[track_caller]
pub fn assert_hop<'t>(trace: &'t Value, what: &str, from: &str, to: &str) -> &'t Value {
    let hops = trace["hops"].as_array().expect("hops");
    let hop = hops.iter().find(|hop| hop["what"] == what);
    let hop = hop.unwrap_or_else(|| panic!("no {what} in {trace}"));
    assert_eq!((&hop["from"], &hop["to"]), (&json!(from), &json!(to)), "{hop}");
    for note in hop["notes"].as_array().expect("notes") {
        let known = ["kept", "renamed", "defaulted", "dropped"];
        assert!(known.iter().any(|fate| note["fate"] == *fate), "{note}");
        assert_eq!(note.get("to").is_some(), note["fate"] == "renamed", "{note}");
        assert_eq!(note.get("why").is_some(), note["fate"] == "dropped", "{note}");
    }
    hop
}

/// A message of a hop as JSON.
#[track_caller]
pub fn message(hop: &Value, side: &str) -> Value {
    let text = hop[side].as_str().unwrap_or_else(|| panic!("no {side} in {hop}"));
    serde_json::from_str(text).expect("JSON")
}

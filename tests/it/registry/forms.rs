//! Bodies and callers that these tests start from.

use serde_json::{Value, json};

use crate::kit::{Agent, Reply, TestHub};

/// The type examples of the spec, section 2.
pub const AGENT_ID: &str = "a3b8d1b6-0b3b-4b1a-9c1a-1a2b3c4d5e6f";
pub const JOB_ID: &str = "f81d4fae-7dec-11d0-a765-00a0c91e6bf6";

/// A hub that requires keys, and one that accepts claimed identities.
pub async fn both_modes() -> [TestHub; 2] {
    [TestHub::serve(&[]).await, TestHub::open(&[]).await]
}

/// A request as a foreign client sends it; the fixture names the client.
#[derive(Clone, Debug)]
pub struct Recorded {
    pub method: String,
    pub path: String,
    pub body: Option<String>,
}

impl Recorded {
    /// The request of that name, with these ids filled in.
    pub fn of(name: &str, ids: &[(&str, &str)]) -> Self {
        let file =
            include_str!("../../../crates/protocols/src/registry/fixtures/client-requests.json");
        let all: Value = serde_json::from_str(file).expect("JSON");
        let part = |part: &str| {
            let text = all[name][part].as_str()?.to_owned();
            Some(ids.iter().fold(text, |text, (word, id)| text.replace(word, id)))
        };
        let (method, path) = (part("method").expect(name), part("path").expect(name));
        Self { method, path, body: part("body") }
    }

    pub async fn send(&self, hub: &TestHub, key: Option<&str>) -> Reply {
        hub.call(&self.method, &self.path, key, self.body.as_deref()).await
    }
}

/// A registration with every field but the id.
pub fn registration(owner: &str) -> Value {
    json!({
        "agent_name": "Text-Analyst-3000",
        "owner_id": owner,
        "api_endpoint": "https://agent.example/jobs",
        "skills": [{
            "skill_name": "analyze_text",
            "description": "Extracts structured data",
            "cost_per_call": 0.10,
            "input_schema": {"text": "string"},
            "output_schema": {"entities": "list"},
        }],
        "version": "0.1",
        "timestamp_utc": "2026-02-11T14:15:09Z",
    })
}

/// A job with every field but the ids.
pub fn job(by: &Agent, skill: &str) -> Value {
    json!({
        "orchestrator_id": by.id,
        "skill_name": skill,
        "input_data": {"text": "Revenue for Q3 was $42,000..."},
        "budget": 0.15,
        "currency": "chorus_credits_v1",
        "callback_url": "https://orchestrator.example/results",
        "timestamp_utc": "2026-02-11T14:15:09Z",
    })
}

/// The three routes for this job, and the body of each: the agent is named by the path, by the
/// body, or not at all.
pub fn job_posts(worker: &Agent, body: &Value) -> [(String, Value); 3] {
    let named = with(body, "/agent_id", Some(json!(worker.id)));
    [
        (format!("/registry/agents/{}/jobs", worker.id), body.clone()),
        ("/registry/jobs".to_owned(), named),
        ("/jobs".to_owned(), body.clone()),
    ]
}

/// The body with one member set or removed.
pub fn with(body: &Value, pointer: &str, value: Option<Value>) -> Value {
    let mut body = body.clone();
    let (parent, last) = pointer.rsplit_once('/').expect("a pointer");
    match (body.pointer_mut(parent), value) {
        (Some(Value::Array(items)), Some(value)) => {
            items[last.parse::<usize>().expect("an index")] = value
        }
        (Some(Value::Object(members)), Some(value)) => drop(members.insert(last.to_owned(), value)),
        (Some(Value::Object(members)), None) => drop(members.remove(last)),
        (place, _) => panic!("{pointer} cannot be set in {place:?}"),
    }
    body
}

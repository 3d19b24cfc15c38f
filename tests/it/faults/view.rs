//! What a hub shows to all participants, without what differs between two runs: times, and ids that
//! the hub generated.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::hub::{Caller, Request};
use super::scene::{Scene, customer, seeker};
use super::script::{ASKED, JOB, NEWCOMER, OTHER_JOB, SOUGHT, TRANSFER};
use crate::kit::operator_key;

/// Answers by caller and path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct View(BTreeMap<String, String>);

impl View {
    /// Reads everything.
    pub async fn of(caller: &Caller, url: &str, scene: &Scene) -> Self {
        Self::unless_it_ends(caller, url, scene).await.expect("whole answers")
    }

    /// Reads everything from a hub that may end when it detects damage.
    pub async fn unless_it_ends(caller: &Caller, url: &str, scene: &Scene) -> Option<Self> {
        let mut shown = BTreeMap::new();
        for (who, request) in requests(scene) {
            let (status, text) = caller.send(url, &request).await?;
            if status == 503 {
                return None;
            }
            // The hub's address differs every time.
            let text = text.replace(url, "hub:");
            let body = serde_json::from_str(&text).map_or(Value::String(text), masked);
            shown.insert(format!("{who} {}", request.path), format!("{status} {body}"));
        }
        Some(Self(shown))
    }

    /// The differences, in readable form.
    pub fn unlike(&self, other: &Self) -> String {
        let pairs = self.0.iter().filter(|(path, text)| other.0.get(*path) != Some(text));
        let lines = pairs.map(|(path, text)| {
            let there = other.0.get(path).map_or("nothing", String::as_str);
            format!("{path}\n  is     {text}\n  not    {there}\n")
        });
        lines.collect()
    }
}

/// All requests of a view.
fn requests(scene: &Scene) -> Vec<(&'static str, Request)> {
    let operator = operator_key();
    let mut all = Vec::new();
    for path in [
        "/registry/economy",
        "/registry/audit?limit=500",
        "/v1/ledger?limit=200",
        "/v1/operator/stats",
        "/v1/agents?limit=100",
        "/registry/discover?skill=new",
    ] {
        all.push(("operator", Request::get(path, Some(&operator))));
    }
    let clara = format!("clara:{}", customer().address());
    for owner in ["payer", "payee", "requester", "worker", &seeker().owner(), &clara] {
        all.push(("operator", Request::get(format!("/v1/accounts/{owner}"), Some(&operator))));
    }
    let Scene { requester, worker, alice, bob, asker, helper, careful, leaver, .. } = scene;
    for (who, key) in [
        ("requester", &requester.key),
        ("worker", &worker.key),
        ("alice", &alice.key),
        ("bob", &bob.key),
        ("asker", &asker.key),
        ("helper", &helper.key),
        ("careful", &careful.key),
        ("leaver", &leaver.key),
    ] {
        all.push((who, Request::get("/v1/me", Some(key))));
        all.push((who, Request::get("/v1/inbox?limit=100", Some(key))));
        all.push((who, Request::get("/v1/jobs?limit=100", Some(key))));
    }
    for job in [JOB, OTHER_JOB] {
        all.push((
            "requester",
            Request::get(format!("/registry/jobs/{job}"), Some(&requester.key)),
        ));
    }
    for (who, token) in [("seeker", &scene.seeks), ("finder", &scene.finds)] {
        all.push((who, Request::get(format!("/agora/requests/{SOUGHT}"), Some(token))));
        all.push((who, Request::get("/agora/messages?limit=200", Some(token))));
    }
    let results = format!("/clara/cu/results/{}?limit=1000", rialto_protocols::clara::PROCESS);
    all.push(("anyone", Request::get(results, None)));
    all
}

/// Without what differs between runs.
fn masked(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            members.into_iter().map(|(name, value)| mask(name, value)).collect()
        }
        Value::Array(items) => items.into_iter().map(masked).collect(),
        Value::String(text) => match serde_json::from_str(&text) {
            // Some strings are JSON texts.
            Ok(inner @ Value::Object(_)) => masked(inner),
            _ => Value::String(mask_text(text)),
        },
        other => other,
    }
}

fn mask(name: String, value: Value) -> (String, Value) {
    let hidden = HIDDEN.contains(&name.as_str());
    let value = if hidden { json!("…") } else { masked(value) };
    (name, value)
}

/// Members with times, or signed anew by the hub for every response.
const HIDDEN: &[&str] =
    &["receipt", "signature", "cursor", "timestamp", "age_seconds", "execution_time_ms"];

/// Ids chosen by the tests are kept; other ids, times and digests are masked.
fn mask_text(text: String) -> String {
    let chosen = [NEWCOMER, TRANSFER, JOB, OTHER_JOB, ASKED].contains(&text.as_str());
    let bytes = text.as_bytes();
    let is_time = bytes.len() >= 20 && bytes[10] == b'T' && bytes[13] == b':';
    let is_uuid = bytes.len() == 36 && bytes[8] == b'-' && bytes[23] == b'-';
    let is_digest =
        bytes.len() >= 43 && bytes.iter().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(b));
    match () {
        () if chosen => text,
        () if is_time => "a time".to_owned(),
        () if is_uuid => "an id".to_owned(),
        () if is_digest => "a digest".to_owned(),
        () => text,
    }
}

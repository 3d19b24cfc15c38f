//! Every openclaw body that a test receives is checked against the published schema of its kind.

use rialto_protocols::kit::ijson::{self, Json, JsonValue as Sort};
use rialto_protocols::openclaw::{Kind, wire};

/// Members that contain a message, and members that contain a list of them.
const NESTED: [&str; 4] = ["request", "response", "result", "claimed"];
const LISTS: [&str; 2] = ["agents", "collaborations"];

/// Checks a response body of this path, if it is one of openclaw's.
#[track_caller]
pub fn check_answer(path: &str, text: &str) {
    if path.starts_with("/openclaw/") {
        check(text);
    }
}

/// Checks a body that was posted to an endpoint as this event.
#[track_caller]
pub fn check_push(event: &str, text: &str) {
    if event.starts_with("collaboration_") || is_update(event) {
        check(text);
    }
}

/// Whether an event is an update of an agent's status or reputation.
pub fn is_update(event: &str) -> bool {
    ["status_update", "reputation_update"].contains(&event)
}

#[track_caller]
fn check(text: &str) {
    if let Ok(json) = ijson::read(text.as_bytes()) {
        check_json(&json);
    }
}

#[track_caller]
fn check_json(json: &Json<'_>) {
    let has = |kind: &&Kind| kind.required_members().iter().all(|key| json.get(key).is_some());
    for kind in Kind::ALL.iter().filter(has) {
        let found = wire::schema_of(*kind).check_json(json);
        assert_eq!(found, Ok(()), "{kind} breaks its schema: {}", json.raw());
    }
    for nested in NESTED.iter().filter_map(|name| json.get(name)) {
        check_json(nested);
    }
    for list in LISTS.iter().filter_map(|name| json.get(name)) {
        if let Sort::Array(all) = list.value() {
            all.iter().for_each(|one| check_json(one));
        }
    }
}

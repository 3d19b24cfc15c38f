//! The spec's thirteen documents, and invalid variants of them.

use rialto_protocols::openclaw::Kind;
use serde_json::{Value, json};

use super::kit::{Hub, assert_error};
use crate::kit::Reply;
pub use crate::relay::kit::with as put;

const FILE: &str = include_str!("../../../crates/protocols/src/openclaw/fixtures/examples.json");

/// The documents of a kind: their names in the spec, and their contents.
pub fn examples(kind: Kind) -> Vec<(String, Value)> {
    let file: Value = serde_json::from_str(FILE).expect("JSON");
    let all = file["examples"].as_array().expect("a list").iter();
    let own = all.filter(|one| one["kind"] == kind.as_str());
    own.map(|one| (one["name"].as_str().expect("a text").to_owned(), one["document"].clone()))
        .collect()
}

/// The document whose name ends like this.
pub fn example(kind: Kind, end: &str) -> Value {
    let all = examples(kind);
    let (_, document) = all.into_iter().find(|(name, _)| name.ends_with(end)).expect(end);
    document
}

/// The identity of the spec.
pub fn identity_example() -> Value {
    example(Kind::Identity, "Example")
}

/// `/a/0/b` as `a[0].b`, which is how a violation names its place.
pub fn readable(pointer: &str) -> String {
    let mut path = String::new();
    for part in pointer.split('/').skip(1) {
        match part.parse::<usize>() {
            Ok(index) => path.push_str(&format!("[{index}]")),
            Err(_) if path.is_empty() => path.push_str(part),
            Err(_) => path.push_str(&format!(".{part}")),
        }
    }
    path
}

/// A 400 that names this place and no other.
#[track_caller]
pub fn assert_only(reply: &Reply, pointer: &str, what: &str) {
    assert_error(reply, 400, "VALIDATION_ERROR");
    let listed = reply.at("/error/details/validation_errors");
    let listed = listed.as_array().expect("a list");
    let start = format!("{} ", readable(pointer));
    let about = |one: &Value| one.as_str().is_some_and(|one| one.starts_with(&start));
    assert!(!listed.is_empty() && listed.iter().all(about), "{pointer} {what}: {listed:?}");
    assert!(reply.at("/error/details/example").is_object(), "{}", reply.text);
}

/// One change of a body: the place, and its new value; `None` removes it.
pub type Spoilt<'s> = (&'s str, Option<Value>);

impl Hub {
    /// Posts a body with each of these changes in turn; each is refused for that change.
    pub async fn refuses_each(
        &self,
        path: &str,
        key: Option<&str>,
        body: &Value,
        wrong: &[Spoilt<'_>],
    ) {
        for (pointer, value) in wrong {
            let reply = self.post(path, key, &put(body, pointer, value.clone())).await;
            assert_only(&reply, pointer, &format!("{value:?}"));
        }
    }

    /// Posts a body without each of these members, with `null` there, and with a value of another
    /// type; each is refused for that member.
    pub async fn needs_each(&self, path: &str, key: Option<&str>, body: &Value, needed: &[&str]) {
        for pointer in needed {
            let here = body.pointer(pointer).expect(pointer);
            let other = if here.is_string() { json!(7) } else { json!("text") };
            for value in [None, Some(Value::Null), Some(other)] {
                let reply = self.post(path, key, &put(body, pointer, value.clone())).await;
                assert_only(&reply, pointer, &format!("{value:?}"));
            }
        }
    }
}

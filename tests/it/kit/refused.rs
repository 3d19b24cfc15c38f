//! Checks of refusals: what a caller is told about its error.

use serde_json::Value;

use super::{Reply, TestHub};

/// A 400 with all its parts: code, sentence, field, example, and that a retry does not help.
#[track_caller]
pub fn assert_malformed(reply: &Reply, field: &str) {
    assert_refused(reply, 400, "INVALID_REQUEST");
    assert_eq!(reply.str("/error/field"), field, "{}", reply.text);
    let name = field.trim_start_matches('?').rsplit('/').next().unwrap_or_default();
    let message = reply.str("/error_message");
    // A list item has an index instead of a name.
    let item = name.parse::<usize>().is_ok();
    assert!(item || message.contains(name), "{message} does not name {name}");
    let example = reply.at("/error/example");
    assert!(example.is_object() || example.is_string(), "no example: {}", reply.text);
}

/// A refusal that a retry does not help, with its code wherever the protocol shows one.
#[track_caller]
pub fn assert_refused(reply: &Reply, status: u16, code: &str) {
    assert_code(reply, status, code);
    assert_eq!(reply.at("/error/retryable"), Value::Bool(false), "{}", reply.text);
    assert!(reply.json().pointer("/error/retry_after_seconds").is_none(), "{}", reply.text);
    assert_eq!(reply.header("retry-after"), None);
}

/// A refusal that says when to retry.
#[track_caller]
pub fn assert_later(reply: &Reply, status: u16, code: &str, seconds: u64) {
    assert_code(reply, status, code);
    assert_eq!(reply.at("/error/retryable"), Value::Bool(true), "{}", reply.text);
    assert_eq!(reply.at("/error/retry_after_seconds"), seconds, "{}", reply.text);
    assert_eq!(reply.header("retry-after"), Some(seconds.to_string().as_str()));
}

#[track_caller]
fn assert_code(reply: &Reply, status: u16, code: &str) {
    assert_eq!(reply.status, status, "{}", reply.text);
    assert_eq!(reply.header("content-type"), Some("application/json"));
    assert_eq!(reply.str("/error_code"), code, "{}", reply.text);
    assert_eq!(reply.str("/error/code"), code, "{}", reply.text);
    let message = reply.str("/error_message");
    assert!(!message.is_empty());
    assert_eq!(reply.str("/error/message"), message);
    assert_eq!(reply.str("/detail"), message);
}

/// The body corrected as the refusal's example shows: its members, put beside the field.
#[track_caller]
pub fn repaired(body: &Value, refusal: &Reply) -> Value {
    let (field, example) = (refusal.str("/error/field"), refusal.at("/error/example"));
    let Some((parent, last)) = field.rsplit_once('/') else { return example };
    let mut body = body.clone();
    let place = body.pointer_mut(parent).expect("the field's parent is in the body");
    match (place, example) {
        (Value::Array(items), example) => items[last.parse::<usize>().expect("an index")] = example,
        (Value::Object(members), Value::Object(shown)) => members.extend(shown),
        (_, example) => panic!("{example} cannot be put at {field}"),
    }
    body
}

impl TestHub {
    /// Sends any bytes with any headers.
    pub async fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Reply {
        let method = reqwest::Method::from_bytes(method.as_bytes()).expect("a method");
        let mut request = self.http.request(method, format!("{}{path}", self.url));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        Reply::to(request.body(body.to_vec())).await
    }

    /// Posts a body as text, so that its numbers keep their digits.
    pub async fn post_text(&self, path: &str, key: Option<&str>, body: &str) -> Reply {
        self.call("POST", path, key, Some(body)).await
    }
}

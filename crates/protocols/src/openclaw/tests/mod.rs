//! Tests with the spec's examples and with messages that are slightly wrong.

mod answers;
mod conditions;
mod examples;
mod kinds;
mod laws;
mod reading;
mod sizes;
mod versions;

use serde_json::Value;

use super::wire::error::Failure;
use super::wire::{self, AnyMessage, Kind};
use crate::kit::ijson;

/// The thirteen documents: name, kind and exact text.
fn examples() -> Vec<(String, Kind, String)> {
    let file = include_str!("../fixtures/examples.json");
    let json = ijson::read(file.as_bytes()).expect("JSON");
    let ijson::JsonValue::Array(all) = json.get("examples").expect("examples").value() else {
        panic!("no list")
    };
    let text = |json: &ijson::Json<'_>, name: &str| match json.get(name).expect(name).value() {
        ijson::JsonValue::String(text) => text.to_string(),
        other => panic!("{other:?}"),
    };
    let one = |example: &ijson::Json<'_>| {
        let kind = Kind::read(&text(example, "kind")).expect("a kind");
        let document = example.get("document").expect("a document").raw().to_owned();
        (text(example, "name"), kind, document)
    };
    all.iter().map(one).collect()
}

/// The first example whose name ends with `end`, as a value to change.
fn example(end: &str) -> Value {
    let all = examples();
    let (_, _, text) = all.iter().find(|(name, ..)| name.ends_with(end)).expect(end);
    serde_json::from_str(text).expect("JSON")
}

/// Reads a body as one kind.
fn read_as(kind: Kind, text: &str) -> Result<AnyMessage, Failure> {
    let body = text.as_bytes();
    Ok(match kind {
        Kind::Identity => AnyMessage::Identity(Box::new(wire::read(body)?)),
        Kind::Status => AnyMessage::Status(wire::read(body)?),
        Kind::Reputation => AnyMessage::Reputation(wire::read(body)?),
        Kind::Request => AnyMessage::Request(wire::read(body)?),
        Kind::Response => AnyMessage::Response(wire::read(body)?),
        Kind::Result => AnyMessage::Result(wire::read(body)?),
    })
}

/// The violations of a body read as a kind.
fn wrong(kind: Kind, body: &Value) -> Vec<String> {
    read_as(kind, &body.to_string()).expect_err("something is wrong").violations
}

/// Sets the value at a JSON pointer, adding the member if it is missing.
fn with(mut body: Value, pointer: &str, value: Value) -> Value {
    let (parent, name) = pointer.rsplit_once('/').expect("a pointer");
    body.pointer_mut(parent).expect(pointer)[name] = value;
    body
}

/// Removes the value at a JSON pointer.
fn without(mut body: Value, pointer: &str) -> Value {
    let (parent, name) = pointer.rsplit_once('/').expect("a pointer");
    let parent = body.pointer_mut(parent).expect(pointer).as_object_mut().expect("an object");
    parent.remove(name).expect(pointer);
    body
}

//! Canonical JSON: one text per value, whatever wrote it and in whatever order.

use rialto_protocols::kit::ijson::{self, Json, JsonValue};
use rialto_protocols::kit::jcs;
use serde_json::Value;

/// Checks the canonical form.
pub fn jcs(bytes: &[u8]) {
    let Ok(json) = ijson::read(bytes) else { return };
    let canonical = jcs::canonicalize(&json);
    if let Err(bad) = &canonical {
        assert!(bad.to_string().len() < 70 * 70, "the refusal is too long");
    }
    let mirrored = mirrored(&json);
    let other = ijson::read(mirrored.as_bytes()).expect("members in another order");
    match (canonical, jcs::canonicalize(&other)) {
        (Ok(one), Ok(other)) => {
            assert_eq!(one, other, "the order of members changes the canonical form");
            // The meaning stays the same; only numbers from 2^53 on are not parsed again.
            if let Ok(Ok(again)) = ijson::read(one.as_bytes()).map(|json| jcs::canonicalize(&json))
            {
                assert_eq!(again, one, "it is not its own canonical form");
            }
            second_opinion(bytes, &one);
        }
        (Err(_), Err(_)) => {}
        (one, other) => panic!("the order of members matters: {one:?} and {other:?}"),
    }
}

/// The text with the members of every object in reverse order.
pub fn mirrored(json: &Json<'_>) -> String {
    match json.value() {
        JsonValue::Array(items) => {
            let items: Vec<String> = items.iter().map(mirrored).collect();
            format!("[{}]", items.join(","))
        }
        JsonValue::Object(members) => {
            let one = |(name, value): &(_, Json<'_>)| {
                let mut text = String::new();
                let name: &std::borrow::Cow<'_, str> = name;
                jcs::push_string(&mut text, name);
                format!("{text}:{}", mirrored(value))
            };
            let members: Vec<String> = members.iter().rev().map(one).collect();
            format!("{{{}}}", members.join(","))
        }
        _ => json.raw().to_owned(),
    }
}

/// Compares with the canonicalizer for serde's values, where serde parses exactly.
fn second_opinion(bytes: &[u8], ours: &str) {
    let Ok(mut value) = serde_json::from_slice::<Value>(bytes) else { return };
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let exact = ijson::read(text.as_bytes()).is_ok_and(|json| settle(&mut value, &json));
    if exact {
        let theirs = serde_json_canonicalizer::to_string(&value).expect("a value has a form");
        assert_eq!(theirs, ours);
    }
}

/// Replaces every number with the double that the standard library parses, because serde's own
/// parser may be off by the last bit. False if the two trees differ in shape.
fn settle(value: &mut Value, json: &Json<'_>) -> bool {
    match (value, json.value()) {
        (value @ Value::Number(_), JsonValue::Number(digits)) => {
            let number = digits.parse().ok().and_then(serde_json::Number::from_f64);
            number.map(|number| *value = Value::Number(number)).is_some()
        }
        (Value::Array(values), JsonValue::Array(items)) => {
            values.iter_mut().zip(items).all(|(value, json)| settle(value, json))
        }
        (Value::Object(values), JsonValue::Object(members)) => {
            members.iter().all(|(name, json)| {
                values.get_mut(name.as_ref()).is_some_and(|value| settle(value, json))
            })
        }
        _ => true,
    }
}

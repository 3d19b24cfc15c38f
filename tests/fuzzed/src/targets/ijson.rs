//! Strict JSON: accepted text is JSON to every parser, and means the same when it is parsed again.

use rialto_protocols::kit::ijson::{self, Json, JsonValue};
use serde::de::IgnoredAny;

/// Checks the strict JSON parser.
pub fn ijson(bytes: &[u8]) {
    match ijson::read(bytes) {
        Err(bad) => {
            assert!(bad.offset <= bytes.len(), "position {} is outside the text", bad.offset);
            assert!(bad.to_string().len() < 1_000, "the refusal is too long");
        }
        Ok(json) => {
            assert!(serde_json::from_slice::<IgnoredAny>(bytes).is_ok(), "serde_json rejects it");
            let again = ijson::read(json.raw().as_bytes());
            assert_eq!(
                again.as_ref(),
                Ok(&json),
                "it means something else without surrounding spaces"
            );
            agrees(&json);
        }
    }
}

/// Strings and literals are the same for another parser, and numbers are numbers.
fn agrees(json: &Json<'_>) {
    match json.value() {
        JsonValue::Null => assert_eq!(json.raw(), "null"),
        JsonValue::Bool(flag) => assert_eq!(json.raw(), flag.to_string()),
        JsonValue::Number(digits) => {
            assert_eq!(json.raw(), *digits);
            assert!(digits.parse::<f64>().is_ok(), "{digits} is not a number");
        }
        JsonValue::String(text) => string(json.raw(), text),
        JsonValue::Array(items) => items.iter().for_each(agrees),
        JsonValue::Object(members) => {
            for (name, value) in members {
                assert_eq!(json.get(name).map(Json::raw), Some(value.raw()), "{name:?} is lost");
                agrees(value);
            }
        }
    }
}

fn string(raw: &str, text: &str) {
    let other: String = serde_json::from_str(raw).expect("a string");
    assert_eq!(other, text);
}

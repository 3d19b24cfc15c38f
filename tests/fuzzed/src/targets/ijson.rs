//! Strict JSON: what is accepted is JSON to everybody, and says the same when it is read again.

use rialto_protocols::kit::ijson::{self, Json, Kind};
use serde::de::IgnoredAny;

/// Checks the reader of strict JSON.
pub fn ijson(bytes: &[u8]) {
    match ijson::read(bytes) {
        Err(bad) => {
            assert!(bad.at <= bytes.len(), "the place {} is not in the text", bad.at);
            assert!(bad.to_string().len() < 1_000, "the refusal is too long");
        }
        Ok(json) => {
            assert!(serde_json::from_slice::<IgnoredAny>(bytes).is_ok(), "only we take it");
            let again = ijson::read(json.raw().as_bytes());
            assert_eq!(again.as_ref(), Ok(&json), "it reads otherwise without spaces around it");
            agrees(&json);
        }
    }
}

/// Strings and literals are what another reader sees in their texts, and numbers are numbers.
fn agrees(json: &Json<'_>) {
    match json.kind() {
        Kind::Null => assert_eq!(json.raw(), "null"),
        Kind::Bool(flag) => assert_eq!(json.raw(), flag.to_string()),
        Kind::Number(digits) => {
            assert_eq!(json.raw(), *digits);
            assert!(digits.parse::<f64>().is_ok(), "{digits} is no number");
        }
        Kind::Text(text) => string(json.raw(), text),
        Kind::List(items) => items.iter().for_each(agrees),
        Kind::Object(members) => {
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

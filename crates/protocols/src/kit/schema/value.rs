//! Converts JSON to the form the validator reads.

use serde_json::{Map, Number, Value};

use crate::kit::ijson::{Json, JsonValue};

/// The value of a JSON text; `None` if it holds a number outside the range of doubles, such as
/// `1e400`, since its size could not be compared.
pub(super) fn to_serde_value(json: &Json<'_>) -> Option<Value> {
    Some(match json.value() {
        JsonValue::Null => Value::Null,
        JsonValue::Bool(flag) => Value::Bool(*flag),
        JsonValue::Number(digits) => Value::Number(number(digits)?),
        JsonValue::String(text) => Value::String(text.to_string()),
        JsonValue::Array(items) => {
            Value::Array(items.iter().map(to_serde_value).collect::<Option<_>>()?)
        }
        JsonValue::Object(members) => {
            let members = members
                .iter()
                .map(|(name, value)| Some((name.to_string(), to_serde_value(value)?)));
            Value::Object(members.collect::<Option<Map<_, _>>>()?)
        }
    })
}

fn number(digits: &str) -> Option<Number> {
    serde_json::from_str(digits).ok()
}

/// How deeply arrays and objects are nested.
pub(super) fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(members) => 1 + members.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

/// How many values a value consists of.
pub(super) fn size(value: &Value) -> u64 {
    match value {
        Value::Array(items) => 1 + items.iter().map(size).sum::<u64>(),
        Value::Object(members) => 1 + members.values().map(size).sum::<u64>(),
        _ => 1,
    }
}

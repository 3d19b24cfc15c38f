//! Members of JSON texts verbatim, with all digits.

use rialto_protocols::kit::ijson::{self, Json, JsonValue};
use serde_json::Value;

use super::party::Members;

/// The value at a pointer (`/a/b`), verbatim; `None` if it is absent or null.
pub fn raw(json: &str, pointer: &str) -> Option<String> {
    let json = ijson::read(json.as_bytes()).ok()?;
    let found = at(&json, pointer)?;
    (*found.value() != JsonValue::Null).then(|| found.raw().to_owned())
}

/// The string at a pointer.
pub fn text(json: &str, pointer: &str) -> Option<String> {
    let json = ijson::read(json.as_bytes()).ok()?;
    match at(&json, pointer)?.value() {
        JsonValue::String(text) => Some(text.clone().into_owned()),
        _ => None,
    }
}

/// The items of the list at a pointer, each verbatim.
pub fn items(json: &str, pointer: &str) -> Vec<String> {
    let Ok(json) = ijson::read(json.as_bytes()) else { return Vec::new() };
    match at(&json, pointer).map(Json::value) {
        Some(JsonValue::Array(items)) => items.iter().map(|item| item.raw().to_owned()).collect(),
        _ => Vec::new(),
    }
}

/// The names of the members of the object at a pointer.
pub fn names(json: &str, pointer: &str) -> Vec<String> {
    let Ok(json) = ijson::read(json.as_bytes()) else { return Vec::new() };
    match at(&json, pointer).map(Json::value) {
        Some(JsonValue::Object(members)) => {
            members.iter().map(|(name, _)| name.to_string()).collect()
        }
        _ => Vec::new(),
    }
}

/// The members of an object, each under its pointer.
pub fn members(json: &str) -> Members {
    let object: Value = serde_json::from_str(json).unwrap_or_default();
    let members = object.as_object().into_iter().flatten();
    members.map(|(name, value)| (pointer("", name), value.clone())).collect()
}

/// The pointer to a member.
pub fn pointer(within: &str, name: &str) -> String {
    format!("{within}/{}", name.replace('~', "~0").replace('/', "~1"))
}

fn at<'j, 'a>(json: &'j Json<'a>, pointer: &str) -> Option<&'j Json<'a>> {
    let mut steps = pointer.split('/').filter(|step| !step.is_empty());
    steps.try_fold(json, |found, step| match found.value() {
        JsonValue::Array(items) => items.get(step.parse::<usize>().ok()?),
        _ => found.get(step),
    })
}

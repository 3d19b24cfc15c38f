//! JSON in calls: reading responses, and checking text that becomes part of a request.

use rialto_protocols::kit::ijson::{self, Json, JsonValue};
use serde::Deserialize;

use crate::call::CallError;

/// Parses the JSON of a response.
pub(crate) fn parse<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T, CallError> {
    serde_json::from_slice(body).map_err(CallError::unreadable)
}

/// Refuses text that is not a single object, because it could add other members.
pub(crate) fn check_object(name: &str, text: &str) -> Result<(), CallError> {
    let hint = || Some("write a JSON object, such as {\"text\":\"hi\"}".to_owned());
    match ijson::read(text.as_bytes()).as_ref().map(Json::value) {
        Ok(JsonValue::Object(_)) => Ok(()),
        Ok(_) => Err(CallError::invalid(format!("{name} is not an object"), hint())),
        Err(why) => Err(CallError::invalid(format!("{name} cannot be read: {why}"), hint())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_object_is_an_object() {
        assert!(check_object("data", r#" {"a":1} "#).is_ok());
        for text in ["", "[]", "1", "{", r#"{},"final":true"#, "{} {}"] {
            assert!(check_object("data", text).is_err(), "{text}");
        }
    }
}

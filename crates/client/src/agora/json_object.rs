//! Checks that JSON text is an object before it is inserted into a payload.

use rialto_protocols::kit::ijson::{self, JsonValue};

use crate::call::CallError;

/// Refuses text that is not a single object, because it could add other members.
pub(super) fn check_object(name: &str, text: &str) -> Result<(), CallError> {
    let hint = || Some(format!("{name} must be a JSON object, such as {{\"text\":\"hi\"}}"));
    match ijson::read(text.as_bytes()).as_ref().map(ijson::Json::value) {
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

//! Checks that JSON text is one object: anything else could add other members.

use rialto_protocols::kit::ijson::{self, Json, JsonValue};

use crate::call::CallError;

/// Refuses text that is not a single object.
pub(super) fn check_object(what: &str, text: &str) -> Result<(), CallError> {
    let hint = || Some("write a JSON object, such as {\"text\":\"hi\"}".to_owned());
    match ijson::read(text.as_bytes()).as_ref().map(Json::value) {
        Ok(JsonValue::Object(_)) => Ok(()),
        Ok(_) => Err(CallError::invalid(format!("{what} is not an object"), hint())),
        Err(why) => Err(CallError::invalid(format!("{what} cannot be read: {why}"), hint())),
    }
}

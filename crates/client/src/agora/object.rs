//! JSON text that is to be an object, checked before it stands inside a payload of ours.

use rialto_protocols::kit::ijson::{self, Kind};

use crate::call::CallError;

/// Refuses what is no single object: it could say more than its own member.
pub(super) fn check(name: &str, text: &str) -> Result<(), CallError> {
    let hint = || Some(format!("{name} is JSON text of an object, such as {{\"text\":\"hi\"}}"));
    match ijson::read(text.as_bytes()).as_ref().map(ijson::Json::kind) {
        Ok(Kind::Object(_)) => Ok(()),
        Ok(_) => Err(CallError::invalid(format!("{name} is not an object"), hint())),
        Err(why) => Err(CallError::invalid(format!("{name} cannot be read: {why}"), hint())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_object_is_an_object() {
        assert!(check("data", r#" {"a":1} "#).is_ok());
        for text in ["", "[]", "1", "{", r#"{},"final":true"#, "{} {}"] {
            assert!(check("data", text).is_err(), "{text}");
        }
    }
}

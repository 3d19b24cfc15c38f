//! Input and output of work as text, which is all an envelope can carry (B19).

use crate::kit::ijson::{self, Json, JsonValue};

/// Input or output as text: `{"text":…}` and a string become that text, anything else its JSON.
pub fn json_as_text(json: &str) -> String {
    let read = ijson::read(json.as_bytes());
    let said = match read.as_ref().map(Json::value) {
        Ok(JsonValue::Object(members)) => match &members[..] {
            [(name, value)] if name == "text" => as_string(value),
            _ => None,
        },
        Ok(JsonValue::String(said)) => Some(said.as_ref()),
        _ => None,
    };
    // An envelope's text must not be empty, so an empty text becomes its JSON.
    said.filter(|said| !said.is_empty()).unwrap_or(json).to_owned()
}

/// The text of a JSON string.
pub(super) fn as_string<'j>(json: &'j Json<'_>) -> Option<&'j str> {
    match json.value() {
        JsonValue::String(text) => Some(text),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn just_a_text_is_that_text_and_everything_else_its_json() {
        for (json, said) in [
            (r#"{"text":"hi \"you\""}"#, r#"hi "you""#),
            (r#""plain""#, "plain"),
            (r#"{"text":""}"#, r#"{"text":""}"#),
            (r#""""#, r#""""#),
            (r#"{"text":7}"#, r#"{"text":7}"#),
            (r#"{ "text":"a","n":1.50}"#, r#"{ "text":"a","n":1.50}"#),
            (r#"{"Text":"a"}"#, r#"{"Text":"a"}"#),
            ("null", "null"),
            ("[1.0]", "[1.0]"),
        ] {
            assert_eq!(json_as_text(json), said, "{json}");
        }
    }
}

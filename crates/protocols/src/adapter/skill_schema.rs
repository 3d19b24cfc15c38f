//! The schemas of skills, as JSON Schemas. Some protocols only name the type of each member.

use crate::kit::ijson::{self, Json, JsonValue};
use crate::kit::object::{ObjectWriter, string_array};

/// Turns a schema that only names types into a JSON Schema. A JSON Schema stays as it is.
pub fn to_json_schema(given: &str) -> String {
    let Ok(json) = ijson::read(given.as_bytes()) else { return "{}".to_owned() };
    let JsonValue::Object(members) = json.value() else { return "{}".to_owned() };
    if !names_types_only(&json, members) {
        return given.to_owned();
    }
    let properties = members.iter().fold(ObjectWriter::new(), |all, (name, value)| {
        let JsonValue::String(word) = value.value() else { return all };
        match json_type(word) {
            Some(name_of_type) => {
                let one = ObjectWriter::new().text("type", name_of_type).finish();
                all.raw(name, &one)
            }
            None => all.raw(name, "{}"),
        }
    });
    let required = string_array(members.iter().map(|(name, _)| name.as_ref()));
    ObjectWriter::new()
        .text("type", "object")
        .raw("properties", &properties.finish())
        .raw("required", &required)
        .finish()
}

/// Whether every member is the name of a type. `{"type":"object"}` and a schema that names its
/// dialect are JSON Schemas: that is how a skill without members is written.
fn names_types_only(json: &Json<'_>, members: &[(std::borrow::Cow<'_, str>, Json<'_>)]) -> bool {
    let text = |name: &str| match json.get(name).map(Json::value) {
        Some(JsonValue::String(text)) => Some(&**text),
        _ => None,
    };
    let is_text = |value: &Json<'_>| matches!(value.value(), JsonValue::String(_));
    text("type") != Some("object")
        && text("$schema").is_none()
        && !members.is_empty()
        && members.iter().all(|(_, value)| is_text(value))
}

fn json_type(word: &str) -> Option<&'static str> {
    Some(match word {
        "string" => "string",
        "number" | "float" => "number",
        "int" | "integer" => "integer",
        "bool" | "boolean" => "boolean",
        "list" | "array" => "array",
        "dict" | "object" => "object",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_in_words_become_a_schema_and_schemas_stay() {
        let toy = to_json_schema(r#"{"text":"string","n":"int","x":"money"}"#);
        let json: serde_json::Value = serde_json::from_str(&toy).expect("JSON");
        assert_eq!(json["properties"]["n"]["type"], "integer");
        assert_eq!(json["properties"]["x"], serde_json::json!({}));
        assert_eq!(json["required"], serde_json::json!(["text", "n", "x"]));
        let real = r#"{"type":"object","properties":{}}"#;
        assert_eq!(to_json_schema(real), real);
        assert_eq!(
            (to_json_schema("{}").as_str(), to_json_schema("nonsense").as_str()),
            ("{}", "{}")
        );
    }

    #[test]
    fn a_json_schema_without_members_is_no_list_of_types() {
        for schema in [
            r#"{"type":"object"}"#,
            r#"{"type":"object","title":"Nothing"}"#,
            r#"{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"string"}"#,
        ] {
            assert_eq!(to_json_schema(schema), schema);
        }
        let member = to_json_schema(r#"{"type":"string"}"#);
        assert!(member.contains(r#""required":["type"]"#), "{member}");
    }
}

//! The schemas of a skill as MCP clients see them.

use rialto_protocols::adapter::skill_schema::to_json_schema;
use rialto_protocols::kit::ijson::{self, Json, JsonValue};
use rialto_protocols::kit::name::is_invisible;
use rialto_protocols::kit::object::ObjectWriter;
use rialto_protocols::kit::schema::Schema;

use crate::mcp::wire::result::{as_text, json_array, json_string};

/// The schema of a skill that states none: an object with any members.
const ANY_OBJECT: &str = r#"{"type":"object","properties":{},"required":[]}"#;
/// The argument of a tool whose skill takes no object by its schema.
pub const WRAPPER: &str = "input";
/// Makes clients repeat an argument as an HTTP header, which the hub does not read.
const HEADER_KEYWORD: &str = "x-mcp-header";

/// The input of a skill as arguments of a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputForm {
    /// JSON text of a schema for an object.
    pub schema: String,
    /// The input is the argument [`WRAPPER`], not the arguments as a whole.
    pub is_wrapped: bool,
}

impl InputForm {
    /// The form for a schema as the agent registered it.
    pub fn of(given: &str) -> Self {
        let plain = |schema: String| Self { schema, is_wrapped: false };
        let shown = to_json_schema(given);
        let json = ijson::read(shown.as_bytes()).ok();
        let Some(json) = json.filter(|json| is_valid(json) && !is_empty(json)) else {
            return plain(ANY_OBJECT.to_owned());
        };
        match object_schema(&json) {
            Some(schema) => plain(schema),
            None => {
                let member = ObjectWriter::new().raw(WRAPPER, &cleaned(&json)).finish();
                let schema = ObjectWriter::new()
                    .text("type", "object")
                    .raw("properties", &member)
                    .raw("required", &json_array([json_string(WRAPPER)]))
                    .finish();
                Self { schema, is_wrapped: true }
            }
        }
    }
}

/// What a tool's result looks like.
#[derive(Clone, Debug)]
pub enum OutputForm {
    /// Content blocks, as a tool of another MCP server gave them.
    Textual(Schema),
    /// A JSON object by this schema.
    Typed { shown: String, schema: Schema },
    /// Whatever the agent gives: its schema is none for an object.
    Untyped,
}

impl OutputForm {
    /// The form for a schema as the agent registered it.
    pub fn of(given: &str) -> Self {
        let shown = to_json_schema(given);
        let Ok(json) = ijson::read(shown.as_bytes()) else { return Self::Untyped };
        if is_empty(&json) {
            return Self::typed(ANY_OBJECT.to_owned());
        }
        let Ok(schema) = Schema::of(&json) else { return Self::Untyped };
        match object_schema(&json) {
            _ if is_textual(&json) => Self::Textual(schema),
            Some(shown) => Self::typed(shown),
            None => Self::Untyped,
        }
    }

    fn typed(shown: String) -> Self {
        match Schema::compile(&shown) {
            Ok(schema) => Self::Typed { shown, schema },
            Err(_) => Self::Untyped,
        }
    }

    /// The schema that the tool states: JSON text.
    pub fn shown(&self) -> Option<&str> {
        match self {
            Self::Typed { shown, .. } => Some(shown),
            Self::Textual(_) | Self::Untyped => None,
        }
    }

    /// The schema that outputs are checked against.
    pub fn schema(&self) -> Option<&Schema> {
        match self {
            Self::Textual(schema) | Self::Typed { schema, .. } => Some(schema),
            Self::Untyped => None,
        }
    }

    pub fn is_textual(&self) -> bool {
        matches!(self, Self::Textual(_))
    }
}

/// Whether a schema is that of a tool without an output schema of its own: an object of a required
/// `text` and of `content`, a list.
fn is_textual(json: &Json<'_>) -> bool {
    let Some(JsonValue::Object(properties)) = json.get("properties").map(Json::value) else {
        return false;
    };
    let has_type = |json: Option<&Json<'_>>, name: &str| {
        as_text(json.and_then(|json| json.get("type"))) == Some(name)
    };
    let property =
        |name: &str| properties.iter().find(|(known, _)| known == name).map(|(_, schema)| schema);
    let required: Vec<Option<&str>> = match json.get("required").map(Json::value) {
        Some(JsonValue::Array(names)) => names.iter().map(|name| as_text(Some(name))).collect(),
        _ => Vec::new(),
    };
    has_type(Some(json), "object")
        && properties.len() == 2
        && has_type(property("text"), "string")
        && has_type(property("content"), "array")
        && required == [Some("text")]
}

/// A schema that a client could not compile might cost it the whole list of tools.
fn is_valid(json: &Json<'_>) -> bool {
    Schema::of(json).is_ok()
}

fn is_empty(json: &Json<'_>) -> bool {
    matches!(json.value(), JsonValue::Object(members) if members.is_empty())
}

/// The schema, if it is one for an object; without the words that it states so where it does not.
fn object_schema(json: &Json<'_>) -> Option<String> {
    match as_text(json.get("type")) {
        Some("object") => Some(cleaned(json)),
        None if json.get("type").is_none() && json.get("properties").is_some() => {
            let rest = cleaned(json);
            Some(format!(r#"{{"type":"object",{}"#, rest.trim_start_matches('{')))
        }
        _ => None,
    }
}

/// The schema without [`HEADER_KEYWORD`], and without invisible characters where it is read by
/// models. Numbers keep their digits.
fn cleaned(json: &Json<'_>) -> String {
    match json.value() {
        JsonValue::Object(members) => {
            let kept = members.iter().filter(|(name, value)| {
                name != HEADER_KEYWORD || !matches!(value.value(), JsonValue::String(_))
            });
            let write = |object: ObjectWriter, name: &str, value: &Json<'_>| match value.value() {
                JsonValue::String(text) if matches!(name, "title" | "description") => {
                    object.text(name, &without_invisible(text))
                }
                // Values, not schemas.
                _ if matches!(name, "const" | "enum" | "default" | "examples") => {
                    object.raw(name, value.raw())
                }
                _ => object.raw(name, &cleaned(value)),
            };
            kept.fold(ObjectWriter::new(), |object, (name, value)| write(object, name, value))
                .finish()
        }
        JsonValue::Array(items) => json_array(items.iter().map(cleaned)),
        _ => json.raw().to_owned(),
    }
}

fn without_invisible(text: &str) -> String {
    text.chars().filter(|c| matches!(c, '\n' | '\t') || !is_invisible(*c)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXTUAL: &str = concat!(
        r#"{"type":"object","properties":{"text":{"type":"string"},"#,
        r#""content":{"type":"array"}},"required":["text"]}"#
    );

    fn shown(given: &str) -> String {
        let form = InputForm::of(given);
        assert!(!form.is_wrapped, "{given}");
        form.schema
    }

    #[test]
    fn an_input_schema_is_one_for_an_object() {
        assert_eq!(shown("{}"), ANY_OBJECT);
        assert_eq!(
            shown(r#"{"text":"string"}"#),
            r#"{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}"#
        );
        let real = r#"{"type":"object","properties":{"n":{"type":"number","maximum":1.50}}}"#;
        assert_eq!(shown(real), real);
        assert_eq!(
            shown(r#"{"properties":{"n":{}}}"#),
            r#"{"type":"object","properties":{"n":{}}}"#
        );
        for broken in ["", "[]", r#"{"type":"object","properties":5}"#] {
            assert_eq!(shown(broken), ANY_OBJECT, "{broken}");
        }
    }

    #[test]
    fn an_input_that_is_no_object_is_wrapped() {
        let form = InputForm::of(r#"{"oneOf":[{"type":"string"},{"type":"object"}]}"#);
        assert!(form.is_wrapped);
        assert_eq!(
            form.schema,
            concat!(
                r#"{"type":"object","properties":{"input":{"oneOf":[{"type":"string"},"#,
                r#"{"type":"object"}]}},"required":["input"]}"#
            )
        );
    }

    #[test]
    fn schemas_are_shown_without_header_keywords_and_hidden_text() {
        let given = concat!(
            r#"{"type":"object","properties":{"x-mcp-header":{"type":"string","x-mcp-header":"A","#,
            "\"description\":\"a\u{202e}b\\u200bc\",\"enum\":[\"d\u{200b}\"]}}}"
        );
        assert_eq!(
            shown(given),
            concat!(
                r#"{"type":"object","properties":{"x-mcp-header":{"type":"string","#,
                "\"description\":\"abc\",\"enum\":[\"d\u{200b}\"]}}}"
            )
        );
    }

    #[test]
    fn an_output_of_text_and_content_is_textual_and_no_other() {
        assert!(OutputForm::of(TEXTUAL).is_textual());
        assert_eq!(OutputForm::of(TEXTUAL).shown(), None);
        for other in [
            "{}",
            r#"{"text":"string"}"#,
            r#"{"text":"string","content":"list"}"#,
            &TEXTUAL.replace(r#"["text"]"#, r#"["text","content"]"#),
            &TEXTUAL.replace("array", "string"),
        ] {
            let form = OutputForm::of(other);
            assert!(form.shown().is_some(), "{other}");
        }
        for none in [r#"{"type":"array","items":{}}"#, r#"{"type":"object","required":5}"#] {
            assert!(OutputForm::of(none).schema().is_none(), "{none}");
        }
    }
}

//! A tool as a skill.

use std::time::Duration;

use rialto_protocols::kit::schema::Schema;
use serde_json::Value;

use crate::agent::skill::{Skill, SkillError};
use crate::mcp::Tool;

/// The longest description of a skill, in characters.
const DESCRIPTION_MAX: usize = 1_000;
/// The longest name of a skill that a hub takes.
const NAME_MAX: usize = 128;
/// The longest schema that a hub takes, in bytes.
const SCHEMA_MAX: usize = 16 << 10;
/// The output of a tool that states no schema for it.
pub const TEXTUAL: &str = r#"{"type":"object","properties":{"text":{"type":"string"},"content":{"type":"array"}},"required":["text"]}"#;

/// The skill of a tool at this price.
///
/// The schemas are the tool's own. A tool that states no output schema has textual output: an object of
/// `text`, and of `content` if there are other blocks than texts. The error says why a tool cannot be a
/// skill.
pub fn tool_skill(tool: &Tool, price: &str, time_limit: Duration) -> Result<Skill, SkillError> {
    let description = tool.description.as_ref().or(tool.title.as_ref());
    let description: String =
        description.into_iter().flat_map(|text| text.chars()).take(DESCRIPTION_MAX).collect();
    let output = output_schema(tool.output_schema.as_deref());
    let mut skill = Skill::new(&tool.name, price)?;
    skill = skill.input_schema(&tool.input_schema)?.output_schema(&output)?;
    Ok(skill.description(description).time_limit(time_limit).show_schemas())
}

/// Why a hub would not take a tool as a skill, whatever its price.
pub(super) fn find_obstacle(tool: &Tool) -> Option<String> {
    let length = tool.name.chars().count();
    if length == 0 || length > NAME_MAX || tool.name.chars().any(char::is_control) {
        return Some(format!("its name must have 1 to {NAME_MAX} characters"));
    }
    let schemas =
        [("input", Some(tool.input_schema.as_str())), ("output", tool.output_schema.as_deref())];
    for (which, schema) in schemas {
        let Some(schema) = schema else { continue };
        if schema.len() > SCHEMA_MAX {
            return Some(format!("its {which} schema is longer than {SCHEMA_MAX} bytes"));
        }
        if let Err(bad) = Schema::compile(schema) {
            return Some(format!("its {which} schema {bad}"));
        }
    }
    None
}

/// The schema of a job's output. Every protocol wants an object there, so another value is the member
/// `result` of one.
fn output_schema(stated: Option<&str>) -> String {
    let Some(stated) = stated else { return TEXTUAL.to_owned() };
    let schema: Value = serde_json::from_str(stated).unwrap_or_default();
    let kind = schema.get("type").and_then(Value::as_str);
    if schema.is_object() && kind.is_none_or(|kind| kind == "object") {
        return stated.to_owned();
    }
    // References inside would lead elsewhere from below another schema.
    let inner = if stated.contains("\"$ref\"") { "{}" } else { stated };
    format!(r#"{{"type":"object","properties":{{"result":{inner}}},"required":["result"]}}"#)
}

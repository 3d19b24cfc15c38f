//! The tools as they are listed: names, texts, schemas, hints and order.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::arguments::ArgumentSchema;
use crate::mcp::wire::result::json_array;

/// The file that says everything about the tools but what they do.
#[derive(Deserialize)]
struct Catalog {
    instructions: String,
    groups: BTreeMap<String, Vec<String>>,
    examples: BTreeMap<String, Box<RawValue>>,
    tools: Vec<Box<RawValue>>,
}

/// What the hub itself needs of a tool.
#[derive(Deserialize)]
struct Tool {
    name: String,
    #[serde(rename = "inputSchema")]
    input: ArgumentSchema,
    annotations: Annotations,
}

#[derive(Deserialize)]
struct Annotations {
    #[serde(rename = "readOnlyHint")]
    read_only: bool,
}

static CATALOG: LazyLock<Catalog> = LazyLock::new(|| {
    serde_json::from_str(include_str!("../fixtures/tools.json")).expect("it is part of the program")
});

static TOOLS: LazyLock<Vec<Tool>> = LazyLock::new(|| {
    CATALOG.tools.iter().map(|tool| serde_json::from_str(tool.get()).expect("a tool")).collect()
});

/// What a model should know before it calls anything.
pub static INSTRUCTIONS: LazyLock<&str> = LazyLock::new(|| &CATALOG.instructions);

/// The groups of tools that a caller chose.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolGroups(Option<BTreeSet<String>>);

impl ToolGroups {
    /// Reads `buy,talk,…`; the first unknown group is the error. `None` means all groups.
    pub fn parse(text: Option<&str>) -> Result<Self, String> {
        let Some(text) = text else { return Ok(Self(None)) };
        let names: BTreeSet<String> = text.split(',').map(str::to_owned).collect();
        match names.iter().find(|name| !CATALOG.groups.contains_key(*name)) {
            Some(unknown) => Err(unknown.clone()),
            None => Ok(Self(Some(names))),
        }
    }

    /// Whether a tool is in one of them.
    pub fn has(&self, tool: &str) -> bool {
        let holds = |name: &String| CATALOG.groups[name].iter().any(|known| known == tool);
        self.0.as_ref().is_none_or(|names| names.iter().any(holds))
    }
}

/// The names of all groups.
pub fn group_names() -> impl Iterator<Item = &'static str> {
    CATALOG.groups.keys().map(String::as_str)
}

/// The tools of these groups, as JSON text of an array.
pub fn list(groups: &ToolGroups) -> String {
    let listed = TOOLS.iter().zip(&CATALOG.tools).filter(|(tool, _)| groups.has(&tool.name));
    json_array(listed.map(|(_, text)| compact(text)))
}

/// One tool as it is listed, as JSON text; `None` if there is no such tool.
pub fn listed_tool(name: &str) -> Option<String> {
    let found = TOOLS.iter().zip(&CATALOG.tools).find(|(tool, _)| tool.name == name);
    found.map(|(_, text)| compact(text))
}

/// A name of a tool, if it is one.
pub fn known_name(name: &str) -> Option<&'static str> {
    TOOLS.iter().map(|tool| tool.name.as_str()).find(|known| *known == name)
}

/// Whether a tool changes nothing; `None` if there is no such tool.
pub fn is_read_only(name: &str) -> Option<bool> {
    TOOLS.iter().find(|tool| tool.name == name).map(|tool| tool.annotations.read_only)
}

/// What a tool is called with.
pub fn input_schema(tool: &str) -> Option<&'static ArgumentSchema> {
    TOOLS.iter().find(|known| known.name == tool).map(|tool| &tool.input)
}

/// Arguments that a tool accepts, as JSON text.
pub fn example_of(tool: &str) -> Option<String> {
    CATALOG.examples.get(tool).map(|example| compact(example))
}

/// The same JSON without the spaces that make the file readable.
fn compact(json: &RawValue) -> String {
    let mut text = String::with_capacity(json.get().len());
    let (mut in_string, mut escaped) = (false, false);
    for character in json.get().chars() {
        if in_string {
            in_string = escaped || character != '"';
            escaped = !escaped && character == '\\';
        } else if character.is_ascii_whitespace() {
            continue;
        } else {
            in_string = character == '"';
        }
        text.push(character);
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    const LIST_BYTES_MAX: usize = 21_000;
    const DESCRIPTION_MAX: usize = 310;
    const INSTRUCTIONS_MAX: usize = 2_000;

    fn listed(groups: Option<&str>) -> Vec<Value> {
        let groups = ToolGroups::parse(groups).expect("known groups");
        serde_json::from_str(&list(&groups)).expect("JSON")
    }

    #[test]
    fn the_seventeen_tools_fit_into_what_models_are_given() {
        let all = list(&ToolGroups::default());
        assert!(all.len() <= LIST_BYTES_MAX, "{} bytes", all.len());
        let tools = listed(None);
        assert_eq!(tools.len(), 17);
        for tool in &tools {
            let text = tool["description"].as_str().expect("a description");
            assert!(text.chars().count() <= DESCRIPTION_MAX, "{}", tool["name"]);
        }
        assert!(INSTRUCTIONS.chars().count() <= INSTRUCTIONS_MAX);
        assert_eq!(all, list(&ToolGroups::default()), "equal bytes every time");
    }

    #[test]
    fn groups_narrow_the_list_and_all_of_them_are_the_whole_list_in_its_order() {
        let names = |tools: Vec<Value>| -> Vec<String> {
            tools.iter().map(|tool| tool["name"].as_str().expect("a name").to_owned()).collect()
        };
        assert_eq!(names(listed(Some("talk"))), ["send_message", "read_inbox"]);
        assert_eq!(
            names(listed(Some("money,talk"))),
            ["send_message", "read_inbox", "whoami", "send_credits"]
        );
        assert_eq!(names(listed(Some("buy,talk,work,money"))), names(listed(None)));
        assert_eq!(ToolGroups::parse(Some("talk,x")), Err("x".to_owned()));
        assert_eq!(ToolGroups::parse(Some("")), Err(String::new()));
        let talk = ToolGroups::parse(Some("talk")).expect("a group");
        assert!(talk.has("read_inbox") && !talk.has("hire"));
    }

    #[test]
    fn every_tool_has_an_example_that_it_accepts() {
        for name in TOOLS.iter().map(|tool| tool.name.as_str()) {
            let example = example_of(name).expect(name);
            let json = rialto_protocols::kit::ijson::read(example.as_bytes()).expect("JSON");
            // A price that stands for the one of an offer is no amount.
            if !example.contains("<price") {
                super::super::Arguments::read(name, &json).expect(name);
            }
            assert_eq!(listed_tool(name).is_some(), input_schema(name).is_some());
        }
        assert!(listed_tool("nope").is_none());
    }
}

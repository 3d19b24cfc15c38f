//! The tools as they are listed: names, texts, schemas, hints and order.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::mcp::wire::result::json_array;

/// The file that says everything about the tools but what they do.
#[derive(Deserialize)]
struct Catalog {
    instructions: String,
    groups: BTreeMap<String, Vec<String>>,
    tools: Vec<Box<RawValue>>,
}

#[derive(Deserialize)]
struct Named {
    name: String,
}

static CATALOG: LazyLock<Catalog> = LazyLock::new(|| {
    serde_json::from_str(include_str!("../fixtures/tools.json")).expect("it is part of the program")
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
    let named = CATALOG.tools.iter().filter(|tool| {
        let named: Named = serde_json::from_str(tool.get()).expect("every tool has a name");
        groups.has(&named.name)
    });
    json_array(named.map(|tool| compact(tool)))
}

/// The tools with these names, as JSON text of an array.
pub fn list_named(names: &[&str]) -> String {
    let named = CATALOG.tools.iter().filter(|tool| {
        let named: Named = serde_json::from_str(tool.get()).expect("every tool has a name");
        names.contains(&named.name.as_str())
    });
    json_array(named.map(|tool| compact(tool)))
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

//! A server's tools and their results.

use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::message::McpError;

/// The input schema of a tool that states none.
const ANY_OBJECT: &str = r#"{"type":"object","properties":{}}"#;
/// The keyword that names the header which repeats an argument.
const HEADER_KEYWORD: &str = "x-mcp-header";
/// The prefix of those headers.
const PARAM_HEADER: &str = "Mcp-Param-";
/// Keywords whose values are data and no schemas.
const DATA_KEYWORDS: [&str; 4] = ["const", "default", "enum", "examples"];

/// One tool of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tool {
    /// Its name.
    pub name: String,
    /// Its name for people.
    pub title: Option<String>,
    /// What it does.
    pub description: Option<String>,
    /// The schema of its arguments: JSON text, as the server wrote it.
    pub input_schema: String,
    /// The schema of its structured results.
    pub output_schema: Option<String>,
    /// What the server says about its effects.
    pub hints: ToolHints,
    /// Arguments that headers repeat over HTTP in the new era.
    pub(crate) header_params: Vec<HeaderParam>,
}

/// What a server says about the effects of a tool; `None` if it does not say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ToolHints {
    /// It changes nothing.
    #[serde(rename = "readOnlyHint")]
    pub read_only: Option<bool>,
    /// It may destroy something.
    #[serde(rename = "destructiveHint")]
    pub destructive: Option<bool>,
    /// Calling it twice has the effect of calling it once.
    #[serde(rename = "idempotentHint")]
    pub idempotent: Option<bool>,
    /// It reaches beyond the server.
    #[serde(rename = "openWorldHint")]
    pub open_world: Option<bool>,
}

impl ToolHints {
    /// Whether the tool says that it changes nothing.
    pub fn is_read_only(self) -> bool {
        self.read_only == Some(true)
    }

    /// Whether a call can be repeated without another effect.
    pub fn is_repeatable(self) -> bool {
        self.is_read_only() || self.idempotent == Some(true)
    }
}

/// An argument that a header repeats.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HeaderParam {
    header: String,
    path: Vec<String>,
}

#[derive(Deserialize)]
struct ToolBody<'a> {
    name: String,
    title: Option<String>,
    description: Option<String>,
    #[serde(borrow, rename = "inputSchema")]
    input_schema: Option<&'a RawValue>,
    #[serde(borrow, rename = "outputSchema")]
    output_schema: Option<&'a RawValue>,
    annotations: Option<Value>,
}

impl Tool {
    /// Reads a tool of a list. The error names the tool, if it has a name.
    pub(crate) fn read(text: &str) -> Result<Self, String> {
        let body: ToolBody<'_> = serde_json::from_str(text)
            .map_err(|error| format!("a tool of the list cannot be read: {error}"))?;
        let annotations = body.annotations.unwrap_or_default();
        let titled = annotations.get("title").and_then(Value::as_str).map(str::to_owned);
        let input_schema = body.input_schema.map_or(ANY_OBJECT, RawValue::get).to_owned();
        let header_params = read_header_params(&input_schema)
            .map_err(|why| format!("tool {} has an invalid {HEADER_KEYWORD}: {why}", body.name))?;
        Ok(Self {
            name: body.name,
            title: body.title.or(titled),
            description: body.description,
            input_schema,
            output_schema: body.output_schema.map(|schema| schema.get().to_owned()),
            hints: serde_json::from_value(annotations).unwrap_or_default(),
            header_params,
        })
    }

    /// The headers that repeat arguments of a call.
    pub(super) fn headers_for(&self, arguments: &str) -> Vec<(String, String)> {
        if self.header_params.is_empty() {
            return Vec::new();
        }
        let found = self.header_params.iter().filter_map(|param| {
            let mut at: &RawValue = serde_json::from_str(arguments).ok()?;
            for name in &param.path {
                let members: std::collections::HashMap<String, &RawValue> =
                    serde_json::from_str(at.get()).ok()?;
                at = members.get(name)?;
            }
            let text = match at.get() {
                "null" => return None,
                text if text.starts_with('"') => serde_json::from_str(text).ok()?,
                text => text.to_owned(),
            };
            Some((param.header.clone(), text))
        });
        found.collect()
    }
}

/// Finds the arguments that headers repeat.
fn read_header_params(schema: &str) -> Result<Vec<HeaderParam>, String> {
    if !schema.contains(HEADER_KEYWORD) {
        return Ok(Vec::new());
    }
    let schema: Value = serde_json::from_str(schema).map_err(|error| error.to_string())?;
    let mut found = Vec::new();
    find_header_params(&schema, Some(&mut Vec::new()), &mut found)?;
    let names: BTreeSet<String> =
        found.iter().map(|param| param.header.to_ascii_lowercase()).collect();
    if names.len() < found.len() {
        return Err("two arguments have the same header".to_owned());
    }
    Ok(found)
}

/// `path` is `None` below a keyword whose schemas do not stand for one place in the arguments.
fn find_header_params(
    schema: &Value,
    mut path: Option<&mut Vec<String>>,
    found: &mut Vec<HeaderParam>,
) -> Result<(), String> {
    let members = match schema {
        Value::Object(members) => members,
        Value::Array(items) => {
            return items.iter().try_for_each(|item| find_header_params(item, None, found));
        }
        _ => return Ok(()),
    };
    if let Some(header) = members.get(HEADER_KEYWORD) {
        let at = path.as_deref().filter(|path| !path.is_empty());
        let at = at.ok_or("it is not at a property of the arguments")?;
        let header = header.as_str().filter(|name| is_token(name)).ok_or("it is no header name")?;
        let kind = members.get("type").and_then(Value::as_str);
        if !matches!(kind, Some("string" | "integer" | "boolean")) {
            return Err("its argument is no string, integer or boolean".to_owned());
        }
        found.push(HeaderParam { header: format!("{PARAM_HEADER}{header}"), path: at.clone() });
    }
    for (keyword, value) in members {
        match (keyword.as_str(), value) {
            ("properties", Value::Object(properties)) => {
                for (name, property) in properties {
                    match path.as_deref_mut() {
                        Some(path) => {
                            path.push(name.clone());
                            find_header_params(property, Some(path), found)?;
                            path.pop();
                        }
                        None => find_header_params(property, None, found)?,
                    }
                }
            }
            (HEADER_KEYWORD, _) => {}
            (keyword, _) if DATA_KEYWORDS.contains(&keyword) => {}
            (_, value) => find_header_params(value, None, found)?,
        }
    }
    Ok(())
}

fn is_token(name: &str) -> bool {
    !name.is_empty()
        && name.chars().all(|c| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c))
}

/// What a tool has returned.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolResult {
    /// Whether the tool says that it failed.
    pub is_error: bool,
    /// The structured result: JSON text.
    pub structured: Option<String>,
    /// The blocks for people and models.
    pub content: ContentBlocks,
}

/// Content blocks, in their order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContentBlocks {
    /// All of them: a JSON array, as the server wrote it.
    pub raw: String,
    /// The texts of the text blocks.
    pub texts: Vec<String>,
    /// Whether there are no other blocks.
    pub only_text: bool,
}

impl Default for ContentBlocks {
    fn default() -> Self {
        Self { raw: "[]".to_owned(), texts: Vec::new(), only_text: true }
    }
}

impl ContentBlocks {
    fn read(raw: &RawValue) -> Result<Self, McpError> {
        #[derive(Deserialize)]
        struct Block {
            #[serde(rename = "type", default)]
            kind: String,
            text: Option<String>,
        }
        let unreadable =
            |error| McpError::Unreadable(format!("the result has unreadable content: {error}"));
        let blocks: Vec<Block> = serde_json::from_str(raw.get()).map_err(unreadable)?;
        let is_text = |block: &Block| block.kind == "text" && block.text.is_some();
        let only_text = blocks.iter().all(is_text);
        let texts = blocks.into_iter().filter(is_text).filter_map(|block| block.text).collect();
        Ok(Self { raw: raw.get().to_owned(), texts, only_text })
    }

    /// The texts, joined by line feeds.
    pub fn text(&self) -> String {
        self.texts.join("\n")
    }
}

impl ToolResult {
    /// Reads a complete result.
    pub(super) fn read(text: &str) -> Result<Self, McpError> {
        #[derive(Deserialize)]
        struct Body<'a> {
            #[serde(rename = "isError", default)]
            is_error: bool,
            #[serde(borrow, rename = "structuredContent")]
            structured: Option<&'a RawValue>,
            #[serde(borrow)]
            content: Option<&'a RawValue>,
        }
        let body: Body<'_> = serde_json::from_str(text)
            .map_err(|error| McpError::Unreadable(format!("the result is unreadable: {error}")))?;
        Ok(Self {
            is_error: body.is_error,
            structured: body.structured.map(|json| json.get().to_owned()),
            content: body.content.map(ContentBlocks::read).transpose()?.unwrap_or_default(),
        })
    }
}

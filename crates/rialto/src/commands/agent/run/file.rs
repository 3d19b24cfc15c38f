//! `agent.toml`: an agent with several skills.

use std::fs;
use std::path::Path;

use serde::Deserialize;

use super::super::super::error::CliError;

/// Example for error messages about an invalid file.
const EXAMPLE: &str = "write it like:\n\nname = \"writer\"\nconcurrency = 4\n\n[[skill]]\nname = \"summarize\"\nprice = \"0.05\"\nexec = \"python3 handler.py\"\n";

/// The whole file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentFile {
    pub name: Option<String>,
    pub owner: Option<String>,
    pub concurrency: Option<u16>,
    /// Names of variables that are passed to programs.
    #[serde(default)]
    pub env: Vec<String>,
    pub skill: Vec<SkillEntry>,
}

/// One skill.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SkillEntry {
    pub name: String,
    /// Decimal text: amounts are never floats.
    pub price: String,
    #[serde(default)]
    pub about: String,
    pub exec: Option<String>,
    pub http: Option<String>,
    #[serde(default)]
    pub persistent: bool,
    pub timeout: Option<String>,
    /// JSON Schemas, as tables or file names.
    pub input: Option<SchemaEntry>,
    pub output: Option<SchemaEntry>,
    pub offer: Option<OfferEntry>,
}

/// A schema, inline or in a file.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub enum SchemaEntry {
    File(String),
    Inline(toml::Table),
}

/// How the price of an offer is computed.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OfferEntry {
    /// Added for every started KiB of input.
    pub per_kib: String,
}

impl AgentFile {
    pub fn load(path: &Path) -> Result<Self, CliError> {
        let shown = path.display();
        let text = fs::read_to_string(path).map_err(|error| {
            let message = format!("cannot read {shown}: {error}");
            let next = "`rialto init agent --lang python` creates one; or pass --skill, --price and --exec";
            CliError::usage(message, next)
        })?;
        let file: Self = toml::from_str(&text).map_err(|error| {
            CliError::usage(format!("{shown}: {}", error.to_string().trim_end()), EXAMPLE)
        })?;
        match file.skill.is_empty() {
            true => Err(CliError::usage(format!("{shown} has no skill"), EXAMPLE)),
            false => Ok(file),
        }
    }
}

impl SchemaEntry {
    /// The schema as JSON text. Files are relative to the agent's own file.
    pub fn load(&self, beside: &Path) -> Result<String, CliError> {
        match self {
            Self::Inline(table) => Ok(serde_json::to_string(table).unwrap_or_default()),
            Self::File(name) => read_schema_file(&beside.join(name)),
        }
    }
}

/// The text of a schema file.
pub fn read_schema_file(path: &Path) -> Result<String, CliError> {
    fs::read_to_string(path).map_err(|error| {
        let message = format!("cannot read {}: {error}", path.display());
        CliError::usage(message, "name a file that contains a JSON Schema")
    })
}

//! JSON Schemas that agents supply: compiled once, without external references, and with a bounded
//! cost per check.
//!
//! `jsonschema` validates. The code around it makes untrusted schemas safe: `refs` keeps references
//! inside the document, `expansion` refuses schemas that apply themselves to one value endlessly or
//! too often, patterns are compiled for the linear engine or refused, and `cost` counts the work on
//! a value before it is done. So one check costs at most its limit of units for any schema and
//! value. Nothing here fetches, sleeps or keeps what it checked.

mod cost;
mod graph;
#[cfg(test)]
mod tests;
mod violation;

use std::fmt;
use std::sync::Arc;

use jsonschema::{Draft, PatternOptions, Retrieve, Uri, Validator};
use serde_json::Value;

use super::ijson;
use super::ijson::Json;
use cost::CheckCost;
use graph::SchemaGraph;
pub use violation::Violation;

/// The longest schema, in bytes.
pub const TEXT_MAX: usize = 64 * 1024;
/// How deeply arrays and objects may be nested in a schema.
pub const DEPTH_MAX: usize = 32;
/// How many members and array items a schema may have.
pub const NODES_MAX: usize = ijson::ELEMENTS_MAX;
/// How many violations one check reports.
pub const VIOLATIONS_MAX: usize = 20;

/// A schema that is ready to check values. Clones share it.
#[derive(Clone)]
pub struct Schema(Arc<CompiledSchema>);

struct CompiledSchema {
    raw: Box<str>,
    draft: Draft,
    source: Value,
    validator: Validator,
    plan: SchemaGraph,
    trivial: bool,
}

/// Schemas are equal if their texts are equal.
impl PartialEq for Schema {
    fn eq(&self, other: &Self) -> bool {
        let same =
            |a: &CompiledSchema, b: &CompiledSchema| a.draft == b.draft && a.source == b.source;
        Arc::ptr_eq(&self.0, &other.0) || same(&self.0, &other.0)
    }
}

impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Schema").field("trivial", &self.0.trivial).finish_non_exhaustive()
    }
}

impl Schema {
    /// Reads and compiles a schema.
    pub fn compile(text: &str) -> Result<Self, BadSchema> {
        if text.len() > TEXT_MAX {
            return Err(BadSchema::whole(format!("is longer than {TEXT_MAX} bytes")));
        }
        let json = ijson::read(text.as_bytes())
            .map_err(|bad| BadSchema::whole(format!("is not valid JSON: {bad}")))?;
        Self::of(&json)
    }

    /// Compiles a schema from JSON that was already read.
    pub fn of(json: &Json<'_>) -> Result<Self, BadSchema> {
        if json.raw().len() > TEXT_MAX {
            return Err(BadSchema::whole(format!("is longer than {TEXT_MAX} bytes")));
        }
        let mut source = graph::to_serde_value(json)
            .ok_or_else(|| BadSchema::whole("has a number that is out of range"))?;
        if graph::depth(&source) > DEPTH_MAX {
            return Err(BadSchema::whole(format!("has more than {DEPTH_MAX} levels")));
        }
        let draft = draft_of(&source)?;
        let id = id_keyword(draft);
        let plan = SchemaGraph::of(&source, id)?;
        cost::check_expansion(&plan)?;
        // `$schema` is removed: references stay inside, and the draft is known.
        if let Value::Object(root) = &mut source {
            root.remove("$schema");
            root.remove("$vocabulary");
            if root.get(id).and_then(Value::as_str).is_some_and(|id| !id.starts_with('#')) {
                root.remove(id);
            }
        }
        let patterns = PatternOptions::regex()
            .size_limit(cost::PATTERN_SIZE_MAX)
            .dfa_size_limit(cost::PATTERN_SIZE_MAX);
        let validator = jsonschema::options()
            .with_draft(draft)
            .should_validate_formats(true)
            .with_pattern_options(patterns)
            .with_retriever(NoRetriever)
            .build(&source)
            .map_err(|bad| refused(&bad))?;
        let trivial = match &source {
            Value::Object(root) => root.is_empty(),
            other => other == &Value::Bool(true),
        };
        let raw = json.raw().into();
        Ok(Self(Arc::new(CompiledSchema { raw, draft, source, validator, plan, trivial })))
    }

    /// The schema's exact text.
    pub fn text(&self) -> &str {
        &self.0.raw
    }

    /// How many patterns it has. Patterns take most of a schema's memory, so a caller that accepts
    /// many schemas from one agent limits their total.
    pub fn patterns(&self) -> usize {
        self.0.plan.patterns
    }

    /// Whether every value is valid.
    pub fn is_trivial(&self) -> bool {
        self.0.trivial
    }

    /// Checks the text of a value, which must be JSON as [`ijson`] reads it.
    pub fn check(&self, text: &str) -> Result<(), Vec<Violation>> {
        let json = ijson::read(text.as_bytes())
            .map_err(|bad| vec![Violation::whole(format!("is not valid JSON: {bad}"))])?;
        self.check_json(&json)
    }

    /// Checks a value; reports at most [`VIOLATIONS_MAX`] violations, each once.
    pub fn check_json(&self, json: &Json<'_>) -> Result<(), Vec<Violation>> {
        self.check_with_limit(json, VIOLATIONS_MAX)
    }

    /// Checks a value; reports at most `max` violations, each once.
    pub fn check_with_limit(&self, json: &Json<'_>, max: usize) -> Result<(), Vec<Violation>> {
        let CompiledSchema { source, validator, plan, trivial, .. } = &*self.0;
        if *trivial {
            return Ok(());
        }
        let only = |says: &str| Err(vec![Violation::whole(says)]);
        let Ok(meter) = CheckCost::of(plan, json) else {
            return only("is too expensive to check against its schema");
        };
        let Some(instance) = graph::to_serde_value(json) else {
            return only("has a number that is out of range");
        };
        if validator.is_valid(&instance) {
            return Ok(());
        }
        if !meter.can_list_failures() {
            return only("does not match its schema");
        }
        let mut told: Vec<Violation> = Vec::new();
        for error in validator.iter_errors(&instance) {
            for violation in violation::from_validation_error(&error, json, source) {
                if told.len() < max && !told.contains(&violation) {
                    told.push(violation);
                }
            }
        }
        if told.is_empty() { only("does not match its schema") } else { Err(told) }
    }
}

/// The compiler's error in its own words. For patterns its text is not useful.
fn refused(bad: &jsonschema::ValidationError<'_>) -> BadSchema {
    let at = bad.instance_path().as_str();
    let place = if at.is_empty() { bad.schema_path().as_str() } else { at };
    let says = bad.to_string();
    if place.contains("attern") {
        let why = "must be a pattern without look-around and back-references, and not too large";
        return BadSchema::at(place, why);
    }
    BadSchema::at(at, format!("is not valid: {says}"))
}

/// Fetches nothing.
struct NoRetriever;

impl Retrieve for NoRetriever {
    fn retrieve(&self, _: &Uri<String>) -> Result<Value, Box<dyn std::error::Error + Send + Sync>> {
        Err("nothing is fetched".into())
    }
}

/// What is wrong with a schema.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{message}", place(pointer))]
pub struct BadSchema {
    /// JSON pointer into the schema; empty for the schema as a whole.
    pub pointer: String,
    /// What is wrong there: a text that follows the place.
    pub message: String,
}

impl BadSchema {
    /// An error about the schema as a whole.
    pub(super) fn whole(why: impl Into<String>) -> Self {
        Self::at("", why)
    }

    /// An error about one place.
    pub(super) fn at(at: &str, why: impl Into<String>) -> Self {
        const PLACE_MAX: usize = 200;
        const WHY_MAX: usize = 300;
        let why: String = why.into();
        Self { pointer: truncate(at, PLACE_MAX), message: truncate(&why, WHY_MAX) }
    }
}

/// The first `max` characters, so that an error never gets longer than its schema.
pub(super) fn truncate(text: &str, max: usize) -> String {
    match text.char_indices().nth(max) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

fn place(at: &str) -> String {
    if at.is_empty() { String::new() } else { format!("#{at} ") }
}

/// The drafts by the end of their URI, after the scheme and without an empty fragment.
const KNOWN: [(&str, Draft); 5] = [
    ("json-schema.org/draft-04/schema", Draft::Draft4),
    ("json-schema.org/draft-06/schema", Draft::Draft6),
    ("json-schema.org/draft-07/schema", Draft::Draft7),
    ("json-schema.org/draft/2019-09/schema", Draft::Draft201909),
    ("json-schema.org/draft/2020-12/schema", Draft::Draft202012),
];

/// The draft of a whole schema.
pub(super) fn draft_of(root: &Value) -> Result<Draft, BadSchema> {
    let Some(given) = root.get("$schema") else { return Ok(Draft::Draft202012) };
    let known = given.as_str().and_then(|uri| {
        let uri = uri.strip_prefix("https://").or_else(|| uri.strip_prefix("http://"))?;
        let uri = uri.strip_suffix('#').unwrap_or(uri);
        KNOWN.into_iter().find(|(known, _)| *known == uri)
    });
    let why = "must be one of the drafts 4, 6, 7, 2019-09 and 2020-12";
    known.map(|(_, draft)| draft).ok_or_else(|| BadSchema::at("/$schema", why))
}

/// The keyword of this draft for the URI of a schema.
pub(super) fn id_keyword(draft: Draft) -> &'static str {
    if draft == Draft::Draft4 { "id" } else { "$id" }
}

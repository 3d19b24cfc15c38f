//! JSON Schemas that agents supply: compiled once, without external references, and with a bounded
//! cost per check.
//!
//! `jsonschema` validates. The code around it makes untrusted schemas safe: `refs` keeps references
//! inside the document, `expansion` refuses schemas that apply themselves to one value endlessly or
//! too often, patterns are compiled for the linear engine or refused, and `cost` counts the work on
//! a value before it is done. So one check costs at most its limit of units for any schema and
//! value. Nothing here fetches, sleeps or keeps what it checked.

mod cost;
mod draft;
mod error;
mod expansion;
mod graph;
mod path;
mod pattern;
mod refs;
mod value;
mod violation;

#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;

use jsonschema::{Draft, PatternOptions, Retrieve, Uri, Validator};
use serde_json::Value;

use cost::CheckCost;
pub use error::BadSchema;
use graph::SchemaGraph;
pub use violation::Violation;

use super::ijson::{self, Json};

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
        let mut source = value::to_serde_value(json)
            .ok_or_else(|| BadSchema::whole("has a number that is out of range"))?;
        if value::depth(&source) > DEPTH_MAX {
            return Err(BadSchema::whole(format!("has more than {DEPTH_MAX} levels")));
        }
        let draft = draft::draft_of(&source)?;
        let id = draft::id_keyword(draft);
        let plan = SchemaGraph::of(&source, id)?;
        expansion::check(&plan)?;
        // `$schema` is removed: references stay inside, and the draft is known.
        if let Value::Object(root) = &mut source {
            root.remove("$schema");
            root.remove("$vocabulary");
            if root.get(id).and_then(Value::as_str).is_some_and(|id| !id.starts_with('#')) {
                root.remove(id);
            }
        }
        let patterns =
            PatternOptions::regex().size_limit(pattern::SIZE_MAX).dfa_size_limit(pattern::SIZE_MAX);
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
        let Some(instance) = value::to_serde_value(json) else {
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

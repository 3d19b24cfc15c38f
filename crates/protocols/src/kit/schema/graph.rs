//! A schema as a graph: which schemas apply to the same value, and which to the values inside it.
//!
//! The graph does not validate. It knows enough of every draft to say which steps a validator could
//! take, so that endless and exploding schemas are refused ([`super::bound`]) and the work on one
//! value can be counted before it is done ([`super::meter`]). Where drafts differ, it assumes all
//! of them.

use std::borrow::Cow;
use std::collections::HashMap;

use percent_encoding::percent_decode_str;
use serde_json::{Map, Number, Value};

use super::{BadSchema, cost};
use crate::kit::ijson::{Json, JsonValue};

/// Keywords that never fail.
const SILENT: [&str; 8] =
    ["title", "description", "$comment", "default", "examples", "$defs", "definitions", "$id"];
/// Keywords whose failures carry a copy of the schema's text.
const QUOTED: [&str; 8] = [
    "required",
    "dependentRequired",
    "dependencies",
    "not",
    "pattern",
    "format",
    "contentEncoding",
    "contentMediaType",
];
/// Keywords whose failures carry member names.
const LISTING: [&str; 2] = ["additionalProperties", "unevaluatedProperties"];

/// One schema. It refers to others by index.
#[derive(Debug, Default)]
pub(super) struct SchemaNode {
    /// Its place, as a JSON pointer.
    pub(super) pointer: String,
    /// The cost of applying it to any value.
    pub(super) cost: u64,
    /// How many of its keywords can fail by themselves.
    pub(super) assertions: u64,
    /// Bytes of the schema that a failure may quote.
    pub(super) quoted: u64,
    /// Whether a failure may list member names.
    pub(super) lists_names: bool,
    /// States of its pattern; 0 without one.
    pub(super) pattern: u64,
    /// States of the patterns for names; 0 without any.
    pub(super) name_patterns: u64,
    /// Whether strings are checked for their format or content.
    pub(super) reads_text: bool,
    /// Whether items must be unique.
    pub(super) unique: bool,
    /// Whether it depends on what other schemas have evaluated.
    pub(super) unevaluated: bool,
    /// Schemas for the same value.
    pub(super) same_value: Vec<usize>,
    /// Whether any of those may fail while the value passes, so that failures are kept apart.
    pub(super) branches: bool,
    /// Schemas for one member each.
    pub(super) member: HashMap<String, usize>,
    /// Schemas for any member.
    pub(super) members: Vec<usize>,
    /// Schemas for member names.
    pub(super) names: Vec<usize>,
    /// Schemas for the first items, one each.
    pub(super) prefix_items: Vec<usize>,
    /// Schemas for any item.
    pub(super) items: Vec<usize>,
}

/// All schemas of one document; the first is the root.
#[derive(Debug, Default)]
pub(super) struct SchemaGraph {
    pub(super) nodes: Vec<SchemaNode>,
    /// The total number of patterns.
    pub(super) patterns: usize,
}

impl SchemaGraph {
    /// The graph of a document whose draft calls addresses `id`.
    pub(super) fn of(root: &Value, id: &'static str) -> Result<Self, BadSchema> {
        let mut maker = GraphBuilder {
            root,
            id,
            plan: Self::default(),
            known: HashMap::new(),
            anchors: Anchors::default(),
            open: Vec::new(),
        };
        maker.schema(root, String::new())?;
        maker.resolve()?;
        Ok(maker.plan)
    }
}

struct GraphBuilder<'a> {
    root: &'a Value,
    id: &'static str,
    plan: SchemaGraph,
    known: HashMap<String, usize>,
    anchors: Anchors,
    open: Vec<(usize, String, &'a str)>,
}

impl<'a> GraphBuilder<'a> {
    /// The index of the schema at `at`. The recursion follows the document, whose depth is bounded.
    fn schema(&mut self, schema: &'a Value, at: String) -> Result<usize, BadSchema> {
        if let Some(number) = self.known.get(&at) {
            return Ok(*number);
        }
        let number = self.plan.nodes.len();
        self.known.insert(at.clone(), number);
        self.plan.nodes.push(SchemaNode { pointer: at.clone(), ..SchemaNode::default() });
        match schema {
            Value::Object(object) => {
                self.anchors.collect(object, &at, self.id)?;
                let made = self.object(object, &at, number)?;
                self.plan.nodes[number] = made;
            }
            Value::Bool(_) => self.plan.nodes[number].assertions = 1,
            _ => return Err(BadSchema::at(&at, "must be an object, true or false")),
        }
        Ok(number)
    }

    fn object(
        &mut self,
        object: &'a Map<String, Value>,
        at: &str,
        number: usize,
    ) -> Result<SchemaNode, BadSchema> {
        let mut made = SchemaNode { pointer: at.to_owned(), cost: 1, ..SchemaNode::default() };
        for (keyword, given) in object {
            let here = join_pointer(at, keyword);
            made.cost += 1 + match given {
                Value::Array(items) => items.len() as u64,
                Value::Object(members) => members.len() as u64,
                _ => 0,
            };
            made.assertions += u64::from(!SILENT.contains(&keyword.as_str()));
            if QUOTED.contains(&keyword.as_str()) {
                made.quoted += given.to_string().len() as u64;
            }
            made.lists_names |= LISTING.contains(&keyword.as_str());
            match keyword.as_str() {
                "allOf" => made.same_value.extend(self.all(given, &here)?),
                "anyOf" | "oneOf" | "dependentSchemas" | "dependencies" => {
                    made.branches = true;
                    made.same_value.extend(self.all(given, &here)?);
                }
                "not" | "if" | "then" | "else" => {
                    made.branches = true;
                    made.same_value.extend(self.one(given, &here)?);
                }
                "properties" => made.member = self.named(given, &here)?,
                "patternProperties" => {
                    for name in given.as_object().into_iter().flat_map(Map::keys) {
                        made.name_patterns += self.pattern(name, &here)?;
                    }
                    made.members.extend(self.all(given, &here)?);
                }
                "additionalProperties" => made.members.extend(self.one(given, &here)?),
                "unevaluatedProperties" => {
                    made.unevaluated = true;
                    made.members.extend(self.one(given, &here)?);
                }
                "propertyNames" => made.names.extend(self.one(given, &here)?),
                "items" if given.is_array() => made.prefix_items.extend(self.all(given, &here)?),
                "prefixItems" => made.prefix_items.extend(self.all(given, &here)?),
                "items" | "additionalItems" | "contains" => {
                    made.items.extend(self.one(given, &here)?);
                }
                "unevaluatedItems" => {
                    made.unevaluated = true;
                    made.items.extend(self.one(given, &here)?);
                }
                "pattern" => {
                    if let Value::String(text) = given {
                        made.pattern += self.pattern(text, &here)?;
                    }
                }
                "format" | "contentEncoding" | "contentMediaType" => made.reads_text = true,
                "minLength" | "maxLength" => made.reads_text = true,
                "uniqueItems" => made.unique = given == &Value::Bool(true),
                // In the worst case a comparison visits every part of the given value.
                "enum" | "const" => made.cost += size(given),
                // Division of decimals of any size.
                "multipleOf" | "divisibleBy" => made.cost += 50,
                "$defs" | "definitions" => drop(self.all(given, &here)?),
                "contentSchema" => drop(self.one(given, &here)?),
                _ if KEYWORDS.contains(&keyword.as_str()) => {
                    if let Value::String(reference) = given {
                        self.open.push((number, here, reference));
                    }
                }
                // Everything else may fail by itself; unknown keywords are counted too.
                _ => {}
            }
        }
        Ok(made)
    }

    /// Schemas in an array or under names. The validator refuses anything else.
    fn all(&mut self, given: &'a Value, at: &str) -> Result<Vec<usize>, BadSchema> {
        match given {
            Value::Array(list) => {
                let numbered = list.iter().enumerate();
                numbered.map(|(n, item)| self.schema(item, format!("{at}/{n}"))).collect()
            }
            // Besides schemas, `dependencies` holds lists of names.
            Value::Object(map) => map
                .iter()
                .filter(|(_, item)| !item.is_array())
                .map(|(name, item)| self.schema(item, join_pointer(at, name)))
                .collect(),
            _ => Ok(Vec::new()),
        }
    }

    fn named(&mut self, given: &'a Value, at: &str) -> Result<HashMap<String, usize>, BadSchema> {
        let Value::Object(map) = given else { return Ok(HashMap::new()) };
        let named = map.iter();
        named
            .map(|(name, item)| Ok((name.clone(), self.schema(item, join_pointer(at, name))?)))
            .collect()
    }

    /// One schema. Draft 4 has `true` and `false` where later drafts have schemas.
    fn one(&mut self, given: &'a Value, at: &str) -> Result<Option<usize>, BadSchema> {
        self.schema(given, at.to_owned()).map(Some)
    }

    fn pattern(&mut self, text: &str, at: &str) -> Result<u64, BadSchema> {
        self.plan.patterns += 1;
        if self.plan.patterns > cost::PATTERNS_MAX {
            let why = format!("is one of more than {} patterns", cost::PATTERNS_MAX);
            return Err(BadSchema::at(at, why));
        }
        Ok(cost::estimate_states(text))
    }

    /// Resolves every reference to its schema, which may add new references.
    fn resolve(&mut self) -> Result<(), BadSchema> {
        while let Some((from, at, reference)) = self.open.pop() {
            let target = self.anchors.resolve(reference, &at)?;
            let there = self.root.pointer(&target);
            let there =
                there.ok_or_else(|| BadSchema::at(&at, "does not resolve in this schema"))?;
            let to = self.schema(there, target)?;
            self.plan.nodes[from].same_value.push(to);
        }
        Ok(())
    }
}

/// Keywords that refer to another schema.
pub(super) const KEYWORDS: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];

/// The anchor names in a schema, with their pointers.
///
/// References are names and pointers inside one document. Nothing is ever fetched (C8), so a
/// reference that leaves its document is refused at once. For the same reason a part of a schema
/// may not set another base with `$id`.
#[derive(Default)]
pub(super) struct Anchors(HashMap<String, String>);

impl Anchors {
    /// Collects the anchors of the schema object at `at`, whose draft calls its address `id`.
    pub(super) fn collect(
        &mut self,
        object: &Map<String, Value>,
        at: &str,
        id: &str,
    ) -> Result<(), BadSchema> {
        for keyword in ["$anchor", "$dynamicAnchor"] {
            if let Some(Value::String(name)) = object.get(keyword) {
                self.add(name, at)?;
            }
        }
        for keyword in [id, "$schema"] {
            let Some(Value::String(address)) = object.get(keyword) else { continue };
            match address.strip_prefix('#') {
                Some(name) if keyword == id => self.add(name, at)?,
                _ if at.is_empty() => {}
                _ => {
                    let why = format!("has {keyword}, which only the whole schema may have");
                    return Err(BadSchema::at(at, why));
                }
            }
        }
        Ok(())
    }

    fn add(&mut self, name: &str, at: &str) -> Result<(), BadSchema> {
        match self.0.insert(name.to_owned(), at.to_owned()) {
            Some(other) if other != at => {
                Err(BadSchema::at(at, format!("has the same name as #{other}")))
            }
            _ => Ok(()),
        }
    }

    /// The pointer a reference means. `at` is the place of the reference.
    pub(super) fn resolve(&self, reference: &str, at: &str) -> Result<String, BadSchema> {
        let Some(fragment) = reference.strip_prefix('#') else {
            let why =
                "must stay inside this schema: references start with # and nothing is fetched";
            return Err(BadSchema::at(at, why));
        };
        let fragment = percent_decode_str(fragment).decode_utf8_lossy();
        if fragment.is_empty() || fragment.starts_with('/') {
            return Ok(fragment.into_owned());
        }
        let known = self.0.get(fragment.as_ref()).cloned();
        known.ok_or_else(|| BadSchema::at(at, "names nothing in this schema"))
    }
}

/// A JSON pointer extended by one name.
pub(super) fn join_pointer(at: &str, name: &str) -> String {
    let name: Cow<'_, str> = if name.contains(['~', '/']) {
        name.replace('~', "~0").replace('/', "~1").into()
    } else {
        name.into()
    };
    format!("{at}/{name}")
}

/// The value of a JSON text; `None` if it holds a number outside the range of doubles, such as
/// `1e400`, since its size could not be compared.
pub(super) fn to_serde_value(json: &Json<'_>) -> Option<Value> {
    Some(match json.value() {
        JsonValue::Null => Value::Null,
        JsonValue::Bool(flag) => Value::Bool(*flag),
        JsonValue::Number(digits) => Value::Number(number(digits)?),
        JsonValue::String(text) => Value::String(text.to_string()),
        JsonValue::Array(items) => {
            Value::Array(items.iter().map(to_serde_value).collect::<Option<_>>()?)
        }
        JsonValue::Object(members) => {
            let members = members
                .iter()
                .map(|(name, value)| Some((name.to_string(), to_serde_value(value)?)));
            Value::Object(members.collect::<Option<Map<_, _>>>()?)
        }
    })
}

fn number(digits: &str) -> Option<Number> {
    serde_json::from_str(digits).ok()
}

/// How deeply arrays and objects are nested.
pub(super) fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(members) => 1 + members.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

/// How many values a value consists of.
pub(super) fn size(value: &Value) -> u64 {
    match value {
        Value::Array(items) => 1 + items.iter().map(size).sum::<u64>(),
        Value::Object(members) => 1 + members.values().map(size).sum::<u64>(),
        _ => 1,
    }
}

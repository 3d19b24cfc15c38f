//! Capabilities: what an agent offers, and the schemas of its input and output.

use rialto_core::money::Credits;

use super::reader::{MessageReader, ObjectPart};
use crate::kit::ijson::{Json, JsonValue as Is};
use crate::kit::object::ObjectWriter;
use crate::kit::schema::Schema;
use crate::openclaw::state::Category;
use crate::openclaw::{NAME_MAX, TEXT_MAX};

/// Patterns in all schemas of one agent together. Patterns take most of the memory of a schema.
const PATTERNS_MAX: usize = 128;

/// Capabilities of one agent. The spec has no limit; the hub needs one.
const CAPABILITIES_MAX: usize = 128;

/// One capability of an agent.
#[derive(Clone, Debug, PartialEq)]
pub struct PublishedCapability {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Its description.
    pub description: String,
    /// Its category.
    pub category: Category,
    /// The estimated duration.
    pub estimated_duration_ms: Option<i64>,
    /// Whether a person must approve each request.
    pub requires_approval: bool,
    /// Its price (not in the spec).
    pub price: Option<Credits>,
    /// The schema of the input; without one, any object is valid (R26).
    pub input: Option<Schema>,
    /// The schema of the output; without one, any object is valid.
    pub output: Option<Schema>,
}

/// All capabilities of an identity; `None` when one of them is incomplete.
pub(super) fn read_all(
    r: &mut MessageReader<'_, '_>,
    from: &ObjectPart<'_, '_>,
) -> Option<Vec<PublishedCapability>> {
    let mut patterns = 0;
    let inputs = schemas(r, &from.part("input_schemas"), &mut patterns);
    let outputs = schemas(r, &from.part("output_schemas"), &mut patterns);
    let mut all: Vec<PublishedCapability> = Vec::new();
    let mut whole = true;
    let items = from.items("advertised_capabilities");
    if items.len() > CAPABILITIES_MAX {
        let says = format!("must have at most {CAPABILITIES_MAX} items");
        r.add_violation(from, "advertised_capabilities", says);
        return None;
    }
    for item in items {
        let found = capability(r, &item, &inputs, &outputs);
        match found {
            Some(found) if all.iter().any(|other| other.id == found.id) => {
                r.add_violation(
                    &item,
                    "capability_id",
                    "occurs twice; each capability has one entry",
                );
            }
            Some(found) => all.push(found),
            None => whole = false,
        }
    }
    whole.then_some(all)
}

fn capability(
    r: &mut MessageReader<'_, '_>,
    item: &ObjectPart<'_, '_>,
    inputs: &[(&str, Schema)],
    outputs: &[(&str, Schema)],
) -> Option<PublishedCapability> {
    let id = r.name(item, "capability_id", NAME_MAX);
    let name = r.name(item, "capability_name", NAME_MAX);
    let description = r.bounded(item, "description", TEXT_MAX);
    let estimated_duration_ms = r.number(item, "estimated_duration_ms");
    let requires_approval = r.flag(item, "requires_approval").unwrap_or(false);
    let price = r.amount(item, "price");
    let of = |all: &[(&str, Schema)]| {
        let own = all.iter().find(|(name, _)| Some(*name) == id.as_deref());
        own.map(|(_, schema)| schema.clone())
    };
    let (input, output) = (of(inputs), of(outputs));
    Some(PublishedCapability {
        id: id?,
        name: name?,
        description: description?,
        category: item.text("category").and_then(Category::read)?,
        estimated_duration_ms,
        requires_approval,
        price,
        input,
        output,
    })
}

/// Every schema of a map, compiled, whether or not a capability has its name (R18). A reference to
/// a schema elsewhere is treated as plain text and never followed (D22).
fn schemas<'b>(
    r: &mut MessageReader<'_, '_>,
    map: &ObjectPart<'_, 'b>,
    patterns: &mut usize,
) -> Vec<(&'b str, Schema)> {
    let Some(Is::Object(members)) = map.json().map(Json::value) else { return Vec::new() };
    let mut made = Vec::new();
    for (name, schema) in members.iter().filter(|(_, json)| matches!(json.value(), Is::Object(_))) {
        if *patterns > PATTERNS_MAX {
            break;
        }
        match Schema::of(schema) {
            Ok(schema) => {
                *patterns += schema.patterns();
                made.push((name.as_ref(), schema));
                if *patterns > PATTERNS_MAX {
                    let says = format!("brings the schemas to more than {PATTERNS_MAX} patterns");
                    r.add_violation(map, name, says);
                }
            }
            Err(bad) => {
                r.add_violation(map, name, format_args!("is not a supported schema: {bad}"))
            }
        }
    }
    made
}

impl PublishedCapability {
    /// The JSON text, without the schemas.
    pub(super) fn write(&self) -> String {
        ObjectWriter::new()
            .text("capability_id", &self.id)
            .text("capability_name", &self.name)
            .text("description", &self.description)
            .text("category", self.category.as_str())
            .maybe_integer("estimated_duration_ms", self.estimated_duration_ms)
            .flag("requires_approval", self.requires_approval)
            .maybe_credits("price", self.price)
            .finish()
    }
}

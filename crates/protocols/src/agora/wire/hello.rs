//! The capabilities of an agent: a resource and an optional price.

use std::collections::HashSet;

use rialto_core::money::Credits;

use super::amount;
use super::request::RESOURCE_MAX;
use crate::kit::fields::{Fields, Malformed};
use crate::kit::ijson::{Json, JsonValue};
use crate::kit::name::check_name;
use crate::kit::object::ObjectWriter;

/// The most capabilities of one agent.
pub const CAPABILITIES_MAX: usize = 100;
/// The most bytes of all of them together, because the hub keeps them in memory.
pub const CAPABILITIES_BYTES_MAX: usize = 64 << 10;
/// The most characters of a description.
pub const DESCRIPTION_MAX: usize = 1_024;

/// One capability of an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capability<'a> {
    /// Its name, such as `agora:search:v1`.
    pub resource: &'a str,
    /// Its price where none is negotiated.
    pub price: Option<Credits>,
    /// Its description, for people.
    pub description: Option<&'a str>,
}

impl<'a> Capability<'a> {
    /// Reads the member `capabilities`: resources, or objects with more members. A resource may
    /// occur only once, because it has one price. A list of other values, or a value that is not a
    /// list, is ignored: the spec does not define it (R60).
    pub fn read_list(f: &Fields<'_, 'a>) -> Result<Option<Vec<Self>>, Malformed> {
        const NAME: &str = "capabilities";
        let Some(JsonValue::Array(items)) = f.get(NAME).map(Json::value) else { return Ok(None) };
        let known: Vec<_> = items.iter().enumerate().filter(|(_, item)| is_known(item)).collect();
        if known.is_empty() && !items.is_empty() {
            return Ok(None);
        }
        if known.len() > CAPABILITIES_MAX {
            let why = format_args!("has more than {CAPABILITIES_MAX} items");
            return Err(f.malformed(NAME, why));
        }
        let mut seen = HashSet::with_capacity(known.len());
        let mut read = Vec::with_capacity(known.len());
        for (at, item) in known {
            let place = format!("{}/{at}", f.pointer(NAME));
            let bad =
                |why: String| Malformed { message: format!("{at} {why}"), field: place.clone() };
            let capability = match item.value() {
                JsonValue::String(text) => {
                    check_name(text, RESOURCE_MAX).map_err(|why| bad(why.to_string()))?;
                    Self { resource: text, price: None, description: None }
                }
                _ => Self::read(&Fields::read(item, place.clone())?)?,
            };
            if !seen.insert(capability.resource) {
                return Err(bad("is listed twice".to_owned()));
            }
            read.push(capability);
        }
        Ok(Some(read))
    }

    fn read(f: &Fields<'_, 'a>) -> Result<Self, Malformed> {
        let description = f.text("description")?;
        if description.is_some_and(|text| text.chars().count() > DESCRIPTION_MAX) {
            return Err(f.malformed("description", "has more than 1024 characters"));
        }
        let resource = f.required_name("resource", RESOURCE_MAX)?;
        Ok(Self { resource, price: amount(f, "price")?, description })
    }

    /// Writes a list of capabilities.
    pub fn write_list(list: &[Self]) -> String {
        let items: Vec<String> = list.iter().map(Self::write).collect();
        format!("[{}]", items.join(","))
    }

    fn write(&self) -> String {
        ObjectWriter::new()
            .text("resource", self.resource)
            .maybe_credits("price", self.price)
            .maybe_text("description", self.description)
            .finish()
    }
}

/// Whether an item has one of the two known shapes.
fn is_known(item: &Json<'_>) -> bool {
    let is_text = |json: &Json<'_>| matches!(json.value(), JsonValue::String(_));
    is_text(item) || item.get("resource").is_some_and(is_text)
}

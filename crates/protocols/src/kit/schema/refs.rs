//! Resolves references: names and pointers inside one document, and nothing else.
//!
//! Nothing is ever fetched (C8), so a reference that leaves its document is refused at once. For
//! the same reason a part of a schema may not set another base with `$id`.

use std::borrow::Cow;
use std::collections::HashMap;

use percent_encoding::percent_decode_str;
use serde_json::{Map, Value};

use super::error::BadSchema;

/// Keywords that refer to another schema.
pub(super) const KEYWORDS: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];

/// The anchor names in a schema, with their pointers.
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

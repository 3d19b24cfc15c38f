//! Finds the draft of a schema: the one `$schema` names, or 2020-12.

use jsonschema::Draft;
use serde_json::Value;

use super::error::BadSchema;

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

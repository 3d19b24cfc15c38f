//! The six schemas of the spec, compiled once.

use std::sync::LazyLock;

use super::kind::Kind;
use crate::kit::ijson;
use crate::kit::schema::Schema;

/// The text as in the spec.
const TEXT: &str = include_str!("fixtures/schemas.json");

static ALL: LazyLock<Vec<Schema>> = LazyLock::new(|| {
    let all = ijson::read(TEXT.as_bytes()).expect("the embedded file is valid; tests check it");
    let one = |kind: &Kind| {
        let schema = all.get("schemas").and_then(|schemas| schemas.get(kind.as_str()));
        let schema = schema.expect("the file has a schema for each kind, by name");
        Schema::of(schema).expect("the spec's schemas are valid, which a test checks")
    };
    Kind::ALL.iter().map(one).collect()
});

/// The schema of a kind.
pub fn schema_of(kind: Kind) -> &'static Schema {
    &ALL[kind as usize]
}

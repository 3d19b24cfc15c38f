//! Untrusted schemas and untrusted values: rejected, or checked within the cost limit.
//!
//! The input is a schema, then `\n=\n` and a value.

use rialto_protocols::kit::ijson;
use rialto_protocols::kit::schema::{Schema, VIOLATIONS_MAX};

use super::{halves, text};

/// Checks the schema compiler and the compiled schema.
pub fn schema(bytes: &[u8]) {
    let (schema, value) = halves(bytes);
    let (Some(schema), Some(value)) = (text(schema), text(value)) else { return };
    let schema = match Schema::compile(schema) {
        Ok(schema) => schema,
        Err(bad) => {
            assert!(!bad.to_string().is_empty(), "a refusal without a reason");
            return;
        }
    };
    let again = Schema::compile(schema.text()).expect("its own text");
    assert_eq!(again, schema);
    let found = schema.check(value);
    if let Err(violations) = &found {
        assert!(
            (1..=VIOLATIONS_MAX).contains(&violations.len()),
            "{} violations",
            violations.len()
        );
    }
    assert!(!schema.is_trivial() || found.is_ok() || ijson::read(value.as_bytes()).is_err());
}

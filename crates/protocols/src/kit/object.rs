//! Writes JSON objects member by member: new ones and changed copies of others.

use rialto_core::money::Credits;
use rialto_core::time::Timestamp;
use uuid::Uuid;

use crate::kit::ijson::{Json, JsonValue};
use crate::kit::{jcs, rfc3339};

/// An unfinished object.
#[derive(Clone, Debug)]
pub struct ObjectWriter(String);

impl Default for ObjectWriter {
    fn default() -> Self {
        Self::new()
    }
}

impl ObjectWriter {
    /// An object without members.
    pub fn new() -> Self {
        Self::with_capacity(0)
    }

    /// An object without members, with space for as many bytes as it is expected to have.
    pub fn with_capacity(bytes: usize) -> Self {
        let mut text = String::with_capacity(bytes);
        text.push('{');
        Self(text)
    }

    /// A copy of `json` without the members named in `but`; the others keep their exact text. A
    /// value that is not an object has no members.
    pub fn copy_without(json: &Json<'_>, but: &[&str]) -> Self {
        let mut copy = Self::new();
        if let JsonValue::Object(members) = json.value() {
            for (name, value) in members.iter().filter(|(name, _)| !but.contains(&name.as_ref())) {
                copy = copy.raw(name, value.raw());
            }
        }
        copy
    }

    /// Adds a string.
    pub fn text(mut self, name: &str, value: &str) -> Self {
        self.name(name);
        jcs::push_string(&mut self.0, value);
        self
    }

    /// Adds a string, if there is one.
    pub fn maybe_text(self, name: &str, value: Option<&str>) -> Self {
        match value {
            Some(value) => self.text(name, value),
            None => self,
        }
    }

    /// Adds JSON text unchanged.
    pub fn raw(mut self, name: &str, json: &str) -> Self {
        self.name(name);
        self.0.push_str(json);
        self
    }

    /// Adds JSON text, if there is any.
    pub fn maybe_raw(self, name: &str, json: Option<&str>) -> Self {
        match json {
            Some(json) => self.raw(name, json),
            None => self,
        }
    }

    /// Adds an integer.
    pub fn integer(self, name: &str, value: i64) -> Self {
        self.raw(name, &value.to_string())
    }

    /// Adds an integer, if there is one.
    pub fn maybe_integer(self, name: &str, value: Option<i64>) -> Self {
        self.maybe_raw(name, value.map(|value| value.to_string()).as_deref())
    }

    /// Adds `true` or `false`.
    pub fn flag(self, name: &str, value: bool) -> Self {
        self.raw(name, if value { "true" } else { "false" })
    }

    /// Adds a UUID.
    pub fn uuid(self, name: &str, value: Uuid) -> Self {
        self.text(name, &value.to_string())
    }

    /// Adds a UUID, if there is one.
    pub fn maybe_uuid(self, name: &str, value: Option<Uuid>) -> Self {
        self.maybe_text(name, value.map(|value| value.to_string()).as_deref())
    }

    /// Adds a time.
    pub fn time(self, name: &str, value: Timestamp) -> Self {
        self.text(name, &rfc3339::format_millis(value))
    }

    /// Adds a time, if there is one.
    pub fn maybe_time(self, name: &str, value: Option<Timestamp>) -> Self {
        self.maybe_text(name, value.map(rfc3339::format_millis).as_deref())
    }

    /// Adds an amount with all its decimals.
    pub fn credits(self, name: &str, value: Credits) -> Self {
        self.raw(name, &value.to_text(0))
    }

    /// Adds an amount with all its decimals, if there is one.
    pub fn maybe_credits(self, name: &str, value: Option<Credits>) -> Self {
        self.maybe_raw(name, value.map(|value| value.to_text(0)).as_deref())
    }

    /// The JSON text.
    pub fn finish(mut self) -> String {
        self.0.push('}');
        self.0
    }

    fn name(&mut self, name: &str) {
        if self.0.len() > 1 {
            self.0.push(',');
        }
        jcs::push_string(&mut self.0, name);
        self.0.push(':');
    }
}

/// A JSON array of strings.
pub fn string_array<'t>(texts: impl IntoIterator<Item = &'t str>) -> String {
    let mut out = "[".to_owned();
    for (n, text) in texts.into_iter().enumerate() {
        if n > 0 {
            out.push(',');
        }
        jcs::push_string(&mut out, text);
    }
    out.push(']');
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kit::ijson;

    #[test]
    fn copies_keep_the_text_of_what_they_keep() {
        let text = r#"{"a": 1.50, "b":"\u0041", "c":[ ]}"#;
        let json = ijson::read(text.as_bytes()).expect("JSON");
        let copy = ObjectWriter::copy_without(&json, &["b"]).flag("d", true).finish();
        assert_eq!(copy, r#"{"a":1.50,"c":[ ],"d":true}"#);
        assert_eq!(ObjectWriter::copy_without(json.get("c").expect("c"), &[]).finish(), "{}");
        assert_eq!(string_array(["a\"", "b"]), r#"["a\"","b"]"#);
    }
}

//! A JSON object built member by member.

use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::value::{RawValue, to_raw_value};

/// An object whose members keep the order in which they were added.
#[derive(Default)]
pub struct JsonObject(Vec<(&'static str, Box<RawValue>)>);

impl JsonObject {
    /// Adds a member; a value that cannot be serialized is omitted.
    pub fn with(mut self, name: &'static str, value: impl Serialize) -> Self {
        if let Ok(raw) = to_raw_value(&value) {
            self.0.push((name, raw));
        }
        self
    }
}

/// JSON on one line. Outside strings, line breaks are only white space.
pub fn to_line(json: &impl Serialize) -> String {
    let text = serde_json::to_string(json).unwrap_or_default();
    if text.contains(['\n', '\r']) { text.replace(['\n', '\r'], " ") } else { text }
}

impl Serialize for JsonObject {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        let mut map = out.serialize_map(Some(self.0.len()))?;
        for (name, value) in &self.0 {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rialto_protocols::kit::raw_json;

    #[test]
    fn members_keep_their_order_and_their_digits() {
        let members = JsonObject::default().with("b", 1).with("a", raw_json::verbatim("1.10"));
        assert_eq!(to_line(&members), r#"{"b":1,"a":1.10}"#);
    }

    #[test]
    fn whatever_was_sent_becomes_one_line() {
        let sent = raw_json::verbatim("{\n\t\"a\" :\r\n \"x\\ny\"}");
        let line = to_line(&JsonObject::default().with("body", sent));
        assert_eq!(line, "{\"body\":{ \t\"a\" :   \"x\\ny\"}}");
        let read: serde_json::Value = serde_json::from_str(&line).expect("still JSON");
        assert_eq!(read["body"]["a"], "x\ny");
    }
}

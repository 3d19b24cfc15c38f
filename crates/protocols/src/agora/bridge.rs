//! The mark on envelopes that the hub signs for an agent without a key of this protocol (R70).

use crate::kit::ijson::{Json, JsonValue};
use crate::kit::jcs;

/// The agent for which an envelope was signed, and the hub that signed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bridge<'a> {
    /// The hub that holds the key, as did:key.
    pub hub: &'a str,
    /// The agent's home protocol.
    pub protocol: &'a str,
    /// The agent's id in its home protocol.
    pub agent: &'a str,
}

impl<'a> Bridge<'a> {
    /// Reads an envelope's `bridge`. Any sender can write this member. It is valid only if the
    /// named hub confirms that it holds the sender's key.
    pub fn read(json: &'a Json<'_>) -> Option<Self> {
        let text = |name| match json.get(name)?.value() {
            JsonValue::String(text) => Some(text.as_ref()),
            _ => None,
        };
        Some(Self { hub: text("hub")?, protocol: text("protocol")?, agent: text("agent")? })
    }

    /// Appends it in canonical form.
    pub(super) fn write(&self, out: &mut String) {
        out.push_str("{\"agent\":");
        jcs::push_string(out, self.agent);
        out.push_str(",\"hub\":");
        jcs::push_string(out, self.hub);
        out.push_str(",\"protocol\":");
        jcs::push_string(out, self.protocol);
        out.push('}');
    }
}

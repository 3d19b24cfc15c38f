//! The mark on what the hub signs for somebody who has no key of this protocol (R70).

use crate::kit::ijson::{Json, Kind};
use crate::kit::jcs;

/// For whom an envelope was signed, and by whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bridge<'a> {
    /// The hub that holds the key, as did:key.
    pub hub: &'a str,
    /// The protocol the agent speaks itself.
    pub protocol: &'a str,
    /// What the agent is called there.
    pub agent: &'a str,
}

impl<'a> Bridge<'a> {
    /// Reads an envelope's `bridge`. Anybody may write anything there; it means something only in
    /// an envelope whose sender the named hub says it holds.
    pub fn read(json: &'a Json<'_>) -> Option<Self> {
        let text = |name| match json.get(name)?.kind() {
            Kind::Text(text) => Some(text.as_ref()),
            _ => None,
        };
        Some(Self { hub: text("hub")?, protocol: text("protocol")?, agent: text("agent")? })
    }

    /// Appends it in canonical form.
    pub(super) fn write(&self, out: &mut String) {
        out.push_str("{\"agent\":");
        jcs::string(out, self.agent);
        out.push_str(",\"hub\":");
        jcs::string(out, self.hub);
        out.push_str(",\"protocol\":");
        jcs::string(out, self.protocol);
        out.push('}');
    }
}

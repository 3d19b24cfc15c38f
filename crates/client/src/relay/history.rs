//! Past messages, sent and received.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::message::EnvelopeContents;
use super::response::from_json;
use crate::call::CallError;

/// Which past messages to return.
#[derive(Clone, Debug, Default)]
pub struct HistoryFilter {
    /// From this time on, as RFC 3339 text.
    pub since: Option<String>,
    /// Only messages after this position of the inbox.
    pub after: Option<u64>,
    /// Maximum number; servers have limits of their own.
    pub limit: Option<u32>,
}

/// One past message.
#[derive(Clone, Debug)]
pub struct PastMessage {
    /// Its position in the inbox, if it was received.
    pub position: Option<u64>,
    /// The server's id for it.
    pub trace_id: String,
    /// The sender.
    pub sender_id: String,
    /// The receiver.
    pub receiver_id: Option<String>,
    /// When the server accepted it.
    pub timestamp: Option<String>,
    /// The contents.
    pub contents: EnvelopeContents,
    raw: Box<RawValue>,
}

#[derive(Deserialize)]
struct HistoryEntry {
    id: Option<u64>,
    trace_id: String,
    sender_id: String,
    receiver_id: Option<String>,
    envelope: Box<RawValue>,
    timestamp: Option<String>,
}

impl HistoryFilter {
    /// The query parameters.
    pub(super) fn pairs(&self) -> Vec<(&'static str, String)> {
        let all = [
            ("since", self.since.clone()),
            ("after", self.after.map(|after| after.to_string())),
            ("limit", self.limit.map(|limit| limit.to_string())),
        ];
        all.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
    }
}

impl PastMessage {
    pub(super) fn read(raw: Box<RawValue>) -> Result<Self, CallError> {
        let wire: HistoryEntry = from_json(raw.get().as_bytes())?;
        Ok(Self {
            position: wire.id,
            trace_id: wire.trace_id,
            sender_id: wire.sender_id,
            receiver_id: wire.receiver_id,
            timestamp: wire.timestamp,
            contents: EnvelopeContents::read(wire.envelope.get()),
            raw,
        })
    }

    /// The whole entry as received: JSON text.
    pub fn raw(&self) -> &RawValue {
        &self.raw
    }
}

//! Identifies an envelope, so that a repeat is recognised.

use rialto_core::alias::Digest;
use rialto_core::time::Timestamp;
use serde::{Deserialize, Serialize};

use super::super::turn_dedup;
use super::receiver::ReceivedEnvelope;
use crate::agent::direct::bounded_cache::RETENTION;
use crate::agent::direct::journal::Entry;
use crate::agent::direct::request_key::RequestKey;
use crate::agent::direct::shared_result::SharedResult;
use crate::http_server::HttpResponse;

/// Identifies an envelope and its content.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fingerprint {
    pub(super) key: RequestKey,
    content: Digest,
}

/// An accepted envelope.
#[derive(Clone, Debug)]
pub(super) struct EnvelopeRecord {
    content: Digest,
    pub(super) answer: SharedResult<HttpResponse>,
    /// An earlier run of this program started it and did not finish. It is not running now.
    pub(super) is_interrupted: bool,
}

/// The journal's note of an answer.
#[derive(Serialize, Deserialize)]
struct Note {
    status: u16,
    body: String,
}

impl Fingerprint {
    /// A turn of a conversation is one message (spec, section 5). So is everything a server
    /// delivers under one `webhook-id`, over all attempts (section 2.6 of the book). `None` if
    /// there is neither.
    pub(super) fn of(received: &ReceivedEnvelope) -> Option<Self> {
        let (sender, contents) = (&received.sender_id, &received.contents);
        if let Some(turn) = turn_dedup::turn_digest(sender, contents) {
            let scope = RequestKey::new("relay turn", sender, &hex::encode(turn));
            return Some(Self { key: scope, content: scope.0 });
        }
        let scope = RequestKey::new("relay delivery", sender, received.trace_id.as_deref()?);
        let said = serde_json::to_vec(&turn_dedup::normalized_envelope(contents)?).ok()?;
        Some(Self { key: scope, content: Digest::of(&[&said]) })
    }

    /// The journal entry for an envelope whose work starts.
    pub(super) fn begun_entry(self, now: Timestamp) -> Entry {
        let (scope, content) = (self.key.0, self.content);
        Entry {
            key: scope,
            content,
            expires_at: now.plus(RETENTION),
            is_finished: false,
            note: None,
        }
    }

    /// The journal entry for an envelope that was answered.
    pub(super) fn finished_entry(self, answer: &HttpResponse, now: Timestamp) -> Entry {
        let body = String::from_utf8_lossy(&answer.body).into_owned();
        let note = serde_json::to_string(&Note { status: answer.status, body }).ok();
        Entry { is_finished: true, note, ..self.begun_entry(now) }
    }
}

impl EnvelopeRecord {
    pub(super) fn new(name: Fingerprint) -> Self {
        Self { content: name.content, answer: SharedResult::new(), is_interrupted: false }
    }

    /// Restores the record of an earlier run; `None` if its answer was not kept.
    pub(super) fn restore(entry: &Entry) -> Option<Self> {
        let answer = SharedResult::new();
        if entry.is_finished {
            let note: Note = serde_json::from_str(entry.note.as_deref()?).ok()?;
            answer.complete(HttpResponse::new(note.status, note.body));
        }
        Some(Self { content: entry.content, answer, is_interrupted: !entry.is_finished })
    }

    /// Whether it has the same content.
    pub(super) fn matches(&self, name: Fingerprint) -> bool {
        self.content == name.content
    }
}

//! Identifies an envelope, so that a repeat is recognised.

use rialto_core::alias::Digest;
use rialto_core::time::Timestamp;
use serde::{Deserialize, Serialize};

use super::super::turn_dedup;
use super::receiver::Received;
use crate::agent::direct::journal::Entry;
use crate::agent::direct::shared_result::Ongoing;
use crate::agent::direct::request_key::Scope;
use crate::agent::direct::bounded_cache::LIFE;
use crate::http_server::Answer;

/// Identifies an envelope and its content.
#[derive(Clone, Copy, Debug)]
pub(super) struct Name {
    pub(super) scope: Scope,
    content: Digest,
}

/// An accepted envelope.
#[derive(Clone, Debug)]
pub(super) struct Turn {
    content: Digest,
    pub(super) answer: Ongoing<Answer>,
    /// An earlier run of this program started it and did not finish. It is not running now.
    pub(super) is_left: bool,
}

/// The journal's note of an answer.
#[derive(Serialize, Deserialize)]
struct Note {
    status: u16,
    body: String,
}

impl Name {
    /// A turn of a conversation is one message (spec, section 5). So is everything a server
    /// delivers under one `webhook-id`, over all attempts (section 2.6 of the book). `None` if
    /// there is neither.
    pub(super) fn of(received: &Received) -> Option<Self> {
        let (sender, contents) = (&received.sender_id, &received.contents);
        if let Some(turn) = turn_dedup::name(sender, contents) {
            let scope = Scope::of("relay turn", sender, &hex::encode(turn));
            return Some(Self { scope, content: scope.0 });
        }
        let scope = Scope::of("relay delivery", sender, received.trace_id.as_deref()?);
        let said = serde_json::to_vec(&turn_dedup::plain(contents)?).ok()?;
        Some(Self { scope, content: Digest::of(&[&said]) })
    }

    /// The journal entry for an envelope whose work starts.
    pub(super) fn begun(self, now: Timestamp) -> Entry {
        let (scope, content) = (self.scope.0, self.content);
        Entry { scope, content, until: now.plus(LIFE), over: false, note: None }
    }

    /// The journal entry for an envelope that was answered.
    pub(super) fn over(self, answer: &Answer, now: Timestamp) -> Entry {
        let body = String::from_utf8_lossy(&answer.body).into_owned();
        let note = serde_json::to_string(&Note { status: answer.status, body }).ok();
        Entry { over: true, note, ..self.begun(now) }
    }
}

impl Turn {
    pub(super) fn new(name: Name) -> Self {
        Self { content: name.content, answer: Ongoing::new(), is_left: false }
    }

    /// Restores the record of an earlier run; `None` if its answer was not kept.
    pub(super) fn found(entry: &Entry) -> Option<Self> {
        let answer = Ongoing::new();
        if entry.over {
            let note: Note = serde_json::from_str(entry.note.as_deref()?).ok()?;
            answer.end(Answer::new(note.status, note.body));
        }
        Some(Self { content: entry.content, answer, is_left: !entry.over })
    }

    /// Whether it has the same content.
    pub(super) fn is(&self, name: Name) -> bool {
        self.content == name.content
    }
}

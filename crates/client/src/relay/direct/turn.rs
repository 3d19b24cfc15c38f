//! What an envelope is known by when it arrives again.

use rialto_core::alias::Digest;
use rialto_core::time::Timestamp;
use serde::{Deserialize, Serialize};

use super::super::once;
use super::receiver::Received;
use crate::agent::direct::journal::Entry;
use crate::agent::direct::ongoing::Ongoing;
use crate::agent::direct::scope::Scope;
use crate::agent::direct::shelf::LIFE;
use crate::endpoint::Answer;

/// An envelope's name, and what it says.
#[derive(Clone, Copy, Debug)]
pub(super) struct Name {
    pub(super) scope: Scope,
    content: Digest,
}

/// An envelope that was taken.
#[derive(Clone, Debug)]
pub(super) struct Turn {
    content: Digest,
    pub(super) answer: Ongoing<Answer>,
    /// An earlier run of this program began it and did not come to its end. Nobody is at it.
    pub(super) is_left: bool,
}

/// What a journal keeps of an answer.
#[derive(Serialize, Deserialize)]
struct Note {
    status: u16,
    body: String,
}

impl Name {
    /// A turn of a conversation is one message (spec, section 5), and so is what a server delivers
    /// under one `webhook-id`, however often it tries (section 2.6 of the book); `None` for what has
    /// neither.
    pub(super) fn of(received: &Received) -> Option<Self> {
        let (sender, contents) = (&received.sender_id, &received.contents);
        if let Some(turn) = once::name(sender, contents) {
            let scope = Scope::of("relay turn", sender, &hex::encode(turn));
            return Some(Self { scope, content: scope.0 });
        }
        let scope = Scope::of("relay delivery", sender, received.trace_id.as_deref()?);
        let said = serde_json::to_vec(&once::plain(contents)?).ok()?;
        Some(Self { scope, content: Digest::of(&[&said]) })
    }

    /// That it is begun.
    pub(super) fn begun(self, now: Timestamp) -> Entry {
        let (scope, content) = (self.scope.0, self.content);
        Entry { scope, content, until: now.plus(LIFE), over: false, note: None }
    }

    /// How it was answered.
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

    /// The turn of an earlier run of this program; `None` if its answer was not kept.
    pub(super) fn found(entry: &Entry) -> Option<Self> {
        let answer = Ongoing::new();
        if entry.over {
            let note: Note = serde_json::from_str(entry.note.as_deref()?).ok()?;
            answer.end(Answer::new(note.status, note.body));
        }
        Some(Self { content: entry.content, answer, is_left: !entry.over })
    }

    /// Whether it says the same.
    pub(super) fn is(&self, name: Name) -> bool {
        self.content == name.content
    }
}

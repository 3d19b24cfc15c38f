//! Journal notes of a request, and restoring the state of an earlier run from them.

use rialto_core::time::Timestamp;
use serde::{Deserialize, Serialize};

use super::idempotency::{Memory, Name, Recalled};
use super::offers::{Offers, Written};
use crate::agent::direct::journal::Entry;
use crate::agent::direct::request_key::Scope;
use crate::agent::direct::bounded_cache::LIFE;
use crate::http_server::Answer;

/// The journal's note of a request.
#[derive(Default, Serialize, Deserialize)]
struct Note {
    answer: Option<Said>,
    /// The offer that was made.
    offer: Option<Written>,
    /// The offer that was accepted.
    takes: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct Said {
    status: u16,
    body: String,
    retry_after_seconds: Option<u32>,
}

/// The entry for a request that starts.
pub(super) fn begun(name: Name, takes: Option<&str>, now: Timestamp) -> Entry {
    entry(name, &Note { takes: takes.map(str::to_owned), ..Note::default() }, now)
}

/// The entry for a request that was answered.
pub(super) fn over(
    name: Name,
    answer: &Answer,
    offer: Option<Written>,
    takes: Option<&str>,
    now: Timestamp,
) -> Entry {
    let body = String::from_utf8_lossy(&answer.body).into_owned();
    let retry_after_seconds = answer.retry_after_seconds;
    let said = Said { status: answer.status, body, retry_after_seconds };
    entry(name, &Note { answer: Some(said), offer, takes: takes.map(str::to_owned) }, now)
}

fn entry(name: Name, note: &Note, now: Timestamp) -> Entry {
    Entry {
        scope: name.scope.0,
        content: name.content,
        until: now.plus(LIFE),
        over: note.answer.is_some(),
        note: serde_json::to_string(note).ok(),
    }
}

/// Restores the idempotency cache and the offers of an earlier run of this program.
pub(super) fn recall(before: &[Entry], memory: &mut Memory, offers: &mut Offers) {
    let mut taken = Vec::new();
    for entry in before {
        let note = entry.note.as_deref().and_then(|note| serde_json::from_str(note).ok());
        let Note { answer, offer, takes } = note.unwrap_or_default();
        if let Some(offer) = offer {
            offers.recall(offer);
        }
        taken.extend(takes.map(|id| (id, entry.over)));
        let (scope, bytes) = (Scope(entry.scope), entry.bytes());
        let since = Timestamp(entry.until.0.saturating_sub(LIFE.0));
        let recalled = match answer {
            Some(said) => Recalled::Answer(Answer {
                retry_after_seconds: said.retry_after_seconds,
                ..Answer::new(said.status, said.body)
            }),
            None if entry.over => Recalled::Forgotten,
            None => Recalled::Left,
        };
        let is_answer = matches!(recalled, Recalled::Answer(_));
        memory.recall(scope, entry.content, since, recalled);
        if is_answer {
            memory.answered(scope, bytes);
        }
    }
    // Restored last: whatever the order of entries, an offer is made before it is accepted.
    for (id, is_over) in taken {
        offers.recall_taken(&id, is_over);
    }
}

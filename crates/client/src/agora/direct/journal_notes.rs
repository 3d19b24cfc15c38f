//! Journal notes of a request, and restoring the state of an earlier run from them.

use rialto_core::time::Timestamp;
use serde::{Deserialize, Serialize};

use super::idempotency::{Fingerprint, IdempotencyCache, RestoredAnswer};
use super::offers::{OfferRecord, Offers};
use crate::agent::direct::bounded_cache::RETENTION;
use crate::agent::direct::journal::Entry;
use crate::agent::direct::request_key::RequestKey;
use crate::http_server::HttpResponse;

/// The journal's note of a request.
#[derive(Default, Serialize, Deserialize)]
struct Note {
    answer: Option<SavedAnswer>,
    /// The offer that was made.
    offer: Option<OfferRecord>,
    /// The offer that was accepted.
    takes: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct SavedAnswer {
    status: u16,
    body: String,
    retry_after_seconds: Option<u32>,
}

/// The entry for a request that starts.
pub(super) fn begun_entry(name: Fingerprint, takes: Option<&str>, now: Timestamp) -> Entry {
    entry(name, &Note { takes: takes.map(str::to_owned), ..Note::default() }, now)
}

/// The entry for a request that was answered.
pub(super) fn finished_entry(
    name: Fingerprint,
    answer: &HttpResponse,
    offer: Option<OfferRecord>,
    takes: Option<&str>,
    now: Timestamp,
) -> Entry {
    let body = String::from_utf8_lossy(&answer.body).into_owned();
    let retry_after_seconds = answer.retry_after_seconds;
    let said = SavedAnswer { status: answer.status, body, retry_after_seconds };
    entry(name, &Note { answer: Some(said), offer, takes: takes.map(str::to_owned) }, now)
}

fn entry(name: Fingerprint, note: &Note, now: Timestamp) -> Entry {
    Entry {
        key: name.key.0,
        content: name.content,
        expires_at: now.plus(RETENTION),
        is_finished: note.answer.is_some(),
        note: serde_json::to_string(note).ok(),
    }
}

/// Restores the idempotency cache and the offers of an earlier run of this program.
pub(super) fn restore(before: &[Entry], memory: &mut IdempotencyCache, offers: &mut Offers) {
    let mut taken = Vec::new();
    for entry in before {
        let note = entry.note.as_deref().and_then(|note| serde_json::from_str(note).ok());
        let Note { answer, offer, takes } = note.unwrap_or_default();
        if let Some(offer) = offer {
            offers.restore(offer);
        }
        taken.extend(takes.map(|id| (id, entry.is_finished)));
        let (scope, bytes) = (RequestKey(entry.key), entry.bytes());
        let since = Timestamp(entry.expires_at.0.saturating_sub(RETENTION.0));
        let recalled = match answer {
            Some(said) => RestoredAnswer::Answer(HttpResponse {
                retry_after_seconds: said.retry_after_seconds,
                ..HttpResponse::new(said.status, said.body)
            }),
            None if entry.is_finished => RestoredAnswer::Forgotten,
            None => RestoredAnswer::Left,
        };
        let is_answer = matches!(recalled, RestoredAnswer::Answer(_));
        memory.restore(scope, entry.content, since, recalled);
        if is_answer {
            memory.record_answer(scope, bytes);
        }
    }
    // Restored last: whatever the order of entries, an offer is made before it is accepted.
    for (id, is_over) in taken {
        offers.restore_taken(&id, is_over);
    }
}

//! Event streams: the same events however the bytes are split, bounded memory, and no event whose
//! content ends it early.

use rialto_protocols::kit::sse::{self, Event, Parser};
use rialto_protocols::relay::wire::reply::ReplyEvent;

const MAX: usize = 8 << 10;
/// How many events of an input are written again.
const EVENTS_MAX: usize = 16;

/// Checks the stream parser against itself and the writer.
pub fn sse(bytes: &[u8]) {
    let whole = read([bytes]);
    let half = bytes.len() / 2;
    let pieces = read([&bytes[..half], &bytes[half..]]);
    assert_eq!(whole, pieces, "the result depends on where the bytes were split");
    let single = read(bytes.chunks(1 + bytes.len() / 256));
    assert_eq!(whole, single, "the result depends on the size of the chunks");
    for event in whole.0.iter().take(EVENTS_MAX) {
        written(event);
        if let Some(word) = ReplyEvent::read(event) {
            said(&word);
        }
    }
}

/// The events, whether all were accepted, the last id and the requested retry delay.
type Read = (Vec<Event>, bool, Option<String>, Option<u64>);

fn read<'b>(pieces: impl IntoIterator<Item = &'b [u8]>) -> Read {
    let (mut parser, mut events) = (Parser::new(MAX), Vec::new());
    let taken = pieces.into_iter().all(|piece| parser.push(piece, &mut events).is_ok());
    (events, taken, parser.last_id().map(str::to_owned), parser.retry_ms())
}

fn written(event: &Event) {
    let mut out = Vec::new();
    sse::write_frame(&mut out, event.id.as_deref(), &event.event, &event.data);
    let (mut parser, mut events) = (Parser::new(usize::MAX), Vec::new());
    parser.push(&out, &mut events).expect("there is no limit");
    // A name cannot contain NUL, which the writer omits.
    let plain = Event { event: event.event.replace('\0', ""), ..event.clone() };
    let plain = Event {
        event: if plain.event.is_empty() { "message".into() } else { plain.event },
        ..plain
    };
    assert_eq!(events, [plain]);
}

fn said(word: &ReplyEvent) {
    let mut out = Vec::new();
    word.write(&mut out);
    let (mut parser, mut events) = (Parser::new(usize::MAX), Vec::new());
    parser.push(&out, &mut events).expect("there is no limit");
    assert_eq!(events.len(), 1, "one reply is one event");
    let again = ReplyEvent::read(&events[0]).expect("our own reply");
    let same = match (&again, word) {
        // The envelope inside is written on one line.
        (ReplyEvent::Done { full_text: one, .. }, ReplyEvent::Done { full_text: other, .. }) => {
            one == other
        }
        (one, other) => one == other,
    };
    assert!(same, "{again:?} is not {word:?}");
}

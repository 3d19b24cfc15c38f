//! Resume positions: `Last-Event-ID` of every stream, and the cursors of pages.

use rialto_hub::v1::page;
use rialto_protocols::kit::last_event_id::{InvalidEventId, parse_position, read};
use rialto_protocols::openclaw::wire::stream::{CollaborationCursor, StreamPosition};

use super::text;

/// Checks every parser of resume positions, with bytes the hub never issued.
pub fn resume(bytes: &[u8]) {
    let had = read(Some(bytes), parse_position);
    match had {
        Ok(None) => assert!(bytes.is_empty(), "a non-empty value was ignored"),
        Ok(Some(number)) => {
            assert!(
                bytes.iter().all(u8::is_ascii_digit),
                "{number} was parsed from something other than digits"
            );
            assert_eq!(read(Some(number.to_string().as_bytes()), parse_position), had);
        }
        Err(InvalidEventId) => assert!(
            bytes.len() > 19 || !bytes.iter().all(u8::is_ascii_digit),
            "digits that fit are a position"
        ),
    }
    if let Ok(Some(place)) = read(Some(bytes), StreamPosition::read) {
        assert_eq!(StreamPosition::read(&place.to_string()), Some(place));
    }
    let Some(text) = text(bytes) else { return };
    if let Some(at) = CollaborationCursor::read(text) {
        assert_eq!(CollaborationCursor::read(&at.write()), Some(at));
    }
    if let Some(cursor) = page::Cursor::parse(text) {
        assert_eq!(cursor.encode(), text, "one position has one text");
    }
}

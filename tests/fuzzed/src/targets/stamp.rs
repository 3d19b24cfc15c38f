//! Times: RFC 3339 or rejected, and the same after writing and parsing.

use rialto_core::time::Timestamp;
use rialto_protocols::kit::rfc3339;

use super::text;

/// Checks the parser of times.
pub fn stamp(bytes: &[u8]) {
    let Some(text) = text(bytes) else { return };
    let Ok(time) = rfc3339::parse(text) else { return };
    assert!((0..=253_402_300_799_999).contains(&time.0), "{time:?} is out of bounds");
    let millis = rfc3339::format_millis(time);
    assert_eq!(rfc3339::parse(&millis), Ok(time), "{millis} is parsed as another time");
    assert_eq!(rfc3339::format_millis_bytes(time), *millis.as_bytes());
    let second = Timestamp(time.0 - time.0 % 1_000);
    assert_eq!(rfc3339::parse(&rfc3339::format_seconds(second)), Ok(second));
    // The seconds of the text are those of the time, whatever the zone does to the hour.
    assert_eq!(text.get(17..19), millis.get(17..19), "{text} became {millis}");
}

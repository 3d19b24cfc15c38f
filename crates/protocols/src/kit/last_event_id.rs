//! `Last-Event-ID`: the position a reader reports when it resumes a stream.
//!
//! Each stream defines its own ids; this file has only what all share. What a stream sends to a
//! reader without an id is defined in the protocol folders.

/// The name of the header.
pub const HEADER: &str = "last-event-id";

/// The header's value is not a valid id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidEventId;

/// The id in the header, parsed by `id`; `None` without the header. Browsers send it empty at
/// first.
pub fn read<T>(
    value: Option<&[u8]>,
    id: impl Fn(&str) -> Option<T>,
) -> Result<Option<T>, InvalidEventId> {
    let Some(bytes) = value.filter(|bytes| !bytes.is_empty()) else { return Ok(None) };
    let text = std::str::from_utf8(bytes).map_err(|_| InvalidEventId)?;
    id(text).map(Some).ok_or(InvalidEventId)
}

/// An id that is a position: digits only, which Rust's own parser does not enforce.
pub fn parse_position(text: &str) -> Option<u64> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_header_or_with_an_empty_one_nothing_was_had() {
        assert_eq!(read(None, parse_position), Ok(None));
        assert_eq!(read(Some(b""), parse_position), Ok(None));
    }

    #[test]
    fn only_digits_are_a_position() {
        for (text, number) in [("0", 0), ("42", 42), ("18446744073709551615", u64::MAX)] {
            assert_eq!(read(Some(text.as_bytes()), parse_position), Ok(Some(number)));
        }
        for bad in ["+1", "-1", " 1", "1 ", "1.0", "0x1", "18446744073709551616", "٣"] {
            assert_eq!(read(Some(bad.as_bytes()), parse_position), Err(InvalidEventId), "{bad}");
        }
        assert_eq!(read(Some(b"\xff"), parse_position), Err(InvalidEventId));
    }
}

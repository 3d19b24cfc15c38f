//! The order of member names: by UTF-16 code units (RFC 8785 section 3.2.3), without encoding them.

use std::cmp::Ordering;

/// Compares two texts as their UTF-16 forms would compare.
pub(super) fn compare_utf16(a: &str, b: &str) -> Ordering {
    match a.bytes().zip(b.bytes()).find(|(a, b)| a != b) {
        Some((a, b)) => rank(a).cmp(&rank(b)),
        None => a.len().cmp(&b.len()),
    }
}

/// UTF-8 sorts by code point, and so does UTF-16 with one exception: characters above U+FFFF are
/// written with surrogates (D800 to DFFF) and so come before U+E000 to U+FFFF, whose first byte in
/// UTF-8 is EE or EF. Those two bytes are ranked above every other first byte.
fn rank(byte: u8) -> u8 {
    if matches!(byte, 0xee | 0xef) { byte + 0x10 } else { byte }
}

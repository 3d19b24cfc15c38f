//! Base64Url (RFC 4648 section 5) with one text per value: only the padding is optional.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

/// The text is not valid Base64Url, or decodes to the wrong number of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("is not Base64Url (letters, digits, - and _) of the right length")]
pub struct NotBase64Url;

/// Encodes bytes without padding.
pub fn encode(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// Decodes a text with all of its padding or none. Refuses the other alphabet, white space, and
/// unused bits that are not zero.
pub fn decode(text: &str) -> Result<Vec<u8>, NotBase64Url> {
    URL_SAFE_NO_PAD.decode(unpadded(text)).map_err(|_| NotBase64Url)
}

/// Decodes exactly `N` bytes. A text too long for them is refused without being decoded.
pub fn decode_array<const N: usize>(text: &str) -> Result<[u8; N], NotBase64Url> {
    let text = unpadded(text);
    let mut bytes = [0; N];
    if text.len() != (N * 4).div_ceil(3) {
        return Err(NotBase64Url);
    }
    match URL_SAFE_NO_PAD.decode_slice(text, &mut bytes) {
        Ok(length) if length == N => Ok(bytes),
        _ => Err(NotBase64Url),
    }
}

/// The text without its padding, if that is complete. A `=` anywhere else is left for the decoder
/// to refuse.
fn unpadded(text: &str) -> &str {
    if !text.len().is_multiple_of(4) {
        return text;
    }
    text.strip_suffix("==").or_else(|| text.strip_suffix('=')).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn padding_is_complete_or_absent() {
        for (text, bytes) in [
            ("", &b""[..]),
            ("Zg", b"f"),
            ("Zg==", b"f"),
            ("Zm8", b"fo"),
            ("Zm8=", b"fo"),
            ("Zm9v", b"foo"),
            ("-_-_", &[0xfb, 0xff, 0xbf]),
        ] {
            assert_eq!(decode(text).as_deref(), Ok(bytes), "{text}");
        }
        for text in [
            "Zg=", "Zg===", "Zm8==", "Zm9v=", "Zm9v==", "Zm9v====", "=", "==", "====", "Z=g=",
            "=Zg=",
        ] {
            assert_eq!(decode(text), Err(NotBase64Url), "{text}");
        }
    }

    #[test]
    fn there_is_no_second_spelling() {
        for text in
            ["+/+/", "Zh", "Zh==", "Zm9", "Z", "Zm9vZ", " Zm9v", "Zm9v\n", "Zm 9", "Zm9é", "Zm9\0"]
        {
            assert_eq!(decode(text), Err(NotBase64Url), "{text:?}");
        }
    }

    #[test]
    fn an_array_has_its_own_length() {
        assert_eq!(decode_array("Zm8"), Ok(*b"fo"));
        assert_eq!(decode_array("Zm8="), Ok(*b"fo"));
        assert_eq!(decode_array::<3>("Zm8="), Err(NotBase64Url));
        assert_eq!(decode_array::<2>("Zm9v"), Err(NotBase64Url));
        assert_eq!(decode_array::<2>("Zm9"), Err(NotBase64Url), "spare bits");
        assert_eq!(decode_array::<0>(""), Ok([]));
    }

    proptest! {
        #[test]
        fn what_is_read_is_written_alike(text in "[A-Za-z0-9_=+/ -]{0,12}") {
            if let Ok(bytes) = decode(&text) {
                prop_assert_eq!(encode(&bytes), text.trim_end_matches('='));
            }
        }

        #[test]
        fn bytes_come_back(bytes in any::<[u8; 32]>()) {
            prop_assert_eq!(decode_array(&encode(&bytes)), Ok(bytes));
            prop_assert_eq!(decode(&encode(&bytes)), Ok(bytes.to_vec()));
        }
    }
}

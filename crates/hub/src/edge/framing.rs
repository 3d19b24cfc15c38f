//! Whether a request tells the length of its body in two ways.
//!
//! hyper believes `Transfer-Encoding`, drops `Content-Length` without a word and closes the
//! connection afterwards. That is allowed, but a proxy in front of us may have believed the other
//! one, so we refuse such a request (T49), and have to look where hyper has looked.
//!
//! Only a head that begins with a read is looked at. One that was sent ahead, behind another
//! request, is left to what hyper does.

const LENGTH: &[u8] = b"content-length:";

/// Whether a head whose body is chunked also has a `Content-Length`. What follows the head is not
/// looked at.
pub fn is_ambiguous(bytes: &[u8]) -> bool {
    let lines = bytes.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii_end);
    // Empty lines before a request mean nothing, the first one after it ends the head.
    let mut head = lines.skip_while(|line| line.is_empty()).take_while(|line| !line.is_empty());
    head.any(|line| {
        let start = line.get(..LENGTH.len());
        start.is_some_and(|start| start.eq_ignore_ascii_case(LENGTH))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_is_seen_in_any_spelling() {
        for head in [
            "POST / HTTP/1.1\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n",
            "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\ncontent-LENGTH:3\r\n\r\nabc",
            "\r\n\nPOST / HTTP/1.1\nTransfer-Encoding: chunked\nContent-Length:\n\n",
        ] {
            assert!(is_ambiguous(head.as_bytes()), "{head}");
        }
    }

    #[test]
    fn values_other_names_and_bodies_are_no_lengths() {
        for head in [
            "",
            "POST /content-length: HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n",
            "POST / HTTP/1.1\r\nX: Content-Length: 3\r\n\r\n",
            "POST / HTTP/1.1\r\nX-Content-Length: 3\r\nContent-Length-X: 3\r\n\r\n",
            "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nContent-Length: 3\r\n",
        ] {
            assert!(!is_ambiguous(head.as_bytes()), "{head}");
        }
    }
}

//! Detects requests that give the length of their body in two ways.
//!
//! hyper uses `Transfer-Encoding`, silently drops `Content-Length` and closes the connection
//! afterwards. That is allowed, but a proxy in front of the hub may have used the other one, so the
//! hub refuses such a request (T49). hyper has removed the header by then, so the raw head is
//! examined.
//!
//! Only a head at the start of a read is examined. A pipelined head behind another request is
//! handled as hyper does.

const LENGTH: &[u8] = b"content-length:";

/// Whether a head with a chunked body also has a `Content-Length`. Bytes after the head are
/// ignored.
pub fn has_content_length(bytes: &[u8]) -> bool {
    let lines = bytes.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii_end);
    // Empty lines before a request are ignored; the first empty line after it ends the head.
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
            assert!(has_content_length(head.as_bytes()), "{head}");
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
            assert!(!has_content_length(head.as_bytes()), "{head}");
        }
    }
}

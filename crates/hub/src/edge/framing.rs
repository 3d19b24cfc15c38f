//! Whether a request tells the length of its body in two ways.
//!
//! hyper believes `Transfer-Encoding`, drops `Content-Length` without a word and closes the
//! connection afterwards. That is allowed, but a proxy in front of us may have believed the other
//! one, so we refuse such a request (GUARANTEES T49), and have to see it before hyper does.
//!
//! Only a head that begins with a read is looked at. One that was sent ahead, behind another
//! request, is left to what hyper does.

const LENGTH: &[u8] = b"content-length";
const ENCODING: &[u8] = b"transfer-encoding";

/// Reads along with one head.
#[derive(Debug, Default)]
pub struct Framing {
    /// How the current line begins, as far as the longer of the two names goes.
    start: [u8; ENCODING.len()],
    column: usize,
    begun: bool,
    over: bool,
    length: bool,
    encoding: bool,
}

impl Framing {
    /// Reads the next bytes; true when the head has both.
    pub fn read(&mut self, bytes: &[u8]) -> bool {
        for &byte in bytes {
            match byte {
                _ if self.over => break,
                // Empty lines before a request mean nothing, the first one after it ends the head.
                b'\n' => {
                    self.over = self.begun && self.column == 0;
                    self.column = 0;
                }
                b'\r' => {}
                _ => {
                    if byte == b':' {
                        self.end_name();
                    }
                    if let Some(place) = self.start.get_mut(self.column) {
                        *place = byte;
                    }
                    self.column += 1;
                    self.begun = true;
                }
            }
        }
        self.length && self.encoding
    }

    /// Whether anything of the head has come.
    pub fn has_begun(&self) -> bool {
        self.begun
    }

    fn end_name(&mut self) {
        let name = self.start.get(..self.column).unwrap_or_default();
        self.length |= name.eq_ignore_ascii_case(LENGTH);
        self.encoding |= name.eq_ignore_ascii_case(ENCODING);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOTH: &str = "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\nX: transfer-encoding: \
                        y\r\nTRANSFER-ENCODING: chunked\r\n\r\n";

    fn doubts(head: &str) -> bool {
        Framing::default().read(head.as_bytes())
    }

    #[test]
    fn two_lengths_are_seen_in_any_order_and_spelling() {
        assert!(doubts(BOTH));
        assert!(doubts("\r\nPOST / HTTP/1.1\nTransfer-encoding:chunked\ncontent-LENGTH:3\n\n"));
    }

    #[test]
    fn two_lengths_are_seen_however_the_head_is_cut() {
        for cut in 0..=BOTH.len() {
            let (first, second) = BOTH.split_at(cut);
            let mut framing = Framing::default();
            framing.read(first.as_bytes());
            assert!(framing.read(second.as_bytes()), "{first:?}");
        }
    }

    #[test]
    fn one_length_values_and_bodies_are_no_reason_to_doubt() {
        assert!(!doubts("POST / HTTP/1.1\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\n"));
        assert!(!doubts("GET / HTTP/1.1\r\nX: Content-Length: 3\r\nTransfer-Encoding: x\r\n\r\n"));
        assert!(!doubts(
            "POST /content-length: HTTP/1.1\r\nContent-Length: 20\r\n\r\nTransfer-Encoding: x"
        ));
        assert!(!doubts("POST / HTTP/1.1\r\nxContent-Length: 3\r\nTransfer-Encoding: x\r\n\r\n"));
    }
}

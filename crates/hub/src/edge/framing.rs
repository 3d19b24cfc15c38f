//! Whether a request tells the length of its body in two ways.
//!
//! hyper believes `Transfer-Encoding`, drops `Content-Length` without a word and closes the
//! connection afterwards. That is allowed, but a proxy in front of us may have believed the other
//! one, so we refuse such a request (GUARANTEES T49), and have to see it before hyper does.
//!
//! Only a head that begins with a read is looked at. One that was sent ahead, behind another
//! request, is left to what hyper does.

use std::io::BufRead;

const LENGTH: &[u8] = b"content-length:";
const ENCODING: &[u8] = b"transfer-encoding:";

/// Reads along with one head.
#[derive(Debug, Default)]
pub struct Framing {
    /// How the current line begins, as far as the longer of the two names goes.
    start: [u8; ENCODING.len()],
    /// How long the current line is so far.
    column: usize,
    begun: bool,
    over: bool,
    length: bool,
    encoding: bool,
}

impl Framing {
    /// Reads the next bytes; true when the head has both.
    pub fn read(&mut self, mut bytes: &[u8]) -> bool {
        while !self.over && !bytes.is_empty() {
            let all = bytes;
            // Skipping within a slice cannot fail.
            let piece = bytes.skip_until(b'\n').unwrap_or(all.len());
            self.read_piece(all.get(..piece).unwrap_or(all));
        }
        self.length && self.encoding
    }

    /// Whether anything of the head has come.
    pub fn has_begun(&self) -> bool {
        self.begun
    }

    /// Reads a line, or the part of one that has come.
    fn read_piece(&mut self, piece: &[u8]) {
        let places = self.start.iter_mut().skip(self.column);
        places.zip(piece).for_each(|(place, byte)| *place = *byte);
        self.column += piece.len();
        self.begun |= piece.iter().any(|byte| !b"\r\n".contains(byte));
        if piece.ends_with(b"\n") {
            self.end_line();
        }
    }

    fn end_line(&mut self) {
        let line = self.start.get(..self.column).unwrap_or(&self.start);
        let is = |name: &[u8]| {
            line.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name))
        };
        if line == b"\n" || line == b"\r\n" {
            // Empty lines before a request mean nothing, the first one after it ends the head.
            self.over = self.begun;
        } else {
            self.length |= is(LENGTH);
            self.encoding |= is(ENCODING);
        }
        self.column = 0;
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
            let early = framing.read(first.as_bytes());
            assert!(framing.read(second.as_bytes()), "{first:?}");
            assert_eq!(early, cut > BOTH.len() - 3, "{first:?}");
        }
        let mut framing = Framing::default();
        let seen = BOTH.bytes().map(|byte| framing.read(&[byte])).last();
        assert_eq!(seen, Some(true));
    }

    #[test]
    fn one_length_values_and_bodies_are_no_reason_to_doubt() {
        assert!(!doubts("POST / HTTP/1.1\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\n"));
        assert!(!doubts("GET / HTTP/1.1\r\nX: Content-Length: 3\r\nTransfer-Encoding: x\r\n\r\n"));
        assert!(!doubts(
            "POST /content-length: HTTP/1.1\r\nContent-Length: 20\r\n\r\nTransfer-Encoding: x\r\n"
        ));
        assert!(!doubts("POST / HTTP/1.1\r\nxContent-Length: 3\r\nTransfer-Encoding: x\r\n\r\n"));
    }

    #[test]
    fn a_head_begins_with_its_first_line() {
        let mut framing = Framing::default();
        framing.read(b"");
        assert!(!framing.has_begun());
        framing.read(b"\r\n\r\n");
        assert!(!framing.has_begun());
        framing.read(b"G");
        assert!(framing.has_begun());
    }
}

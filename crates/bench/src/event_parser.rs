//! Parses an inbox stream as it arrives: chunks, lines, events (relay 2.5).
//!
//! Reads only what the benchmark counts: the position, and when a message was sent.

use super::message;

/// An event of an inbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InboxEvent {
    /// The inbox is open.
    Connected,
    /// A message arrived. `sent_ns` is when it was sent, on the benchmark's clock.
    Message { id: u64, sent_ns: u64 },
}

/// The parser's state.
#[derive(Debug, Default)]
pub struct EventParser {
    chunk: ChunkState,
    /// The start of a line whose end has not arrived yet.
    line: Vec<u8>,
    id: u64,
    connected: bool,
}

/// Where in the chunked body the next byte belongs.
#[derive(Clone, Copy, Debug)]
enum ChunkState {
    /// In the line with the length of the next chunk.
    Size {
        so_far: usize,
        over: bool,
    },
    Data {
        left: usize,
    },
    /// In the line break after a chunk.
    Break,
}

impl Default for ChunkState {
    fn default() -> Self {
        Self::Size { so_far: 0, over: false }
    }
}

impl EventParser {
    /// Parses more bytes and passes each event to a callback.
    pub fn read(&mut self, mut bytes: &[u8], mut tell: impl FnMut(InboxEvent)) {
        while let Some(first) = bytes.first() {
            let taken = match self.chunk {
                ChunkState::Size { so_far, over } => {
                    self.chunk = after_size(*first, so_far, over);
                    1
                }
                ChunkState::Break => {
                    if *first == b'\n' {
                        self.chunk = ChunkState::default();
                    }
                    1
                }
                ChunkState::Data { left } => {
                    let taken = left.min(bytes.len());
                    self.text(&bytes[..taken], &mut tell);
                    self.chunk = match left - taken {
                        0 => ChunkState::Break,
                        left => ChunkState::Data { left },
                    };
                    taken
                }
            };
            bytes = &bytes[taken..];
        }
    }

    fn text(&mut self, mut text: &[u8], tell: &mut impl FnMut(InboxEvent)) {
        while let Some(end) = text.iter().position(|byte| *byte == b'\n') {
            let (line, rest) = text.split_at(end);
            text = &rest[1..];
            if self.line.is_empty() {
                self.line(line, tell);
            } else {
                let mut whole = std::mem::take(&mut self.line);
                whole.extend_from_slice(line);
                self.line(&whole, tell);
                whole.clear();
                self.line = whole;
            }
        }
        self.line.extend_from_slice(text);
    }

    fn line(&mut self, line: &[u8], tell: &mut impl FnMut(InboxEvent)) {
        if let Some(id) = line.strip_prefix(b"id:") {
            let id = str::from_utf8(id).ok().and_then(|id| id.trim().parse().ok());
            self.id = id.unwrap_or(self.id);
        } else if let Some(name) = line.strip_prefix(b"event:") {
            self.connected = name.trim_ascii() == b"connected";
        } else if line.starts_with(b"data:") {
            if std::mem::take(&mut self.connected) {
                tell(InboxEvent::Connected);
            } else if let Some(sent_ns) = message::sent_ns(line) {
                tell(InboxEvent::Message { id: self.id, sent_ns });
            }
        }
    }
}

/// Reads one more byte of a chunk's size line. Text after a `;` is ignored.
fn after_size(byte: u8, so_far: usize, over: bool) -> ChunkState {
    match (byte, char::from(byte).to_digit(16)) {
        (b'\n', _) => ChunkState::Data { left: so_far },
        (_, Some(digit)) if !over => ChunkState::Size {
            so_far: so_far.saturating_mul(16).saturating_add(digit as usize),
            over,
        },
        _ => ChunkState::Size { so_far, over: true },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPENED: &str =
        "retry: 2000\nid: 41\nevent: connected\ndata: {\"message\":\"Inbox #1\"}\n\n";
    const LETTERS: &str = "id: 42\nevent: message\ndata: {\"x\":\"at #000000000001234 ns\"}\n\n: ping\n\nid:43\nevent: message\ndata: {\"x\":\"at #000000000005678 ns\"}\n\n";

    fn chunked(texts: &[&str]) -> Vec<u8> {
        let chunk = |text: &&str| format!("{:X};x=1f\r\n{text}\r\n", text.len());
        texts.iter().map(chunk).collect::<String>().into_bytes()
    }

    fn read(pieces: &[&[u8]]) -> Vec<InboxEvent> {
        let (mut events, mut parsed) = (EventParser::default(), Vec::new());
        for piece in pieces {
            events.read(piece, |event| parsed.push(event));
        }
        parsed
    }

    fn all() -> Vec<InboxEvent> {
        let envelope = |id, sent_ns| InboxEvent::Message { id, sent_ns };
        vec![InboxEvent::Connected, envelope(42, 1_234), envelope(43, 5_678)]
    }

    #[test]
    fn letters_are_found_with_their_position_and_time() {
        assert_eq!(read(&[&chunked(&[OPENED, LETTERS])]), all());
    }

    #[test]
    fn it_does_not_matter_where_chunks_and_reads_end() {
        let text = format!("{OPENED}{LETTERS}");
        for cut in 1..text.len() - 1 {
            let wire = chunked(&[&text[..cut], &text[cut..]]);
            assert_eq!(read(&[&wire]), all(), "chunks cut at {cut}");
        }
        let wire = chunked(&[OPENED, LETTERS]);
        for cut in 0..wire.len() {
            assert_eq!(read(&[&wire[..cut], &wire[cut..]]), all(), "reads cut at {cut}");
        }
        let single: Vec<&[u8]> = wire.chunks(1).collect();
        assert_eq!(read(&single), all());
    }
}

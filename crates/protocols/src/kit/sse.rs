//! Server-Sent Events: writes frames that no content can end early, and parses frames piece by
//! piece as they arrive.
//!
//! The grammar is that of the HTML standard. The parser keeps at most one unfinished frame, up to a
//! limit its owner sets.

use std::io::Write;

/// One parsed frame.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Event {
    /// The frame's own `id`, if it had one; [`Parser::last_id`] is the one to resume from.
    pub id: Option<String>,
    /// The event's name; `message` if the frame has none.
    pub event: String,
    /// Its data lines, joined by line feeds.
    pub data: String,
}

/// A frame was longer than the reader allows. Nothing after it can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an event has more than {max} bytes")]
pub struct FrameTooLong {
    /// The maximum size of one frame in bytes.
    pub max: usize,
}

/// Writes a whole frame. Line breaks in `data` become several data lines, which a reader joins
/// again. In `id` and `event` they are not allowed and are removed.
pub fn write_frame(out: &mut Vec<u8>, id: Option<&str>, event: &str, data: &str) {
    if let Some(id) = id {
        field(out, "id", id);
    }
    field(out, "event", event);
    let mut rest = data;
    loop {
        let end = rest.find(['\r', '\n']);
        let (line, after) = rest.split_at(end.unwrap_or(rest.len()));
        out.extend_from_slice(b"data: ");
        out.extend_from_slice(line.as_bytes());
        out.push(b'\n');
        if end.is_none() {
            break;
        }
        rest = after.strip_prefix("\r\n").unwrap_or_else(|| &after[1..]);
    }
    out.push(b'\n');
}

/// Begins a frame whose data is one line that the caller writes next, followed by [`end_frame`].
pub fn begin_frame(out: &mut Vec<u8>, id: Option<u64>, event: &'static str) {
    if let Some(id) = id {
        writeln!(out, "id: {id}").expect("memory can be written to");
    }
    field(out, "event", event);
    out.extend_from_slice(b"data: ");
}

/// Ends a frame that [`begin_frame`] began.
pub fn end_frame(out: &mut Vec<u8>) {
    out.extend_from_slice(b"\n\n");
}

/// Keeps JSON text in an open frame on one line. Line breaks in JSON occur only between tokens,
/// where a space means the same and does not end the frame.
pub fn replace_newlines(json: &mut [u8]) {
    for byte in json {
        if matches!(*byte, b'\r' | b'\n') {
            *byte = b' ';
        }
    }
}

/// A comment line, which readers ignore; it keeps the connection alive.
pub fn write_comment(out: &mut Vec<u8>, text: &'static str) {
    out.extend_from_slice(b": ");
    out.extend_from_slice(text.as_bytes());
    out.extend_from_slice(b"\n\n");
}

fn field(out: &mut Vec<u8>, name: &str, value: &str) {
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b": ");
    out.extend(value.bytes().filter(|byte| !matches!(byte, b'\r' | b'\n' | 0)));
    out.push(b'\n');
}

/// Parses the bytes of a stream, in pieces of any size, into events.
#[derive(Clone, Debug)]
pub struct Parser {
    max: usize,
    line: Vec<u8>,
    id: Option<Vec<u8>>,
    event: Vec<u8>,
    data: Option<Vec<u8>>,
    last_id: Option<String>,
    retry_ms: Option<u64>,
    after_cr: bool,
    first_line: bool,
    broken: bool,
}

impl Parser {
    /// A parser at the start of a stream whose frames have at most `max` bytes.
    pub fn new(max: usize) -> Self {
        Self {
            max,
            line: Vec::new(),
            id: None,
            event: Vec::new(),
            data: None,
            last_id: None,
            retry_ms: None,
            after_cr: false,
            first_line: true,
            broken: false,
        }
    }

    /// Parses the next bytes and adds every event they complete to `events`. A frame that is
    /// unfinished when the stream ends is not an event.
    pub fn push(&mut self, mut bytes: &[u8], events: &mut Vec<Event>) -> Result<(), FrameTooLong> {
        while !self.broken && !bytes.is_empty() {
            if std::mem::take(&mut self.after_cr) && bytes[0] == b'\n' {
                bytes = &bytes[1..];
                continue;
            }
            let end = bytes.iter().position(|byte| matches!(byte, b'\r' | b'\n'));
            let piece = &bytes[..end.unwrap_or(bytes.len())];
            self.broken = self.held() + piece.len() > self.max;
            if self.broken {
                break;
            }
            self.line.extend_from_slice(piece);
            let Some(end) = end else { break };
            self.after_cr = bytes[end] == b'\r';
            bytes = &bytes[end + 1..];
            events.extend(self.end_line());
        }
        if self.broken { Err(FrameTooLong { max: self.max }) } else { Ok(()) }
    }

    /// The id to resume from: that of the last frame that had one.
    pub fn last_id(&self) -> Option<&str> {
        self.last_id.as_deref()
    }

    /// How long the server asks to wait before reconnecting.
    pub fn retry_ms(&self) -> Option<u64> {
        self.retry_ms
    }

    /// Bytes of the unfinished frame.
    fn held(&self) -> usize {
        let of = |part: &Option<Vec<u8>>| part.as_ref().map_or(0, Vec::len);
        self.line.len() + self.event.len() + of(&self.id) + of(&self.data)
    }

    fn end_line(&mut self) -> Option<Event> {
        let mut line = std::mem::take(&mut self.line);
        if std::mem::take(&mut self.first_line) && line.starts_with(b"\xef\xbb\xbf") {
            line.drain(..3);
        }
        if line.is_empty() {
            return self.dispatch();
        }
        let colon = line.iter().position(|byte| *byte == b':');
        let (name, value) = line.split_at(colon.unwrap_or(line.len()));
        let value = value.strip_prefix(b":").unwrap_or(value);
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match name {
            b"data" => match &mut self.data {
                Some(data) => {
                    data.push(b'\n');
                    data.extend_from_slice(value);
                }
                none => *none = Some(value.to_vec()),
            },
            b"event" => self.event = value.to_vec(),
            b"id" if !value.contains(&0) => self.id = Some(value.to_vec()),
            b"retry" if value.iter().all(u8::is_ascii_digit) => {
                self.retry_ms = text(value).parse().ok().or(self.retry_ms);
            }
            // Comments have an empty name. Unknown names are ignored, as the standard requires.
            _ => {}
        }
        line.clear();
        self.line = line;
        None
    }

    fn dispatch(&mut self) -> Option<Event> {
        let id = self.id.take().map(|id| text(&id));
        if id.is_some() {
            self.last_id.clone_from(&id);
        }
        let event = std::mem::take(&mut self.event);
        let data = self.data.take()?;
        let event = if event.is_empty() { "message".to_owned() } else { text(&event) };
        Some(Event { id, event, data: text(&data) })
    }
}

/// Invalid UTF-8 becomes replacement characters, as the standard requires.
fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MAX: usize = 1_000;

    fn events(stream: &[u8]) -> Vec<Event> {
        let mut events = Vec::new();
        Parser::new(MAX).push(stream, &mut events).expect("short frames");
        events
    }

    fn event(id: Option<&str>, event: &str, data: &str) -> Event {
        Event { id: id.map(str::to_owned), event: event.to_owned(), data: data.to_owned() }
    }

    fn frame(id: Option<&str>, event: &str, data: &str) -> Vec<u8> {
        let mut out = Vec::new();
        write_frame(&mut out, id, event, data);
        out
    }

    #[test]
    fn a_frame_has_its_id_its_name_and_its_data_line_by_line() {
        assert_eq!(frame(Some("7"), "message", "{}"), b"id: 7\nevent: message\ndata: {}\n\n");
        assert_eq!(frame(None, "x", "a\nb"), b"event: x\ndata: a\ndata: b\n\n");
        assert_eq!(
            frame(None, "x", "a\r\nb\rc\n"),
            b"event: x\ndata: a\ndata: b\ndata: c\ndata: \n\n"
        );
    }

    #[test]
    fn an_open_frame_is_closed_by_its_writer() {
        let mut out = Vec::new();
        begin_frame(&mut out, Some(u64::MAX), "message");
        let start = out.len();
        out.extend_from_slice(b"{\r\n\"a\":\n1}");
        replace_newlines(&mut out[start..]);
        end_frame(&mut out);
        begin_frame(&mut out, None, "done");
        end_frame(&mut out);
        write_comment(&mut out, "ping");
        let wanted = "id: 18446744073709551615\nevent: message\ndata: {  \"a\": 1}\n\n\
                      event: done\ndata: \n\n: ping\n\n";
        assert_eq!(text(&out), wanted);
    }

    #[test]
    fn all_three_line_ends_are_understood() {
        for end in ["\n", "\r", "\r\n"] {
            let stream = ["id: 1", "event: e", "data: a", "data:  b", ""].join(end) + end;
            assert_eq!(events(stream.as_bytes()), [event(Some("1"), "e", "a\n b")], "{end:?}");
        }
    }

    #[test]
    fn comments_unknown_fields_and_a_mark_at_the_start_are_passed_over() {
        let stream = b"\xef\xbb\xbfdata: a\n: ping\nx: y\ndata\n\n: ping\n\nevent: e\n\ndata:b\n\n";
        assert_eq!(events(stream), [event(None, "message", "a\n"), event(None, "message", "b")]);
        assert_eq!(events(b"data: a\n\n\xef\xbb\xbfdata: b\n\n").len(), 1, "only at the start");
    }

    #[test]
    fn the_last_id_and_the_retry_time_are_remembered() {
        let mut parser = Parser::new(MAX);
        assert_eq!((parser.last_id(), parser.retry_ms()), (None, None));
        let mut events = Vec::new();
        parser.push(b"retry: 2000\nid: 41\n\ndata: x\n\n", &mut events).expect("short");
        assert_eq!(events, [event(None, "message", "x")]);
        assert_eq!((parser.last_id(), parser.retry_ms()), (Some("41"), Some(2_000)));
        parser.push(b"id: 4\x002\nretry: 1s\ndata: y\n\nid: 43\n", &mut events).expect("short");
        assert_eq!((parser.last_id(), parser.retry_ms()), (Some("41"), Some(2_000)));
        parser.push(b"retry:\n\n", &mut events).expect("short");
        assert_eq!((parser.last_id(), parser.retry_ms()), (Some("43"), Some(2_000)));
    }

    #[test]
    fn what_is_unfinished_is_no_event() {
        assert_eq!(events(b"data: a\n\ndata: b\n"), [event(None, "message", "a")]);
    }

    #[test]
    fn bytes_that_are_no_text_are_replaced() {
        assert_eq!(events(b"data: a\xff\n\n"), [event(None, "message", "a\u{fffd}")]);
    }

    #[test]
    fn a_frame_has_a_longest_length_however_it_is_cut() {
        let mut parser = Parser::new(10);
        let mut events = Vec::new();
        parser.push(b"data: 1234\n\n", &mut events).expect("ten bytes");
        assert_eq!(events.len(), 1);
        assert_eq!(parser.push(b"data: 12345\n\n", &mut events), Err(FrameTooLong { max: 10 }));
        assert_eq!(parser.push(b"\n\ndata: 1\n\n", &mut events), Err(FrameTooLong { max: 10 }));
        assert_eq!(events.len(), 1, "nothing can be read after it");
        let mut parser = Parser::new(10);
        for _ in 0..10 {
            parser.push(b": ping\n", &mut events).expect("comments do not add up");
        }
        parser.push(b"data:1\ndata:2\n", &mut events).expect("two lines");
        parser.push(b"data:3\ndata:4\n", &mut events).expect_err("one line too many");
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back_however_the_stream_is_cut(
            frames in prop::collection::vec(
                (prop::option::of("[0-9]{1,5}"), "[a-z]{1,8}", "([a-z: \\r\\n]|\\PC){0,20}"), 0..5),
            cuts in prop::collection::vec(1_usize..9, 0..200),
        ) {
            let mut stream = Vec::new();
            let mut wanted = Vec::new();
            for (id, name, data) in &frames {
                write_frame(&mut stream, id.as_deref(), name, data);
                let data = data.replace("\r\n", "\n").replace('\r', "\n");
                wanted.push(event(id.as_deref(), name, &data));
            }
            let mut parser = Parser::new(MAX);
            let mut read = Vec::new();
            let mut rest = stream.as_slice();
            for cut in cuts {
                let (piece, after) = rest.split_at(cut.min(rest.len()));
                parser.push(piece, &mut read).expect("short frames");
                rest = after;
            }
            parser.push(rest, &mut read).expect("short frames");
            prop_assert_eq!(read, wanted);
        }

        #[test]
        fn no_content_ends_its_frame(
            id in any::<String>(), name in any::<String>(), data in any::<String>(),
        ) {
            prop_assert_eq!(events(&frame(Some(&id), &name, &data)).len(), 1);
        }

        #[test]
        fn no_bytes_make_the_parser_panic_or_hold_more_than_it_may(
            pieces in prop::collection::vec(
                prop::collection::vec(prop_oneof![any::<u8>(), Just(b'\n'), Just(b'\r'), Just(b':')], 0..40),
                0..8),
        ) {
            let mut parser = Parser::new(50);
            for piece in pieces {
                let _ = parser.push(&piece, &mut Vec::new());
                prop_assert!(parser.held() <= 50);
            }
        }
    }
}

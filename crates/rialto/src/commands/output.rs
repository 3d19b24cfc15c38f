//! Terminal output: text from others is escaped, so that it cannot control the terminal.

use std::fmt::{Display, Write as _};
use std::io::{self, IsTerminal, Write};

use serde::de::DeserializeOwned;

use super::table::truncate;
use super::{Answer, CliResult, Exit};

/// Prints one line; an error means that the reader has closed the pipe.
pub fn print_line(text: &str) -> io::Result<()> {
    print_text(&format!("{text}\n"))
}

/// Prints part of a text that continues later.
pub fn print_text(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// Prints the data of a command. A closed pipe is not an error: the reader has seen enough.
pub fn print_data(data: impl Display) -> Exit {
    let _ = print_line(&data.to_string());
    Exit::Ok
}

/// Prints a document for programs, or text for people.
pub fn print(as_json: bool, document: impl Display, text: impl FnOnce() -> String) -> Exit {
    if as_json { print_data(document) } else { print_data(text()) }
}

/// Prints an answer of the hub: unchanged for programs, or its description.
pub fn print_answer<T: DeserializeOwned>(
    as_json: bool,
    answer: &Answer<T>,
    describe: impl FnOnce(T) -> String,
) -> CliResult {
    Ok(if as_json { print_data(&answer.text) } else { print_data(describe(answer.parse()?)) })
}

/// Prints JSON texts as one list.
pub fn print_list<'a>(items: impl Iterator<Item = &'a str>) -> Exit {
    print_data(format!("[{}]", items.collect::<Vec<_>>().join(",")))
}

/// Prints a line on standard error, beside the data. A closed standard error is ignored.
pub fn print_stderr(text: &str) {
    write_stderr(&format!("{text}\n"));
}

/// Escapes text so that it stays on one line and cannot move the cursor or change direction.
pub fn escape_line(text: &str) -> String {
    escape(text, |_| false)
}

/// The same for text with several lines.
pub fn escape_lines(text: &str) -> String {
    escape(text, |c| matches!(c, '\n' | '\t'))
}

/// At most this many characters of a text, with a mark if it is cut.
pub fn shorten(text: &str, characters: usize) -> String {
    match text.char_indices().nth(characters) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

fn escape(text: &str, is_fine: impl Fn(char) -> bool) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if is_control_or_bidi(c) && !is_fine(c) {
            write!(out, "{}", c.escape_default()).expect("memory can be written to")
        } else {
            out.push(c)
        }
    }
    out
}

/// Whether a character controls the terminal rather than being displayed.
pub fn is_control_or_bidi(c: char) -> bool {
    c.is_control() || is_direction(c)
}

/// Line and paragraph separators, and marks that change the text direction.
fn is_direction(c: char) -> bool {
    matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Assumed width if the terminal does not report one.
const COLUMNS: usize = 80;

/// Returns to the start of the line and clears it.
const CLEAR: &str = "\r\x1b[K";

/// A line that is replaced by the next one.
#[derive(Debug)]
pub struct LiveLine {
    is_rewritable: bool,
    columns: usize,
    shown: String,
}

impl LiveLine {
    /// On standard error.
    pub fn new() -> Self {
        let dumb = std::env::var("TERM").is_ok_and(|term| term == "dumb");
        Self {
            is_rewritable: io::stderr().is_terminal() && !dumb,
            columns: terminal_width(io::stderr()).unwrap_or(COLUMNS),
            shown: String::new(),
        }
    }

    /// Replaces the current line.
    pub fn replace(&mut self, text: &str) {
        write_stderr(&self.written_now(text));
    }

    /// Prints a lasting line above the current one.
    pub fn print_above(&mut self, text: &str) {
        write_stderr(&self.written_above(text));
    }

    fn written_now(&mut self, text: &str) -> String {
        let text = escape_line(text);
        if !self.is_rewritable {
            return format!("{text}\n");
        }
        // A line that wraps could not be rewritten.
        self.shown = truncate(&text, self.columns.saturating_sub(1));
        format!("{CLEAR}{}", self.shown)
    }

    fn written_above(&self, text: &str) -> String {
        if self.is_rewritable {
            format!("{CLEAR}{}\n{}", escape_line(text), self.shown)
        } else {
            format!("{}\n", escape_line(text))
        }
    }
}

impl Drop for LiveLine {
    fn drop(&mut self) {
        if !self.shown.is_empty() {
            write_stderr(CLEAR);
        }
    }
}

/// A closed standard error is ignored.
fn write_stderr(text: &str) {
    let mut error = io::stderr().lock();
    let _ = error.write_all(text.as_bytes()).and_then(|()| error.flush());
}

/// A terminal's width, if known.
#[cfg(unix)]
pub fn terminal_width(stream: impl std::os::fd::AsFd) -> Option<usize> {
    let columns = usize::from(rustix::termios::tcgetwinsize(stream).ok()?.ws_col);
    Some(columns).filter(|columns| *columns > 0)
}

#[cfg(not(unix))]
pub fn terminal_width<T>(_: T) -> Option<usize> {
    None
}

/// Spaces per level of indentation.
const STEP: usize = 2;

/// Breaks JSON text into lines. Characters that could control a terminal are written as JSON
/// escapes, so that the meaning stays the same.
pub fn pretty(json: &str) -> String {
    let mut out = Writer { text: String::with_capacity(json.len() * 2), depth: 0 };
    let mut rest = json.chars().peekable();
    let mut in_text = false;
    while let Some(c) = rest.next() {
        match c {
            _ if in_text => {
                out.shown(c);
                match c {
                    // The next character is escaped, even a quote.
                    '\\' => rest.next().into_iter().for_each(|c| out.shown(c)),
                    '"' => in_text = false,
                    _ => {}
                }
            }
            '"' => {
                in_text = true;
                out.shown(c);
            }
            '{' | '[' => {
                out.shown(c);
                while rest.next_if(|c| c.is_ascii_whitespace()).is_some() {}
                match rest.next_if(|c| matches!(c, '}' | ']')) {
                    Some(end) => out.shown(end),
                    None => out.inwards(),
                }
            }
            '}' | ']' => {
                out.outwards();
                out.shown(c);
            }
            ',' => {
                out.shown(c);
                out.line();
            }
            ':' => out.text.push_str(": "),
            c if c.is_ascii_whitespace() => {}
            c => out.shown(c),
        }
    }
    out.text
}

struct Writer {
    text: String,
    depth: usize,
}

impl Writer {
    fn shown(&mut self, c: char) {
        if !is_control_or_bidi(c) {
            return self.text.push(c);
        }
        let mut units = [0; 2];
        for unit in c.encode_utf16(&mut units) {
            write!(self.text, "\\u{unit:04x}").expect("memory can be written to");
        }
    }

    fn inwards(&mut self) {
        self.depth += 1;
        self.line();
    }

    fn outwards(&mut self) {
        self.depth = self.depth.saturating_sub(1);
        self.line();
    }

    fn line(&mut self) {
        self.text.push('\n');
        self.text.extend(std::iter::repeat_n(' ', self.depth * STEP));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_wrote_cannot_take_over_the_terminal() {
        assert_eq!(escape_line("下午 \"x\"\\n"), "下午 \"x\"\\n");
        assert_eq!(escape_line("a\nb\r\x1b[2J\u{202e}c"), "a\\nb\\r\\u{1b}[2J\\u{202e}c");
        assert_eq!(escape_lines("a\n\tb\x07"), "a\n\tb\\u{7}");
    }

    fn live(changes: bool) -> LiveLine {
        LiveLine { is_rewritable: changes, columns: 10, shown: String::new() }
    }

    #[test]
    fn on_a_terminal_one_line_changes_and_never_wraps() {
        let mut live = live(true);
        assert_eq!(live.written_now("opened"), "\r\x1b[Kopened");
        assert_eq!(live.written_now("assigned to\na"), "\r\x1b[Kassigned…");
        assert_eq!(live.written_above("log: a\x07"), "\r\x1b[Klog: a\\u{7}\nassigned…");
        live.shown.clear();
    }

    #[test]
    fn elsewhere_every_word_is_a_plain_line() {
        let mut live = live(false);
        assert_eq!(live.written_now("assigned to agent"), "assigned to agent\n");
        assert_eq!(live.written_above("log: a"), "log: a\n");
    }

    #[test]
    fn json_stands_on_lines_with_the_digits_it_came_with() {
        let json = r#"{"price":0.10,"big":12345678901234567890, "list":[1, {"a":null}],"none":{ },"no":[]}"#;
        let expected = "{\n  \"price\": 0.10,\n  \"big\": 12345678901234567890,\n  \"list\": [\n    \
                      1,\n    {\n      \"a\": null\n    }\n  ],\n  \"none\": {},\n  \"no\": []\n}";
        assert_eq!(pretty(json), expected);
        assert_eq!(pretty("0.50"), "0.50");
    }

    #[test]
    fn texts_stay_what_they_are_and_cannot_take_over_the_terminal() {
        let json = "[\"a\\\"{,:}\\\\\",\"\u{202e}\u{7f}文\"]";
        let shown = pretty(json);
        assert_eq!(shown, "[\n  \"a\\\"{,:}\\\\\",\n  \"\\u202e\\u007f文\"\n]");
        let value = |text: &str| serde_json::from_str::<serde_json::Value>(text).expect("JSON");
        assert_eq!(value(&shown), value(json));
    }
}

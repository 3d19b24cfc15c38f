//! Terminal output: text from others is escaped, so that it cannot control the terminal.

use std::fmt::Write as _;
use std::io::{self, Write};

/// Prints one line; an error means that the reader has closed the pipe.
pub fn print_line(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.write_all(b"\n")?;
    out.flush()
}

/// Prints part of a text that continues later.
pub fn print_text(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// Prints a line on standard error, beside the data. A closed standard error is ignored.
pub fn print_stderr(text: &str) {
    let mut error = io::stderr().lock();
    let _ = error.write_all(format!("{text}\n").as_bytes());
}

/// Escapes text so that it stays on one line and cannot move the cursor or change direction.
pub fn escape_line(text: &str) -> String {
    escape(text, |_| false)
}

/// The same for text with several lines.
pub fn escape_lines(text: &str) -> String {
    escape(text, |c| matches!(c, '\n' | '\t'))
}

fn escape(text: &str, is_fine: impl Fn(char) -> bool) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match is_control_or_bidi(c) && !is_fine(c) {
            true => write!(out, "{}", c.escape_default()).expect("memory can be written to"),
            false => out.push(c),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_wrote_cannot_take_over_the_terminal() {
        assert_eq!(escape_line("下午 \"x\"\\n"), "下午 \"x\"\\n");
        assert_eq!(escape_line("a\nb\r\x1b[2J\u{202e}c"), "a\\nb\\r\\u{1b}[2J\\u{202e}c");
        assert_eq!(escape_lines("a\n\tb\x07"), "a\n\tb\\u{7}");
    }
}

//! Progress output on standard error: one line that is rewritten on a terminal, plain lines
//! elsewhere.

use std::io::{self, IsTerminal, Write};

use super::output::escape_line;
use super::table::truncate;

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
            columns: columns().unwrap_or(COLUMNS),
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
        match self.is_rewritable {
            true => format!("{CLEAR}{}\n{}", escape_line(text), self.shown),
            false => format!("{}\n", escape_line(text)),
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

/// The terminal's width, if known.
fn columns() -> Option<usize> {
    #[cfg(unix)]
    if let Ok(size) = rustix::termios::tcgetwinsize(io::stderr()) {
        return Some(usize::from(size.ws_col)).filter(|columns| *columns > 0);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

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
}

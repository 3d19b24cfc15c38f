//! Output that is shown even when a test passes.

use std::io::Write;

/// Prints a text that the test harness does not capture.
pub fn say_aloud(words: &str) {
    let _ = writeln!(std::io::stderr(), "\n!! {words}\n");
}

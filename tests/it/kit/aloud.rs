//! What has to be heard even when nothing fails.

use std::io::Write;

/// Says something that is heard even when the test passes: what is written here is not captured.
pub fn say_aloud(words: &str) {
    let _ = writeln!(std::io::stderr(), "\n!! {words}\n");
}

//! Input of commands: JSON arguments, files and standard input.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use serde_json::value::RawValue;

use super::output::shorten;
use super::{CliError, CliResult};

/// The maximum length; no hub accepts more.
const BYTES_MAX: u64 = 16 << 20;
/// Characters of an invalid text that are shown in the error.
const SHOWN_MAX: usize = 40;

/// Reads the value of a flag: JSON text, `@FILE`, or `-` for standard input.
pub fn read_json(flag: &str, given: &str) -> CliResult<Box<RawValue>> {
    let (from, text) = match given.strip_prefix('@') {
        Some(path) => (path, File::open(path).and_then(read_text)),
        None if given == "-" => ("standard input", read_text(io::stdin().lock())),
        None => ("", Ok(given.to_owned())),
    };
    let text = text.map_err(|error| {
        CliError::usage(format!("cannot read {from} for {flag}: {error}"), usage_example(flag))
    })?;
    // The text is sent as it was typed, with its exact digits and order of members.
    RawValue::from_string(text.trim().to_owned()).map_err(|error| {
        let message = format!("{flag} is not valid JSON: {error} in {}", beginning(text.trim()));
        CliError::usage(message, usage_example(flag))
    })
}

/// Opens a file, or standard input for `-`, and reads it; an error says what to do next.
pub fn read_input<T>(
    path: &Path,
    read: fn(Box<dyn Read>) -> io::Result<T>,
    next: &str,
) -> CliResult<T> {
    let source: io::Result<Box<dyn Read>> = if path.as_os_str() == "-" {
        Ok(Box::new(io::stdin()))
    } else {
        File::open(path).map(|file| Box::new(file) as Box<dyn Read>)
    };
    source
        .and_then(read)
        .map_err(|error| CliError::usage(format!("cannot read {}: {error}", path.display()), next))
}

pub fn read_bytes(source: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    source.take(BYTES_MAX).read_to_end(&mut bytes).map(|_| bytes)
}

pub fn read_text(source: impl Read) -> io::Result<String> {
    let mut text = String::new();
    source.take(BYTES_MAX).read_to_string(&mut text).map(|_| text)
}

/// An example of correct usage.
fn usage_example(flag: &str) -> String {
    format!(
        "write it like {flag} '{{\"text\":\"hello\"}}', {flag} @file.json, or {flag} - to pipe it in"
    )
}

fn beginning(text: &str) -> String {
    if text.is_empty() { "nothing".to_owned() } else { shorten(text, SHOWN_MAX) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::Exit;

    #[test]
    fn json_is_taken_as_it_was_typed() {
        let typed = r#" {"b":1.50,"a":[ 1e2 ]} "#;
        assert_eq!(read_json("--input", typed).expect("JSON").get(), typed.trim());
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("in.json");
        std::fs::write(&path, "{\"x\":1}\n").expect("written");
        let given = format!("@{}", path.display());
        assert_eq!(read_json("--input", &given).expect("JSON").get(), "{\"x\":1}");
    }

    #[test]
    fn what_is_no_json_is_told_with_a_line_that_is_right() {
        for given in ["hello", "", "{a:1}", "{} {}", "@/nowhere/at/all"] {
            let wrong = read_json("--input", given).expect_err(given);
            assert_eq!(wrong.exit, Exit::Usage, "{given}");
            let next = wrong.next.expect("a next step");
            assert!(next.contains(r#"--input '{"text":"hello"}'"#), "{next}");
        }
        let long = "x".repeat(1_000);
        assert!(read_json("--input", &long).expect_err("no JSON").message.len() < 200);
    }
}

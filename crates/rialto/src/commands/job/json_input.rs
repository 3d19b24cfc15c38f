//! JSON arguments: text on the command line, a file, or standard input.

use std::fs::File;
use std::io::{self, Read};

use serde_json::value::RawValue;

use super::super::error::CliError;

/// The maximum length; no hub accepts more.
const BYTES_MAX: u64 = 16 << 20;
/// Characters of an invalid text that are shown in the error.
const SHOWN_MAX: usize = 40;

/// Reads the value of a flag: JSON text, `@FILE`, or `-` for standard input.
pub fn read_json(flag: &str, given: &str) -> Result<Box<RawValue>, CliError> {
    let text = match given {
        "-" => read(flag, "standard input", io::stdin().lock())?,
        _ => match given.strip_prefix('@') {
            Some(path) => match File::open(path) {
                Ok(file) => read(flag, path, file)?,
                Err(error) => return Err(unreadable(flag, path, &error)),
            },
            None => given.to_owned(),
        },
    };
    // The text is sent as it was typed, with its exact digits and order of members.
    RawValue::from_string(text.trim().to_owned()).map_err(|error| {
        let message = format!("{flag} is not valid JSON: {error} in {}", beginning(text.trim()));
        CliError::usage(message, usage_example(flag))
    })
}

fn read(flag: &str, from: &str, source: impl Read) -> Result<String, CliError> {
    let mut text = String::new();
    match source.take(BYTES_MAX).read_to_string(&mut text) {
        Ok(_) => Ok(text),
        Err(error) => Err(unreadable(flag, from, &error)),
    }
}

fn unreadable(flag: &str, from: &str, error: &io::Error) -> CliError {
    CliError::usage(format!("cannot read {from} for {flag}: {error}"), usage_example(flag))
}

/// An example of correct usage.
fn usage_example(flag: &str) -> String {
    format!(
        "write it like {flag} '{{\"text\":\"hello\"}}', {flag} @file.json, or {flag} - to pipe it in"
    )
}

fn beginning(text: &str) -> String {
    match text.char_indices().nth(SHOWN_MAX) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None if text.is_empty() => "nothing".to_owned(),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit::Exit;

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

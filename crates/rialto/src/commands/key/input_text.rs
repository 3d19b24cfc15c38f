//! Reads the input of a command from a file or standard input.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use super::super::error::CliError;

/// The maximum length: an envelope has at most 1 MiB, and other JSON may be indented.
const BYTES_MAX: u64 = 16 << 20;

/// Reads a file, or standard input for `-`.
pub fn read_input(path: &Path) -> Result<String, CliError> {
    let mut text = String::new();
    let read = match path.as_os_str() == "-" {
        true => io::stdin().lock().take(BYTES_MAX).read_to_string(&mut text),
        false => File::open(path).and_then(|file| file.take(BYTES_MAX).read_to_string(&mut text)),
    };
    match read {
        Ok(_) => Ok(text),
        Err(error) => Err(CliError::usage(
            format!("cannot read {}: {error}", path.display()),
            "name a file that contains JSON in UTF-8, or pipe it in",
        )),
    }
}

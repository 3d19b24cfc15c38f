//! Key files on the command line. The client library defines their format.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

pub use rialto_client::KeyFile;

use super::error::CliError;
use crate::exit::Exit;

/// A file reserved for a key; removed again unless a key is written.
pub struct ReservedKeyFile {
    path: PathBuf,
    file: File,
    filled: bool,
}

/// Reads a key file.
pub fn load(path: &Path) -> Result<KeyFile, CliError> {
    KeyFile::load(path).map_err(|error| read_error(path, &error))
}

/// The key of a variable. Only plain characters can be sent to a hub.
pub fn from_variable(name: &str, value: &str) -> Result<KeyFile, CliError> {
    let key = value.trim();
    if key.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Ok(KeyFile::from_key(key));
    }
    let next = "a key is one word like ca_… or rk_…; `rialto agent register` creates one";
    let message = format!("{name} does not contain a key");
    Err(CliError { exit: Exit::Auth, ..CliError::usage(message, next) })
}

/// The error for an invalid key file, with a hint how to create one.
pub fn read_error(path: &Path, error: &io::Error) -> CliError {
    let shown = path.display();
    let make = format!("`rialto agent register NAME --key-out {shown}` creates a key file");
    let message = match error.kind() {
        io::ErrorKind::InvalidData => format!("the first line of {shown} is not a key"),
        _ => format!("cannot read {shown}: {error}"),
    };
    CliError::usage(message, make)
}

impl ReservedKeyFile {
    /// Creates an empty file that only its owner can read; an existing file is not touched.
    pub fn new(path: &Path) -> Result<Self, CliError> {
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        match options.open(path) {
            Ok(file) => Ok(Self { path: path.to_owned(), file, filled: false }),
            Err(error) => {
                let message = format!("cannot create {}: {error}", path.display());
                Err(CliError::usage(message, "name a file that does not exist yet"))
            }
        }
    }

    /// Writes the key and keeps the file.
    pub fn write_keys(self, keys: &KeyFile) -> io::Result<()> {
        self.write_text(&keys.to_text())
    }

    /// Writes text with another kind of key and keeps the file.
    pub fn write_text(mut self, text: &str) -> io::Result<()> {
        self.file.write_all(text.as_bytes())?;
        self.file.sync_all()?;
        self.filled = true;
        Ok(())
    }
}

impl Drop for ReservedKeyFile {
    fn drop(&mut self) {
        if !self.filled {
            // A leftover empty file is harmless.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_shown_to_a_hub_is_no_key() {
        let read = |key: &str| from_variable("RIALTO_KEY", key);
        assert_eq!(read(" ca_0123456789\n").expect("a key"), KeyFile::from_key("ca_0123456789"));
        for not in ["b\nad", "two words", "schlüssel", "\x1b[2J"] {
            let cli_error = read(not).expect_err(not);
            assert_eq!(cli_error.exit, Exit::Auth, "{not:?}");
            assert!(cli_error.message.contains("RIALTO_KEY"), "{cli_error:?}");
        }
    }

    #[test]
    fn a_file_is_made_for_its_owner_alone_and_never_written_over() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("alice.key");
        drop(ReservedKeyFile::new(&path).expect("reserved"));
        assert!(!path.exists(), "no key, no file");
        ReservedKeyFile::new(&path)
            .expect("reserved")
            .write_keys(&KeyFile::from_key("ca_1"))
            .expect("written");
        assert_eq!(load(&path).expect("a key"), KeyFile::from_key("ca_1"));
        assert!(ReservedKeyFile::new(&path).is_err());
        assert!(path.exists());
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = std::fs::metadata(&path).expect("there").permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
        assert!(load(&dir.path().join("none")).is_err());
    }
}

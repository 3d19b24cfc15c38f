//! The text of the configuration file, before keys are read from it.

use std::io::ErrorKind;
use std::path::Path;

use crate::error::ConfigError;

/// A file's text, and its name for error messages.
pub struct ConfigFile {
    pub name: String,
    pub text: String,
}

impl ConfigFile {
    /// Reads a file that was named explicitly, so a missing file is an error.
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        let name = path.display().to_string();
        match std::fs::read_to_string(path) {
            Ok(text) => Ok(Self { name, text }),
            Err(error) => Err(ConfigError::Unreadable { path: name, why: error.to_string() }),
        }
    }

    /// Reads a file that may be missing. A file that exists but cannot be read is still an error,
    /// because it was put there on purpose.
    pub fn read_if_exists(path: &Path) -> Result<Option<Self>, ConfigError> {
        match std::fs::metadata(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            _ => Self::read(path).map(Some),
        }
    }

    /// The line of the byte at `offset`, counted from 1.
    pub fn line_of_offset(&self, offset: usize) -> usize {
        1 + self.text.bytes().take(offset).filter(|byte| *byte == b'\n').count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_was_named_must_exist() {
        let missing = Path::new("no/such/rialto.toml");
        let problem = ConfigFile::read(missing).err().map(|p| p.to_string()).unwrap_or_default();
        assert!(problem.starts_with("cannot read no/such/rialto.toml: "), "{problem}");
    }

    #[test]
    fn the_usual_file_is_read_only_if_there_is_one() {
        assert!(matches!(ConfigFile::read_if_exists(Path::new("no/such/rialto.toml")), Ok(None)));
        let there = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
        assert!(matches!(ConfigFile::read_if_exists(&there), Ok(Some(_))));
    }

    #[test]
    fn a_usual_file_that_cannot_be_read_is_no_reason_to_go_on_without_it() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
        assert!(ConfigFile::read_if_exists(folder).is_err());
    }
}

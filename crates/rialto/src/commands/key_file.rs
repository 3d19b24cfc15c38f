//! Key files and other private files: written atomically and readable only by their owner. The client
//! library defines the format of key files.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

pub use rialto_client::KeyFile;
use tempfile::NamedTempFile;

use super::{CliError, CliResult, Exit};

/// A file reserved for a key; removed again unless a key is written.
pub struct ReservedKeyFile {
    path: PathBuf,
    file: File,
    filled: bool,
}

/// Reads a key file.
pub fn load(path: &Path) -> CliResult<KeyFile> {
    KeyFile::load(path).map_err(|error| read_error(path, &error))
}

/// The key of a variable. Only plain characters can be sent to a hub.
pub fn from_variable(name: &str, value: &str) -> CliResult<KeyFile> {
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
    pub fn new(path: &Path) -> CliResult<Self> {
        let file = open_options().create_new(true).open(path).map_err(|error| {
            let message = format!("cannot create {}: {error}", path.display());
            CliError::usage(message, "name a file that does not exist yet")
        })?;
        Ok(Self { path: path.to_owned(), file, filled: false })
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
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Creates a directory and its parents, accessible only by the owner.
pub fn create_dir(path: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

/// Options to create and write a file that only the owner can read.
fn open_options() -> OpenOptions {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.write(true);
    options
}

/// Opens an empty lock file and creates it if it does not exist.
pub fn open_lock_file(path: &Path) -> io::Result<File> {
    open_options().create(true).truncate(false).open(path)
}

/// Writes or replaces a file atomically: readers see the old text or the new one.
pub fn write_atomically(path: &Path, text: &str) -> io::Result<()> {
    // A symbolic link stays, and its target is replaced.
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let (written, above) = write_temporary(&target, text)?;
    written.persist(&target).map_err(|failed| failed.error)?;
    sync_dir(above)
}

/// Writes a file that must not exist yet; returns `false` and keeps the file if it does.
pub fn write_new(path: &Path, text: &str) -> io::Result<bool> {
    let (written, above) = write_temporary(path, text)?;
    match written.persist_noclobber(path) {
        Ok(_) => sync_dir(above).map(|()| true),
        Err(failed) if failed.error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(failed) => Err(failed.error),
    }
}

/// Writes and syncs a temporary file; returns it and its directory.
fn write_temporary<'a>(path: &'a Path, text: &str) -> io::Result<(NamedTempFile, &'a Path)> {
    let above = path.parent().filter(|above| !above.as_os_str().is_empty());
    let above = above.unwrap_or(Path::new("."));
    // Temporary files are created with owner-only access.
    let mut temporary = NamedTempFile::new_in(above)?;
    temporary.write_all(text.as_bytes())?;
    temporary.as_file().sync_all()?;
    Ok((temporary, above))
}

/// A new name is durable only once its directory is synced.
fn sync_dir(directory: &Path) -> io::Result<()> {
    if cfg!(unix) { File::open(directory)?.sync_all() } else { Ok(()) }
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
            let mode = fs::metadata(&path).expect("there").permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
        assert!(load(&dir.path().join("none")).is_err());
    }

    #[test]
    fn a_file_is_replaced_whole_and_a_new_one_never_replaces() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("f");
        write_atomically(&path, "one").expect("written");
        write_atomically(&path, "two").expect("replaced");
        assert!(!write_new(&path, "three").expect("it is there"));
        assert_eq!(fs::read_to_string(&path).expect("text"), "two");
        assert!(write_new(&dir.path().join("g"), "three").expect("written"));
        assert_eq!(fs::read_dir(dir.path()).expect("a directory").count(), 2, "no leftovers");
    }

    #[cfg(unix)]
    #[test]
    fn what_is_kept_is_its_owners_alone_and_links_stay() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().expect("a directory");
        let (deep, link) = (dir.path().join("a/b"), dir.path().join("link"));
        create_dir(&deep).expect("made");
        let mode = |path: &Path| fs::metadata(path).expect("there").permissions().mode() & 0o777;
        assert_eq!(mode(&deep), 0o700);
        write_atomically(&deep.join("key"), "one").expect("written");
        assert_eq!(mode(&deep.join("key")), 0o600);
        open_lock_file(&deep.join("lock")).expect("made");
        assert_eq!(mode(&deep.join("lock")), 0o600);
        std::os::unix::fs::symlink(deep.join("key"), &link).expect("linked");
        write_atomically(&link, "two").expect("replaced");
        assert!(fs::symlink_metadata(&link).expect("there").is_symlink());
        assert_eq!(fs::read_to_string(deep.join("key")).expect("text"), "two");
    }
}

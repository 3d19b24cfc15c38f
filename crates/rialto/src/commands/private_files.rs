//! Private files: written atomically and readable only by their owner.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Write};
use std::path::Path;

use tempfile::NamedTempFile;

/// Creates a directory and its parents, accessible only by the owner.
pub fn create_dir(path: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

/// Opens an empty lock file and creates it if it does not exist.
pub fn open_lock_file(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.create(true).truncate(false).write(true).open(path)
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
    match cfg!(unix) {
        true => File::open(directory)?.sync_all(),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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

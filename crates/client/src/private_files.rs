//! Small private files: written atomically, readable by their owner only.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

/// Creates a directory and its parents, accessible only to the owner.
pub(crate) fn create_dir(path: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(path)
}

/// Writes or replaces a file atomically: a concurrent reader sees either the old or the new text.
pub(crate) fn write_atomically(path: &Path, text: &str) -> io::Result<()> {
    // If the path is a symlink, replace its target and keep the link.
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let above = target.parent().filter(|above| !above.as_os_str().is_empty());
    let above = above.unwrap_or(Path::new("."));
    let name = target.file_name().ok_or(io::ErrorKind::InvalidFilename)?;
    // The process id keeps two programs from writing the same temporary file.
    let new = above.join(format!(".{}.{}.new", name.to_string_lossy(), std::process::id()));
    let written = write_synced(&new, text).and_then(|()| fs::rename(&new, &target));
    if written.is_err() {
        let _ = fs::remove_file(&new);
    }
    written?;
    sync_dir(above)
}

/// Options to create a file that only the owner can read, whatever the umask is.
pub(crate) fn open_options() -> OpenOptions {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.create(true);
    options
}

fn write_synced(path: &Path, text: &str) -> io::Result<()> {
    let mut file = open_options().write(true).truncate(true).open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

/// Syncs the directory, so that the renamed file survives a power cut.
fn sync_dir(directory: &Path) -> io::Result<()> {
    if cfg!(unix) { File::open(directory)?.sync_all() } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_whole_and_nothing_is_left_beside_it() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("f");
        write_atomically(&path, "one").expect("written");
        write_atomically(&path, "two").expect("replaced");
        assert_eq!(fs::read_to_string(&path).expect("text"), "two");
        assert!(write_atomically(&dir.path().join("none/f"), "three").is_err());
        assert_eq!(fs::read_dir(dir.path()).expect("a directory").count(), 1);
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
        std::os::unix::fs::symlink(deep.join("key"), &link).expect("linked");
        write_atomically(&link, "two").expect("replaced");
        assert!(fs::symlink_metadata(&link).expect("there").is_symlink());
        assert_eq!(fs::read_to_string(deep.join("key")).expect("text"), "two");
    }
}

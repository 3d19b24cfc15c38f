//! Files and directories that only their owner can access, whatever the umask is.
//!
//! The data directory contains the agents' messages, so no other user may read it. Files that the
//! hub created with wider permissions before are restricted; directories with other files are left
//! alone.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::Path;

use tracing::warn;

/// Name prefixes of the hub's own files; `rialto dev` keeps the agents it runs in the last.
const OWN_FILE_PREFIXES: [&str; 4] = ["rialto.db", "rialto.lock", "hub.key", "demo-agents"];

/// Creates a directory and its parents. An existing one that contains only the hub's own files is
/// restricted; for any other one that other users may enter, a warning is logged.
pub fn create_private_dir(path: &Path) -> io::Result<()> {
    if !path.exists() {
        let mut builder = fs::DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.recursive(true).create(path)?;
        return restrict(path, 0o700);
    }
    let narrowed = !is_exposed(path)? || has_only_own_files(path)? && restrict(path, 0o700).is_ok();
    if !narrowed {
        let directory = path.display();
        warn!(%directory, "other users can list the data directory; run `chmod 700` on it, or set data.dir to a separate directory");
    }
    Ok(())
}

/// Opens a file for writing without changing its content, and creates it if it is missing.
pub fn open_private_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.create(true).truncate(false).write(true).open(path)?;
    restrict_file(path);
    Ok(file)
}

/// Restricts a file that may not exist.
pub fn restrict_file(path: &Path) {
    let narrowed = match is_exposed(path) {
        Ok(true) => restrict(path, 0o600),
        Ok(false) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    };
    if let Err(error) = narrowed {
        let file = path.display();
        warn!(%file, %error, "other users can read this file and its permissions cannot be changed; run `chmod 600` on it");
    }
}

fn has_only_own_files(path: &Path) -> io::Result<bool> {
    for entry in fs::read_dir(path)? {
        let name = entry?.file_name();
        if !OWN_FILE_PREFIXES.iter().any(|own| name.to_string_lossy().starts_with(own)) {
            return Ok(false);
        }
    }
    Ok(true)
}

#[cfg(unix)]
fn is_exposed(path: &Path) -> io::Result<bool> {
    Ok(std::os::unix::fs::MetadataExt::mode(&fs::metadata(path)?) & 0o077 != 0)
}

#[cfg(unix)]
fn restrict(path: &Path, mode: u32) -> io::Result<()> {
    fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(mode))
}

// On other systems files have the rights of their directory.
#[cfg(not(unix))]
fn is_exposed(_: &Path) -> io::Result<bool> {
    Ok(false)
}

#[cfg(not(unix))]
fn narrow(_: &Path, _: u32) -> io::Result<()> {
    Ok(())
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).expect("there").permissions().mode() & 0o777
    }

    #[test]
    fn a_directory_of_the_hub_s_own_is_narrowed_and_one_with_other_files_is_left_alone() {
        let at = tempfile::tempdir().expect("a directory");
        let new = at.path().join("a/b");
        create_private_dir(&new).expect("made");
        assert_eq!(mode(&new), 0o700);
        restrict(&new, 0o755).expect("widened");
        open_private_file(&new.join("rialto.db")).expect("made");
        create_private_dir(&new).expect("kept");
        assert_eq!(mode(&new), 0o700);
        restrict(&new, 0o755).expect("widened");
        fs::write(new.join("notes.txt"), "mine").expect("written");
        create_private_dir(&new).expect("kept");
        assert_eq!(mode(&new), 0o755);
    }

    #[test]
    fn a_file_keeps_its_content_and_loses_the_rights_of_others() {
        let at = tempfile::tempdir().expect("a directory");
        let path = at.path().join("rialto.db");
        fs::write(&path, "content").expect("written");
        restrict(&path, 0o664).expect("widened");
        open_private_file(&path).expect("opened");
        assert_eq!(
            (mode(&path), fs::read_to_string(&path).expect("text").as_str()),
            (0o600, "content")
        );
        restrict_file(&at.path().join("none"));
        assert!(!at.path().join("none").exists());
    }
}

//! The kept inputs: small files, one folder per target, in git.

use std::fs;
use std::io;
use std::path::PathBuf;

/// The inputs kept for one target, in the order of their names.
pub struct Corpus(pub Vec<(String, Vec<u8>)>);

/// Where the inputs of a target are kept.
pub fn folder(target: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target)
}

impl Corpus {
    /// The inputs of a target; none is an error, since nothing would be tried.
    pub fn of(target: &str) -> io::Result<Self> {
        let mut kept = Vec::new();
        for entry in fs::read_dir(folder(target))? {
            let entry = entry?;
            kept.push((entry.file_name().to_string_lossy().into_owned(), fs::read(entry.path())?));
        }
        kept.sort();
        match kept.is_empty() {
            true => Err(io::Error::new(io::ErrorKind::NotFound, "no inputs are kept for it")),
            false => Ok(Self(kept)),
        }
    }
}

//! The corpus: small input files, one folder per target, in git.

use std::fs;
use std::io;
use std::path::PathBuf;

/// The corpus of one target, in the order of file names.
pub struct Corpus(pub Vec<(String, Vec<u8>)>);

/// The corpus folder of a target.
pub fn folder(target: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target)
}

impl Corpus {
    /// The corpus of a target; an empty one is an error, because nothing would be tested.
    pub fn of(target: &str) -> io::Result<Self> {
        let mut kept = Vec::new();
        for entry in fs::read_dir(folder(target))? {
            let entry = entry?;
            kept.push((entry.file_name().to_string_lossy().into_owned(), fs::read(entry.path())?));
        }
        kept.sort();
        match kept.is_empty() {
            true => Err(io::Error::new(io::ErrorKind::NotFound, "the corpus is empty")),
            false => Ok(Self(kept)),
        }
    }
}

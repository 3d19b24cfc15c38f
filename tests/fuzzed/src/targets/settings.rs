//! `rialto.toml`: every value is checked, and every error names its origin.

use std::cell::RefCell;
use std::io::Write as _;

use rialto_hub::config::{LoadedConfig, Profile};
use tempfile::NamedTempFile;

thread_local! {
    static FILE: RefCell<Option<NamedTempFile>> = const { RefCell::new(None) };
}

/// Checks the parser of settings, as a file and as a value of the environment.
pub fn settings(bytes: &[u8]) {
    FILE.with_borrow_mut(|file| {
        let file = file.get_or_insert_with(|| NamedTempFile::new().expect("a file"));
        file.as_file().set_len(0).expect("an empty file");
        std::fs::write(file.path(), bytes).expect("a file");
        file.flush().expect("a file");
        let none = std::iter::empty();
        match LoadedConfig::load(Profile::Serve, Some(file.path()), none, &[]) {
            Ok(loaded) => assert!(!loaded.settings().is_empty()),
            Err(problem) => assert!(!problem.to_string().is_empty()),
        }
    });
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    for (key, value) in text.lines().filter_map(|line| line.split_once(" = ")).take(2) {
        let flag = [(key, value.to_owned())];
        let _ = LoadedConfig::load(Profile::Dev, None, std::iter::empty(), &flag);
    }
}

//! Damaged files of the command line: truncated, or with a byte changed.
//!
//! Whatever they contain, a command ends with one of its own exit codes, says what to do on an
//! error, and leaves the files unchanged.

use std::fs;
use std::process::Command;

use tempfile::TempDir;

use crate::kit::output;

/// The documented exit codes; a panic has another.
const EXITS: std::ops::RangeInclusive<i32> = 0..=8;
const CONTEXT: &str = "hub = \"http://127.0.0.1:7425\"\n";
const KEY: &str = "ca_0123456789abcdef0123456789abcdef012345674195f880\nagent_id me@chorus\nhub http://127.0.0.1:7425\n";
const SEED: &str = "ed25519-seed:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8\n";

/// The text truncated at regular offsets, and with a bit flipped at regular offsets.
fn spoilt(text: &str) -> Vec<Vec<u8>> {
    const STEP: usize = 7;
    let bytes = text.as_bytes();
    let cut = (0..bytes.len()).step_by(STEP).map(|at| bytes[..at].to_vec());
    let flipped = (0..bytes.len()).step_by(STEP).map(|at| {
        let mut changed = bytes.to_vec();
        changed[at] ^= 1 << (at % 8);
        changed
    });
    let strange =
        [&b"\xff\xfe"[..], b"\0", "\u{feff}".as_bytes(), &[b'['; 5_000], b"hub = 1\nhub = 2"];
    cut.chain(flipped).chain(strange.map(<[u8]>::to_vec)).collect()
}

/// Tries every damaged form of one file in an otherwise valid home directory.
fn tried(file: &str, text: &str, arguments: &[&str]) {
    let home = TempDir::new().expect("a directory");
    let context = home.path().join("contexts/a");
    fs::create_dir_all(&context).expect("a directory");
    for (name, text) in
        [("current", "a\n"), ("contexts/a/context.toml", CONTEXT), ("contexts/a/me.key", KEY)]
    {
        fs::write(home.path().join(name), text).expect("a file");
    }
    let path = home.path().join(file);
    for bytes in spoilt(text) {
        fs::write(&path, &bytes).expect("a file");
        let mut command = Command::new(env!("CARGO_BIN_EXE_rialto"));
        command.env_clear().env("RIALTO_HOME", home.path()).current_dir(home.path());
        let ended = output(command.args(arguments)).expect("it runs");
        let said = String::from_utf8_lossy(&ended.stderr);
        let what = format!("{arguments:?} with {}: {said}", bytes.escape_ascii());
        assert!(ended.status.code().is_some_and(|code| EXITS.contains(&code)), "{what}");
        assert!(!said.contains("panicked"), "{what}");
        assert!(ended.status.success() || !said.trim().is_empty(), "no error message: {what}");
        assert_eq!(fs::read(&path).expect("a file"), bytes, "{what}");
    }
}

#[test]
fn a_spoilt_context_is_named_and_left_alone() {
    tried("contexts/a/context.toml", CONTEXT, &["context", "show"]);
    tried("current", "a\n", &["context", "ls"]);
}

#[test]
fn a_spoilt_key_file_is_named_and_left_alone() {
    tried("contexts/a/me.key", KEY, &["context", "show"]);
}

#[test]
fn a_spoilt_seed_is_named_and_left_alone() {
    tried("seed", SEED, &["key", "show", "--key-file", "seed"]);
}

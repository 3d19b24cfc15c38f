//! A closed output pipe does not crash a command: `rialto … | head -3`.

use std::io::Read;
use std::process::{Command, Stdio};

use tempfile::TempDir;

/// The exit code and the standard error of a command whose output is not read.
fn unread(line: &[&str]) -> (Option<i32>, String) {
    let home = TempDir::new().expect("a directory");
    let mut command = Command::new(env!("CARGO_BIN_EXE_rialto"));
    command.env("RIALTO_HOME", home.path()).current_dir(home.path()).args(line);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it runs");
    drop(child.stdout.take());
    let mut said = String::new();
    child.stderr.take().expect("a pipe").read_to_string(&mut said).expect("UTF-8");
    (child.wait().expect("it ends").code(), said)
}

#[test]
fn a_reader_that_is_gone_is_no_trouble() {
    for line in [
        &["completions", "bash"][..],
        &["openapi"],
        &["config", "show"],
        &["config", "check"],
        &["context", "ls"],
        &["agent", "run", "--help"],
        &["key", "new"],
        &["init", "agent", "--lang", "sh"],
    ] {
        let (code, said) = unread(line);
        assert_eq!((code, said.as_str()), (Some(0), ""), "{line:?}");
    }
    // The exit code still tells what went wrong.
    let (code, said) = unread(&["audit", "--data", "none", "--json"]);
    assert_eq!((code, said.as_str()), (Some(3), ""));
}

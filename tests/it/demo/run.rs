//! How the demo runs and ends: with every check, in any environment, and when it is interrupted.

use std::fs;
use std::io::Read;
use std::process::{Command, Stdio};

use tempfile::TempDir;

use super::{demo, ran};
use crate::kit::{Lines, ended};

#[test]
fn the_demo_passes_its_own_checks_and_tells_a_line_per_event() {
    let place = TempDir::new().expect("a directory");
    let (code, told, error) = ran(demo(place.path(), &["--check"]));
    assert_eq!((code, error.as_str()), (0, ""), "{told}");
    let verdict = told.lines().next_back().expect("a last line");
    let count =
        verdict.strip_prefix("demo: all ").and_then(|rest| rest.strip_suffix(" checks passed"));
    let count: usize = count.expect("a verdict").parse().expect("a number");
    assert!(count >= 50, "{verdict}");
    assert!(!told.contains('\x1b'), "no terminal codes without a terminal: {told}");
    for said in [
        "Reader     a2a       hires Editor",
        "Editor     openclaw  defers",
        "Scout      agora     offers to find the news for 3.141593",
        "Checker    registry  fails",
        "Editor     openclaw  gets back all 2.00 held for Checker",
        "Polyglot   relay     replies to the message: \"le pont est ouvert\"",
        "Crier      clara     declines",
        "Courier    agora     wins the auction",
        "Reader     a2a       gets its bulletin and pays 20.00",
    ] {
        assert_eq!(told.matches(said).count(), 1, "{said} in\n{told}");
    }
    let sum = told.lines().find(|line| line.trim_start().starts_with("sum")).expect("a sum");
    assert_eq!(sum.split_whitespace().collect::<Vec<_>>(), ["sum", "0.00"]);
    assert_eq!(left_in(&place), Vec::<String>::new());
}

#[test]
fn neither_settings_nor_files_around_it_change_the_story() {
    let place = TempDir::new().expect("a directory");
    fs::write(place.path().join("rialto.toml"), "no = \"such setting\"\n").expect("a file");
    let mut command = demo(place.path(), &["--check", "--plain"]);
    command.env("RIALTO_LEDGER__WELCOME_GRANT", "100.00").env("RIALTO_OPERATOR_KEY", "ro_wrong");
    let (code, told, error) = ran(command);
    assert_eq!((code, error.as_str()), (0, ""), "{told}");
    assert_eq!(left_in(&place), ["rialto.toml"]);
}

#[test]
fn an_interrupted_demo_stops_its_hub_and_leaves_nothing_behind() {
    let place = TempDir::new().expect("a directory");
    let mut command = demo(place.path(), &[]);
    let mut running =
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it runs");
    let mut lines = Lines::of(running.stdout.take());
    let deferred = lines.any(|line| line.contains("defers"));
    assert!(deferred, "the demo is running");
    let id = running.id().to_string();
    let sent = Command::new("kill").args(["-INT", &id]).status().expect("kill can be run");
    assert!(sent.success());
    let status = ended(&mut running);
    let mut error = String::new();
    running.stderr.take().expect("a pipe").read_to_string(&mut error).expect("text");
    assert_eq!(status.code(), Some(1));
    assert_eq!(error, "rialto: the demo was interrupted\n");
    assert_eq!(left_in(&place), Vec::<String>::new());
}

#[test]
fn the_help_ends_with_examples_and_wrong_words_are_refused() {
    let place = TempDir::new().expect("a directory");
    let (code, help, _) = ran(demo(place.path(), &["--help"]));
    assert_eq!(code, 0);
    assert!(help.contains("\nExamples:\n  rialto demo\n"), "{help}");
    let (code, _, error) = ran(demo(place.path(), &["--chek"]));
    assert_eq!(code, 2);
    assert!(error.contains("--check"), "{error}");
}

/// What is in a directory.
fn left_in(place: &TempDir) -> Vec<String> {
    let all = fs::read_dir(place.path()).expect("it is there");
    all.map(|one| one.expect("a name").file_name().to_string_lossy().into_owned()).collect()
}

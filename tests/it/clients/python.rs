//! The Python package: its tests, its types and its style.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::kit::{npm_package, output, python_packages};

/// The tests, in groups that run at the same time.
const GROUPS: [&[&str]; 4] = [
    &["json", "schema", "wire", "hub", "context", "retry", "events", "webhook"],
    &["agent", "identity", "journal", "shutdown"],
    &["restart"],
    &["examples", "package", "readme"],
];
/// The checker of types that editors use.
const PYRIGHT: &str = "1.1.414";

fn package() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../clients/python")
}

/// Runs tests of the package with pytest.
#[track_caller]
fn passes(group: &[&str]) {
    let (folder, scratch) = (package(), TempDir::new().expect("a directory"));
    let mut pytest = Command::new("python3");
    pytest
        .args(["-m", "pytest", "--basetemp"])
        .arg(scratch.path().join("pytest"))
        .args(group.iter().map(|name| format!("tests/test_{name}.py")))
        .env("PYTHONPATH", python_packages(&folder.join("tests")))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("RIALTO_TEST_BINARY", env!("CARGO_BIN_EXE_rialto"))
        .current_dir(&folder);
    let done = output(&mut pytest).expect("it starts");
    let printed = String::from_utf8_lossy(&done.stdout).into_owned();
    let errors = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{printed}\n{errors}");
}

#[test]
fn the_python_package_calls_a_hub() {
    passes(GROUPS[0]);
}

#[test]
fn the_python_package_works_as_an_agent() {
    passes(GROUPS[1]);
}

#[test]
fn the_python_package_survives_kills() {
    passes(GROUPS[2]);
}

#[test]
fn the_python_package_builds_is_typed_and_runs_its_examples() {
    passes(GROUPS[3]);
}

#[test]
fn every_test_of_the_python_package_is_run() {
    let files = std::fs::read_dir(package().join("tests")).expect("a directory");
    let names =
        files.map(|file| file.expect("an entry").file_name().to_string_lossy().into_owned());
    let test_of = |name: String| name.strip_prefix("test_")?.strip_suffix(".py").map(str::to_owned);
    let written: BTreeSet<String> = names.filter_map(test_of).collect();
    let run: BTreeSet<String> = GROUPS.concat().into_iter().map(str::to_owned).collect();
    assert_eq!(written, run);
}

#[test]
fn the_types_of_the_python_package_are_sound_for_editors_too() {
    let tool = npm_package("pyright", PYRIGHT).join("node_modules/.bin/pyright");
    let folder = package();
    let mut pyright = Command::new(tool);
    pyright
        .env("PYTHONPATH", python_packages(&folder.join("tests")))
        .env("PYRIGHT_PYTHON_IGNORE_WARNINGS", "1")
        .current_dir(&folder);
    let done = output(&mut pyright).expect("it starts");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stdout));
}

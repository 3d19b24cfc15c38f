//! The README, run as printed: only the address is replaced by that of the test's own hub.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::kit::{Lines, Process, operator_key, output, python_packages, walk_with};

const README: &str = include_str!("../../README.md");

#[test]
fn the_readme_walk_through_works_as_printed() {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests");
    let packages = ["it/a2a/sdk/python-1.3", "mcp/packages/python-2.3"];
    let packages = packages.map(|folder| python_packages(&tests.join(folder)));
    let packages = std::env::join_paths(packages).expect("paths without separators");
    let environment = [("PYTHONPATH", packages.into())];
    assert!(walk_with(README, &environment) >= 6, "the README has its walk-through");
}

#[test]
fn the_dev_hub_greets_with_its_address_key_and_things_to_try() {
    let data = tempfile::TempDir::new().expect("a directory");
    let mut child = Command::new(env!("CARGO_BIN_EXE_rialto"))
        .args(["dev", "--listen", "127.0.0.1:0", "--data"])
        .arg(data.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts");
    let mut lines = Lines::of(child.stdout.take());
    let mut greeting = String::new();
    while !greeting.contains("rialto job post") {
        greeting.push_str(&lines.next().expect("the greeting is complete"));
        greeting.push('\n');
    }
    child.kill().expect("it can be killed");
    child.wait().expect("it ends");
    // The first commands in the hub's output are those of the README.
    let first = greeting.lines().skip_while(|line| !line.contains("in an empty folder")).skip(1);
    let first: Vec<&str> = first.map(str::trim).take_while(|line| !line.is_empty()).collect();
    let commands: Vec<&&str> = first.iter().filter(|line| line.starts_with("rialto ")).collect();
    assert_eq!(commands.len(), 3, "{greeting}");
    assert!(commands.iter().all(|line| README.contains(**line)), "{commands:?}");
    assert_eq!(greeting.matches("  curl ").count(), 4, "{greeting}");
    for part in ["http://127.0.0.1:", "operator key (shown only once): ro_", "count_words", "try:"]
    {
        assert!(greeting.contains(part), "{part} is missing in\n{greeting}");
    }
}

#[test]
fn the_two_commands_of_the_readme_are_the_documented_ones() {
    for command in ["cargo run --release -- dev", "cargo xtask test"] {
        assert!(README.contains(command), "{command}");
    }
    let ci = include_str!("../../.ci/run");
    assert!(ci.contains("cargo xtask test"));
}

#[test]
fn the_first_grant_of_the_readme_works_on_a_fresh_hub() {
    let creates = |line: &&str| line.contains("rialto operator grant") && line.contains("--create");
    let line = README.lines().find(creates).expect("a line");
    let data = tempfile::TempDir::new().expect("a directory");
    let key = operator_key();
    let hub = Process::with_env("serve", data.path(), &[], &[("RIALTO_OPERATOR_KEY", &key)]);
    let words: Vec<&str> = line.split_whitespace().skip_while(|word| *word != "rialto").collect();
    let mut command = Command::new(env!("CARGO_BIN_EXE_rialto"));
    command.args(&words[1..]).env("RIALTO_HUB", &hub.url).env("RIALTO_HOME", data.path());
    let ran = output(command.env("RIALTO_OPERATOR_KEY", &key)).expect("it runs");
    assert!(ran.status.success(), "{line}: {}", String::from_utf8_lossy(&ran.stderr));
    hub.kill();
}

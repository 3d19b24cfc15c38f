//! The README, run as printed: only the address is replaced by that of the test's own hub.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use crate::kit::Process;

/// What the README shows one can do, and what it says comes back.
struct Block {
    commands: String,
    answers: Vec<String>,
}

fn blocks(text: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut fence: Option<&str> = None;
    for line in text.lines() {
        match (fence, line.strip_prefix("```")) {
            (None, Some(kind)) => {
                fence = Some(kind);
                if kind == "sh" {
                    blocks.push(Block { commands: String::new(), answers: Vec::new() });
                }
            }
            (Some(_), Some(_)) => fence = None,
            (Some("sh"), None) => {
                let block = blocks.last_mut().expect("the fence opened one");
                block.commands.push_str(line);
                block.commands.push('\n');
            }
            (Some("json"), None) => {
                blocks.last_mut().expect("answers follow commands").answers.push(line.to_owned());
            }
            _ => {}
        }
    }
    blocks
}

#[test]
fn the_readme_walk_through_works_as_printed() {
    let readme = include_str!("../../README.md");
    let data = tempfile::TempDir::new().expect("a directory");
    let hub = Process::start("dev", data.path(), &[]);
    let address = hub.url.trim_start_matches("http://");
    let blocks = blocks(readme);
    assert!(blocks.len() >= 6, "the walk-through is there");
    // One shell for all blocks, so that variables set in one are there in the next.
    let mark = |at: usize| format!("=== block {at} ===");
    let script: String = blocks
        .iter()
        .enumerate()
        .map(|(at, block)| format!("echo; echo '{}'\n{}\n", mark(at), block.commands))
        .collect();
    let script = script.replace("127.0.0.1:7425", address);
    // The binary is on the path, as the README asks.
    let built = std::path::Path::new(env!("CARGO_BIN_EXE_rialto")).parent().expect("a folder");
    let path = format!("{}:{}", built.display(), std::env::var("PATH").unwrap_or_default());
    let mut shell = Command::new("bash");
    shell.args(["-euo", "pipefail", "-c", &script]).env("PATH", path);
    let ran = shell.output().expect("bash");
    let printed = String::from_utf8_lossy(&ran.stdout).into_owned();
    assert!(ran.status.success(), "{printed}\n{}", String::from_utf8_lossy(&ran.stderr));
    for (at, block) in blocks.iter().enumerate() {
        let (_, after) = printed.split_once(&mark(at)).expect("every block ran");
        let own = after.split("=== block").next().unwrap_or_default();
        for answer in &block.answers {
            assert!(
                own.contains(answer.as_str()),
                "README promises\n{answer}\nbut block {at} printed\n{own}"
            );
        }
    }
}

#[test]
fn the_dev_hub_greets_with_its_address_key_and_three_things_to_try() {
    let data = tempfile::TempDir::new().expect("a directory");
    let mut child = Command::new(env!("CARGO_BIN_EXE_rialto"))
        .args(["dev", "--listen", "127.0.0.1:0", "--data"])
        .arg(data.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts");
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let mut greeting = String::new();
    while greeting.matches("  curl ").count() < 3 {
        greeting.push_str(&lines.next().expect("the greeting is complete").expect("text"));
        greeting.push('\n');
    }
    child.kill().expect("it can be killed");
    child.wait().expect("it ends");
    for part in ["http://127.0.0.1:", "operator key, shown only now: ro_", "count_words", "try:"] {
        assert!(greeting.contains(part), "{part} is missing in\n{greeting}");
    }
}

#[test]
fn the_two_commands_of_the_readme_are_the_documented_ones() {
    let readme = include_str!("../../README.md");
    for command in ["cargo run --release -- dev", "cargo xtask test"] {
        assert!(readme.contains(command), "{command}");
    }
    let ci = include_str!("../../.ci/run");
    assert!(ci.contains("cargo xtask test"));
}

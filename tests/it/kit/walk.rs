//! A page of documentation, run as printed in one shell: only the hub's address is replaced.
//!
//! `sh` blocks run one after the other, so that variables set in one are there in the next. Each
//! line of the `json` block that follows one must be in its output.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Process, output};

/// The commands of a page, and the output it shows.
struct Block {
    commands: String,
    answers: Vec<String>,
}

/// Runs a page twice against its own hub, as a reader who tries it again does; returns the number
/// of blocks.
#[track_caller]
pub fn walk(page: &str) -> usize {
    walk_with(page, &[])
}

/// The same with variables that the page's commands need, such as where packages are installed.
pub fn walk_with(page: &str, environment: &[(&str, PathBuf)]) -> usize {
    let place = tempfile::TempDir::new().expect("a directory");
    let hub = Process::start("dev", &place.path().join("data"), &[]);
    walk_at(&hub, place.path(), page, environment)
}

/// The same against a hub that runs already, with a directory for what the commands leave.
#[track_caller]
pub fn walk_at(hub: &Process, place: &Path, page: &str, environment: &[(&str, PathBuf)]) -> usize {
    let blocks = blocks(page);
    for folder in ["first", "second"] {
        run(hub, place, (folder, environment), &blocks);
    }
    blocks.len()
}

fn run(
    hub: &Process,
    place: &Path,
    (folder, environment): (&str, &[(&str, PathBuf)]),
    blocks: &[Block],
) {
    let address = hub.url.trim_start_matches("http://");
    let script = script(blocks).replace("127.0.0.1:7425", address);
    let mut shell = shell(place, folder, &script);
    shell.env("RIALTO_HUB", &hub.url).envs(environment.iter().cloned());
    let ran = output(&mut shell).expect("bash");
    let printed = String::from_utf8_lossy(&ran.stdout).into_owned();
    assert!(ran.status.success(), "{printed}\n{}", String::from_utf8_lossy(&ran.stderr));
    for (at, block) in blocks.iter().enumerate() {
        let (_, after) = printed.split_once(&mark(at)).expect("every block ran");
        let own = after.split("=== block").next().unwrap_or_default();
        for answer in &block.answers {
            let there = own.contains(answer.as_str());
            assert!(
                there,
                "the page promises\n{answer}\nbut the {folder} time block {at} printed\n{own}"
            );
        }
    }
}

/// A shell with the binary on the path, isolated from this machine's settings.
fn shell(place: &Path, folder: &str, script: &str) -> Command {
    let (folder, home) = (place.join(folder), place.join(format!("{folder}-home")));
    std::fs::create_dir(&folder).expect("a folder");
    let built = Path::new(env!("CARGO_BIN_EXE_rialto")).parent().expect("a folder");
    let path = format!("{}:{}", built.display(), std::env::var("PATH").unwrap_or_default());
    let mut shell = Command::new("bash");
    let ours = |name: &OsStr| name.to_string_lossy().starts_with("RIALTO_");
    for (name, _) in std::env::vars_os().filter(|(name, _)| ours(name)) {
        shell.env_remove(name);
    }
    shell.args(["-euo", "pipefail", "-c", script]).current_dir(folder);
    shell.env("PATH", path).env("RIALTO_HOME", home);
    shell
}

fn script(blocks: &[Block]) -> String {
    // What a page leaves running is ended with it; the hub's own agents are online a moment after
    // it.
    let first = "trap 'kill $(jobs -p) 2> /dev/null || true' EXIT\n\
        until curl -s \"$RIALTO_HUB/discover?skill=count_words\" | grep -q agent_id; do sleep 0.1; done\n";
    let blocks = blocks.iter().enumerate();
    let blocks =
        blocks.map(|(at, block)| format!("echo; echo '{}'\n{}\n", mark(at), block.commands));
    first.to_owned() + &blocks.collect::<String>()
}

fn mark(at: usize) -> String {
    format!("=== block {at} ===")
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

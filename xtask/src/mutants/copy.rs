//! A copy of the tree, in which mistakes can be made.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::area::Area;
use super::change::Change;
use crate::steps::cargo;

/// How long a run of tests may take.
const PATIENCE: Duration = Duration::from_secs(600);
/// How often it is looked at.
const LOOK: Duration = Duration::from_millis(100);

/// The copy, and where it is built.
pub struct Copied {
    tree: PathBuf,
    target: PathBuf,
}

/// What became of a mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Caught,
    Missed,
    Unviable,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Caught => "noticed",
            Self::Missed => "MISSED",
            Self::Unviable => "no code",
        })
    }
}

impl Copied {
    /// Copies every file that git knows or would take.
    pub fn make() -> io::Result<Self> {
        let root = PathBuf::from("target").join("mutants");
        let (tree, target) = (root.join("tree"), root.join("target"));
        if tree.exists() {
            fs::remove_dir_all(&tree)?;
        }
        let listed = Command::new("git")
            .args(["ls-files", "--cached", "--others", "--exclude-standard"])
            .output()?;
        for name in String::from_utf8_lossy(&listed.stdout).lines() {
            let (from, to) = (Path::new(name), tree.join(name));
            if from.is_file() {
                to.parent().map_or(Ok(()), fs::create_dir_all)?;
                fs::copy(from, to)?;
            }
        }
        Ok(Self { tree, target: std::path::absolute(target)? })
    }

    /// Makes a mistake, runs the tests, and takes it back.
    pub fn try_out(&self, change: &Change, area: Area) -> Verdict {
        let path = self.tree.join(change.file);
        let Ok(text) = fs::read_to_string(&path) else { return Verdict::Unviable };
        let mut lines: Vec<&str> = text.lines().collect();
        match lines.get_mut(change.line - 1) {
            Some(line) if *line == change.before => *line = &change.after,
            _ => return Verdict::Unviable,
        }
        let verdict = match fs::write(&path, lines.join("\n") + "\n") {
            Ok(()) => self.tested(area),
            Err(_) => Verdict::Unviable,
        };
        // A copy that cannot be mended is of no more use, and every later line will differ.
        let _ = fs::write(&path, &text);
        verdict
    }

    fn tested(&self, area: Area) -> Verdict {
        if !self.cargo(area, &["--no-run"]) {
            return Verdict::Unviable;
        }
        if self.cargo(area, &[]) { Verdict::Missed } else { Verdict::Caught }
    }

    fn cargo(&self, area: Area, more: &[&str]) -> bool {
        cargo()
            .arg("test")
            .args(area.tests())
            .args(more)
            .current_dir(&self.tree)
            .env("CARGO_TARGET_DIR", &self.target)
            .env("CARGO_PROFILE_DEV_DEBUG", "0")
            .env("RUST_BACKTRACE", "0")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .is_ok_and(succeeds)
    }
}

/// Waits for a run of tests. One that never ends has noticed the mistake in its own way.
fn succeeds(mut run: Child) -> bool {
    let until = Instant::now() + PATIENCE;
    while Instant::now() < until {
        match run.try_wait() {
            Ok(Some(status)) => return status.success(),
            Ok(None) => thread::sleep(LOOK),
            Err(_) => break,
        }
    }
    // The tests are a group of their own below cargo; without it they end by themselves.
    let _ = run.kill();
    let _ = run.wait();
    false
}

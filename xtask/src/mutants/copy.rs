//! A copy of the tree in which mutants are tested.

use std::fmt;
use std::fs::{self, File};
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::area::Tests;
use super::change::Change;
use super::planted::PlantedMistake;
use crate::steps::cargo;

/// Timeouts for a test run: for all tests, and for quick ones.
const TIME_LIMIT: Duration = Duration::from_secs(900);
const SHORT_TIME_LIMIT: Duration = Duration::from_secs(240);
/// How often a running process is polled.
const LOOK: Duration = Duration::from_millis(100);

/// The copy, and its build directory.
pub struct Copied {
    tree: PathBuf,
    target: PathBuf,
    /// The output of the last cargo run.
    pub said: PathBuf,
}

/// The result for a mutant.
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
            Self::Unviable => "invalid",
        })
    }
}

impl Copied {
    /// Copies every file that git tracks or would add. Each run has its own copy, so that several
    /// can run at the same time.
    pub fn make(name: &str) -> io::Result<Self> {
        let root = PathBuf::from("target").join("mutants").join(name);
        let (tree, target, said) = (root.join("tree"), root.join("target"), root.join("said"));
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
        fs::create_dir_all(&root)?;
        Ok(Self { tree, target: std::path::absolute(target)?, said })
    }

    /// Applies a mutant, runs the tests, and reverts it.
    pub fn try_out(&self, change: &Change, tests: &[Tests]) -> Verdict {
        self.try_text(change.file, tests, |text| {
            let mut lines: Vec<&str> = text.lines().collect();
            let line = lines.get_mut(change.line - 1).filter(|line| **line == change.before)?;
            *line = &change.after;
            Some(lines.join("\n") + "\n")
        })
    }

    /// Applies a planted mistake, runs its tests, and reverts it.
    pub fn try_mistake(&self, mistake: &PlantedMistake) -> Verdict {
        self.try_text(mistake.file, &[mistake.tests], |text| {
            let is_there = text.matches(mistake.before).count() == 1;
            is_there.then(|| text.replace(mistake.before, mistake.after))
        })
    }

    fn try_text(
        &self,
        file: &str,
        tests: &[Tests],
        change: impl FnOnce(&str) -> Option<String>,
    ) -> Verdict {
        let path = self.tree.join(file);
        let Ok(text) = fs::read_to_string(&path) else { return Verdict::Unviable };
        let Some(changed) = change(&text) else { return Verdict::Unviable };
        let verdict = match fs::write(&path, changed) {
            Ok(()) => self.tested(tests),
            Err(_) => Verdict::Unviable,
        };
        // If the file cannot be restored, all later mutants fail visibly.
        let _ = fs::write(&path, &text);
        verdict
    }

    /// Whether the tests pass without a mutant; if not, they cannot detect one.
    pub fn is_sound(&self, tests: &[Tests]) -> bool {
        tests.iter().all(|one| self.cargo(one, true) && self.cargo(one, false))
    }

    fn tested(&self, tests: &[Tests]) -> Verdict {
        for one in tests {
            if !self.cargo(one, true) {
                return Verdict::Unviable;
            }
            if !self.cargo(one, false) {
                return Verdict::Caught;
            }
        }
        Verdict::Missed
    }

    fn listen(&self) -> Stdio {
        let said = File::options().create(true).append(true).open(&self.said);
        said.map_or_else(|_| Stdio::null(), Stdio::from)
    }

    /// Builds one set of tests, or builds and runs it.
    fn cargo(&self, tests: &Tests, build_only: bool) -> bool {
        let (what, which) = tests.line.split_once(" -- ").unwrap_or((tests.line, ""));
        let time_limit = if tests.is_near && !build_only { SHORT_TIME_LIMIT } else { TIME_LIMIT };
        let _ = fs::remove_file(&self.said);
        let mut command = cargo();
        command.arg("test").args(what.split_whitespace());
        match build_only {
            true => command.arg("--no-run"),
            false => command.arg("--").args(which.split_whitespace()),
        };
        command
            .current_dir(&self.tree)
            .env("CARGO_TARGET_DIR", &self.target)
            .env("CARGO_PROFILE_DEV_DEBUG", "0")
            // Only one line changes at a time, so incremental builds reuse nearly everything.
            .env("CARGO_INCREMENTAL", "1")
            .env("RUST_BACKTRACE", "0")
            // The same cases for every mutant: a case that failed for one of them must not be saved
            // and replayed for the next.
            .env("PROPTEST_RNG_SEED", "1")
            .env("PROPTEST_DISABLE_FAILURE_PERSISTENCE", "1")
            .env("PROPTEST_MAX_SHRINK_ITERS", "0")
            .stdout(self.listen())
            .stderr(self.listen())
            .process_group(0)
            .spawn()
            .is_ok_and(|run| succeeds(run, time_limit))
    }
}

/// Waits for a test run. A run that times out has detected the mutant.
fn succeeds(mut run: Child, time_limit: Duration) -> bool {
    let until = Instant::now() + time_limit;
    while Instant::now() < until {
        match run.try_wait() {
            Ok(Some(status)) => return status.success(),
            Ok(None) => thread::sleep(LOOK),
            Err(_) => break,
        }
    }
    // Kills the whole process group: a test in an endless loop would slow down all later ones.
    let group = format!("-{}", run.id());
    let _ = Command::new("kill").args(["-KILL", "--", &group]).status();
    let _ = run.wait();
    false
}

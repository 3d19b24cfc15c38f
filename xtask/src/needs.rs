//! Tools that the steps need on this machine, checked before the first step starts.
//!
//! Everything that must be installed or started for the tests belongs here; a private PostgreSQL
//! will be a further variant of [`Need`]. Tools are checked for and never installed silently. Only
//! a browser is installed, with a message, and only if the user is root. The packages of foreign
//! clients are not tools: their tests install them into the target directory, which needs only Node
//! with npm, and Python with pip.

use std::fmt;
use std::process::{Command, Stdio};

use crate::steps::{Step, cargo};

/// Something a step cannot run without.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// The formatter.
    Rustfmt,
    /// The linter.
    Clippy,
    /// Runs foreign clients.
    Node,
    /// Installs them.
    Npm,
    /// Runs the Python agent that `rialto init` generates, and clients made from the API document.
    Python,
}

impl Need {
    fn of(step: Step) -> &'static [Self] {
        match step {
            Step::Fmt => &[Self::Rustfmt],
            Step::Clippy => &[Self::Clippy],
            Step::Tests => &[Self::Node, Self::Npm, Self::Python],
            Step::Borders | Step::Words | Step::Sim | Step::Docs => &[],
        }
    }

    fn is_met(self) -> bool {
        let mut command = match self {
            Self::Rustfmt | Self::Clippy => cargo(),
            Self::Node => Command::new("node"),
            Self::Npm => Command::new("npm"),
            Self::Python => Command::new("python3"),
        };
        let command = match self {
            Self::Rustfmt => command.arg("fmt"),
            Self::Clippy => command.arg("clippy"),
            Self::Node | Self::Npm | Self::Python => &mut command,
        };
        runs(command.arg("--version"))
    }

    fn remedy(self) -> &'static str {
        match self {
            Self::Rustfmt => "rustfmt is missing; install it with `rustup component add rustfmt`",
            Self::Clippy => "clippy is missing; install it with `rustup component add clippy`",
            Self::Node => {
                "node is missing; the tests with foreign clients need Node.js 20 or later, see https://nodejs.org"
            }
            Self::Npm => {
                "npm is missing; it installs the foreign clients and comes with Node.js, see https://nodejs.org"
            }
            Self::Python => {
                "python3 is missing; the tests of the Python agent that `rialto init` generates and of Python clients need Python 3.10 or later with pip, see https://www.python.org"
            }
        }
    }
}

/// The missing tools. Its text says how to install them.
#[derive(Debug)]
pub struct Missing(Vec<Need>);

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let remedies: Vec<_> = self.0.iter().map(|need| need.remedy()).collect();
        write!(f, "xtask: {}", remedies.join("\nxtask: "))
    }
}

/// Checks for everything `steps` need, so that a missing tool is reported at once and not half an
/// hour into the run.
pub fn check(steps: &[Step]) -> Result<(), Missing> {
    let missing: Vec<Need> = steps
        .iter()
        .flat_map(|step| Need::of(*step))
        .copied()
        .filter(|need| !need.is_met())
        .collect();
    if missing.is_empty() { Ok(()) } else { Err(Missing(missing)) }
}

/// Program names of Chromium.
const CHROMIUM: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

/// Installs the browser that one test needs, if possible. If not, the test is skipped with a
/// message, or fails in CI.
pub fn get_browser(steps: &[Step]) {
    let there = CHROMIUM.iter().any(|name| runs(Command::new(name).arg("--version")));
    if there || !steps.contains(&Step::Tests) {
        return;
    }
    if !is_root() || !runs(Command::new("apt-get").arg("--version")) {
        println!(
            "xtask: Chromium is missing, so the test with a real browser is skipped; install it with \
             `apt-get install chromium`, or from https://www.chromium.org"
        );
        return;
    }
    println!("xtask: Chromium is missing; installing Debian's package `chromium`");
    let apt = |arguments: &[&str]| {
        let mut apt = Command::new("apt-get");
        apt.args(arguments).env("DEBIAN_FRONTEND", "noninteractive").stdout(Stdio::null());
        apt.status().is_ok_and(|status| status.success())
    };
    // A new machine may not have a package list yet.
    let install = ["install", "--yes", "--no-install-recommends", "chromium"];
    let installed = apt(&install) || apt(&["update"]) && apt(&install);
    if !installed {
        println!("xtask: `chromium` could not be installed; the browser test cannot run");
    }
}

fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output();
    id.is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}

/// Whether a command succeeds.
fn runs(command: &mut Command) -> bool {
    let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_missing_tool_is_named_with_its_remedy() {
        let said = Missing(vec![Need::Rustfmt, Need::Clippy, Need::Node, Need::Npm]).to_string();
        assert!(said.contains("rustup component add rustfmt"), "{said}");
        assert!(said.contains("rustup component add clippy"), "{said}");
        assert_eq!(said.matches("https://nodejs.org").count(), 2, "{said}");
    }

    #[test]
    fn a_step_that_only_compiles_needs_nothing_more() {
        assert!(check(&[Step::Borders, Step::Docs]).is_ok());
    }
}

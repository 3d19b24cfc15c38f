//! What the steps need on this machine, checked before the first one starts.
//!
//! This is the place for whatever has to be installed or started for the tests; a private PostgreSQL
//! will be a further entry of [`Need`], made ready here. Tools are looked for and never installed
//! behind anybody's back: only a browser is, aloud, by whoever runs as root. The packages of foreign
//! clients are no tools: their tests install them into the target directory, for which Node and its
//! npm are all they need.

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
    /// What foreign clients run on.
    Node,
    /// What installs them.
    Npm,
    /// What the agent that `rialto init` writes in it runs on.
    Python,
}

impl Need {
    fn of(step: Step) -> &'static [Self] {
        match step {
            Step::Fmt => &[Self::Rustfmt],
            Step::Clippy => &[Self::Clippy],
            Step::Tests => &[Self::Node, Self::Npm, Self::Python],
            Step::Borders | Step::Sim | Step::Docs => &[],
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
            Self::Rustfmt => "rustfmt is missing; get it with `rustup component add rustfmt`",
            Self::Clippy => "clippy is missing; get it with `rustup component add clippy`",
            Self::Node => {
                "node is missing; the tests with foreign clients need Node.js 20 or later, see https://nodejs.org"
            }
            Self::Npm => {
                "npm is missing; it installs the foreign clients and comes with Node.js, see https://nodejs.org"
            }
            Self::Python => {
                "python3 is missing; the test of the agent `rialto init` writes in it needs Python 3.9 or later, see https://www.python.org"
            }
        }
    }
}

/// The needs that are not met. Printed, it says how to meet them.
#[derive(Debug)]
pub struct Missing(Vec<Need>);

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let remedies: Vec<_> = self.0.iter().map(|need| need.remedy()).collect();
        write!(f, "xtask: {}", remedies.join("\nxtask: "))
    }
}

/// Looks for everything `steps` need, so that a missing tool is told at once and not half an hour
/// into the run.
pub fn check(steps: &[Step]) -> Result<(), Missing> {
    let missing: Vec<Need> = steps
        .iter()
        .flat_map(|step| Need::of(*step))
        .copied()
        .filter(|need| !need.is_met())
        .collect();
    if missing.is_empty() { Ok(()) } else { Err(Missing(missing)) }
}

/// What a Chromium is called.
const CHROMIUM: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

/// Installs the browser that one test needs, where that can be done. Where it cannot, the test is
/// skipped and says so, or fails in CI.
pub fn get_browser(steps: &[Step]) {
    let there = CHROMIUM.iter().any(|name| runs(Command::new(name).arg("--version")));
    if there || !steps.contains(&Step::Tests) {
        return;
    }
    if !is_root() || !runs(Command::new("apt-get").arg("--version")) {
        println!(
            "xtask: there is no Chromium, so the test with a real browser is skipped; get it with \
             `apt-get install chromium`, or from https://www.chromium.org"
        );
        return;
    }
    println!("xtask: there is no Chromium; installing Debian's package `chromium`");
    let apt = |arguments: &[&str]| {
        let mut apt = Command::new("apt-get");
        apt.args(arguments).env("DEBIAN_FRONTEND", "noninteractive").stdout(Stdio::null());
        apt.status().is_ok_and(|status| status.success())
    };
    // A machine that was just made knows no packages yet.
    let install = ["install", "--yes", "--no-install-recommends", "chromium"];
    let installed = apt(&install) || apt(&["update"]) && apt(&install);
    if !installed {
        println!("xtask: `chromium` could not be installed; the test with a real browser says so");
    }
}

fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output();
    id.is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}

/// Whether a command ends well.
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

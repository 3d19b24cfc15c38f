//! What the steps need on this machine, checked before the first one starts.
//!
//! This is the place for whatever has to be installed or started for the tests; a private PostgreSQL
//! will be a further entry of [`Need`], made ready here. Tools are looked for and never installed
//! behind anybody's back. The packages of foreign clients are no tools: their tests install them
//! into the target directory, for which Node and its npm are all they need.

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
        match self {
            Self::Rustfmt => command.arg("fmt"),
            Self::Clippy => command.arg("clippy"),
            Self::Node | Self::Npm | Self::Python => &mut command,
        }
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
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

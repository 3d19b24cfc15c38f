//! What the steps need on this machine, checked before the first one starts.
//!
//! This is the place for whatever has to be installed or started for the tests: the Node packages
//! of the foreign clients and a private PostgreSQL will be further entries of [`Need`], made ready
//! here. Today there are only two tools of the Rust toolchain, which are looked for and never
//! installed behind anybody's back.

use std::fmt;
use std::process::Stdio;

use crate::steps::{Step, cargo};

/// Something a step cannot run without.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// The formatter.
    Rustfmt,
    /// The linter.
    Clippy,
}

impl Need {
    fn of(step: Step) -> Option<Self> {
        match step {
            Step::Fmt => Some(Self::Rustfmt),
            Step::Clippy => Some(Self::Clippy),
            Step::Borders | Step::Tests | Step::Docs => None,
        }
    }

    fn is_met(self) -> bool {
        let subcommand = match self {
            Self::Rustfmt => "fmt",
            Self::Clippy => "clippy",
        };
        cargo()
            .args([subcommand, "--version"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|status| status.success())
    }

    fn remedy(self) -> &'static str {
        match self {
            Self::Rustfmt => "rustfmt is missing; get it with `rustup component add rustfmt`",
            Self::Clippy => "clippy is missing; get it with `rustup component add clippy`",
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
    let missing: Vec<Need> =
        steps.iter().filter_map(|step| Need::of(*step)).filter(|need| !need.is_met()).collect();
    if missing.is_empty() { Ok(()) } else { Err(Missing(missing)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_missing_tool_is_named_with_its_remedy() {
        let said = Missing(vec![Need::Rustfmt, Need::Clippy]).to_string();
        assert!(said.contains("rustup component add rustfmt"), "{said}");
        assert!(said.contains("rustup component add clippy"), "{said}");
    }

    #[test]
    fn a_step_that_only_compiles_needs_nothing_more() {
        assert!(check(&[Step::Borders, Step::Tests, Step::Docs]).is_ok());
    }
}

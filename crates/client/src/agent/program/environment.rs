//! Which environment variables a program gets.
//!
//! A program works on data from unknown senders. So it gets only the variables that any program
//! needs, and those passed by name. It does not get the agent's own secrets or whatever else
//! happens to be set: proxy URLs, for example, often contain a password.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};

use tokio::process::Command;

/// Variables every program gets, if they are set, besides `LC_*`.
const ALWAYS: [&str; 10] =
    ["PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "LANG", "LANGUAGE", "TZ", "TMPDIR"];

/// The environment variables a program gets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Environment {
    named: BTreeSet<String>,
}

/// Why a variable cannot be passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VariableError {
    /// It is not a valid name.
    #[error("a variable name must not be empty or contain =")]
    InvalidName,
    /// It is one of Rialto's own secrets.
    #[error("a program never gets a key or secret of the agent that runs it")]
    Secret,
}

impl Environment {
    /// Passes one more variable, by name. A variable that is not set is not passed.
    pub fn pass(mut self, name: &str) -> Result<Self, VariableError> {
        if name.is_empty() || name.contains(['=', '\0']) {
            return Err(VariableError::InvalidName);
        }
        if is_secret(name) {
            return Err(VariableError::Secret);
        }
        self.named.insert(name.to_owned());
        Ok(self)
    }

    /// Removes all other variables from the environment of `command`.
    pub(super) fn apply<'c>(&self, command: &'c mut Command) -> &'c mut Command {
        command.env_clear().envs(self.of(std::env::vars_os()))
    }

    fn of(
        &self,
        all: impl Iterator<Item = (OsString, OsString)>,
    ) -> impl Iterator<Item = (OsString, OsString)> {
        all.filter(|(name, _)| self.is_passed(name))
    }

    fn is_passed(&self, name: &OsStr) -> bool {
        let Some(name) = name.to_str() else { return false };
        ALWAYS.contains(&name) || name.starts_with("LC_") || self.named.contains(name)
    }
}

/// Whether a variable holds one of Rialto's own secrets: `RIALTO_KEY`, `RIALTO_HUB_SECRET` and so
/// on.
fn is_secret(name: &str) -> bool {
    name.starts_with("RIALTO_") && (name.ends_with("_KEY") || name.ends_with("_SECRET"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_gets_what_it_needs_to_run_and_what_is_passed_by_name() {
        let environment = Environment::default().pass("API_TOKEN").expect("a name");
        let set =
            ["PATH", "LC_ALL", "API_TOKEN", "API_TOKEN_2", "RIALTO_KEY", "HTTPS_PROXY", "path"];
        let all = set.map(|name| (name.into(), "value".into()));
        let given: Vec<_> = environment.of(all.into_iter()).map(|(name, _)| name).collect();
        assert_eq!(given, ["PATH", "LC_ALL", "API_TOKEN"]);
    }

    #[test]
    fn our_own_secrets_are_passed_by_no_name() {
        let pass = |name: &str| Environment::default().pass(name).map(drop);
        for name in ["KEY", "OPERATOR_KEY", "HUB_SECRET", "AGORA_KEY", "WEBHOOK_SECRET"] {
            assert_eq!(pass(&format!("RIALTO_{name}")), Err(VariableError::Secret), "{name}");
        }
        assert_eq!(pass("RIALTO_HUB"), Ok(()));
        assert_eq!(pass("A=b"), Err(VariableError::InvalidName));
        assert_eq!(pass(""), Err(VariableError::InvalidName));
    }
}

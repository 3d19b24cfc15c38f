//! One check and its result.

use serde_json::{Value, json};

use super::super::error::CliError;
use super::super::output::escape_line;

/// The status of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckStatus {
    Ok,
    /// It works, but may not be intended.
    Warn,
    /// Something will not work.
    Fail,
}

pub struct HealthCheck {
    pub name: String,
    pub status: CheckStatus,
    pub finding: String,
    /// What to do about it.
    pub next: Option<String>,
}

impl HealthCheck {
    pub fn ok(name: impl Into<String>, what: impl Into<String>) -> Self {
        Self { name: name.into(), status: CheckStatus::Ok, finding: what.into(), next: None }
    }

    pub fn warn(name: impl Into<String>, what: impl Into<String>, next: impl Into<String>) -> Self {
        Self { status: CheckStatus::Warn, next: Some(next.into()), ..Self::ok(name, what) }
    }

    pub fn fail(name: impl Into<String>, what: impl Into<String>, next: impl Into<String>) -> Self {
        Self { status: CheckStatus::Fail, ..Self::warn(name, what, next) }
    }

    /// A check that failed with an error.
    pub fn from_error(name: impl Into<String>, error: impl Into<CliError>) -> Self {
        let CliError { message, next, .. } = error.into();
        // The hint must not point to the command that is running.
        let next = next.filter(|next| !next.contains("`rialto doctor`"));
        Self { next, ..Self::fail(name, message, "") }
    }

    pub fn line(&self) -> String {
        let next = self.next.as_ref().map(|next| format!("; {next}")).unwrap_or_default();
        escape_line(&format!("{:4}  {:8}  {}{next}", self.status.as_str(), self.name, self.finding))
    }

    pub fn to_json(&self) -> Value {
        json!({"check": self.name, "verdict": self.status.as_str(), "what": self.finding, "next": self.next})
    }
}

impl CheckStatus {
    fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warn => "warn",
            Self::Fail => "fail",
        }
    }
}

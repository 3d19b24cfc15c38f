//! One check and its result.

use serde_json::{Value, json};

use super::super::output::one_line;
use super::super::error::Trouble;

/// The status of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Ok,
    /// It works, but may not be intended.
    Warn,
    /// Something will not work.
    Fail,
}

pub struct Check {
    pub name: String,
    pub verdict: Verdict,
    pub what: String,
    /// What to do about it.
    pub next: Option<String>,
}

impl Check {
    pub fn ok(name: impl Into<String>, what: impl Into<String>) -> Self {
        Self { name: name.into(), verdict: Verdict::Ok, what: what.into(), next: None }
    }

    pub fn warn(name: impl Into<String>, what: impl Into<String>, next: impl Into<String>) -> Self {
        Self { verdict: Verdict::Warn, next: Some(next.into()), ..Self::ok(name, what) }
    }

    pub fn fail(name: impl Into<String>, what: impl Into<String>, next: impl Into<String>) -> Self {
        Self { verdict: Verdict::Fail, ..Self::warn(name, what, next) }
    }

    /// A check that failed with an error.
    pub fn trouble(name: impl Into<String>, trouble: impl Into<Trouble>) -> Self {
        let Trouble { message, next, .. } = trouble.into();
        // The hint must not point to the command that is running.
        let next = next.filter(|next| !next.contains("`rialto doctor`"));
        Self { next, ..Self::fail(name, message, "") }
    }

    pub fn told(&self) -> String {
        let next = self.next.as_ref().map(|next| format!("; {next}")).unwrap_or_default();
        one_line(&format!("{:4}  {:8}  {}{next}", self.verdict.word(), self.name, self.what))
    }

    pub fn document(&self) -> Value {
        json!({"check": self.name, "verdict": self.verdict.word(), "what": self.what, "next": self.next})
    }
}

impl Verdict {
    fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warn => "warn",
            Self::Fail => "fail",
        }
    }
}

//! Errors of commands: what is wrong, what to do, and the exit code, the same for every command.

use rialto_client::CallError;
use serde_json::json;

use super::output;

/// The codes of each protocol for an id that was used with other content.
const OTHER_CONTENT: [&str; 3] =
    ["ERR_IDEMPOTENCY_CONFLICT", "IDEMPOTENCY_CONFLICT", "other_content"];

/// Hint for a key that the hub rejects.
pub const BAD_KEY: &str = "use a valid key with --key-file, RIALTO_KEY or --as";

/// No agent has the skill.
const NO_SUCH_SKILL: &str = "no_such_skill";
/// The named agent does not have it.
const SKILL_NOT_OFFERED: &str = "skill_not_offered";

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    Ok = 0,
    Failed = 1,
    Usage = 2,
    NotFound = 3,
    Auth = 4,
    Conflict = 5,
    RateLimited = 6,
    Unreachable = 7,
    TimedOut = 8,
}

impl From<Exit> for std::process::ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

impl From<&CallError> for Exit {
    fn from(error: &CallError) -> Self {
        match error {
            CallError::Refused { status, .. } => match status {
                400 | 415 | 422 => Self::Usage,
                401 | 403 => Self::Auth,
                404 => Self::NotFound,
                409 => Self::Conflict,
                429 => Self::RateLimited,
                _ => Self::Failed,
            },
            CallError::Unreachable { .. } => Self::Unreachable,
            CallError::TimedOut { .. } => Self::TimedOut,
            CallError::Unreadable(_) => Self::Failed,
        }
    }
}

/// Where a key comes from.
#[derive(Debug)]
pub struct KeySource {
    /// Description of the key, such as `the key in RIALTO_KEY`.
    pub key: String,
    /// Hint if the hub rejects it, where another key is not the solution.
    pub next: Option<String>,
}

impl KeySource {
    pub fn new(key: String) -> Self {
        Self { key, next: None }
    }
}

/// Why a command failed.
#[derive(Debug)]
pub struct CliError {
    pub exit: Exit,
    /// The hub's error code, if the hub refused.
    pub code: Option<String>,
    pub message: String,
    /// What to do next.
    pub next: Option<String>,
}

impl CliError {
    /// The command line is wrong.
    pub fn usage(message: impl Into<String>, next: impl Into<String>) -> Self {
        Self { exit: Exit::Usage, code: None, message: message.into(), next: Some(next.into()) }
    }

    /// The command failed.
    pub fn failed(message: impl Into<String>, next: impl Into<String>) -> Self {
        Self { exit: Exit::Failed, ..Self::usage(message, next) }
    }

    /// Something does not exist.
    pub fn not_found(message: impl Into<String>, next: impl Into<String>) -> Self {
        Self { exit: Exit::NotFound, ..Self::usage(message, next) }
    }

    /// Something conflicts with the command.
    pub fn conflict(message: impl Into<String>, next: impl Into<String>) -> Self {
        Self { exit: Exit::Conflict, ..Self::usage(message, next) }
    }

    /// The same, without anything to do about it.
    pub fn plain(message: impl Into<String>) -> Self {
        Self { next: None, ..Self::failed(message, "") }
    }

    /// The system has no random numbers.
    pub fn no_randomness(error: impl std::fmt::Display, next: &str) -> Self {
        Self::failed(format!("the system's random number generator failed: {error}"), next)
    }

    /// A key is required, and there is none.
    pub fn no_key() -> Self {
        let next = "pass a key with --key-file or RIALTO_KEY, act as an agent of this machine with --as NAME, or save one with `rialto context add NAME --hub URL --key-file FILE`";
        Self { exit: Exit::Auth, ..Self::usage("no key given", next) }
    }

    /// Adds a hint for this exit code, unless there already is one.
    pub fn with_hint_on(self, exit: Exit, next: impl Into<String>) -> Self {
        if self.exit == exit && self.next.is_none() {
            Self { next: Some(next.into()), ..self }
        } else {
            self
        }
    }

    /// For a rejected key, says where it comes from and what to do about it.
    pub fn with_key_source(self, source: Option<&KeySource>) -> Self {
        match source {
            Some(KeySource { key, next }) if self.next.as_deref() == Some(BAD_KEY) => {
                let next = next.as_deref().unwrap_or(BAD_KEY);
                let next = format!("the hub rejected {key}: {next}");
                Self { next: Some(next), ..self }
            }
            _ => self,
        }
    }

    /// For a rejected key, asks for the operator key.
    pub fn with_operator_hint(self) -> Self {
        let next = "set RIALTO_OPERATOR_KEY to this hub's operator key, which begins with ro_; the hub shows it at its first start, and a lost one is replaced with `rialto operator key rotate --data DIR` while the hub is stopped";
        match self.exit {
            Exit::Auth if self.code.is_some() => Self { next: Some(next.to_owned()), ..self },
            _ => self,
        }
    }

    /// Prints the error: as text for people, or as JSON for programs.
    pub fn report(&self, as_json: bool) -> Exit {
        if as_json {
            // A closed pipe is not an error: the reader has seen enough.
            output::print_data(self.to_json());
        } else {
            output::print_stderr(&format!("rialto: {}", self.message_text()));
        }
        self.exit
    }

    /// The error on one line, with text from others escaped. Errors about the caller's own command
    /// line or file may have more lines, as parsers print them.
    fn message_text(&self) -> String {
        let own = self.exit == Exit::Usage && self.code.is_none();
        let gap = if own && self.message.contains('\n') { "\n\n" } else { "; " };
        let next = self.next.as_ref().map(|next| format!("{gap}{next}")).unwrap_or_default();
        let text = format!("{}{next}", self.message.trim_end());
        if own { output::escape_lines(text.trim_end()) } else { output::escape_line(&text) }
    }

    fn to_json(&self) -> serde_json::Value {
        let mut document = json!({"error": self.message});
        let extra = [("code", &self.code), ("next", &self.next)];
        for (name, value) in extra.into_iter().filter_map(|(name, v)| Some((name, v.as_ref()?))) {
            document[name] = value.as_str().into();
        }
        document
    }
}

impl From<CallError> for CliError {
    fn from(error: CallError) -> Self {
        let mut exit = Exit::from(&error);
        let (message, next) = (error.to_string(), hint_for(&error));
        let CallError::Refused { code, hint, .. } = error else {
            return Self { exit, code: None, message, next };
        };
        // Exit codes follow the HTTP status, which for this conflict looks like a malformed
        // request.
        if OTHER_CONTENT.contains(&code.as_str()) {
            exit = Exit::Conflict;
        }
        // The same for these, although the request is well-formed.
        if [NO_SUCH_SKILL, SKILL_NOT_OFFERED].contains(&code.as_str()) {
            exit = Exit::NotFound;
        }
        let code = Some(code).filter(|code| !code.is_empty());
        Self { exit, code, message, next: next.or(hint) }
    }
}

/// The usual hint for an error.
fn hint_for(error: &CallError) -> Option<String> {
    let elsewhere = "choose the hub with --hub or RIALTO_HUB";
    let next = match error {
        CallError::Unreachable { .. } => {
            format!("check that it is running; `rialto dev` starts a local hub; {elsewhere}")
        }
        CallError::TimedOut { .. } => "try again later".to_owned(),
        CallError::Unreadable(_) => format!("check that this is a Rialto hub; {elsewhere}"),
        CallError::Refused { status, code, hint, retry_after, .. } => {
            match (*status, code.as_str()) {
                // agora has no keys; the hub says what is wrong with an envelope.
                (_, code) if code.starts_with("ERROR ") && retry_after.is_none() => return None,
                (401, _) => BAD_KEY.to_owned(),
                (402, "too_few_credits" | "TRANSFER_FAILED") => {
                    "`rialto wallet balance` shows the available credits".to_owned()
                }
                (402, "over_limit") => {
                    "use a key with higher limits, or one without limits".to_owned()
                }
                (402, "budget_too_low") => {
                    "raise --budget; `rialto agent search --skill NAME` shows prices".to_owned()
                }
                (_, SKILL_NOT_OFFERED) => {
                    "`rialto agent show` lists what the agent offers".to_owned()
                }
                (_, NO_SUCH_SKILL) => {
                    "`rialto agent search` lists agents and skills; `rialto agent run` offers a skill"
                        .to_owned()
                }
                // The hub says what to do.
                _ if error.is_suspended() => return None,
                // The hub says why the key does not fit.
                (403, _) if hint.is_some() => return None,
                (403, _) => "use the key of the agent or owner this belongs to".to_owned(),
                (404, "ERR_AGENT_NOT_FOUND") => "`rialto agent ls` lists agents".to_owned(),
                (404, "unknown") => format!("check that this is a Rialto hub; {elsewhere}"),
                (409, "ERR_AGENT_ID_TAKEN") => {
                    "choose another name, or give its key with --key-file".to_owned()
                }
                (429 | 503, _) => match retry_after {
                    Some(after) => format!("try again in {} s", after.as_secs()),
                    None => "try again later".to_owned(),
                },
                _ => return None,
            }
        }
    };
    Some(next)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn refused(status: u16, code: &str, hint: Option<&str>) -> CliError {
        CliError::from(CallError::Refused {
            status,
            code: code.to_owned(),
            message: "no".to_owned(),
            retryable: false,
            hint: hint.map(str::to_owned),
            retry_after: (status == 429).then_some(Duration::from_secs(7)),
        })
    }

    #[test]
    fn every_trouble_has_its_exit_and_a_next_step() {
        for (status, code, exit, next) in [
            (401, "ERR_UNAUTHORIZED", Exit::Auth, "--key-file"),
            (403, "ERR_SENDER_MISMATCH", Exit::Auth, "key"),
            (404, "ERR_AGENT_NOT_FOUND", Exit::NotFound, "agent ls"),
            (409, "ERR_AGENT_ID_TAKEN", Exit::Conflict, "another name"),
            (422, "ERR_IDEMPOTENCY_CONFLICT", Exit::Conflict, ""),
            (422, "other_content", Exit::Conflict, ""),
            (402, "too_few_credits", Exit::Failed, "rialto wallet balance"),
            (402, "over_limit", Exit::Failed, "higher limits"),
            (429, "ERR_RATE_LIMITED", Exit::RateLimited, "in 7 s"),
        ] {
            let cli_error = refused(status, code, None);
            assert_eq!(cli_error.exit, exit, "{code}");
            assert!(
                cli_error.message_text().contains(next) && cli_error.message_text().contains(code),
                "{code}"
            );
        }
        let timed_out = CliError::from(CallError::TimedOut { url: "http://x".to_owned() });
        assert_eq!(timed_out.exit, Exit::TimedOut);
    }

    #[test]
    fn a_command_suggests_a_fix_when_the_hub_gives_none() {
        let helped = |status, code| {
            refused(status, code, None).with_hint_on(Exit::NotFound, "look there").next
        };
        assert_eq!(helped(404, "not_found").as_deref(), Some("look there"));
        assert_eq!(helped(409, "wrong_state"), None);
        assert!(helped(422, SKILL_NOT_OFFERED).is_some_and(|next| next.contains("agent show")));
        assert!(helped(422, NO_SUCH_SKILL).is_some_and(|next| next.contains("agent run")));
        assert!(helped(404, "unknown").is_some_and(|next| next.contains("--hub")));
    }

    #[test]
    fn a_parsers_drawing_stays_a_drawing() {
        let parsed = toml::from_str::<toml::Table>("price = 0.05\nprice = 1").expect_err("twice");
        let cli_error =
            CliError::usage(format!("agent.toml: {parsed}"), "write it like:\n\nname = \"a\"\n");
        let text = cli_error.message_text();
        assert!(text.lines().any(|line| line == "2 | price = 1"), "{text}");
        assert!(text.ends_with("\n\nwrite it like:\n\nname = \"a\"") && !text.contains("\\n"));
        let nasty = CliError::usage("a\x1b[2J".to_owned(), "b");
        assert_eq!(nasty.message_text(), "a\\u{1b}[2J; b");
    }

    #[test]
    fn what_to_type_comes_before_what_the_hub_says_and_the_line_stays_one() {
        let not_found = refused(404, "ERR_AGENT_NOT_FOUND", Some("GET /agents"));
        assert!(not_found.message_text().ends_with("; `rialto agent ls` lists agents"));
        let cli_error = refused(403, "ERR_BLOCKED", Some("write to\nanother agent"));
        assert_eq!(
            cli_error.message_text(),
            "no (HTTP 403, ERR_BLOCKED); write to\\nanother agent"
        );
        let expected = json!({"error": "no (HTTP 403, ERR_BLOCKED)", "code": "ERR_BLOCKED",
            "next": "write to\nanother agent"});
        assert_eq!(cli_error.to_json(), expected);
    }
}

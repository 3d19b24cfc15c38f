//! Handlers outside this process: a command per job, a persistent program, or an HTTP server.
//!
//! All of them get the job as one JSON object, `{"job_id","skill","input","requester","budget",
//! "deadline","meta"}`, and answer with the result as JSON. Programs that exchange JSON lines may also
//! report, ask and refuse before: see the module `lines`.

mod conversation;
mod environment;
mod exec;
mod http_program;
mod lines;
mod lines_program;
mod pending;
mod persistent;
mod process_group;
mod run;
mod running;
mod tail;
#[cfg(test)]
mod tests;

pub use environment::{Environment, VariableError};
pub use exec::Exec;
pub(super) use exec::end_run;
pub use http_program::HttpProgram;
#[cfg(any(test, feature = "testkit"))]
pub use lines::{ProgramLine, ProgramReport, parse_line};
pub use lines_program::LinesProgram;
pub use persistent::PersistentProgram;
pub(super) use process_group::wait_for_groups;
pub use tail::LogSink;

use serde_json::Value;

use super::job::{OUTPUT_MAX, Outcome};

/// Maximum log size of one job, in bytes.
const LOG_MAX: u64 = 16 << 20;
/// Maximum length of a reason.
const REASON_MAX: usize = 500;

/// The program's reason for a failure: the member `error` of its output.
fn reason(written: &str) -> Option<String> {
    let written: Value = serde_json::from_str(written.trim()).ok()?;
    let reason = written.get("error")?;
    let text = reason.as_str().or_else(|| reason.get("message")?.as_str())?;
    Some(text.chars().take(REASON_MAX).collect()).filter(|text: &String| !text.is_empty())
}

/// The outcome for a program's output.
fn outcome_of_output(written: &[u8]) -> Outcome {
    if written.len() > OUTPUT_MAX {
        return Outcome::Failed(too_long("output", OUTPUT_MAX as u64));
    }
    match std::str::from_utf8(written) {
        Ok(text) => Outcome::from_json_text(text),
        Err(_) => Outcome::Failed("the output is not valid UTF-8".to_owned()),
    }
}

fn too_long(what: &str, than: u64) -> String {
    format!("the {what} is longer than {than} bytes")
}

//! Programs that do the work: any executable, a program that stays, or a server of one's own.
//!
//! All of them get the job as one JSON object, `{"job_id","skill","input","requester","budget",
//! "deadline"}`, and answer with the result as JSON.

mod exec;
mod group;
mod persistent;
mod tail;
#[cfg(test)]
mod tests;
mod web;

pub use exec::Exec;
pub(super) use exec::end;
pub(super) use group::all_ended;
pub use persistent::Persistent;
#[cfg(feature = "testkit")]
pub use persistent::told;
pub use tail::Log;
pub use web::Web;

use serde_json::Value;

/// The longest output that is read: what a hub takes.
const OUTPUT_MAX: usize = 1 << 20;
/// The longest reason that is passed on.
const REASON_MAX: usize = 500;

/// The reason a program gives for what it did not do: the member `error` of what it wrote.
fn reason(written: &str) -> Option<String> {
    let written: Value = serde_json::from_str(written.trim()).ok()?;
    let reason = written.get("error")?;
    let text = reason.as_str().or_else(|| reason.get("message")?.as_str())?;
    Some(text.chars().take(REASON_MAX).collect()).filter(|text: &String| !text.is_empty())
}

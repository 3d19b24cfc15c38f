//! Parses one output line of a persistent program.

use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;

use super::super::{OUTPUT_MAX, REASON_MAX, too_long};
use crate::agent::outcome::Outcome;

#[derive(Deserialize)]
struct OutputLine<'a> {
    job_id: String,
    #[serde(borrow, default, deserialize_with = "present")]
    output: Option<&'a RawValue>,
    error: Option<Value>,
    decline: Option<Value>,
}

/// Accepts an output that is present, even if it is `null`.
fn present<'de: 'a, 'a, D: Deserializer<'de>>(from: D) -> Result<Option<&'a RawValue>, D::Error> {
    <&RawValue>::deserialize(from).map(Some)
}

/// The job and its outcome, if the line is a reply to a job.
pub fn parse_line(line: &[u8]) -> Option<(String, Outcome)> {
    let (text, is_text) = match std::str::from_utf8(line) {
        Ok(text) => (text.into(), true),
        Err(_) => (String::from_utf8_lossy(line), false),
    };
    let line: OutputLine<'_> = serde_json::from_str(&text).ok()?;
    let outcome = match (line.output, line.error, line.decline) {
        (_, Some(why), _) => Outcome::Failed(reason(&why)),
        (_, None, Some(why)) => Outcome::Declined(reason(&why)),
        (Some(_), None, None) if !is_text => {
            Outcome::Failed("the output is not valid UTF-8".to_owned())
        }
        (Some(output), None, None) if output.get().len() > OUTPUT_MAX => {
            Outcome::Failed(too_long("output", OUTPUT_MAX as u64))
        }
        (Some(output), None, None) => Outcome::from_json_text(output.get()),
        (None, None, None) => Outcome::Failed("the program gave no output".to_owned()),
    };
    Some((line.job_id, outcome))
}

/// The reason as text: a string, an object's `message`, or the JSON itself.
fn reason(why: &Value) -> String {
    let text = why.as_str().or_else(|| why.get("message")?.as_str()).map(str::to_owned);
    text.unwrap_or_else(|| why.to_string()).chars().take(REASON_MAX).collect()
}

//! The outcome of a job.

use rialto_protocols::kit::ijson::{self, Json, JsonValue};
use serde::{Deserialize, Serialize};

/// Maximum output size in bytes: the largest body a hub accepts, minus space for the envelope of
/// any protocol.
pub(super) const OUTPUT_MAX: usize = (1 << 20) - (64 << 10);
/// Nesting levels reserved for the envelope around the output.
const RESERVED_LEVELS: usize = 4;

/// The outcome of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Success: a JSON object, as text.
    Done(String),
    /// The job was tried and failed for this reason, which the requester reads.
    Failed(String),
    /// Declined, so that another worker can do it.
    Declined(String),
    /// The input is not valid for the skill.
    #[serde(rename = "unfit")]
    InvalidInput(String),
}

impl Outcome {
    /// A successful outcome. A value that is not an object is wrapped as `{"result": …}`, because
    /// every protocol requires an object.
    pub fn from_output(output: &impl Serialize) -> Self {
        match serde_json::to_string(output) {
            Ok(text) => Self::Done(object(text)),
            Err(error) => Self::Failed(format!("the output cannot be serialized to JSON: {error}")),
        }
    }

    /// Reads JSON text written by a handler. JSON that some parsers misread or reject is a failure
    /// here, so that requesters of every protocol get the same result.
    pub fn from_json_text(text: &str) -> Self {
        let text = text.trim();
        if text.len() > OUTPUT_MAX {
            return Self::Failed(format!("the output is longer than {OUTPUT_MAX} bytes"));
        }
        match find_json_problem(text) {
            None => Self::Done(object(text.to_owned())),
            Some(why) => Self::Failed(format!("the output is not valid JSON: {why}")),
        }
    }

    /// Whether the job succeeded.
    pub fn is_done(&self) -> bool {
        matches!(self, Self::Done(_))
    }
}

/// The problem that keeps a text from being read the same way by all parsers.
fn find_json_problem(text: &str) -> Option<String> {
    match ijson::read(text.as_bytes()) {
        Ok(json) => find_unportable_value(&json, ijson::DEPTH_MAX - RESERVED_LEVELS),
        Err(error) => Some(error.to_string()),
    }
}

/// A value that some parsers cannot hold: a number out of range, or more levels than these.
fn find_unportable_value(json: &Json<'_>, levels: usize) -> Option<String> {
    let inside = |value: &Json<'_>| find_unportable_value(value, levels - 1);
    match json.value() {
        JsonValue::Number(digits) => {
            let is_beyond = digits.parse::<f64>().is_ok_and(f64::is_infinite);
            is_beyond.then(|| format!("the number {digits} is too large"))
        }
        JsonValue::Array(_) | JsonValue::Object(_) if levels == 0 => {
            Some(format!("nested more than {} levels deep", ijson::DEPTH_MAX - RESERVED_LEVELS))
        }
        JsonValue::Array(items) => items.iter().find_map(inside),
        JsonValue::Object(members) => members.iter().find_map(|(_, value)| inside(value)),
        JsonValue::Null | JsonValue::Bool(_) | JsonValue::String(_) => None,
    }
}

fn object(text: String) -> String {
    if text.starts_with('{') { text } else { format!(r#"{{"result":{text}}}"#) }
}

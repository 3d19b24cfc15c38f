//! A job as its worker sees it, whichever protocol it came from, and its outcome.

use std::time::Duration;

use rialto_core::money::Credits;
use rialto_core::time::Timestamp;
use rialto_protocols::kit::ijson::{self, Json, JsonValue};
use rialto_protocols::kit::{raw_json, rfc3339};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::dialogue::Dialogue;

/// Maximum output size in bytes: the largest body a hub accepts, minus space for the envelope of
/// any protocol.
pub(super) const OUTPUT_MAX: usize = (1 << 20) - (64 << 10);
/// Nesting levels reserved for the envelope around the output.
const RESERVED_LEVELS: usize = 4;

/// A job to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// The job's id; the same for every attempt.
    pub id: String,
    /// The assignment's number, counted from 1: a job may come back after it was given to another
    /// worker. Jobs from peers have no assignments: 0.
    pub epoch: u32,
    /// The requested skill.
    pub skill: String,
    /// The input, as JSON text.
    pub input: String,
    /// The requester's name in the protocol the job came from.
    pub requester: String,
    /// The maximum price.
    pub budget: Credits,
    /// The deadline, if there is one.
    pub deadline: Option<Timestamp>,
    /// How long the handler has from now.
    pub time_limit: Duration,
    /// Members of the request that the requester's protocol does not define, such as the `messageId`
    /// of A2A: a JSON object, as text.
    pub meta: Option<String>,
    /// What worker and requester exchange before the result.
    pub dialogue: Dialogue,
}

/// The JSON object that a program reads.
#[derive(Serialize)]
struct JobDocument<'a> {
    job_id: &'a str,
    skill: &'a str,
    input: Box<RawValue>,
    requester: &'a str,
    budget: Box<RawValue>,
    deadline: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    meta: Option<Box<RawValue>>,
}

impl Job {
    /// The input, parsed as `T`.
    pub fn input<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_str(&self.input)
    }

    /// The job as a program reads it: one line of JSON.
    pub fn to_json_line(&self) -> String {
        let document = JobDocument {
            job_id: &self.id,
            skill: &self.skill,
            input: raw_json::verbatim(&self.input),
            requester: &self.requester,
            budget: raw_json::verbatim(&self.budget.to_text(2)),
            deadline: self.deadline.map(rfc3339::format_millis),
            meta: self.meta.as_deref().map(raw_json::verbatim),
        };
        // The input may contain line breaks; the document must not.
        let text = serde_json::to_string(&document).unwrap_or_default();
        text.replace(['\n', '\r'], " ")
    }
}

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
    /// Refused for good: the job ends without blame, and the requester reads the reason.
    Refused(String),
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

/// How much of a number an error text shows.
const DIGITS_SHOWN: usize = 40;

/// A value that some parsers cannot hold: a number out of range, or more levels than these.
fn find_unportable_value(json: &Json<'_>, levels: usize) -> Option<String> {
    let inside = |value: &Json<'_>| find_unportable_value(value, levels - 1);
    match json.value() {
        JsonValue::Number(digits) => {
            let is_beyond = digits.parse::<f64>().is_ok_and(f64::is_infinite);
            // It may have thousands of digits.
            let more = if digits.len() > DIGITS_SHOWN { "…" } else { "" };
            let shown: String = digits.chars().take(DIGITS_SHOWN).collect();
            is_beyond.then(|| format!("the number {shown}{more} is too large"))
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

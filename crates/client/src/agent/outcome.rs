//! What comes of a job.

use rialto_protocols::kit::ijson::{self, Json, Kind};
use serde::{Deserialize, Serialize};

/// The longest output that is taken: a body that a hub takes, and room for what stands around it in
/// the envelope of any protocol.
pub(super) const OUTPUT_MAX: usize = (1 << 20) - (64 << 10);
/// Levels that are left for what stands around it.
const LEVELS: usize = 4;

/// What came of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It is done: JSON text of an object.
    Done(String),
    /// It was tried and did not work, for the reason given. The requester reads it.
    Failed(String),
    /// Somebody else may do it better.
    Declined(String),
    /// The input is not what the skill takes.
    Unfit(String),
}

impl Outcome {
    /// Something that was made, as JSON. What is no object is put into one as `result`, because
    /// every protocol wants one.
    pub fn done(output: &impl Serialize) -> Self {
        match serde_json::to_string(output) {
            Ok(text) => Self::Done(object(text)),
            Err(error) => Self::Failed(format!("the output cannot be serialized to JSON: {error}")),
        }
    }

    /// JSON text that a handler wrote. What some readers would take for something else, or not take
    /// at all, is a failure here, so that it is the same for requesters of every protocol.
    pub fn read(text: &str) -> Self {
        let text = text.trim();
        if text.len() > OUTPUT_MAX {
            return Self::Failed(format!("the output is longer than {OUTPUT_MAX} bytes"));
        }
        match wrong(text) {
            None => Self::Done(object(text.to_owned())),
            Some(why) => Self::Failed(format!("the output is not valid JSON: {why}")),
        }
    }

    /// Whether it is done.
    pub fn is_done(&self) -> bool {
        matches!(self, Self::Done(_))
    }
}

/// What keeps a text from being read by everybody alike.
fn wrong(text: &str) -> Option<String> {
    match ijson::read(text.as_bytes()) {
        Ok(json) => beyond(&json, ijson::DEPTH_MAX - LEVELS),
        Err(error) => Some(error.to_string()),
    }
}

/// What in it some readers cannot hold: a number beyond all numbers, or more levels than these.
fn beyond(json: &Json<'_>, levels: usize) -> Option<String> {
    let inside = |value: &Json<'_>| beyond(value, levels - 1);
    match json.kind() {
        Kind::Number(digits) => {
            let is_beyond = digits.parse::<f64>().is_ok_and(f64::is_infinite);
            is_beyond.then(|| format!("the number {digits} is too large"))
        }
        Kind::List(_) | Kind::Object(_) if levels == 0 => {
            Some(format!("nested more than {} levels deep", ijson::DEPTH_MAX - LEVELS))
        }
        Kind::List(items) => items.iter().find_map(inside),
        Kind::Object(members) => members.iter().find_map(|(_, value)| inside(value)),
        Kind::Null | Kind::Bool(_) | Kind::Text(_) => None,
    }
}

fn object(text: String) -> String {
    if text.starts_with('{') { text } else { format!(r#"{{"result":{text}}}"#) }
}

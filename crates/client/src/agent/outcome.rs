//! What comes of a job.

use serde::{Deserialize, Serialize};

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
            Err(error) => Self::Failed(format!("the output cannot be written: {error}")),
        }
    }

    /// JSON text that a handler wrote.
    pub fn read(text: &str) -> Self {
        let text = text.trim();
        match serde_json::from_str::<&serde_json::value::RawValue>(text) {
            Ok(_) => Self::Done(object(text.to_owned())),
            Err(error) => Self::Failed(format!("the output is no JSON: {error}")),
        }
    }

    /// Whether it is done.
    pub fn is_done(&self) -> bool {
        matches!(self, Self::Done(_))
    }
}

fn object(text: String) -> String {
    if text.starts_with('{') { text } else { format!(r#"{{"result":{text}}}"#) }
}

//! A job as its worker sees it, whichever protocol it came from.

use std::time::Duration;

use rialto_core::money::Credits;
use rialto_core::time::Timestamp;
use rialto_protocols::kit::{raw_json, rfc3339};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

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
        };
        // The input may contain line breaks; the document must not.
        let text = serde_json::to_string(&document).unwrap_or_default();
        text.replace(['\n', '\r'], " ")
    }
}

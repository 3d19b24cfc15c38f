//! A job as its worker sees it, whichever protocol it came by.

use std::time::Duration;

use rialto_core::money::Credits;
use rialto_core::time::Timestamp;
use rialto_protocols::kit::{stamp, write};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

/// Work that is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// What it is called; the same for every try at it.
    pub id: String,
    /// Which turn of this job it is, counted from 1: the same job may come back after it was handed
    /// on. Jobs of peers have no turns: 0.
    pub turn: u32,
    /// Which skill is wanted.
    pub skill: String,
    /// The input: JSON text.
    pub input: String,
    /// Who wants it, in the words of the protocol it came by.
    pub requester: String,
    /// What may be spent on it.
    pub budget: Credits,
    /// When it must be finished, if anybody said so.
    pub deadline: Option<Timestamp>,
    /// How long the handler has from now on.
    pub time_limit: Duration,
}

/// What a program reads: one JSON object.
#[derive(Serialize)]
struct Document<'a> {
    job_id: &'a str,
    skill: &'a str,
    input: Box<RawValue>,
    requester: &'a str,
    budget: Box<RawValue>,
    deadline: Option<String>,
}

impl Job {
    /// The input as a type of one's own.
    pub fn input<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_str(&self.input)
    }

    /// The job as a program reads it: JSON text on one line.
    pub fn document(&self) -> String {
        let document = Document {
            job_id: &self.id,
            skill: &self.skill,
            input: write::verbatim(&self.input),
            requester: &self.requester,
            budget: write::verbatim(&self.budget.text(2)),
            deadline: self.deadline.map(stamp::millis),
        };
        // Input may have been written over several lines; a document never is.
        let text = serde_json::to_string(&document).unwrap_or_default();
        text.replace(['\n', '\r'], " ")
    }
}

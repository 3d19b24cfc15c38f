//! Terms: how much an agent takes on, and whether it is asked before it has a job.

use serde::{Deserialize, Serialize};

/// On what terms an agent works.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Terms {
    /// Jobs in hand at the same time; no limit without.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_once: Option<u32>,
    /// Jobs begun in any 60 seconds; no limit without.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_minute: Option<u32>,
    /// It says itself whether it takes a job; otherwise the hub says yes for it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub answers_itself: bool,
    /// It says what input it takes, and others are held to that before a job is opened.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub strict: bool,
    /// It is told of work when it reads, the most urgent first, and not in the order it came.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub urgent_first: bool,
}

impl Terms {
    /// Whether there is nothing to say.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

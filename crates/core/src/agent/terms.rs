//! Terms: how much work an agent accepts, and how it takes it.

use serde::{Deserialize, Serialize};

/// The conditions under which an agent works.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Terms {
    #[serde(flatten)]
    pub capacity: Capacity,
    #[serde(flatten)]
    pub intake: JobIntake,
}

/// How many jobs an agent accepts; `None` for no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capacity {
    /// Jobs assigned at the same time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "at_once")]
    pub max_concurrent_jobs: Option<u32>,
    /// Jobs started in any 60 seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "per_minute")]
    pub max_starts_per_minute: Option<u32>,
}

/// How an agent takes jobs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobIntake {
    /// It accepts or refuses jobs itself; otherwise the hub accepts for it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[serde(rename = "answers_itself")]
    pub confirms_jobs: bool,
    /// Its input schema is enforced before a job is opened.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[serde(rename = "strict")]
    pub strict_input: bool,
    /// It is notified of work when it reads, the most urgent first, instead of in order of arrival.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub urgent_first: bool,
}

impl Terms {
    /// Whether an agent with that many assigned jobs accepts another one at the same time.
    pub fn has_capacity(&self, assigned_jobs: usize) -> bool {
        self.capacity.max_concurrent_jobs.is_none_or(|max| assigned_jobs < max as usize)
    }

    /// Whether there are no conditions.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

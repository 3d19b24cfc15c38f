//! Reputation: what finished jobs show about a worker.
//!
//! An outcome is a stored fact. A score is a fold over outcomes by a published formula. What an
//! agent claims about itself is never an input, and jobs within one owner never count.

pub mod customers;
pub mod score;
#[cfg(test)]
mod tests;
pub mod window;

use serde::{Deserialize, Serialize};

use crate::id::{AgentId, JobId, OutcomeId};
use crate::job::Cause;
use crate::money::Credits;
use crate::time::Timestamp;
pub use score::Score;

/// One finished job, as a fact about its worker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    pub id: OutcomeId,
    pub subject: AgentId,
    /// 1, 2, 3 … for each subject, without gaps.
    pub number: u64,
    pub job: JobId,
    /// The hiring agent; `None` for a guest.
    pub hired_by: Option<AgentId>,
    /// The hirer's own score at that time.
    pub hirer_score: Score,
    pub ok: bool,
    pub cause: Option<Cause>,
    /// Whether the score changes: not within one owner, and not if it was not the worker's fault.
    pub counted: bool,
    /// Whether it also counts in the hub's own ranking: free work for a new owner or guest does
    /// not.
    #[serde(default = "default_counts_in_ranking", skip_serializing_if = "is_true")]
    #[serde(rename = "weighs")]
    pub counts_in_ranking: bool,
    pub paid: Credits,
    /// When the subject accepted the job.
    pub assigned_at: Timestamp,
    pub ended_at: Timestamp,
    pub on_time: bool,
    /// The stepwise score after this outcome.
    pub score_after: Score,
    /// The subject's previous outcome.
    pub before: Option<OutcomeId>,
}

fn default_counts_in_ranking() -> bool {
    true
}

fn is_true(weighs: &bool) -> bool {
    *weighs
}

/// An agent's standing after all its outcomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Standing {
    pub score: Score,
    /// Outcomes of any kind; the number of the newest one.
    pub outcomes: u64,
    /// Counted ones: completed jobs for other owners.
    pub successes: u64,
    pub failures: u64,
}

impl Default for Standing {
    fn default() -> Self {
        Self { score: Score::START, outcomes: 0, successes: 0, failures: 0 }
    }
}

impl Standing {
    /// Settled jobs for other owners.
    pub fn settled_jobs(&self) -> u64 {
        self.successes + self.failures
    }

    /// The standing after one more outcome. All scores come from this fold.
    pub fn after(self, ok: bool, counted: bool, hirer: Score) -> Self {
        let outcomes = self.outcomes + 1;
        match (counted, ok) {
            (false, _) => Self { outcomes, ..self },
            (true, true) => {
                let score = self.score.after_success(hirer);
                Self { score, outcomes, successes: self.successes + 1, ..self }
            }
            (true, false) => {
                let score = self.score.after_failure();
                Self { score, outcomes, failures: self.failures + 1, ..self }
            }
        }
    }
}

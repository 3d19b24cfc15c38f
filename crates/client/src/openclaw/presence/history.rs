//! An agent's work history: the counts and the score it claims.

use rialto_core::reputation::window::{Rates, Window, WindowOutcome};
use rialto_core::time::{Millis, Timestamp};
use rialto_protocols::openclaw::wire::ReputationMetrics;
use rialto_protocols::openclaw::wire::reputation::Score;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// The response time that scores zero (R43).
const RESPONSE_SCALE: Millis = Millis::seconds(10);
/// The score of an agent without history; the hub ranks it with the same value (R87).
const UNPROVEN: u32 = 500_000;

/// A finished collaboration, successful or not. Cancelled ones are not counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FinishedCollaboration {
    /// The collaboration's id.
    pub collaboration_id: Uuid,
    /// Whether there is a valid output.
    pub ok: bool,
    /// Whether it was on time.
    pub on_time: bool,
    /// The time from acceptance to result.
    pub took: Millis,
}

/// An agent's work history. It can be serialized, to keep it across restarts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkHistory {
    successful: i64,
    failed: i64,
    newest: Window,
}

impl FinishedCollaboration {
    /// Whether a collaboration finished `at` this time was on time: by its deadline or, without
    /// one, by the promised time (R86).
    pub fn is_on_time(
        at: Timestamp,
        deadline: Option<Timestamp>,
        promised: Option<Timestamp>,
    ) -> bool {
        deadline.or(promised).is_none_or(|limit| at <= limit)
    }
}

impl WorkHistory {
    /// Adds a finished collaboration.
    pub(in crate::openclaw) fn push(&mut self, done: FinishedCollaboration) {
        let FinishedCollaboration { ok, on_time, took, .. } = done;
        if ok {
            self.successful += 1;
        } else {
            self.failed += 1;
        }
        self.newest.push(WindowOutcome { ok, on_time, took });
    }

    /// The score of the last hundred (R43, R44).
    pub fn score(&self) -> Score {
        let millionths = self.newest.score(RESPONSE_SCALE).map(u32::try_from).and_then(Result::ok);
        Score::new(millionths.unwrap_or(UNPROVEN)).unwrap_or(Score::ONE)
    }

    /// The metrics behind the score: counts over the lifetime, rates over the last hundred.
    pub fn metrics(&self) -> ReputationMetrics {
        let share = |millionths: i64| u32::try_from(millionths).ok().and_then(Score::new);
        let rates = self.newest.rates();
        let of = |part: fn(Rates) -> i64| rates.map(part);
        ReputationMetrics {
            total_collaborations: Some(self.successful + self.failed),
            successful_collaborations: Some(self.successful),
            failed_collaborations: Some(self.failed),
            success_rate: of(|rates| rates.success).and_then(share),
            average_response_time_ms: of(|rates| rates.average_duration.0),
            on_time_completion_rate: of(|rates| rates.on_time).and_then(share),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn done(ok: bool) -> FinishedCollaboration {
        FinishedCollaboration { collaboration_id: Uuid::nil(), ok, on_time: ok, took: Millis(0) }
    }

    #[test]
    fn counts_are_of_a_lifetime_and_rates_of_the_last_hundred() {
        let mut record = WorkHistory::default();
        assert_eq!(record.score().text(), "0.5");
        assert_eq!(record.metrics().success_rate, None);
        (0..150).for_each(|n| record.push(done(n >= 50)));
        let metrics = record.metrics();
        assert_eq!(metrics.total_collaborations, Some(150));
        assert_eq!(metrics.failed_collaborations, Some(50));
        assert_eq!(metrics.success_rate, Some(Score::ONE));
        assert_eq!(record.score(), Score::ONE);
        let text = serde_json::to_string(&record).expect("it can be written");
        assert_eq!(serde_json::from_str::<WorkHistory>(&text).expect("and read"), record);
    }

    #[test]
    fn in_time_is_by_the_deadline_and_else_by_the_promise() {
        let (early, late) = (Timestamp(1), Timestamp(9));
        let at = Timestamp(5);
        for (deadline, promised, on_time) in [
            (None, None, true),
            (Some(at), None, true),
            (Some(early), Some(late), false),
            (Some(late), Some(early), true),
            (None, Some(early), false),
        ] {
            assert_eq!(FinishedCollaboration::is_on_time(at, deadline, promised), on_time);
        }
    }
}

//! Reputation updates: what an agent claims about itself, or what the hub measured. Scores are exact
//! decimals from 0 to 1; the core calculates them.

use rialto_core::money::Credits;
use rialto_core::time::Timestamp;
use uuid::Uuid;

use super::reader::MessageReader;
use super::words::UpdateType;
use super::{CommonMembers, Kind, MessageBody};
use crate::kit::object::ObjectWriter;
use crate::kit::raw_json;
use crate::kit::raw_json::Number;

/// The content of a reputation update.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReputationUpdate {
    /// The agent it is about.
    pub agent_id: Uuid,
    /// Why it was sent.
    pub update_type: UpdateType,
    /// The score.
    pub score: Score,
    /// When it was calculated.
    pub at: Timestamp,
    /// The figures it was calculated from.
    pub metrics: Option<ReputationMetrics>,
    /// The collaboration that changed the score.
    pub collaboration_id: Option<Uuid>,
    /// The id that traces the message.
    pub correlation_id: Uuid,
    /// When the message was written.
    pub timestamp: Timestamp,
}

/// The figures that a score is calculated from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReputationMetrics {
    /// The number of all collaborations so far (D4).
    pub total_collaborations: Option<i64>,
    /// The number of completed collaborations.
    pub successful_collaborations: Option<i64>,
    /// The number of failed collaborations.
    pub failed_collaborations: Option<i64>,
    /// The share of completed collaborations.
    pub success_rate: Option<Score>,
    /// The average time from acceptance to result.
    pub average_response_time_ms: Option<i64>,
    /// The share of collaborations completed in time.
    pub on_time_completion_rate: Option<Score>,
}

impl MessageBody for ReputationUpdate {
    const KIND: Kind = Kind::Reputation;

    fn read(r: &mut MessageReader<'_, '_>) -> Option<Self> {
        let whole = r.root();
        let update = whole.part("reputation_update");
        let update_type = update.text("update_type").and_then(UpdateType::read);
        if let Some(kind @ (UpdateType::Completed | UpdateType::Failed)) = update_type {
            r.require_when(&update, "collaboration_id", &format!("update_type is {kind}"));
        }
        let metrics = update.part("metrics");
        let metrics = metrics.exists().then(|| ReputationMetrics {
            total_collaborations: r.number(&metrics, "total_collaborations"),
            successful_collaborations: r.number(&metrics, "successful_collaborations"),
            failed_collaborations: r.number(&metrics, "failed_collaborations"),
            success_rate: r.score(&metrics, "success_rate"),
            average_response_time_ms: r.number(&metrics, "average_response_time_ms"),
            on_time_completion_rate: r.score(&metrics, "on_time_completion_rate"),
        });
        let agent_id = r.uuid(&whole, "agent_id");
        let score = r.score(&update, "reputation_score");
        let at = r.time(&update, "update_timestamp");
        let collaboration_id = r.uuid(&update, "collaboration_id");
        let correlation_id = r.uuid(&whole, "correlation_id");
        let timestamp = r.time(&whole, "timestamp");
        Some(Self {
            agent_id: agent_id?,
            update_type: update_type?,
            score: score?,
            at: at?,
            metrics,
            collaboration_id,
            correlation_id: correlation_id?,
            timestamp: timestamp?,
        })
    }
}

impl ReputationMetrics {
    /// The JSON text.
    pub fn write(&self) -> String {
        let rate = |rate: Option<Score>| rate.map(Score::text);
        ObjectWriter::new()
            .maybe_integer("total_collaborations", self.total_collaborations)
            .maybe_integer("successful_collaborations", self.successful_collaborations)
            .maybe_integer("failed_collaborations", self.failed_collaborations)
            .maybe_raw("success_rate", rate(self.success_rate).as_deref())
            .maybe_integer("average_response_time_ms", self.average_response_time_ms)
            .maybe_raw("on_time_completion_rate", rate(self.on_time_completion_rate).as_deref())
            .finish()
    }
}

impl ReputationUpdate {
    /// The JSON text of the message.
    pub fn write(&self) -> String {
        let update = ObjectWriter::new()
            .text("update_type", self.update_type.as_str())
            .raw("reputation_score", &self.score.text())
            .time("update_timestamp", self.at)
            .maybe_raw("metrics", self.metrics.as_ref().map(ReputationMetrics::write).as_deref())
            .maybe_uuid("collaboration_id", self.collaboration_id);
        let object = ObjectWriter::new()
            .uuid("agent_id", self.agent_id)
            .raw("reputation_update", &update.finish());
        let common =
            CommonMembers { correlation_id: self.correlation_id, timestamp: self.timestamp };
        common.write_to(object).finish()
    }
}

/// A score or rate in millionths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Score(u32);

impl Score {
    /// The best score.
    pub const ONE: Self = Self(1_000_000);
    /// The worst score.
    pub const ZERO: Self = Self(0);
    /// How far a claim may be from the hub's score before it counts as different (R48).
    const TOLERANCE: u32 = 10_000;

    /// A score from millionths; `None` above one.
    pub const fn new(millionths: u32) -> Option<Self> {
        if millionths <= Self::ONE.0 { Some(Self(millionths)) } else { None }
    }

    /// The score in millionths.
    pub const fn millionths(self) -> u32 {
        self.0
    }

    /// Reads a JSON number from 0 to 1. Decimals past the sixth are cut off.
    pub fn parse(digits: &str) -> Option<Self> {
        // Not money, but the same parser reads decimal text into exact millionths.
        let exact = Credits::parse(digits, 6).ok().map(Credits::micros);
        let millionths = exact.or_else(|| {
            let near: f64 = digits.parse().ok()?;
            (0.0..=1.0).contains(&near).then_some((near * 1_000_000.0) as i64)
        })?;
        u32::try_from(millionths).ok().and_then(Self::new)
    }

    /// The JSON number, with at least one decimal.
    pub fn text(self) -> String {
        Credits::from_micros(i64::from(self.0)).to_text(1)
    }

    /// The JSON number as a serde value.
    pub fn json(self) -> Number {
        raw_json::millionths(i64::from(self.0))
    }

    /// Whether a claim is further from this than two honest calculations would be (R48).
    pub fn differs(self, claimed: Self) -> bool {
        self.0.abs_diff(claimed.0) > Self::TOLERANCE
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn scores_are_exact() {
        for (text, millionths, written) in [
            ("0.9235", 923_500, "0.9235"),
            ("1", 1_000_000, "1.0"),
            ("0", 0, "0.0"),
            ("9.2e-1", 920_000, "0.92"),
            ("0.33333333333333331", 333_333, "0.333333"),
            ("-0.0", 0, "0.0"),
        ] {
            let score = Score::parse(text).expect(text);
            assert_eq!((score.millionths(), score.text().as_str()), (millionths, written));
            assert_eq!(score.json().get(), written);
        }
        for text in ["1.1", "-0.1", "x", "1e400", "", "1.0000001"] {
            assert_eq!(Score::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_claim_differs_by_more_than_a_hundredth() {
        let score = |millionths| Score::new(millionths).expect("a score");
        assert!(!score(923_500).differs(score(930_000)));
        assert!(!score(920_000).differs(score(930_000)));
        assert!(score(919_999).differs(score(930_000)));
        assert!(Score::new(1_000_001).is_none());
    }

    proptest! {
        #[test]
        fn a_written_score_is_read_back(millionths in 0..=1_000_000_u32) {
            let score = Score::new(millionths).expect("at most one");
            prop_assert_eq!(Score::parse(&score.text()), Some(score));
        }

        #[test]
        fn no_number_makes_the_reader_panic(text in "-?[0-9]{1,30}(\\.[0-9]{1,30})?(e-?[0-9]{1,5})?") {
            let _ = Score::parse(&text);
        }
    }
}

//! Reputation updates: what an agent claims about itself, or what the hub measured.

use rialto_core::time::Timestamp;
use uuid::Uuid;

use super::Said;
use super::reader::Reader;
use crate::kit::object::Object;
use crate::openclaw::common::Common;
use crate::openclaw::kind::Kind;
use crate::openclaw::score::Score;
use crate::openclaw::state::UpdateType;

/// The content of a reputation update.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reputation {
    /// The agent it is about.
    pub agent_id: Uuid,
    /// Why it was sent.
    pub update_type: UpdateType,
    /// The score.
    pub score: Score,
    /// When it was calculated.
    pub at: Timestamp,
    /// The figures it was calculated from.
    pub metrics: Option<Metrics>,
    /// The collaboration that changed the score.
    pub collaboration_id: Option<Uuid>,
    /// The id that traces the message.
    pub correlation_id: Uuid,
    /// When the message was written.
    pub timestamp: Timestamp,
}

/// The figures that a score is calculated from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Metrics {
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

impl Said for Reputation {
    const KIND: Kind = Kind::Reputation;

    fn find(r: &mut Reader<'_, '_>) -> Option<Self> {
        let whole = r.whole();
        let update = whole.part("reputation_update");
        let update_type = update.text("update_type").and_then(UpdateType::read);
        if let Some(kind @ (UpdateType::Completed | UpdateType::Failed)) = update_type {
            r.need(&update, "collaboration_id", &format!("update_type is {kind}"));
        }
        let metrics = update.part("metrics");
        let metrics = metrics.is_there().then(|| Metrics {
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

impl Metrics {
    /// The JSON text.
    pub fn write(&self) -> String {
        let rate = |rate: Option<Score>| rate.map(Score::text);
        Object::new()
            .maybe_whole("total_collaborations", self.total_collaborations)
            .maybe_whole("successful_collaborations", self.successful_collaborations)
            .maybe_whole("failed_collaborations", self.failed_collaborations)
            .maybe_raw("success_rate", rate(self.success_rate).as_deref())
            .maybe_whole("average_response_time_ms", self.average_response_time_ms)
            .maybe_raw("on_time_completion_rate", rate(self.on_time_completion_rate).as_deref())
            .finish()
    }
}

impl Reputation {
    /// The JSON text of the message.
    pub fn write(&self) -> String {
        let update = Object::new()
            .text("update_type", self.update_type.as_str())
            .raw("reputation_score", &self.score.text())
            .time("update_timestamp", self.at)
            .maybe_raw("metrics", self.metrics.as_ref().map(Metrics::write).as_deref())
            .maybe_id("collaboration_id", self.collaboration_id);
        let object =
            Object::new().id("agent_id", self.agent_id).raw("reputation_update", &update.finish());
        let common = Common { correlation_id: self.correlation_id, timestamp: self.timestamp };
        common.on(object).finish()
    }
}

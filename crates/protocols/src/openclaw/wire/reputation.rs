//! Reputation updates: what an agent claims about itself, or what the hub measured.

use rialto_core::time::Timestamp;
use uuid::Uuid;

use super::MessageBody;
use super::reader::MessageReader;
use crate::kit::object::ObjectWriter;
use crate::openclaw::common::CommonMembers;
use crate::openclaw::kind::Kind;
use crate::openclaw::score::Score;
use crate::openclaw::state::UpdateType;

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

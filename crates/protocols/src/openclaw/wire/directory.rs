//! Directory entries: the published identities, with the members that the hub replaces by its own
//! data (section 2.4).

use rialto_core::time::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use uuid::Uuid;

use super::answers::{answer, common_members};
use super::reputation::Score;
use super::words::Status;
use super::{CommonMembers, ReportedStatus, ReputationMetrics};
use crate::kit::ijson::Json;
use crate::kit::object::ObjectWriter;
use crate::kit::raw_json::Number;
use crate::openclaw::VERSION;

/// What the hub knows about an agent.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentInfo<'a> {
    /// The last status the agent reported; `None` means as published.
    pub report: Option<ReportedStatus>,
    /// The status that counts, with running work and silence taken into account.
    pub effective_status: Status,
    /// Whether the agent has not reported for too long (R33).
    pub stale: bool,
    /// The number of running collaborations.
    pub active_collaborations: u64,
    /// The hub's own score; `None` before the first finished collaboration (R87).
    pub score: Option<Score>,
    /// The figures the score is calculated from.
    pub metrics: ReputationMetrics,
    /// When the agent was published, by the hub's clock (R23).
    pub registered_at: Timestamp,
    /// For a bridged agent: its home protocol and its id there (B1).
    pub native: Option<(&'a str, &'a str)>,
}

/// Members of an identity that the hub replaces by its own data.
const REPLACED: [&str; 12] = [
    "trust_signals",
    "claimed_trust_signals",
    "effective_status",
    "stale",
    "active_collaborations",
    "registered_at",
    "protocol",
    "native_id",
    "protocol_version",
    "correlation_id",
    "timestamp",
    "status",
];

/// An identity as the hub shows it: the agent's own text, except for the members that the hub
/// replaces. The endpoint is never shown.
pub fn write_entry(identity: &Json<'_>, standing: &AgentInfo<'_>) -> ObjectWriter {
    let mut but = REPLACED.to_vec();
    but.push("endpoint");
    let status = match (&standing.report, identity.get("status")) {
        (Some(report), _) => report.write_to(ObjectWriter::new()).finish(),
        (None, Some(published)) => published.raw().to_owned(),
        (None, None) => "{}".to_owned(),
    };
    let claimed = identity.get("trust_signals").map(Json::raw);
    let (protocol, native_id) = standing.native.unzip();
    ObjectWriter::copy_without(identity, &but)
        .raw("status", &status)
        .raw("trust_signals", &trust(standing))
        .maybe_raw("claimed_trust_signals", claimed)
        .text("effective_status", standing.effective_status.as_str())
        .flag("stale", standing.stale)
        .raw("active_collaborations", &standing.active_collaborations.to_string())
        .time("registered_at", standing.registered_at)
        .maybe_text("protocol", protocol)
        .maybe_text("native_id", native_id)
}

/// `GET /agents/{id}`.
pub fn write_agent(identity: &Json<'_>, standing: &AgentInfo<'_>, common: CommonMembers) -> String {
    common.write_to(write_entry(identity, standing)).finish()
}

/// `GET /agents/{id}/reputation`: the hub's last update, if there is one, and the agent's own last
/// update as `claimed`.
pub fn write_reputation(update: &Json<'_>, claimed: Option<&Json<'_>>) -> String {
    ObjectWriter::copy_without(update, &["claimed", "protocol_version"])
        .raw("claimed", claimed.map_or("null", Json::raw))
        .text("protocol_version", VERSION)
        .finish()
}

fn trust(standing: &AgentInfo<'_>) -> String {
    let ReputationMetrics { total_collaborations, success_rate, average_response_time_ms, .. } =
        &standing.metrics;
    // The schema does not allow null, so without a score the member is left out.
    ObjectWriter::new()
        .maybe_raw("reputation_score", standing.score.map(Score::text).as_deref())
        .integer("total_collaborations", total_collaborations.unwrap_or(0))
        .maybe_raw("success_rate", success_rate.map(Score::text).as_deref())
        .maybe_integer("average_response_time_ms", *average_response_time_ms)
        .finish()
}

answer! {
    /// `GET /agents`: one page of identities.
    Page {
        /// The agents; [`AgentEntry`] reads one.
        #[schemars(with = "Vec<AgentEntry>")]
        agents: Vec<Box<RawValue>>,
        /// The cursor of the next page; `null` on the last.
        next_cursor: Option<String>,
    }
}

/// The members of an entry that a client reads.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
pub struct AgentEntry {
    /// Its id.
    pub agent_id: Uuid,
    /// Its name.
    pub agent_name: String,
    /// Its capabilities.
    pub capabilities: CapabilityList,
    /// The status that counts.
    pub effective_status: Status,
    /// Whether the agent has not reported for too long.
    pub stale: bool,
    /// The number of running collaborations.
    pub active_collaborations: u64,
    /// The hub's figures.
    pub trust_signals: TrustSignals,
    /// For a bridged agent: its home protocol.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<String>,
    /// For a bridged agent: its id in that protocol.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub native_id: Option<String>,
}

/// The capabilities of an agent.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
pub struct CapabilityList {
    /// One entry for each capability.
    pub advertised_capabilities: Vec<CapabilityEntry>,
}

/// One capability of an agent.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
pub struct CapabilityEntry {
    /// Its id.
    pub capability_id: String,
    /// Its name.
    pub capability_name: String,
    /// Its description.
    pub description: String,
    /// Its price.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Number>")]
    pub price: Option<Box<RawValue>>,
}

/// The hub's figures about an agent.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
pub struct TrustSignals {
    /// The score; `None` before the first finished collaboration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reputation_score: Option<Number>,
    /// The number of all collaborations so far.
    pub total_collaborations: u64,
}

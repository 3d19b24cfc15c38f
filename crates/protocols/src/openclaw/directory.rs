//! The directory: who is here, as published, with what the hub knows better (section 2.4).

use rialto_core::time::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use uuid::Uuid;

use super::VERSION;
use super::answers::{answer, texts};
use super::common::Common;
use super::message::{Metrics, Report};
use super::score::Score;
use super::state::Status;
use crate::kit::ijson::Json;
use crate::kit::object::Object;

/// What the hub knows of an agent.
#[derive(Clone, Debug, PartialEq)]
pub struct Standing<'a> {
    /// How it last said it is; as published when nothing newer is known.
    pub report: Option<Report>,
    /// How it counts, work and silence considered.
    pub effective_status: Status,
    /// Whether it has been silent for too long (R33).
    pub stale: bool,
    /// How many collaborations run.
    pub active_collaborations: u64,
    /// The hub's own score; none before the first finished collaboration (R87).
    pub score: Option<Score>,
    /// What the score is made of.
    pub metrics: Metrics,
    /// The hub's time of publishing (R23).
    pub registered_at: Timestamp,
    /// For a bridged agent: the protocol it speaks itself and its id there (B1).
    pub native: Option<(&'a str, &'a str)>,
}

/// Members of an identity that the hub answers for.
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

/// An identity as the hub shows it: the agent's own words but where the hub knows better. Nobody is
/// shown where it is pushed to.
pub fn entry(identity: &Json<'_>, standing: &Standing<'_>) -> Object {
    let mut but = REPLACED.to_vec();
    but.push("endpoint");
    let status = match (&standing.report, identity.get("status")) {
        (Some(report), _) => report.on(Object::new()).finish(),
        (None, Some(published)) => published.raw().to_owned(),
        (None, None) => "{}".to_owned(),
    };
    let claimed = identity.get("trust_signals").map(Json::raw);
    let (protocol, native_id) = standing.native.unzip();
    Object::copy(identity, &but)
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
pub fn shown(identity: &Json<'_>, standing: &Standing<'_>, common: Common) -> String {
    common.on(entry(identity, standing)).finish()
}

/// `GET /agents/{id}/reputation`: the hub's last update, if there was one, and the agent's own last one
/// as `claimed`.
pub fn reputation(update: &Json<'_>, claimed: Option<&Json<'_>>) -> String {
    Object::copy(update, &["claimed", "protocol_version"])
        .raw("claimed", claimed.map_or("null", Json::raw))
        .text("protocol_version", VERSION)
        .finish()
}

fn trust(standing: &Standing<'_>) -> String {
    let Metrics { total_collaborations, success_rate, average_response_time_ms, .. } =
        &standing.metrics;
    // The schema knows no null: without a score the member is left out.
    Object::new()
        .maybe_raw("reputation_score", standing.score.map(Score::text).as_deref())
        .whole("total_collaborations", total_collaborations.unwrap_or(0))
        .maybe_raw("success_rate", success_rate.map(Score::text).as_deref())
        .maybe_whole("average_response_time_ms", *average_response_time_ms)
        .finish()
}

answer! {
    /// `GET /agents`: one page of identities.
    Page {
        /// The agents; [`Entry`] reads one.
        agents: Vec<Box<RawValue>>,
        /// Leads to the next page; `null` on the last.
        next_cursor: Option<String>,
    }
}

/// What a client wants to know of an agent.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Entry {
    /// Its id.
    pub agent_id: Uuid,
    /// Its name.
    pub agent_name: String,
    /// What it can do.
    pub capabilities: Offered,
    /// How it counts.
    pub effective_status: Status,
    /// Whether it has been silent for too long.
    pub stale: bool,
    /// How many collaborations run.
    pub active_collaborations: u64,
    /// The hub's figures.
    pub trust_signals: TrustSignals,
    /// For a bridged agent: the protocol it speaks itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<String>,
    /// For a bridged agent: its id there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub native_id: Option<String>,
}

/// What an agent can do.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Offered {
    /// One entry each.
    pub advertised_capabilities: Vec<Advertised>,
}

/// One thing an agent can do.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Advertised {
    /// Its id.
    pub capability_id: String,
    /// Its name.
    pub capability_name: String,
    /// What it is.
    pub description: String,
    /// What it costs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<Box<RawValue>>,
}

/// The hub's figures about an agent.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct TrustSignals {
    /// The score; none before the first finished collaboration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reputation_score: Option<Box<RawValue>>,
    /// All collaborations ever.
    pub total_collaborations: u64,
}

//! Presence: an agent sets its availability or unregisters.

use axum::extract::State;
use rialto_core::agent::presence::Availability;
use rialto_core::agent::status::AgentStatusUpdate;
use rialto_core::command::Command;
use rialto_protocols::adapter::HubContext;
use rialto_protocols::adapter::request::BodyBytes;
use rialto_protocols::kit::fields::Malformed;
use rialto_protocols::kit::ijson;
use schemars::JsonSchema;
use serde::Serialize;

use super::auth::AgentCaller;
use super::response::{HandlerResult, ok_response};
use super::strict_fields;

#[derive(Serialize, JsonSchema)]
pub struct StatusResponse {
    #[schemars(with = "AgentStatusResult")]
    status: &'static str,
}

rialto_protocols::words! {
    /// Whether the agent takes work.
    AvailabilityName: "online" | "busy" | "offline"
}

rialto_protocols::words! {
    /// The new status of the agent.
    AgentStatusResult: "online" | "busy" | "offline" | "unregistered"
}

rialto_protocols::request_members! {
    /// The body of `POST /v1/me/status`.
    #[schemars(deny_unknown_fields)]
    StatusBody {
        status: AvailabilityName,
    }
}

/// `POST /v1/me/status`: sets the availability. An offline agent gets no new work but keeps its
/// assigned jobs. A busy agent is online, and new work may have to wait.
pub async fn set_status(
    State(context): State<HubContext>,
    by: AgentCaller,
    BodyBytes(body): BodyBytes,
) -> HandlerResult {
    let json = ijson::read(&body).map_err(Malformed::from)?;
    let f = strict_fields::parse_fields(&json, StatusBody::MEMBERS)?;
    let (availability, status) = match f.required("status", f.text("status")?)? {
        "online" => (Availability::Idle, "online"),
        "busy" => (Availability::Busy, "busy"),
        "offline" => (Availability::Offline, "offline"),
        _ => return Err(f.malformed("status", "must be online, busy or offline").into()),
    };
    let told = AgentStatusUpdate { availability, until: None, words: None };
    context.engine.run_once(Command::ReportStatus { agent: by.id, status: told }, by.once).await?;
    Ok(ok_response(&StatusResponse { status }))
}

/// `DELETE /v1/me`: unregisters the caller. Its id stays reserved, and it may register again with
/// this key; its assigned jobs fail.
pub async fn unregister(State(context): State<HubContext>, by: AgentCaller) -> HandlerResult {
    let command = Command::Remove { agent: by.id, by_operator: false };
    context.engine.run_once(command, by.once).await?;
    Ok(ok_response(&StatusResponse { status: "unregistered" }))
}

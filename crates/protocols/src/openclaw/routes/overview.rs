//! Health check.

use axum::extract::State;

use crate::adapter::HubContext;
use crate::openclaw::answers::Health;
use crate::openclaw::say::{self, HandlerResult};

/// `GET /health`.
pub async fn health(State(context): State<HubContext>) -> HandlerResult {
    let agents =
        context.engine.with_world(|world| world.agents().filter(|agent| agent.active).count());
    let (status, hub_id) = (Health::STATUS.to_owned(), context.openclaw.hub_id.to_string());
    let common = say::common_members(&context, None);
    Ok(say::json_response(200, &Health::new(common, status, hub_id, agents as u64)))
}

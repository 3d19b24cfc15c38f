//! Health check.

use axum::extract::State;

use crate::adapter::Floor;
use crate::openclaw::answers::Health;
use crate::openclaw::say::{self, Answered};

/// `GET /health`.
pub async fn health(State(floor): State<Floor>) -> Answered {
    let agents = floor.engine.look(|world| world.agents().filter(|agent| agent.active).count());
    let (status, hub_id) = (Health::STATUS.to_owned(), floor.openclaw.hub_id.to_string());
    let common = say::common(&floor, None);
    Ok(say::json(200, &Health::new(common, status, hub_id, agents as u64)))
}

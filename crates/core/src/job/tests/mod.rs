//! Jobs from the asking to the settling, shown by what they do.

mod agreeing;
mod answering;
mod asking;
mod bidding;
mod crossing;
mod ending;
mod naming;
mod opening;
mod selecting;
mod working;

use super::Policy;
use crate::id::AgentId;
use crate::testkit::Scene;

/// Goes on to the next worker whatever happens, and waits when there is none.
const PATIENT: Policy = Policy {
    next_when_unreachable: true,
    next_when_declined: true,
    next_when_failed: true,
    queue_unmatched: true,
    presence_first: false,
    cancel_any_time: false,
};

/// What a signer that can pay begins with.
const AWAY_PURSE: &str = "10";

/// A hub with one client that can pay.
fn market() -> (Scene, AgentId) {
    let mut scene = Scene::default();
    let client = scene.client("client", "rich", "100.00");
    (scene, client)
}

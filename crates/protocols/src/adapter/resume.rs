//! Positions at which readers resume a stream.

use std::time::Duration;

use rialto_core::world::World;
use rialto_engine::Engine;
use tokio::time::{Instant, sleep};

/// How long a node waits for a position that a reader has.
const POSITION_TIMEOUT: Duration = Duration::from_secs(5);
/// How often it looks meanwhile.
const LOOK_INTERVAL: Duration = Duration::from_millis(20);

/// The reason for [`UnknownPosition`], as every API words it.
pub const UNKNOWN_POSITION: &str = "Last-Event-ID is an id of another hub: this one has no such event; leave it out to start again";

/// No node of this hub has sent an event with the id that a reader presents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownPosition;

/// Whether the world has the position that a reader presents.
///
/// A reader that comes from another node may have a position that this node does not have yet. Then
/// it is waited for, and an error if it does not come. A hub of one node knows at once that it has
/// never given out that position, so the answer is no, and each stream has its own rule for that.
pub async fn has_position(
    engine: &Engine,
    reaches: impl Fn(&World) -> bool,
) -> Result<bool, UnknownPosition> {
    if engine.with_world(&reaches) {
        return Ok(true);
    }
    if engine.subscribe_current().is_none() {
        return Ok(false);
    }
    let until = Instant::now() + POSITION_TIMEOUT;
    while Instant::now() < until {
        sleep(LOOK_INTERVAL).await;
        if engine.with_world(&reaches) {
            return Ok(true);
        }
    }
    Err(UnknownPosition)
}

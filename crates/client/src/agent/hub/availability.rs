//! Reports the agent's availability: the hub is told when the agent is full and when it has
//! capacity again.

use std::time::Duration;

use tokio::time::sleep;

use super::lifecycle::stand;
use super::report::{may_pass, pause};
use super::event::{Tell, Told};
use crate::agent::handlers::Workshop;
use crate::call::Hub;

/// How long a change must last before it is reported; most jobs take less.
const SETTLED: Duration = Duration::from_secs(1);

/// Reports changes until the hub refuses them permanently.
pub(super) async fn report(hub: &Hub, shop: &Workshop, tell: &Tell) {
    let mut full = shop.fullness();
    let (mut told, mut failures) = (false, 0);
    loop {
        let is_full = *full.borrow_and_update();
        if is_full == told {
            // The handlers hold the sender, so the channel cannot be closed.
            let _ = full.changed().await;
            sleep(SETTLED).await;
            continue;
        }
        match stand(hub, if is_full { "busy" } else { "online" }).await {
            Ok(()) => (told, failures) = (is_full, 0),
            Err(error) if may_pass(&error) => {
                failures += 1;
                tell(Told::trouble("cannot report availability", &error));
                sleep(pause(&error, failures)).await;
            }
            Err(_) => return,
        }
    }
}

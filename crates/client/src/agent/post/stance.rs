//! How the agent stands: the hub is told when there is no room for more, and when there is again.

use std::time::Duration;

use tokio::time::sleep;

use super::leave::stand;
use super::report::{may_pass, pause};
use super::told::{Tell, Told};
use crate::agent::workshop::Workshop;
use crate::call::Hub;

/// How long it must stay so before the hub is told: most jobs take less.
const SETTLED: Duration = Duration::from_secs(1);

/// Tells the hub until it does not want to know any more.
pub(super) async fn report(hub: &Hub, shop: &Workshop, tell: &Tell) {
    let mut full = shop.fullness();
    let (mut told, mut failures) = (false, 0);
    loop {
        let is_full = *full.borrow_and_update();
        if is_full == told {
            // The workshop is here, so that it cannot be gone.
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

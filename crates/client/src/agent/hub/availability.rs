//! Reports the agent's availability: the hub is told when the agent is full and when it has
//! capacity again.

use std::time::Duration;

use tokio::time::sleep;

use super::event::{AgentEvent, EventCallback};
use super::lifecycle::set_status;
use super::report::{is_retryable, retry_delay};
use crate::agent::handlers::Handlers;
use crate::call::Hub;

/// How long a change must last before it is reported; most jobs take less.
const DEBOUNCE: Duration = Duration::from_secs(1);

/// Reports changes until the hub refuses them permanently.
pub(super) async fn report_availability(hub: &Hub, shop: &Handlers, tell: &EventCallback) {
    let mut full = shop.watch_full();
    let (mut told, mut failures) = (false, 0);
    loop {
        let is_full = *full.borrow_and_update();
        if is_full == told {
            // The handlers hold the sender, so the channel cannot be closed.
            let _ = full.changed().await;
            sleep(DEBOUNCE).await;
            continue;
        }
        match set_status(hub, if is_full { "busy" } else { "online" }).await {
            Ok(()) => (told, failures) = (is_full, 0),
            Err(error) if is_retryable(&error) => {
                failures += 1;
                tell(AgentEvent::from_error("cannot report availability", &error));
                sleep(retry_delay(&error, failures)).await;
            }
            Err(_) => return,
        }
    }
}

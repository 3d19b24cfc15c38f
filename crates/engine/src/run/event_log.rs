//! Log lines about commits that an operator wants to see: keys, credits created or destroyed,
//! suspensions, and failed deliveries. Things are named by the hub's own ids.

use rialto_core::changes::Changes;
use rialto_core::event::{Event, HistoryLine};
use tracing::info;

/// Writes the lines of one batch.
pub fn log_batch(changes: &Changes) {
    for line in &changes.history_lines {
        for event in &line.events {
            log_event(line, event);
        }
    }
}

fn log_event(line: &HistoryLine, event: &Event) {
    let by_operator = line.by_operator;
    match event {
        // Every registration issues a key; only later keys are worth a line.
        Event::KeyIssued { agent } if !is_registration(line) => {
            info!(%agent, by_operator, "key issued")
        }
        Event::KeyRevoked { agent } => info!(%agent, by_operator, "keys revoked"),
        Event::SecretRenewed { agent } => info!(%agent, "webhook secret renewed"),
        Event::OperatorKeyIssued => info!("operator key issued"),
        Event::Granted { owner, amount, welcome: false } => {
            info!(%owner, amount = amount.to_text(2), "credits granted");
        }
        Event::Burned { owner, amount } => {
            info!(%owner, amount = amount.to_text(2), "credits burned")
        }
        Event::AgentRemoved { agent, by_operator: true } => info!(%agent, "agent removed"),
        Event::AgentSuspended { agent } => info!(%agent, "agent suspended"),
        Event::AgentResumed { agent } => info!(%agent, "agent resumed"),
        Event::OwnerSuspended { owner } => info!(%owner, "owner suspended"),
        Event::OwnerResumed { owner } => info!(%owner, "owner resumed"),
        Event::HubRestored { epoch } => info!(epoch, "restored from a backup"),
        Event::DeliveryFailed { notice, attempts } => info!(%notice, attempts, "delivery failed"),
        Event::DeliveryAbandoned { notice } => info!(%notice, "delivery abandoned"),
        Event::EndpointDisabled { agent } => info!(%agent, "endpoint disabled"),
        _ => {}
    }
}

fn is_registration(line: &HistoryLine) -> bool {
    line.events.iter().any(|event| matches!(event, Event::AgentRegistered { .. }))
}

//! Log lines about commits that an operator wants to see: keys, credits created or destroyed,
//! suspensions, and failed deliveries. Things are named by the hub's own ids.

use rialto_core::changes::Changes;
use rialto_core::event::{Event, Line};
use tracing::info;

/// Writes the lines of one batch.
pub fn write(changes: &Changes) {
    for line in &changes.lines {
        for event in &line.events {
            tell(line, event);
        }
    }
}

fn tell(line: &Line, event: &Event) {
    let by_operator = line.by_operator;
    match event {
        // Every registration issues a key; only later keys are worth a line.
        Event::KeyIssued { agent } if !enrols(line) => info!(%agent, by_operator, "key issued"),
        Event::KeyRevoked { agent } => info!(%agent, by_operator, "keys revoked"),
        Event::SecretRenewed { agent } => info!(%agent, "webhook secret renewed"),
        Event::OperatorKeyIssued => info!("operator key issued"),
        Event::Granted { owner, amount, welcome: false } => {
            info!(%owner, amount = amount.text(2), "credits granted");
        }
        Event::Burned { owner, amount } => info!(%owner, amount = amount.text(2), "credits burned"),
        Event::AgentRemoved { agent, by_operator: true } => info!(%agent, "agent removed"),
        Event::AgentSuspended { agent } => info!(%agent, "agent suspended"),
        Event::AgentResumed { agent } => info!(%agent, "agent resumed"),
        Event::OwnerSuspended { owner } => info!(%owner, "owner suspended"),
        Event::OwnerResumed { owner } => info!(%owner, "owner resumed"),
        Event::HubRestored { epoch } => info!(epoch, "restored from a backup"),
        Event::PushFailed { notice, attempts } => info!(%notice, attempts, "delivery failed"),
        Event::PushGivenUp { notice } => info!(%notice, "delivery abandoned"),
        Event::EndpointSwitchedOff { agent } => info!(%agent, "endpoint disabled"),
        _ => {}
    }
}

fn enrols(line: &Line) -> bool {
    line.events.iter().any(|event| matches!(event, Event::AgentEnrolled { .. }))
}

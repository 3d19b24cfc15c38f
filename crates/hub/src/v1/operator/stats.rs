//! Numbers about the hub as a whole.

use std::collections::BTreeMap;

use axum::extract::State;
use rialto_core::id::AgentId;
use rialto_core::money::Credits;
use rialto_core::owner::Owner;
use rialto_engine::Engine;
use rialto_protocols::face::Floor;
use serde::Serialize;
use serde_json::value::RawValue;

use crate::v1::answer::{Answered, money, ok};
use crate::v1::jobs::view;
use crate::v1::proof::AsOperator;

/// Agents counted in one go; in between the lane may publish.
const SLICE: u64 = 10_000;

#[derive(Serialize)]
struct Stats {
    /// Raised at each restore from a backup.
    epoch: u64,
    /// Registered now.
    agents: usize,
    online: usize,
    owners: u64,
    /// Not ended, by state.
    live_jobs: BTreeMap<&'static str, usize>,
    jobs_opened: u64,
    payments: u64,
    volume: Box<RawValue>,
    /// Credits in circulation.
    issued: Box<RawValue>,
}

/// `GET /v1/operator/stats`.
pub async fn show(State(floor): State<Floor>, _by: AsOperator) -> Answered {
    let agents = agents(&floor.engine).await;
    let stats = floor.engine.look(|world| {
        let mut live_jobs = BTreeMap::new();
        for job in world.live_jobs() {
            *live_jobs.entry(view::state(job.state)).or_default() += 1;
        }
        let issuance = world.owner(Owner::ISSUANCE).map_or(Credits::ZERO, |owner| owner.available);
        Stats {
            epoch: world.next.epoch,
            agents,
            online: world.online_count(),
            // The issue account is number 0.
            owners: world.next.owner.0 - 1,
            live_jobs,
            jobs_opened: world.next.job.0 - 1,
            payments: world.next.payments,
            volume: money(world.next.volume),
            // The issue account is below zero by exactly what circulates.
            issued: money(Credits::from_micros(issuance.micros().saturating_neg())),
        }
    });
    Ok(ok(&stats))
}

/// How many agents are registered. Numbers are handed out in order and never taken back.
async fn agents(engine: &Engine) -> usize {
    let mut count = 0;
    let mut first = 1;
    loop {
        let end = engine.look(|world| {
            let end = world.next.agent.0;
            let slice = (first..end.min(first + SLICE)).filter_map(|id| world.agent(AgentId(id)));
            count += slice.filter(|agent| agent.active).count();
            end
        });
        first += SLICE;
        if first >= end {
            return count;
        }
        tokio::task::yield_now().await;
    }
}

//! Statistics of the whole hub.

use std::collections::BTreeMap;

use axum::extract::State;
use rialto_core::id::{AgentId, OwnerId};
use rialto_core::money::Credits;
use rialto_core::owner::Owner;
use rialto_core::world::World;
use rialto_core::world::footprint::{RowKind, RowOwner};
use rialto_engine::Engine;
use rialto_protocols::adapter::HubContext;
use rialto_protocols::kit::raw_json::Number;
use schemars::JsonSchema;
use serde::Serialize;

use crate::v1::auth::OperatorCaller;
use crate::v1::jobs::view;
use crate::v1::response::{HandlerResult, format_amount, ok_response};

/// Agents counted at once; between two slices the commit lane may publish.
const SLICE: u64 = 10_000;

#[derive(Serialize, JsonSchema)]
pub struct Stats {
    /// Raised at each restore from a backup.
    epoch: u64,
    /// Registered now.
    agents: usize,
    online: usize,
    owners: u64,
    /// Live jobs by state.
    live_jobs: BTreeMap<&'static str, usize>,
    jobs_opened: u64,
    payments: u64,
    volume: Number,
    /// Credits in circulation.
    issued: Number,
    memory: MemoryStats,
}

/// Memory used by rows, in bytes.
#[derive(Serialize, JsonSchema)]
pub struct MemoryStats {
    used: u64,
    limit: u64,
    limit_per_owner: u64,
    /// Of owners that never had credits, and of requesters without an account.
    new_owners: u64,
    /// Of requesters without an account.
    guests: u64,
    by_kind: BTreeMap<&'static str, u64>,
    /// The owners with the most, at most [`OWNERS_SHOWN`].
    owners: Vec<OwnerMemory>,
}

#[derive(Serialize, JsonSchema)]
pub struct OwnerMemory {
    owner: String,
    bytes: u64,
}

/// How many owners are listed by memory use.
const OWNERS_SHOWN: usize = 20;

impl MemoryStats {
    fn of(world: &World) -> Self {
        let (held, limits) = (world.footprint(), world.rules.memory);
        let mut owners: Vec<(u64, OwnerId)> = Vec::new();
        for (account, bytes) in held.accounts() {
            let RowOwner::Owner(id) = account else { continue };
            let place = owners.partition_point(|(more, _)| *more >= bytes);
            if place < OWNERS_SHOWN {
                owners.truncate(OWNERS_SHOWN - 1);
                owners.insert(place, (bytes, id));
            }
        }
        let named = |(bytes, id): (u64, OwnerId)| {
            let owner = world.owner(id)?.name.clone();
            Some(OwnerMemory { owner, bytes })
        };
        Self {
            used: held.total(),
            limit: limits.total,
            limit_per_owner: limits.per_owner,
            new_owners: held.new_owners(),
            guests: held.bytes_of(RowOwner::Guests),
            by_kind: RowKind::ALL.map(|kind| (kind.as_str(), held.bytes_of_kind(kind))).into(),
            owners: owners.into_iter().filter_map(named).collect(),
        }
    }
}

/// `GET /v1/operator/stats`.
pub async fn show_stats(State(context): State<HubContext>, _by: OperatorCaller) -> HandlerResult {
    let agents = count_agents(&context.engine).await;
    let stats = context.engine.with_world(|world| {
        let mut live_jobs = BTreeMap::new();
        for job in world.live_jobs() {
            *live_jobs.entry(view::state_name(job.state)).or_default() += 1;
        }
        let issuance = world.owner(Owner::ISSUANCE).map_or(Credits::ZERO, |owner| owner.available);
        Stats {
            epoch: world.next.epoch,
            agents,
            online: world.online_count(),
            // Owner 0 is the issue account.
            owners: world.next.owner.0 - 1,
            live_jobs,
            jobs_opened: world.next.job.0 - 1,
            payments: world.next.payments,
            volume: format_amount(world.next.volume),
            // The balance of the issue account is the negative of the credits in circulation.
            issued: format_amount(Credits::from_micros(issuance.micros().saturating_neg())),
            memory: MemoryStats::of(world),
        }
    });
    Ok(ok_response(&stats))
}

/// How many agents are registered. Numbers are assigned in order and never reused.
async fn count_agents(engine: &Engine) -> usize {
    let mut count = 0;
    let mut first = 1;
    loop {
        let end = engine.with_world(|world| {
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

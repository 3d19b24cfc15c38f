//! The hub's records of an agent: money in millionths of a credit, and both scores.

use rialto_core::money::Credits;
use rialto_core::price_step::PriceStep;

use super::parties;
use super::party::Worker;
use super::raw::raw;
use crate::kit::TestHub;

/// The available and held credits of an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Balances {
    pub spendable: i64,
    pub held: i64,
}

impl Balances {
    pub fn of(hub: &TestHub, owner: &str) -> Self {
        hub.engine.with_world(|world| {
            let found = world.owner_by_name(owner).and_then(|id| world.owner(id));
            let (spendable, held) =
                found.map_or((0, 0), |owner| (owner.available.micros(), owner.held.micros()));
            Self { spendable, held }
        })
    }

    /// This available amount, and nothing held.
    pub fn with(spendable: i64) -> Self {
        Self { spendable, held: 0 }
    }
}

/// The sum over all accounts, including the issuing one.
pub fn total(hub: &TestHub) -> i64 {
    hub.engine.with_world(|world| {
        world.owners().map(|owner| owner.available.micros() + owner.held.micros()).sum()
    })
}

/// An amount in millionths, from its text.
#[track_caller]
pub fn micros(text: &str) -> i64 {
    Credits::parse(text, 6).unwrap_or_else(|why| panic!("{text} {why}")).micros()
}

/// A price as it is shown with this price step (B9): rounded up, and at least one step.
pub fn shown(price: &str, price_step: PriceStep) -> i64 {
    let step = 10_i64.pow(6 - u32::from(price_step.decimals));
    let up = (micros(price) + step - 1) / step * step;
    up.max(price_step.minimum.micros())
}

/// What both formulas have counted of a worker: total, successes and failures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counted {
    pub registry: [u64; 3],
    pub openclaw: [u64; 3],
}

impl Counted {
    pub const NOTHING: Self = Self { registry: [0; 3], openclaw: [0; 3] };

    /// One success.
    pub const GOOD: Self = Self { registry: [1, 1, 0], openclaw: [1, 1, 0] };

    /// One failure.
    pub const BAD: Self = Self { registry: [1, 0, 1], openclaw: [1, 0, 1] };

    pub async fn of(hub: &TestHub, names: &Names) -> Self {
        let path = format!("/registry/reputation/{}", names.registry);
        let step = hub.get(&path, None).await.expect(200).text;
        let path = format!("/openclaw/agents/{}/reputation", names.openclaw);
        let window = hub.get(&path, None).await.expect(200).text;
        let read = |text: &str, front: &str, names: [&str; 3]| {
            names.map(|name| {
                raw(text, &format!("{front}/{name}"))
                    .map_or(0, |count| count.parse().expect("a count"))
            })
        };
        let metrics =
            ["total_collaborations", "successful_collaborations", "failed_collaborations"];
        Self {
            registry: read(&step, "/stats", ["total", "successes", "failures"]),
            openclaw: read(&window, "/reputation_update/metrics", metrics),
        }
    }
}

/// The worker's ids in the two protocols with scores.
#[derive(Clone, Debug)]
pub struct Names {
    pub registry: String,
    pub openclaw: String,
}

impl Names {
    pub async fn of(hub: &TestHub, worker: &dyn Worker) -> Self {
        let registry = parties::of("registry").find(hub, worker).await.alias;
        let openclaw = parties::of("openclaw").find(hub, worker).await.alias;
        Self { registry, openclaw }
    }
}

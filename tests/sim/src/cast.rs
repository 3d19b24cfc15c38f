//! The agents of every simulated hub, and how a step picks an agent or a job.

use std::sync::Arc;

use rialto_core::alias::{Digest, Protocol};
use rialto_core::id::AgentId;
use rialto_core::job::{Job, Requester};
use rialto_core::money::Credits;
use rialto_core::testkit::TestHub;

use crate::dice::Dice;

pub const REGISTRY: Protocol = Protocol::new("registry");
pub const RELAY: Protocol = Protocol::new("relay");
pub const OPENCLAW: Protocol = Protocol::new("openclaw");
pub const CLARA: Protocol = Protocol::new("clara");
pub const AGORA: Protocol = Protocol::new("agora");
pub const A2A: Protocol = Protocol::new("a2a");
/// A protocol enabled after all agents have registered.
pub const LATER: Protocol = Protocol::new("later");
/// The protocols in which every agent has a name.
pub const SPOKEN: [Protocol; 6] = [REGISTRY, RELAY, OPENCLAW, CLARA, AGORA, A2A];

/// Few skills, so that the same ones are requested and offered all the time.
pub const SKILLS: [&str; 2] = ["sum", "dig"];
/// Agents of each protocol.
pub const OF_EACH: u64 = 3;
/// Prices in millionths, some finer than some protocols can show.
const PRICES: [i64; 6] = [0, 100_000, 100_000, 250_000, 333_333, 1_500_000];
const AMOUNTS: [i64; 5] = [0, 100_000, 500_000, 2_000_000, 40_000_000];

/// An agent's name in its home protocol; one of them is not registered from the beginning.
pub fn native(home: Protocol, n: u64) -> String {
    let which = if n % 16 == 15 { OF_EACH } else { n % 16 % OF_EACH };
    format!("{home}-{which}")
}

/// An agent's owner: some have an account of their own, some share one.
pub fn owner_of(home: Protocol, n: u64) -> String {
    match home {
        AGORA | OPENCLAW | A2A => format!("{home}:{}", native(home, n)),
        CLARA => format!("wallet-{}", n % 2),
        _ => format!("owner-{}", n % 3),
    }
}

pub fn price(dice: &mut Dice) -> Credits {
    Credits::from_micros(dice.of(PRICES))
}

pub fn amount(dice: &mut Dice) -> Credits {
    Credits::from_micros(dice.of(AMOUNTS))
}

/// A digest of a number, for contents that only have to differ.
pub fn digest(of: u64) -> Digest {
    Digest::of(&[&of.to_be_bytes()])
}

/// An agent native to a protocol, which may not be registered yet.
pub fn somebody_of(dice: &mut Dice, scene: &TestHub, home: Protocol) -> AgentId {
    let name = native(home, dice.any());
    scene.world.agent_by_alias(home, &name).unwrap_or(AgentId(900))
}

/// Any agent.
pub fn somebody(dice: &mut Dice, scene: &TestHub) -> AgentId {
    let home = dice.of(SPOKEN);
    somebody_of(dice, scene, home)
}

/// Prefers a live job of a kind, then any live job, and sometimes any job that ever existed.
pub fn some_job(dice: &mut Dice, scene: &TestHub, kind: impl Fn(&Job) -> bool) -> Option<Arc<Job>> {
    if dice.chance(7) {
        let newest = scene.world.next.job.0;
        let id = rialto_core::id::JobId(newest.saturating_sub(1 + dice.roll(12)));
        return scene.store.rows.jobs.get(&id).cloned();
    }
    let mut live: Vec<&Arc<Job>> = scene.world.live_jobs().collect();
    live.sort_unstable_by_key(|job| job.id);
    let fitting: Vec<&Arc<Job>> = live.iter().copied().filter(|job| kind(job)).collect();
    let found = if fitting.is_empty() { dice.pick(&live) } else { dice.pick(&fitting) };
    found.map(|job| Arc::clone(job))
}

/// The agent that requested a job.
pub fn requester(job: &Job) -> Option<AgentId> {
    match job.request.requester {
        Requester::Agent(agent) => Some(agent),
        Requester::Guest(_) => None,
    }
}

//! Discovery, and a world rebuilt from its rows.

mod minutes;

use std::collections::BTreeSet;
use std::sync::Arc;

use proptest::prelude::*;

use super::discover::DiscoveryQuery;
use super::{Rules, World};
use crate::agent::{Agent, AgentState, Liveness};
use crate::changes::Changes;
use crate::id::{AgentId, OwnerId};
use crate::money::Credits;
use crate::reputation::{Score, Standing};
use crate::testkit::invariants::discover_by_scan;
use crate::testkit::{HOME, START, TestHub, credits, skill};
use crate::time::Millis;

fn wanted(skill: &str) -> DiscoveryQuery<'_> {
    DiscoveryQuery {
        skill,
        min_score: Score::MIN,
        max_price: None,
        min_jobs: 0,
        limit: 200,
        offset: 0,
    }
}

/// An agent and its agent state, as rows, without any history.
#[derive(Clone, Copy, Debug)]
struct Seat {
    price: i64,
    score: i64,
    settled: u64,
    liveness: Liveness,
    /// How long ago it was last active, in seconds.
    silent: i64,
    unreachable: bool,
    active: bool,
}

impl Seat {
    fn quiet(price: i64, score: i64, settled: u64) -> Self {
        let liveness = Liveness::Always;
        Self { price, score, settled, liveness, silent: 0, unreachable: false, active: true }
    }

    fn put(self, changes: &mut Changes, id: AgentId) {
        let mut offered = skill("sum", "0");
        offered.price = Credits::from_micros(self.price);
        let agent = Agent {
            id,
            owner: OwnerId(id.0),
            home: HOME,
            native_id: id.to_string(),
            name: id.to_string(),
            original_name: None,
            endpoint: None,
            liveness: self.liveness,
            skills: vec![offered],
            terms: Default::default(),
            card: String::new(),
            registered_at: START,
            changed_at: None,
            probation: None,
            active: self.active,
            suspended: false,
            secret_generation: 1,
            old_secrets: Vec::new(),
            blocked: Vec::new(),
        };
        let mut agent_state = AgentState::new(id, START.plus(Millis(-self.silent * 1_000)));
        agent_state.presence.unreachable = self.unreachable;
        let (score, successes) = (Score::from_millionths(self.score), self.settled);
        agent_state.standing = Standing { score, successes, ..Standing::default() };
        changes.agents.insert(id, Arc::new(agent));
        changes.agent_states.insert(id, Arc::new(agent_state));
    }
}

fn policy(seats: &[Seat]) -> World {
    let mut world = World::new(Rules::default());
    let mut changes = Changes::default();
    for (id, state_dir) in (1_u64..).zip(seats) {
        state_dir.put(&mut changes, AgentId(id));
    }
    world.apply(&changes);
    world
}

fn order_of(world: &World) -> Vec<u64> {
    let found = world.discover(&wanted("sum"), START);
    assert_eq!(found.total, found.agents.len());
    found.agents.iter().map(|one| one.agent.0).collect()
}

#[test]
fn the_worked_order_of_discovery() {
    let proven =
        |score: &str, price: &str| Seat::quiet(credits(price).micros(), credits(score).micros(), 1);
    let world = policy(&[proven("90", "0.05"), proven("92.3", "0.20"), proven("92.3", "0.10")]);
    assert_eq!(order_of(&world), [3, 2, 1]);

    // Proven at 50 and 0.20 ranks before new at 50 and 0.10; among equals the first registered.
    let new = Seat::quiet(100_000, 50_000_000, 0);
    let world = policy(&[new, proven("50", "0.20"), new]);
    assert_eq!(order_of(&world), [2, 1, 3]);
}

#[test]
fn filters_keep_what_is_equal_to_them() {
    let world = policy(&[
        Seat::quiet(100_000, 40_000_000, 2),
        Seat::quiet(200_000, 39_999_999, 3),
        Seat::quiet(200_001, 41_000_000, 0),
    ]);
    let ids = |wanted: &DiscoveryQuery<'_>| {
        let found = world.discover(wanted, START);
        assert_eq!(found.total, found.agents.len());
        found.agents.iter().map(|one| one.agent.0).collect::<Vec<_>>()
    };
    let min_score = Score::from_millionths(40_000_000);
    assert_eq!(ids(&DiscoveryQuery { min_score, ..wanted("sum") }), [3, 1]);
    let max_price = Some(Credits::from_micros(200_000));
    assert_eq!(ids(&DiscoveryQuery { max_price, ..wanted("sum") }), [1, 2]);
    assert_eq!(ids(&DiscoveryQuery { min_jobs: 2, ..wanted("sum") }), [1, 2]);
    assert_eq!(ids(&wanted("other")), [] as [u64; 0]);
}

#[test]
fn pages_follow_each_other_and_the_total_counts_all() {
    let seats: Vec<Seat> = (0..25).map(|n| Seat::quiet(n % 3, 50_000_000 + n, 1)).collect();
    let world = policy(&seats);
    let mut walked = Vec::new();
    for offset in (0..30).step_by(10) {
        let found = world.discover(&DiscoveryQuery { limit: 10, offset, ..wanted("sum") }, START);
        assert_eq!(found.total, 25);
        walked.extend(found.agents.iter().map(|one| one.agent.0));
    }
    assert_eq!(walked, (1..=25).rev().collect::<Vec<_>>());
}

fn state_dir() -> impl Strategy<Value = Seat> {
    let liveness = prop_oneof![
        4 => Just(Liveness::Always),
        2 => Just(Liveness::ByPolling),
        2 => Just(Liveness::ByEndpoint),
    ];
    // Few different prices and scores, many of them on or next to bucket borders.
    let price = prop_oneof![Just(100_000), Just(200_000), Just(300_000)];
    let score = prop_oneof![
        (0..=100_i64).prop_map(|points| points * 1_000_000),
        (1..=100_i64).prop_map(|points| points * 1_000_000 - 1),
        48_000_000..52_000_000_i64,
    ];
    let silent = prop_oneof![Just(0), Just(90), Just(91)];
    (price, score, 0..3_u64, liveness, silent, prop::bool::weighted(0.2), prop::bool::weighted(0.9))
        .prop_map(|(price, score, settled, liveness, silent, unreachable, active)| Seat {
            price,
            score,
            settled,
            liveness,
            silent,
            unreachable,
            active,
        })
}

fn question() -> impl Strategy<Value = (i64, Option<i64>, u64)> {
    let context = prop_oneof![
        Just(0),
        Just(100_000_000),
        (0..=100_i64).prop_map(|points| points * 1_000_000),
        49_000_000..51_000_000_i64,
    ];
    let most = prop::option::of(prop_oneof![Just(0), Just(100_000), Just(200_000), Just(250_000)]);
    (context, most, prop_oneof![3 => Just(0_u64), 1 => 1..3_u64])
}

/// Compares the index with a full scan.
fn agree(world: &World, (context, most, min_jobs): (i64, Option<i64>, u64)) {
    let min_score = Score::from_millionths(context);
    let max_price = most.map(Credits::from_micros);
    let wanted =
        DiscoveryQuery { min_score, max_price, min_jobs, limit: 20, offset: 5, ..wanted("sum") };
    let all = discover_by_scan(world, &wanted, START);
    let found = world.discover(&wanted, START);
    assert_eq!(found.total, all.len(), "{wanted:?}");
    let page: Vec<_> = all.into_iter().skip(5).take(20).collect();
    assert_eq!(found.agents, page, "{wanted:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn the_index_gives_the_same_result_as_scanning_all_agents(
        // With three prices, groups grow well past the size from which they keep counts.
        seats in prop::collection::vec(state_dir(), 1..1_500),
        changed in prop::collection::vec((any::<prop::sample::Index>(), state_dir()), 0..400),
        questions in prop::collection::vec(question(), 6),
    ) {
        let mut world = policy(&seats);
        for question in &questions {
            agree(&world, *question);
        }
        world.expire_online(START);
        // Some agents change price, score or presence; groups shrink as well as grow.
        for (who, state_dir) in &changed {
            let mut changes = Changes::default();
            state_dir.put(&mut changes, AgentId(who.index(seats.len()) as u64 + 1));
            world.apply(&changes);
        }
        for question in &questions {
            agree(&world, *question);
        }
        world.expire_online(START);
        for question in &questions {
            agree(&world, *question);
            let (context, most, _) = *question;
            let (min, max) = (Score::from_millionths(context), most.map(Credits::from_micros));
            let wanted = DiscoveryQuery { min_score: min, max_price: max, ..wanted("sum") };
            prop_assert_eq!(world.skills.count_online("sum", max, min), discover_by_scan(&world, &wanted, START).len());
        }
    }
}

#[test]
fn a_large_group_counts_exactly_at_every_border() {
    let seats: Vec<Seat> =
        (0..2_000).map(|n| Seat::quiet(100_000, (n % 101) * 1_000_000 - (n % 2), 1)).collect();
    let world = policy(&seats);
    for points in 0..=100 {
        for nudge in [-1, 0, 1] {
            agree(&world, (points * 1_000_000 + nudge, None, 0));
        }
    }
}

#[test]
fn skills_and_prices_of_those_who_left_are_forgotten() {
    let mut scene = TestHub::default();
    let ada = scene.register_worker("ada", "acme", &[("sum", "0.10"), ("dig", "0.20")]);
    scene.register_worker("bob", "bobs", &[("sum", "0.10")]);
    let names = |scene: &TestHub| {
        scene.world.skills.online_names().map(str::to_owned).collect::<BTreeSet<String>>()
    };
    assert_eq!(names(&scene), BTreeSet::from(["dig".to_owned(), "sum".to_owned()]));
    assert!(scene.world.skills.prices("sum").eq([(credits("0.10"), 2)]));
    scene.remove(ada);
    assert_eq!(names(&scene), BTreeSet::from(["sum".to_owned()]));
    assert!(scene.world.skills.prices("sum").eq([(credits("0.10"), 1)]));
    assert_eq!(scene.world.skills.prices("dig").next(), None);
}

#[test]
fn what_is_over_leaves_nothing_behind_in_memory() {
    let mut scene = TestHub::default();
    let client = scene.register_client("client", "rich", "10.00");
    scene.register_worker("ada", "acme", &[("sum", "0.10")]);
    for well in [true, false, true] {
        let order = scene.job_order(client, "sum", "1.00");
        let job = scene.open_job(order).id;
        if well {
            scene.succeed(job, "0.10")
        } else {
            scene.decline(job)
        };
    }
    let world = &scene.world;
    assert!(
        world.jobs.is_empty()
            && world.job_uuids.is_empty()
            && world.job_names.values().all(|names| names.is_empty())
    );
    assert!(
        world.assigned_jobs.is_empty()
            && world.requested_jobs.is_empty()
            && world.waiting.is_empty()
    );
    assert!(world.inviting_jobs.is_empty());
    assert!(world.timers.is_empty() && world.cold_rows.jobs.is_empty());
    assert!(world.cold_rows.claims.is_empty() && world.cold_rows.transfers.is_empty());
}

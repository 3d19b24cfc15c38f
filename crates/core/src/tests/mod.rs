//! Invariants under random commands: they hold for any commands in any order.
//!
//! The checks are in `testkit::invariants` and run in every test hub, after every command.

mod copies;
mod posts;
mod steps;
mod voices;
mod wishes;
mod words;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use crate::agent::AgentState;
use crate::event::Event;
use crate::id::{AgentId, JobId, OwnerId};
use crate::job::{Cause, Job, Selection, State};
use crate::ledger::EntryKind;
use crate::notice::{Notice, NoticeKind};
use crate::owner::Owner;
use crate::testkit::TestHub;
use crate::testkit::invariants::{discover_by_scan, rank_by_scan};
use crate::testkit::market::ParsedRecord;
use crate::time::Millis;
use crate::world::World;
use crate::world::discover::DiscoveryQuery;
use steps::{SKILLS, Step};

/// Commands in one walk, besides the initial ones.
const WALK: usize = 70;

/// What a refused command must leave unchanged.
#[derive(Debug, PartialEq)]
struct Picture {
    next: crate::changes::Counters,
    owners: BTreeMap<OwnerId, Arc<Owner>>,
    agent_states: BTreeMap<AgentId, Arc<AgentState>>,
    jobs: BTreeMap<JobId, Arc<Job>>,
    queue: Vec<JobId>,
    online: usize,
}

impl Picture {
    fn of(world: &World) -> Self {
        let agent_state = |agent: &Arc<crate::agent::Agent>| {
            (agent.id, world.agent_state(agent.id).expect("every agent has a state").clone())
        };
        Self {
            next: world.next,
            owners: world.owners().map(|owner| (owner.id, owner.clone())).collect(),
            agent_states: world.agents().map(agent_state).collect(),
            jobs: world.live_jobs().map(|job| (job.id, job.clone())).collect(),
            queue: world.queued_jobs().map(|job| job.id).collect(),
            online: world.online_count(),
        }
    }
}

/// Performs the steps; every invariant is checked after each.
fn walk(steps: &[Step]) -> TestHub {
    let mut scene = steps::opening();
    for step in steps {
        let before = Picture::of(&scene.world);
        if step.perform(&mut scene).is_err() {
            assert_eq!(Picture::of(&scene.world), before, "refused but changed: {step:?}");
        }
    }
    scene
}

/// A world rebuilt from the rows gives the same answers as the original.
fn remembers_everything(scene: &mut TestHub) {
    scene.world.expire_online(scene.now);
    let mut rebuilt = scene.store.rebuild_world(scene.world.rules);
    rebuilt.expire_online(scene.now);
    assert_eq!(Picture::of(&rebuilt), Picture::of(&scene.world));
    assert_eq!(rebuilt.footprint(), scene.world.footprint());
    let later = scene.now.plus(Millis::seconds(60));
    for skill in SKILLS {
        for now in [scene.now, later] {
            let min_score = crate::reputation::Score::MIN;
            let wanted = DiscoveryQuery {
                skill,
                min_score,
                max_price: None,
                min_jobs: 0,
                limit: 50,
                offset: 0,
            };
            let found = rebuilt.discover(&wanted, now);
            assert_eq!(found, scene.world.discover(&wanted, now));
            assert_eq!(found.agents, discover_by_scan(&scene.world, &wanted, now));
        }
        let best: Vec<AgentId> = rebuilt.skills.all_by_rank(skill).collect();
        assert_eq!(best, scene.world.skills.all_by_rank(skill).collect::<Vec<_>>());
        assert_eq!(best, rank_by_scan(&scene.world, skill, scene.now));
        assert_eq!(rebuilt.rotation(skill), scene.world.rotation(skill));
        assert!(rebuilt.skills.prices(skill).eq(scene.world.skills.prices(skill)));
    }
    assert_eq!(rebuilt.next_timer_at(), scene.world.next_timer_at());
    assert_eq!(rebuilt.next_offline_at(), scene.world.next_offline_at());
    assert_eq!(rebuilt.next_delivery_at(), scene.world.next_delivery_at());
    for agent in scene.world.agents() {
        assert!(rebuilt.deferred_jobs_for(agent.id).eq(scene.world.deferred_jobs_for(agent.id)));
        let name = scene.world.alias_of(agent.id, agent.home);
        assert_eq!(name, Some(agent.native_id.as_str()));
        assert_eq!(rebuilt.alias_of(agent.id, agent.home), name);
        assert!(rebuilt.keys_of(agent.id).eq(scene.world.keys_of(agent.id)));
        assert!(rebuilt.agents_of(agent.owner).eq(scene.world.agents_of(agent.owner)));
    }
}

/// Nothing waits forever: without further commands, every job ends.
fn comes_to_rest(scene: &mut TestHub) {
    scene.advance(Millis::hours(24 * 30));
    assert_eq!(scene.world.live_jobs().count(), 0);
    assert_eq!(scene.world.next_timer_at(), None);
    let held = scene.world.owners().map(|owner| owner.held.micros()).sum::<i64>();
    assert_eq!(held, 0, "and every hold is resolved");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(384))]

    #[test]
    fn whatever_is_asked_the_laws_hold(steps in prop::collection::vec(steps::step(), WALK)) {
        let mut scene = walk(&steps);
        remembers_everything(&mut scene);
        comes_to_rest(&mut scene);
    }
}

/// The walks are only useful if they reach all states.
#[test]
fn random_walks_reach_every_state_and_every_kind_of_movement() {
    let mut runner = TestRunner::deterministic();
    let walks = prop::collection::vec(steps::step(), WALK);
    let (mut ends, mut kinds, mut passed) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    let (mut counted, mut uncounted, mut longest) = (0, 0, 0);
    let (mut waits, mut told, mut said) = (BTreeSet::new(), 0, BTreeSet::new());
    for _ in 0..240 {
        let steps = walks.new_tree(&mut runner).expect("steps can be made").current();
        let mut scene = steps::opening();
        for step in &steps {
            let _ = step.perform(&mut scene);
            passed.extend(scene.world.live_jobs().map(|job| name(job.state)));
            waits.extend(scene.world.live_jobs().filter_map(|job| waits_for(job)));
            said.extend(scene.world.live_jobs().filter_map(|job| live_words(job)));
        }
        let rows = &scene.store.rows;
        said.extend(rows.jobs.values().filter_map(|job| last_words(job)));
        let agent_states = rows.agent_states.values();
        said.extend(
            agent_states
                .clone()
                .filter(|agent_state| agent_state.status.is_some())
                .map(|_| "a status"),
        );
        said.extend(
            agent_states
                .filter(|agent_state| agent_state.claimed_reputation.is_some())
                .map(|_| "a claimed reputation"),
        );
        let events = rows.history_lines.iter().flat_map(|line| &line.events);
        said.extend(events.filter_map(|event| match event {
            Event::AgentAtWork { .. } => Some("working"),
            Event::AgentFree { .. } => Some("free"),
            _ => None,
        }));
        ends.extend(
            rows.jobs.values().filter(|job| job.state.is_final()).map(|job| name(job.state)),
        );
        longest = longest.max(rows.jobs.values().map(|job| job.epoch).max().unwrap_or(0));
        kinds.extend(rows.entries.iter().map(|entry| entry.kind.as_str()));
        let accepted = |notice: &&Arc<Notice>| matches!(notice.news, NoticeKind::Accepted { .. });
        told += rows.notices.iter().filter(accepted).count();
        counted += rows.outcomes.iter().filter(|outcome| outcome.counted).count();
        uncounted += rows.outcomes.iter().filter(|outcome| !outcome.counted).count();
    }
    let all = ["Assigned", "Deferred", "InputRequired", "Negotiating", "Open", "Queued", "Running"];
    assert_eq!(passed.iter().collect::<Vec<_>>(), all.iter().collect::<Vec<_>>());
    let all = ["Cancelled", "Completed", "Expired", "Failed", "Withdrawn"];
    assert_eq!(ends.iter().collect::<Vec<_>>(), all.iter().collect::<Vec<_>>());
    let all = [
        EntryKind::Burn,
        EntryKind::Capture,
        EntryKind::Grant,
        EntryKind::Hold,
        EntryKind::Release,
        EntryKind::Transfer,
    ];
    assert_eq!(kinds, all.iter().map(|kind| kind.as_str()).collect());
    assert!(counted > 50 && uncounted > 10, "{counted} and {uncounted} outcomes");
    assert!(longest >= 3, "jobs have several workers");
    let all = ["an answer", "a return", "an approval"];
    assert_eq!(waits, all.into(), "jobs wait for everything possible");
    assert!(told >= 5, "only {told} deferred jobs were accepted");
    let all = [
        "a claimed reputation",
        "an invalid output",
        "an input error",
        "a worker's id",
        "a refusal with meta",
        "a reason",
        "a status",
        "working",
        "free",
        "without a hold",
        "no answer",
        "a handover",
    ];
    assert_eq!(said, all.into(), "every kind of report occurs");
}

/// The notable property of a live job.
fn live_words(job: &Job) -> Option<&'static str> {
    let unpaid =
        job.candidates.pending_assignment.is_some() && job.payment.held != job.max_payment();
    match (job.acceptance.worker_job_id, &job.handover) {
        (Some(_), _) => Some("a worker's id"),
        (None, Some(_)) if job.state == State::Running => Some("a handover"),
        (None, _) => unpaid.then_some("without a hold"),
    }
}

/// The notable property of an ended job.
fn last_words(job: &Job) -> Option<&'static str> {
    let report = job.result.as_ref()?;
    match report.cause? {
        Cause::Unusable if job.epoch == 0 => Some("an input error"),
        Cause::Unusable => report.output.as_ref().map(|_| "an invalid output"),
        Cause::Cancelled => (report.text.as_deref() == Some("because")).then_some("a reason"),
        Cause::Policy => report.meta.as_ref().map(|_| "a refusal with meta"),
        Cause::NoAnswer => Some("no answer"),
        _ => None,
    }
}

/// Signed orders succeed and are refused in every way.
#[test]
fn random_voices_are_heard_and_refused_in_every_way() {
    let mut runner = TestRunner::deterministic();
    let walks = prop::collection::vec(steps::step(), WALK);
    let (mut done, mut refused) = (BTreeMap::new(), BTreeMap::new());
    for _ in 0..300 {
        let steps = walks.new_tree(&mut runner).expect("steps can be made").current();
        let mut scene = steps::opening();
        scene.checks_invariants = false;
        for step in &steps {
            match (step, step.perform(&mut scene)) {
                (Step::Say(voice), Ok(())) => *done.entry(voice.kind).or_insert(0) += 1,
                (Step::Say(_), Err(refusal)) => {
                    let text = format!("{refusal:?}");
                    let kind = text.split(['(', ' ', '{']).next().unwrap_or_default().to_owned();
                    *refused.entry(kind).or_insert(0) += 1;
                }
                _ => {}
            }
        }
    }
    assert!(voices::KINDS.iter().all(|kind| done.get(kind) > Some(&9)), "{done:?}");
    for why in [
        "Ambiguous",
        "OfferNotRead",
        "BridgeLoop",
        "BudgetTooLow",
        "DeadlineTooSoon",
        "InboxFull",
        "NoSuchAgent",
        "NotAuthenticated",
        "NotFound",
        "OfferExpired",
        "Offline",
        "UnsupportedCurrency",
        "SameIdOtherContent",
        "TooFewCredits",
        "WrongParty",
        "WrongState",
    ] {
        assert!(refused.contains_key(why), "never {why}: {refused:?}");
    }
}

/// Market orders are executed, refused and repeated.
#[test]
fn random_posts_are_carried_out_refused_and_repeated() {
    let mut runner = TestRunner::deterministic();
    let walks = prop::collection::vec(steps::step(), WALK);
    let (mut done, mut refused) = (BTreeMap::new(), BTreeMap::new());
    let (mut seen, mut shapes) = (BTreeMap::new(), BTreeMap::new());
    for _ in 0..400 {
        let steps = walks.new_tree(&mut runner).expect("steps can be made").current();
        let mut scene = steps::opening();
        scene.checks_invariants = false;
        for step in &steps {
            let before = scene.world.next;
            let _ = step.perform(&mut scene);
            let Step::Post(posted) = step else { continue };
            let new = scene.store.rows.market_records.iter().rev();
            let new = new
                .take_while(|one| one.id >= before.market_record)
                .find(|one| one.order_id.is_some());
            let counts = match new.map(|one| ParsedRecord::parse(one).outcome) {
                None => &mut seen,
                Some(outcome) if outcome == "done" => &mut done,
                Some(_) => &mut refused,
            };
            *counts.entry(posted.name()).or_insert(0) += 1;
        }
        for job in scene.store.rows.jobs.values() {
            for shape in shapes_of(job) {
                *shapes.entry(shape).or_insert(0) += 1;
            }
        }
    }
    let all =
        ["arrive", "decline", "dispatch", "enrol", "nothing", "offer", "open", "read", "report"];
    assert!(all.iter().all(|kind| done.get(kind) > Some(&9)), "done: {done:?}");
    let may = |kind: &&&str| !["dispatch", "nothing"].contains(*kind);
    let enough = all.iter().filter(may).all(|kind| refused.contains_key(kind));
    assert!(enough, "refused: {refused:?}");
    assert!(seen.len() >= 5, "submitted before: {seen:?}");
    let all = ["again", "closed early", "broadcast", "queued later", "backed off", "unpaid"];
    assert!(all.iter().all(|kind| shapes.get(kind) > Some(&2)), "{shapes:?}");
}

/// Properties that only market jobs have.
fn shapes_of(job: &Job) -> impl Iterator<Item = &'static str> {
    let auction = match job.selection {
        Selection::Auction { closes } => job.assignment.map(|turn| turn.since < closes),
        _ => None,
    };
    let again = job.candidates.round.is_some_and(|round| round.number > 1);
    let everybody = matches!(job.selection, Selection::BroadcastToProtocol);
    let queued = job.state == State::Queued && !job.policy.queueing.when_unmatched;
    let all = [
        ("again", again),
        ("closed early", auction == Some(true)),
        ("broadcast", everybody),
        ("queued later", queued),
        (
            "backed off",
            job.policy.queueing.after_failure && job.candidates.backoff.failed_assignments > 0,
        ),
        ("unpaid", job.policy.requester.unpaid && job.assignment.is_some()),
    ];
    all.into_iter().filter(|(_, is)| *is).map(|(name, _)| name)
}

/// What a deferred or unconfirmed job waits for.
fn waits_for(job: &Job) -> Option<&'static str> {
    match (job.candidates.pending_assignment, job.state) {
        (Some(waits), _) if waits.needs_approval => Some("an approval"),
        (Some(_), _) => Some("a return"),
        (None, State::Assigned) if job.acceptance.accepted_at.is_none() => Some("an answer"),
        _ => None,
    }
}

fn name(state: State) -> &'static str {
    match state {
        State::Open => "Open",
        State::Queued => "Queued",
        State::Negotiating => "Negotiating",
        State::Deferred { .. } => "Deferred",
        State::Assigned => "Assigned",
        State::Running => "Running",
        State::InputRequired { .. } => "InputRequired",
        State::Completed => "Completed",
        State::Failed => "Failed",
        State::Expired => "Expired",
        State::Cancelled => "Cancelled",
        State::Withdrawn => "Withdrawn",
    }
}

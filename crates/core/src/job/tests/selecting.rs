use super::{PATIENT, market};
use crate::command::{Command, JobRef, OpenJob};
use crate::id::{AgentId, JobId};
use crate::job::Reassignment;
use crate::job::{Policy, Selection, State};
use crate::refusal::Refusal;
use crate::testkit::{TestHub, credits, jobs_in, registration, registration_with_endpoint};
use crate::time::Millis;

/// Opens `count` jobs one after the other and returns the worker of each.
fn serve(scene: &mut TestHub, client: AgentId, selection: Selection, count: usize) -> Vec<AgentId> {
    let mut served = Vec::new();
    for _ in 0..count {
        let order = OpenJob { selection, ..scene.job_order(client, "sum", "1.00") };
        served.push(scene.open_job(order).worker().expect("it was assigned"));
    }
    served
}

#[test]
fn round_robin_goes_round() {
    let (mut scene, client) = market();
    let a = scene.register_worker("a", "owner-a", &[("sum", "0.10")]);
    let b = scene.register_worker("b", "owner-b", &[("sum", "0.20")]);
    assert_eq!(serve(&mut scene, client, Selection::RoundRobin, 5), [a, b, a, b, a]);
}

#[test]
fn round_robin_is_fair_by_owner_and_then_within_an_owner() {
    let (mut scene, client) = market();
    let x1 = scene.register_worker("x1", "owner-x", &[("sum", "0.10")]);
    let x2 = scene.register_worker("x2", "owner-x", &[("sum", "0.10")]);
    let y = scene.register_worker("y", "owner-y", &[("sum", "0.10")]);
    assert_eq!(serve(&mut scene, client, Selection::RoundRobin, 5), [x1, y, x2, y, x1]);
}

#[test]
fn the_round_follows_the_first_registrations_not_the_accounts() {
    let (mut scene, client) = market();
    scene.grant("owner-late", "5.00");
    let early = scene.register_worker("early", "owner-early", &[("sum", "0.10")]);
    let late = scene.register_worker("late", "owner-late", &[("sum", "0.10")]);
    assert_eq!(serve(&mut scene, client, Selection::RoundRobin, 3), [early, late, early]);
}

#[test]
fn each_skill_has_its_own_round() {
    let (mut scene, client) = market();
    let a = scene.register_worker("a", "owner-a", &[("sum", "0.10"), ("other", "0.10")]);
    let b = scene.register_worker("b", "owner-b", &[("sum", "0.10"), ("other", "0.10")]);
    assert_eq!(serve(&mut scene, client, Selection::RoundRobin, 1), [a]);
    let order =
        OpenJob { selection: Selection::RoundRobin, ..scene.job_order(client, "other", "1.00") };
    assert_eq!(scene.open_job(order).worker(), Some(a));
    assert_eq!(serve(&mut scene, client, Selection::RoundRobin, 1), [b]);
}

#[test]
fn a_thousand_names_of_one_owner_are_one_turn() {
    let (mut scene, client) = market();
    scene.checks_invariants = false;
    let honest = scene.register_worker("honest", "honest", &[("sum", "0.10")]);
    for n in 0..1_000 {
        scene.register_worker(&format!("sybil-{n}"), "sybil", &[("sum", "0.10")]);
    }
    let other = scene.register_worker("other", "other", &[("sum", "0.10")]);
    let served = serve(&mut scene, client, Selection::RoundRobin, 30);
    assert_eq!(served.iter().filter(|one| **one == honest).count(), 10);
    assert_eq!(served.iter().filter(|one| **one == other).count(), 10);
    let turn = scene.world.rotation("sum").expect("the rotation is kept");
    assert_eq!(turn.agents.len(), 1, "only an owner with several agents needs a rotation");
}

#[test]
fn the_round_goes_on_where_it_stood_after_a_restart() {
    let (mut scene, client) = market();
    let a = scene.register_worker("a", "owner-a", &[("sum", "0.10")]);
    let b = scene.register_worker("b", "owner-b", &[("sum", "0.10")]);
    assert_eq!(serve(&mut scene, client, Selection::RoundRobin, 1), [a]);
    scene.world = scene.store.rebuild_world(scene.world.rules);
    assert_eq!(serve(&mut scene, client, Selection::RoundRobin, 1), [b]);
}

#[test]
fn only_the_agent_that_gets_the_job_advances_the_rotation() {
    let mut scene = TestHub::default();
    let poor = scene.register_client("poor", "poor", "0.50");
    let rich = scene.register_client("rich", "rich", "9.00");
    let a = scene.register_worker("a", "owner-a", &[("sum", "0.10")]);
    scene.register_worker("b", "owner-b", &[("sum", "0.10")]);
    let order =
        OpenJob { selection: Selection::RoundRobin, ..scene.job_order(poor, "sum", "1.00") };
    assert_eq!(scene.try_open_job(order).unwrap_err(), Refusal::TooFewCredits);
    assert_eq!(serve(&mut scene, rich, Selection::RoundRobin, 1), [a]);
}

#[test]
fn cheapest_compares_numbers_and_ties_go_to_who_came_first() {
    let (mut scene, client) = market();
    scene.register_worker("thirty", "o1", &[("sum", "30")]);
    scene.register_worker("ten", "o2", &[("sum", "10")]);
    let nine = scene.register_worker("nine", "o3", &[("sum", "9")]);
    scene.register_worker("nine-too", "o4", &[("sum", "9.000000"), ("other", "0.10")]);
    // The later 9 has the better score, which does not matter here.
    let order = scene.job_order(client, "other", "1.00");
    let job = scene.open_job(order).id;
    scene.succeed(job, "0.10");
    let order = OpenJob { selection: Selection::Cheapest, ..scene.job_order(client, "sum", "50") };
    let job = scene.open_job(order);
    assert_eq!(job.worker(), Some(nine), "9 is less than 10, and the earlier 9 wins");
    assert_eq!(job.assignment.unwrap().price, credits("9"));
}

#[test]
fn least_occupied_counts_jobs_in_hand() {
    let (mut scene, client) = market();
    let a = scene.register_worker("a", "o1", &[("sum", "0.30")]);
    let b = scene.register_worker("b", "o2", &[("sum", "0.20")]);
    let c = scene.register_worker("c", "o3", &[("sum", "0.10")]);
    let order = Selection::LeastOccupied;
    assert_eq!(serve(&mut scene, client, order, 4), [a, b, c, a]);
    let work: Vec<JobId> = scene.world.assigned_jobs(b).map(|job| job.id).collect();
    scene.succeed(work[0], "0.10");
    assert_eq!(serve(&mut scene, client, order, 3), [b, b, c]);
}

#[test]
fn least_occupied_spreads_what_one_registration_sets_free() {
    let (mut scene, client) = market();
    let a = scene.register_worker("a", "o1", &[]);
    let mut waiting = Vec::new();
    for _ in 0..4 {
        let order = scene.job_order(client, "sum", "1.00");
        let selection = Selection::LeastOccupied;
        waiting.push(scene.open_job(OpenJob { selection, policy: PATIENT, ..order }).id);
    }
    // Both become able while the jobs wait: `a` without an event, `b` by the registration that
    // dispatches.
    let mut able = scene.agent(a).clone();
    able.skills = registration("a", "o1", &[("sum", "0.10")]).skills;
    let mut changes = crate::changes::Changes::default();
    changes.agents.insert(a, std::sync::Arc::new(able));
    scene.world.apply(&changes);
    scene.checks_invariants = false;
    let b = scene.register_worker("b", "o2", &[("sum", "0.10")]);
    let served: Vec<_> = waiting.iter().map(|id| scene.job(*id).worker().unwrap()).collect();
    assert_eq!(served, [a, b, a, b]);
}

#[test]
fn best_reputation_takes_the_first_in_discovery_order() {
    let (mut scene, client) = market();
    let new = scene.register_worker("new", "o1", &[("sum", "0.10")]);
    let proven = scene.register_worker("proven", "o2", &[("sum", "0.50"), ("other", "0.10")]);
    let order = scene.job_order(client, "other", "1.00");
    let job = scene.open_job(order).id;
    scene.succeed(job, "0.10");
    assert_eq!(serve(&mut scene, client, Selection::BestReputation, 1), [proven]);
    let order = scene.job_order(client, "sum", "0.20");
    assert_eq!(scene.open_job(order).worker(), Some(new), "within the budget");
}

#[test]
fn an_offline_agent_gets_no_job() {
    let (mut scene, client) = market();
    let away = registration("away", "o1", &[("sum", "0.10")]);
    let liveness = crate::agent::Liveness::ByPolling;
    let away = scene.register(crate::command::Registration { liveness, ..away }).unwrap();
    let there = scene.register_worker("there", "o2", &[("sum", "0.90")]);
    let strategies = [
        Selection::BestReputation,
        Selection::RoundRobin,
        Selection::Cheapest,
        Selection::LeastOccupied,
    ];
    // Not yet expired: the index still lists it, but it must not be chosen.
    scene.now = scene.now.plus(Millis::seconds(91));
    for selection in strategies {
        assert_eq!(serve(&mut scene, client, selection, 1), [there], "{selection:?}");
    }
    assert!(!scene.is_online(away));
}

#[test]
fn a_broadcast_is_one_job_for_each_at_its_own_price() {
    let (mut scene, client) = market();
    let a = scene.register_worker("a", "o1", &[("sum", "20")]);
    let b = scene.register_worker("b", "o2", &[("sum", "50")]);
    scene.register_worker("c", "o3", &[("sum", "80")]);
    let order = OpenJob { selection: Selection::Broadcast, ..scene.job_order(client, "sum", "50") };
    let command = Command::OpenJob(Box::new(order.clone()));
    let jobs = jobs_in(scene.run(command.clone()).unwrap());
    let workers: Vec<_> = jobs.iter().map(|job| job.worker().unwrap()).collect();
    assert_eq!(workers, [a, b]);
    assert_eq!(scene.balance_text("rich"), ("30.00".to_owned(), "70.00".to_owned()));
    assert_ne!(jobs[0].uuid, jobs[1].uuid);
    scene.succeed(jobs[0].id, "20");
    let declined = scene.decline(jobs[1].id);
    assert_eq!(declined.state, State::Failed);
    assert_eq!(scene.balance_text("rich"), ("80.00".to_owned(), "0.00".to_owned()));
    let before = scene.world.next;
    scene.run(command).expect("a repeat is answered");
    assert_eq!(scene.world.next, before, "and runs nothing");
}

#[test]
fn a_declined_copy_of_a_broadcast_is_not_given_to_another_agent() {
    let (mut scene, client) = market();
    scene.register_worker("a", "o1", &[("sum", "1")]);
    scene.register_worker("b", "o2", &[("sum", "1")]);
    let policy = Policy {
        reassignment: Reassignment { when_declined: true, ..Reassignment::default() },
        ..Policy::default()
    };
    let selection = Selection::Broadcast;
    let order = OpenJob { selection, policy, ..scene.job_order(client, "sum", "1") };
    let command = Command::OpenJob(Box::new(order));
    let jobs = jobs_in(scene.run(command).unwrap());
    assert_eq!(scene.decline(jobs[0].id).state, State::Failed);
    assert_eq!(scene.world.live_jobs().count(), 1);
}

#[test]
fn a_broadcast_whose_first_copy_was_taken_back_does_not_lose_the_others_to_a_second() {
    let (mut scene, client) = market();
    scene.register(registration_with_endpoint("a", "o1", &[("sum", "1")])).unwrap();
    let b = scene.register(registration_with_endpoint("b", "o2", &[("sum", "1")])).unwrap();
    let order = OpenJob { selection: Selection::Broadcast, ..scene.job_order(client, "sum", "1") };
    let command = |order: &OpenJob| Command::OpenJob(Box::new(order.clone()));
    let jobs = jobs_in(scene.run(command(&order)).unwrap());
    assert_eq!(scene.unreachable(jobs[0].id).state, State::Withdrawn);
    let content = crate::alias::Digest::of(&[b"something else"]);
    let second = OpenJob { uuid: uuid::Uuid::from_u128(99), content, ..order };
    let refused = scene.run(command(&second)).unwrap_err();
    assert_eq!(refused, Refusal::SameIdOtherContent);
    let job =
        JobRef::Foreign { origin: jobs[1].request.origin, id: jobs[1].request.foreign_id.clone() };
    scene.run(Command::Start { job, by: b }).expect("the id still leads to it");
    assert_eq!(scene.state(jobs[1].id), State::Running);
}

#[test]
fn a_broadcast_is_paid_in_full_or_not_at_all() {
    let mut scene = TestHub::default();
    let client = scene.register_client("client", "rich", "15");
    let order = OpenJob { selection: Selection::Broadcast, ..scene.job_order(client, "sum", "10") };
    assert_eq!(scene.try_open_job(order.clone()).unwrap_err(), Refusal::NoSuchSkill);
    scene.register_worker("a", "o1", &[("sum", "10")]);
    scene.register_worker("b", "o2", &[("sum", "10")]);
    assert_eq!(scene.try_open_job(order).unwrap_err(), Refusal::TooFewCredits);
    assert_eq!(scene.balance_text("rich"), ("15.00".to_owned(), "0.00".to_owned()));
    assert_eq!(scene.world.live_jobs().count(), 0);
}

#[test]
fn the_reason_for_no_match_ignores_the_requester_itself() {
    let (mut scene, client) = market();
    scene.register(registration("client", "rich", &[("sum", "0.10")])).unwrap();
    let order = scene.job_order(client, "sum", "1.00");
    assert_eq!(scene.try_open_job(order.clone()).unwrap_err(), Refusal::NoSuchSkill);
    scene.register_worker("dear", "o1", &[("sum", "5.00")]);
    let price = credits("5.00");
    assert_eq!(scene.try_open_job(order).unwrap_err(), Refusal::BudgetTooLow { price });
}

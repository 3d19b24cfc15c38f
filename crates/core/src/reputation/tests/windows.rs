//! The window of newest outcomes: what is counted, how long it took, and whether it was on time.

use super::{market, work};
use crate::agent::JobIntake;
use crate::agent::Terms;
use crate::command::{
    Canceller, Command, JobRef, OpenJob, Registration, ReportResult, WorkerResponse,
};
use crate::event::Event;
use crate::id::AgentId;
use crate::job::{Cause, Policy, Selection};
use crate::job::{Reassignment, RequesterOptions};
use crate::reputation::window::{WINDOW_SIZE, WindowOutcome};
use crate::testkit::{LEASE, TestHub, registration};
use crate::time::Millis;

fn seen(scene: &TestHub, agent: AgentId) -> Vec<WindowOutcome> {
    scene.agent_state(agent).window.newest().collect()
}

/// The recorded outcomes of an agent's jobs.
fn judged(scene: &TestHub, agent: AgentId) -> Vec<bool> {
    let events = scene.store.rows.history_lines.iter().flat_map(|line| &line.events);
    let about = |event: &Event| match event {
        Event::AgentOutcomeRecorded { agent: about, ok, .. } if *about == agent => Some(*ok),
        _ => None,
    };
    events.filter_map(about).collect()
}

#[test]
fn of_a_hundred_and_fifty_the_last_hundred_are_shown() {
    let (mut scene, client, ada) = market();
    scene.checks_invariants = false;
    for n in 0..150 {
        work(&mut scene, client, n >= 50);
    }
    let rates = scene.agent_state(ada).window.rates().expect("there are some");
    assert_eq!((rates.count, rates.success, rates.on_time), (100, 1_000_000, 1_000_000));
    assert_eq!(seen(&scene, ada).len(), WINDOW_SIZE);
    let standing = scene.agent_state(ada).standing;
    assert_eq!((standing.successes, standing.failures), (100, 50), "counts cover the lifetime");
    let world = scene.store.rebuild_world(scene.world.rules);
    assert_eq!(
        world.agent_state(ada).map(|agent_state| &agent_state.window),
        Some(&scene.agent_state(ada).window)
    );
}

#[test]
fn it_took_from_the_yes_to_the_end() {
    let (mut scene, client, _) = market();
    let terms = Terms {
        intake: JobIntake { confirms_jobs: true, ..JobIntake::default() },
        ..Terms::default()
    };
    let order = registration("bob", "acme", &[("sum", "0.10")]);
    let bob = scene.register(Registration { terms, ..order }).unwrap();
    let order = scene.job_order(client, "sum", "0.10");
    let job = scene.open_job(OpenJob { selection: Selection::Direct(bob), ..order }).id;
    scene.advance(Millis(3_000));
    let ready_at = Some(scene.now.plus(Millis(1_500)));
    let said = WorkerResponse::Accept { ready_at, worker_job_id: None };
    scene.run(Command::Respond { job: JobRef::Id(job), by: bob, response: said }).unwrap();
    scene.advance(Millis(2_000));
    scene.succeed(job, "0.10");
    let one = WindowOutcome { ok: true, on_time: false, took: Millis(2_000) };
    assert_eq!(seen(&scene, bob), [one], "not from the request, and later than promised");
    assert_eq!(judged(&scene, bob), [true]);
}

#[test]
fn what_blames_the_worker_counts_and_is_never_on_time_by_rate() {
    let (mut scene, client, ada) = market();
    let order = scene.job_order(client, "sum", "0.10");
    let job = scene.open_job(order).id;
    scene.read_inbox(ada);
    scene.advance(LEASE);
    assert!(scene.state(job).is_final());
    let order = scene.job_order(client, "sum", "0.10");
    let job = scene.open_job(order).id;
    let word =
        ReportResult { cause: Some(Cause::Unusable), ..scene.job_report(job, false, "0.10") };
    scene.report_result(word).unwrap();
    let took: Vec<(bool, Millis)> =
        seen(&scene, ada).iter().map(|seen| (seen.ok, seen.took)).collect();
    assert_eq!(took, [(false, Millis(0)), (false, LEASE)], "newest first");
    let rates = scene.agent_state(ada).window.rates().expect("there are some");
    assert_eq!((rates.count, rates.success, rates.on_time), (2, 0, 0));
    assert_eq!(judged(&scene, ada), [false, false]);
}

#[test]
fn what_is_nobodys_fault_or_was_called_off_is_not_there() {
    let (mut scene, client, ada) = market();
    for cause in [Cause::NoSuchSkill, Cause::BudgetTooLow, Cause::Policy] {
        let order = scene.job_order(client, "sum", "0.10");
        let job = scene.open_job(order).id;
        let word = ReportResult { cause: Some(cause), ..scene.job_report(job, false, "0") };
        scene.report_result(word).unwrap();
    }
    let policy = Policy {
        requester: RequesterOptions { cancels_any_time: true, ..RequesterOptions::default() },
        ..Policy::default()
    };
    for by in [client, ada] {
        let order = OpenJob { policy, ..scene.job_order(client, "sum", "0.10") };
        let job = JobRef::Id(scene.open_job(order).id);
        scene.run(Command::Start { job: job.clone(), by: ada }).unwrap();
        let by = Canceller::Agent(by);
        scene.run(Command::Cancel { job, by, reason: None }).unwrap();
    }
    assert!(scene.agent_state(ada).window.is_empty() && judged(&scene, ada).is_empty());
    assert_eq!(scene.agent_state(ada).window.score(Millis::seconds(10)), None);
    assert_eq!(scene.agent_state(ada).standing.outcomes, 3, "the outcome is recorded nevertheless");
}

#[test]
fn inside_one_owner_a_job_is_judged_and_not_counted() {
    let mut scene = TestHub::default();
    scene.grant("ring", "10.00");
    let one = scene.register_worker("one", "ring", &[]);
    let two = scene.register_worker("two", "ring", &[("sum", "0.10")]);
    for ok in [true, false] {
        work(&mut scene, one, ok);
    }
    assert!(scene.agent_state(two).window.is_empty());
    assert_eq!(judged(&scene, two), [true, false], "watchers get every result");
}

#[test]
fn each_of_several_turns_counts_for_whose_it_was() {
    let (mut scene, client, ada) = market();
    let bob = scene.register_worker("bob", "acme", &[("sum", "0.10")]);
    let policy = Policy {
        reassignment: Reassignment { when_failed: true, ..Reassignment::default() },
        ..Policy::default()
    };
    let order = OpenJob { policy, ..scene.job_order(client, "sum", "0.10") };
    let job = scene.open_job(order).id;
    assert_eq!(scene.job(job).worker(), Some(ada));
    scene.advance(Millis(1_000));
    scene.fail(job);
    scene.advance(Millis(4_000));
    scene.succeed(job, "0.10");
    let of = |ok, took| vec![WindowOutcome { ok, on_time: true, took: Millis(took) }];
    assert_eq!((seen(&scene, ada), seen(&scene, bob)), (of(false, 1_000), of(true, 4_000)));
}

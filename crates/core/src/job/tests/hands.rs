//! Assigned work: when an agent is working and when it is free, as its watchers see it.

use super::responding::{ASKS, YES, seconds};
use super::{PATIENT, hire, keeps, market, stand};
use crate::agent::presence::Availability;
use crate::command::{Command, JobRef, OpenJob, WorkerResponse};
use crate::event::Event;
use crate::id::AgentId;
use crate::job::State;
use crate::testkit::TestHub;
use crate::testkit::signed_orders::result;
use crate::time::Millis;

/// The events about an agent's work so far: true for a start.
fn heard(scene: &TestHub, agent: AgentId) -> Vec<bool> {
    let lines = scene.store.rows.history_lines.iter().flat_map(|line| &line.events);
    let about = |event: &Event| match event {
        Event::AgentAtWork { agent: about } if *about == agent => Some(true),
        Event::AgentFree { agent: about } if *about == agent => Some(false),
        _ => None,
    };
    lines.filter_map(about).collect()
}

fn availability(scene: &TestHub, agent: AgentId) -> Availability {
    scene.agent_state(agent).presence.availability
}

#[test]
fn the_first_job_makes_it_busy_and_the_last_one_free() {
    let (mut scene, client) = market();
    let ada = scene.register_worker("ada", "acme", &[("sum", "0.10")]);
    let jobs = [(); 3].map(|()| hire(&mut scene, client, ada).unwrap().id);
    assert_eq!(heard(&scene, ada), [true], "once, not for each");
    scene.succeed(jobs[1], "0.10");
    scene.fail(jobs[0]);
    assert_eq!(heard(&scene, ada), [true]);
    scene.decline(jobs[2]);
    assert_eq!(heard(&scene, ada), [true, false]);
    hire(&mut scene, client, ada).unwrap();
    assert_eq!(heard(&scene, ada), [true, false, true]);
    assert!(heard(&scene, client).is_empty(), "requesting is not working");
    scene.remove(ada);
    assert_eq!(heard(&scene, ada), [true, false, true, false]);
}

#[test]
fn who_thinks_about_it_is_not_at_work_yet() {
    let (mut scene, client) = market();
    let ada = keeps(&mut scene, "ada", ASKS);
    let job = hire(&mut scene, client, ada).unwrap().id;
    assert_eq!((scene.state(job), heard(&scene, ada)), (State::Assigned, vec![]));
    scene.advance(seconds(9));
    assert!(heard(&scene, ada).is_empty(), "nor does missing activity make it free");
    let job = hire(&mut scene, client, ada).unwrap().id;
    scene.respond(job, ada, YES).unwrap();
    assert_eq!(heard(&scene, ada), [true]);
    let until = scene.now.plus(seconds(60));
    scene.run(Command::Defer { job: JobRef::Id(job), by: ada, until }).unwrap();
    assert_eq!(heard(&scene, ada), [true], "what it deferred itself is still assigned to it");
    scene.advance(seconds(60));
    scene.succeed(job, "0.10");
    assert_eq!(heard(&scene, ada), [true, false]);
    let job = hire(&mut scene, client, ada).unwrap().id;
    let until = scene.now.plus(seconds(60));
    scene.respond(job, ada, WorkerResponse::Defer { until }).unwrap();
    assert_eq!(heard(&scene, ada), [true, false], "deferred before it was accepted");
}

#[test]
fn one_command_can_move_work_from_one_to_the_other() {
    let (mut scene, client) = market();
    let ada = scene.register_worker("ada", "acme", &[("sum", "0.10")]);
    let bob = scene.register_worker("bob", "acme", &[("sum", "0.20")]);
    let order = OpenJob { policy: PATIENT, ..scene.job_order(client, "sum", "0.50") };
    let job = scene.open_job(order).id;
    scene.run(Command::Requeue { job: JobRef::Id(job) }).unwrap();
    assert_eq!((heard(&scene, ada), heard(&scene, bob)), (vec![true, false], vec![true]));
    let last = scene.store.rows.history_lines.last().expect("it was recorded");
    let moved = [Event::AgentFree { agent: ada }, Event::AgentAtWork { agent: bob }];
    assert!(moved.iter().all(|event| last.events.contains(event)), "{last:?}");
}

#[test]
fn what_is_begun_and_done_within_one_command_is_no_news() {
    let mut scene = TestHub::default();
    scene.introduce("ann", &[]);
    let pat = scene.introduce("pat", &[("sum", "0")]);
    scene.request("ann", "r", pat, None);
    assert_eq!(scene.sign_and_run("pat", "x", result("r")), Ok(State::Completed));
    assert!(heard(&scene, pat).is_empty());
    assert_eq!(scene.agent_state(pat).standing.successes, 1, "though it counts");
}

#[test]
fn in_error_and_maintenance_nothing_is_said_of_work() {
    for closed in [
        Availability::Error,
        Availability::Broken,
        Availability::Maintenance,
        Availability::Offline,
    ] {
        let (mut scene, client) = market();
        let ada = scene.register_worker("ada", "acme", &[("sum", "0.10")]);
        let job = hire(&mut scene, client, ada).unwrap().id;
        stand(&mut scene, ada, closed, Some(60));
        scene.succeed(job, "0.10");
        assert_eq!((heard(&scene, ada), availability(&scene, ada)), (vec![true], closed));
        stand(&mut scene, ada, Availability::Idle, None);
        assert_eq!(heard(&scene, ada), [true], "it reports its own status");
        hire(&mut scene, client, ada).unwrap();
        assert_eq!(heard(&scene, ada), [true, true], "this is an event again");
    }
}

#[test]
fn coming_back_to_work_that_waited_is_one_beginning() {
    let (mut scene, client) = market();
    let ada = scene.register_worker("ada", "acme", &[("sum", "0.10")]);
    stand(&mut scene, ada, Availability::Maintenance, Some(60));
    let jobs = [(); 2].map(|()| hire(&mut scene, client, ada).unwrap().id);
    assert!(heard(&scene, ada).is_empty());
    stand(&mut scene, ada, Availability::Idle, None);
    assert_eq!(heard(&scene, ada), [true]);
    for job in jobs {
        scene.succeed(job, "0.10");
    }
    assert_eq!(heard(&scene, ada), [true, false]);
}

#[test]
fn who_said_it_was_busy_is_idle_when_the_last_job_ends() {
    let (mut scene, client) = market();
    let ada = scene.register_worker("ada", "acme", &[("sum", "0.10")]);
    stand(&mut scene, ada, Availability::Busy, None);
    let jobs = [(); 2].map(|()| hire(&mut scene, client, ada).unwrap().id);
    scene.succeed(jobs[0], "0.10");
    assert_eq!(availability(&scene, ada), Availability::Busy, "there is one left");
    scene.advance(Millis::hours(1));
    assert!(scene.state(jobs[1]).is_final());
    assert_eq!(
        (availability(&scene, ada), heard(&scene, ada)),
        (Availability::Idle, vec![true, false])
    );
    stand(&mut scene, ada, Availability::Busy, None);
    scene.advance(Millis::hours(1));
    assert_eq!(
        availability(&scene, ada),
        Availability::Busy,
        "its own status holds while nothing ends"
    );
}

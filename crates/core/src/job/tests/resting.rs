//! Jobs that are deferred again and again (T41).

use super::responding::ASKS;
use super::{hire, keeps, market};
use crate::command::{Command, JobRef, WorkerResponse};
use crate::job::{Backoff, State};
use crate::time::Millis;

/// Assignments that follow each other at once.
const AT_ONCE: usize = 8;

#[test]
fn an_agent_that_defers_repeatedly_is_asked_with_growing_delay() {
    let (mut scene, client) = market();
    let ada = keeps(&mut scene, "ada", ASKS);
    let job = hire(&mut scene, client, ada).unwrap().id;
    let mut pauses = Vec::new();
    for turn in 1..AT_ONCE + 15 {
        assert_eq!((scene.state(job), scene.job(job).epoch), (State::Assigned, turn as u32));
        let until = scene.now.plus(Millis(1));
        let put_off = scene.respond(job, ada, WorkerResponse::Defer { until }).unwrap();
        let State::Deferred { until } = put_off.state else { panic!("{put_off:?}") };
        pauses.push(until.since(scene.now));
        scene.advance(until.since(scene.now));
    }
    let (free, slow) = pauses.split_at(AT_ONCE - 1);
    assert!(free.iter().all(|pause| *pause == Millis(1)), "{free:?}");
    let expected = (0..15).map(|doubled| Millis::seconds(1 << doubled).min(Millis::hours(1)));
    assert!(slow.iter().copied().eq(expected), "{slow:?}");
}

#[test]
fn who_asks_for_more_time_than_the_pause_gets_it() {
    let (mut scene, client) = market();
    let ada = keeps(&mut scene, "ada", ASKS);
    let job = hire(&mut scene, client, ada).unwrap().id;
    for _ in 0..AT_ONCE + 2 {
        let until = scene.now.plus(Millis::minutes(5));
        scene.respond(job, ada, WorkerResponse::Defer { until }).unwrap();
        assert_eq!(scene.state(job), State::Deferred { until });
        scene.advance(Millis::minutes(5));
    }
    assert_eq!(scene.state(job), State::Assigned);
}

#[test]
fn a_worker_that_defers_without_being_asked_is_slowed_down_too() {
    let (mut scene, client) = market();
    let ada = scene.register_worker("ada", "acme", &[("sum", "0.10")]);
    let job = hire(&mut scene, client, ada).unwrap().id;
    for _ in 0..AT_ONCE {
        let until = scene.now;
        scene.run(Command::Defer { job: JobRef::Id(job), by: ada, until }).unwrap();
        scene.advance(Millis(1));
    }
    let until = scene.now.plus(Millis(999));
    assert_eq!(scene.state(job), State::Deferred { until });
}

#[test]
fn a_row_from_before_there_was_rest_is_read_and_one_without_it_is_the_same() {
    let (mut scene, client) = market();
    let ada = scene.register_worker("ada", "acme", &[("sum", "0.10")]);
    let job = hire(&mut scene, client, ada).unwrap();
    let row = serde_json::to_string(&*job).unwrap();
    assert!(!row.contains("rest"), "{row}");
    let read: crate::job::Job = serde_json::from_str(&row).unwrap();
    assert_eq!(read.candidates.backoff, Backoff::default());
}

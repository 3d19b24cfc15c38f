//! Time: last-seen times, going offline, leases, and waiting for an end.

use rialto_core::agent::Liveness;
use rialto_core::job::{Requester, State};
use rialto_core::reputation::Score;
use rialto_core::world::discover::DiscoveryQuery;

use super::*;
use crate::fixtures::{LEASE, enrol, grant, report};

fn polled(native: &str) -> Registration {
    Registration { liveness: Liveness::ByPolling, ..enrol(native, native, &[("sum", "0")]) }
}

fn found(engine: &Engine) -> usize {
    let (min_score, max_price) = (Score::MIN, None);
    let wanted =
        DiscoveryQuery { skill: "sum", min_score, max_price, min_jobs: 0, limit: 9, offset: 0 };
    engine.with_world(|world| world.discover(&wanted, engine.now()).total)
}

#[tokio::test]
async fn a_sign_of_life_costs_no_write_and_keeps_an_agent_online() {
    let (store, probe) = Probed::over(MemoryStore::default());
    let hub = Hub::over(store, ManualClock::at(START));
    let bob = hub.enrol(polled("bob")).await;
    let commits = probe.commits();
    for _ in 0..5 {
        hub.clock.advance(Millis::seconds(80));
        hub.engine.record_seen(bob);
        let now = hub.engine.now();
        hub.until(|engine| {
            engine.with_world(|world| {
                world
                    .agent_state(bob)
                    .is_some_and(|agent_state| agent_state.presence.last_seen == now)
            })
        })
        .await;
        assert_eq!(found(&hub.engine), 1);
    }
    // Seen again too soon for a wake-up, and so not published on its own; it counts all the same.
    hub.clock.advance(Millis(500));
    hub.engine.record_seen(bob);
    hub.clock.advance(Millis(89_900));
    hub.until(|engine| engine.with_world(|world| world.is_online(bob, engine.now()))).await;
    assert_eq!(probe.commits(), commits);
    hub.stop().await;
}

#[tokio::test]
async fn an_agent_without_heartbeat_is_delisted() {
    let hub = Hub::in_memory();
    hub.enrol(polled("bob")).await;
    hub.clock.advance(Millis::seconds(90));
    assert_eq!(found(&hub.engine), 1, "the last moment still counts");
    hub.after(Millis(1), |engine| engine.with_world(|world| world.online_count()) == 0).await;
    assert_eq!(found(&hub.engine), 0);
    hub.engine.record_seen(AgentId(1));
    hub.until(|engine| engine.with_world(|world| world.online_count()) == 1).await;
    hub.stop().await;
}

#[tokio::test]
async fn a_lease_runs_out_by_itself_also_after_a_restart() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let clock = ManualClock::at(START);
    let hub = Hub::on_disk(dir.path(), &clock);
    let ada = hub.enrol(enrol("ada", "ada", &[])).await;
    hub.enrol(enrol("bob", "bob", &[("sum", "1")])).await;
    let first = hub.open(hub.ask(1, ada, "sum", "2")).await;
    assert_eq!(hub.account("ada"), ("8.00".to_owned(), "2.00".to_owned()));
    let alive = |id| move |engine: &Engine| engine.with_world(|world| world.job(id).is_none());
    hub.after(LEASE, alive(first)).await;
    let ended = hub.engine.load_job(first).await.expect("readable").expect("it is stored");
    assert_eq!(ended.state, State::Expired);
    assert_eq!(hub.account("ada"), ("10.00".to_owned(), "0.00".to_owned()));
    let second = hub.open(hub.ask(2, ada, "sum", "2")).await;
    hub.stop().await;

    clock.advance(LEASE);
    let hub = Hub::on_disk(dir.path(), &clock);
    hub.until(alive(second)).await;
    assert_eq!(hub.account("ada"), ("10.00".to_owned(), "0.00".to_owned()));
    hub.stop().await;
}

#[tokio::test]
async fn a_wall_clock_set_back_while_the_hub_was_down_ends_nothing_early_and_nothing_late() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let clock = ManualClock::at(START);
    let hub = Hub::on_disk(dir.path(), &clock);
    let ada = hub.enrol(enrol("ada", "ada", &[])).await;
    hub.enrol(enrol("bob", "bob", &[("sum", "1")])).await;
    clock.advance(Millis::hours(1));
    let job = hub.open(hub.ask(1, ada, "sum", "2")).await;
    hub.stop().await;

    let hub = Hub::on_disk(dir.path(), &ManualClock::at(START));
    assert_eq!(hub.engine.now(), START.plus(Millis::hours(1)), "it resumes at the last commit");
    assert!(hub.engine.with_world(|world| world.job(job).is_some()));
    hub.after(LEASE, |engine| engine.with_world(|world| world.job(job).is_none())).await;
    assert_eq!(hub.account("ada"), ("10.00".to_owned(), "0.00".to_owned()));
    hub.stop().await;
}

#[tokio::test]
async fn a_wall_clock_jump_of_an_hour_ends_no_lease_and_takes_no_agent_offline() {
    for jump in [Millis::hours(1), Millis(-Millis::hours(1).0)] {
        let hub = Hub::in_memory();
        let ada = hub.enrol(enrol("ada", "ada", &[])).await;
        hub.enrol(polled("bob")).await;
        let job = hub.open(hub.ask(1, ada, "sum", "0")).await;
        hub.clock.shift_wall_time(jump);
        hub.engine.wake_lane();
        // The lane checks what is due before it runs its next command.
        hub.enrol(polled("cid")).await;
        assert!(hub.engine.with_world(|world| world.job(job).is_some()));
        assert_eq!(found(&hub.engine), 2);
        assert_eq!(hub.engine.now(), START);
        assert_eq!(hub.engine.wall_time(), START.plus(jump));
        hub.stop().await;
    }
}

#[tokio::test]
async fn a_sign_of_life_does_not_undo_what_was_found_out_after_it() {
    let (store, probe) = Probed::over(MemoryStore::default());
    let hub = Hub::over(store, ManualClock::at(START));
    let (job, bob) = at_once(&hub).await;
    hub.clock.advance(Millis::seconds(5));
    probe.close();
    let engine = hub.engine.clone();
    let held = tokio::spawn(async move { engine.run(grant("ada", "1")).await });
    probe.held().await;
    hub.engine.record_seen(bob);
    let engine = hub.engine.clone();
    let lost =
        tokio::spawn(async move { engine.run(Command::MarkUnreachable { job, epoch: 1 }).await });
    tokio::time::sleep(Duration::from_millis(10)).await;
    probe.open();
    assert!(held.await.expect("no panic").is_ok());
    assert!(lost.await.expect("no panic").is_ok());
    assert!(!hub.engine.with_world(|world| world.is_online(bob, hub.engine.now())));
    hub.stop().await;
}

/// A job whose requester waits for the answer on an open connection.
async fn at_once(hub: &Hub) -> (JobId, AgentId) {
    let mut bob = enrol("bob", "bob", &[("sum", "0")]);
    (bob.liveness, bob.endpoint) = (Liveness::ByEndpoint, Some("https://bob.example".to_owned()));
    let bob = hub.enrol(bob).await;
    let mut order = hub.ask(1, AgentId(0), "sum", "0");
    order.requester = Requester::Guest("guest".to_owned());
    (hub.open(order).await, bob)
}

#[tokio::test]
async fn a_caller_that_waits_for_the_end_is_woken_by_it() {
    let hub = Hub::in_memory();
    let (job, bob) = at_once(&hub).await;
    let waiting: Vec<_> = (0..5)
        .map(|_| {
            let engine = hub.engine.clone();
            tokio::spawn(async move { engine.wait_until_ended_or_pending(job, LONG).await })
        })
        .collect();
    tokio::time::sleep(Duration::from_millis(20)).await;
    assert!(waiting.iter().all(|one| !one.is_finished()));
    hub.run(report(job, bob, true, "0")).await.expect("it is assigned");
    for one in waiting {
        let ended = one.await.expect("no panic").expect("readable").expect("it exists");
        assert_eq!(ended.state, State::Completed);
    }
    // Too late, unknown, and too short a wait.
    let late = hub
        .engine
        .wait_until_ended_or_pending(job, LONG)
        .await
        .expect("readable")
        .expect("it exists");
    assert_eq!(late.state, State::Completed);
    assert!(
        hub.engine.wait_until_ended_or_pending(JobId(99), LONG).await.expect("readable").is_none()
    );
    hub.stop().await;
}

#[tokio::test]
async fn a_waiting_call_ends_at_its_timeout_or_when_the_job_is_deferred() {
    let hub = Hub::in_memory();
    let (job, bob) = at_once(&hub).await;
    let short = Duration::from_millis(20);
    let live = hub
        .engine
        .wait_until_ended_or_pending(job, short)
        .await
        .expect("readable")
        .expect("it exists");
    assert_eq!(live.state, State::Assigned);
    let engine = hub.engine.clone();
    let waiting = tokio::spawn(async move { engine.wait_until_ended_or_pending(job, LONG).await });
    tokio::time::sleep(short).await;
    let named = rialto_core::command::JobRef::Id(job);
    hub.run(Command::Start { job: named, by: bob }).await.expect("it is assigned");
    let running = waiting.await.expect("no panic").expect("readable").expect("it exists");
    assert_eq!(running.state, State::Running);
    // Known before the wait started: there is nothing to wait for.
    let running = hub
        .engine
        .wait_until_ended_or_pending(job, LONG)
        .await
        .expect("readable")
        .expect("it exists");
    assert_eq!(running.state, State::Running);
    assert_eq!(hub.engine.inner.notifier.waiting_job_count(), 0, "no waiter remains");
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_end_is_missed_however_the_race_goes() {
    let hub = Hub::in_memory();
    let (first, bob) = at_once(&hub).await;
    hub.run(report(first, bob, true, "0")).await.expect("it is assigned");
    for n in 2..150 {
        let mut order = hub.ask(n, AgentId(0), "sum", "0");
        order.requester = Requester::Guest("guest".to_owned());
        let job = hub.open(order).await;
        let engine = hub.engine.clone();
        let reporting = tokio::spawn(async move { engine.run(report(job, bob, true, "0")).await });
        let ended = hub
            .engine
            .wait_until_ended_or_pending(job, LONG)
            .await
            .expect("readable")
            .expect("it exists");
        assert_eq!(ended.state, State::Completed);
        reporting.await.expect("no panic").expect("it was assigned");
    }
    assert_eq!(hub.engine.inner.notifier.waiting_job_count(), 0, "no waiter remains");
    hub.stop().await;
}

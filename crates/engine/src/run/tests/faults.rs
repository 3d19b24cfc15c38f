//! Faults: a full disk leaves no trace and the hub continues; any other store error stops it.

use rialto_core::alias::Digest;
use rialto_core::idempotency::Principal;

use super::*;
use crate::fixtures::{LEASE, enrol, grant, pay, report, snapshot};
use crate::run::Idempotency;

fn broken() -> StoreError {
    StoreError::Failed("fsync failed, as planned".to_owned())
}

#[tokio::test]
async fn a_full_disk_leaves_no_trace_and_the_hub_goes_on() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let clock = ManualClock::at(START);
    let (store, probe) = Probed::over(SqliteStore::open(dir.path()).expect("free"));
    let hub = Hub::over(store, clock.clone());
    let ada = hub.enrol(enrol("ada", "ada", &[])).await;
    let bob = hub.enrol(enrol("bob", "bob", &[("sum", "1")])).await;
    let job = hub.open(hub.ask(1, ada, "sum", "2")).await;
    let before = hub.engine.with_world(|world| snapshot(world, START));

    let principal = Principal::Operator;
    let once = Idempotency { scope: Digest([1; 16]), request: Digest([2; 16]), principal };
    let failing = [
        Command::Register(Box::new(enrol("cyd", "cyd", &[("sum", "0")]))),
        report(job, bob, true, "1"),
        Command::Pay(Box::new(pay(1, "ada", "bob", "1"))),
        Command::Remove { agent: bob, by_operator: true },
        Command::OpenJob(Box::new(hub.ask(2, ada, "sum", "1"))),
    ];
    for command in failing.clone() {
        probe.fail_with(StoreError::Full);
        let full = hub.engine.run_once(command, Some(once)).await;
        assert!(matches!(full, Err(Failure::StoreFull)), "{full:?}");
        assert_eq!(hub.engine.with_world(|world| snapshot(world, START)), before);
        assert!(hub.engine.is_writable());
    }
    assert!(!hub.engine.has_idempotency_record(once.scope), "nor is the key used");
    // The working world is a copy of the published one again: ids continue and credits are intact.
    hub.run(report(job, bob, true, "1")).await.expect("it is assigned");
    hub.open(hub.ask(2, ada, "sum", "1")).await;
    hub.run(Command::Pay(Box::new(pay(1, "ada", "bob", "1")))).await.expect("paid");
    let after = hub.engine.with_world(|world| snapshot(world, START));
    hub.stop().await;
    let hub = Hub::on_disk(dir.path(), &clock);
    assert_eq!(hub.engine.with_world(|world| snapshot(world, START)), after);
    assert_eq!(hub.account("ada"), ("7.00".to_owned(), "1.00".to_owned()));
    hub.stop().await;
}

#[tokio::test]
async fn signs_of_life_survive_a_full_disk() {
    let (store, probe) = Probed::over(MemoryStore::default());
    let hub = Hub::over(store, ManualClock::at(START));
    let mut shy = enrol("bob", "bob", &[("sum", "1")]);
    shy.liveness = rialto_core::agent::Liveness::ByPolling;
    let bob = hub.enrol(shy).await;
    hub.clock.advance(Millis::seconds(80));
    probe.close();
    probe.pass();
    probe.fail_with(StoreError::Full);
    let run = |name: &'static str| {
        let engine = hub.engine.clone();
        tokio::spawn(async move { engine.run(grant(name, "1")).await })
    };
    let first = run("ada");
    probe.held().await;
    // The lane is blocked in the commit of the first; the last-seen time belongs to the failing
    // batch.
    hub.engine.record_seen(bob);
    let second = run("cyd");
    tokio::time::sleep(Duration::from_millis(10)).await;
    probe.open();
    assert!(first.await.expect("no panic").is_ok());
    assert!(matches!(second.await.expect("no panic"), Err(Failure::StoreFull)));
    hub.clock.advance(Millis::seconds(80));
    hub.until(|engine| engine.with_world(|world| world.is_online(bob, engine.now()))).await;
    hub.stop().await;
}

#[tokio::test]
async fn timers_wait_while_the_disk_is_full_and_fire_when_it_is_not() {
    let (store, probe) = Probed::over(MemoryStore::default());
    let hub = Hub::over(store, ManualClock::at(START));
    let ada = hub.enrol(enrol("ada", "ada", &[])).await;
    hub.enrol(enrol("bob", "bob", &[("sum", "1")])).await;
    let job = hub.open(hub.ask(1, ada, "sum", "2")).await;
    for _ in 0..1_000 {
        probe.fail_with(StoreError::Full);
    }
    hub.clock.advance(LEASE);
    let tried = || 1_000 - probe.faults.lock().len();
    hub.until(|_| tried() > 0).await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    let tried = tried();
    assert!(tried <= 3, "tried {tried} times in one moment");
    probe.faults.lock().clear();
    let gone = |engine: &Engine| engine.with_world(|world| world.job(job).is_none());
    hub.after(Millis::seconds(1), gone).await;
    assert_eq!(hub.account("ada").0, "10.00");
    hub.stop().await;
}

#[tokio::test]
async fn no_room_to_tidy_up_is_no_reason_to_stop() {
    let (store, probe) = Probed::over(MemoryStore::default());
    let hub = Hub::over(store, ManualClock::at(START));
    *probe.tending.lock() = Some(StoreError::Full);
    for _ in 0..3 {
        hub.run(grant("ada", "1")).await.expect("there is space for this");
    }
    *probe.tending.lock() = Some(broken());
    hub.until(|engine| {
        engine.wake_lane();
        !engine.is_writable()
    })
    .await;
    assert!(matches!(hub.run(grant("ada", "1")).await, Err(Failure::Unavailable)));
}

#[tokio::test]
async fn a_panic_in_the_lane_is_reported_and_no_caller_waits_forever() {
    let (store, probe) = Probed::over(MemoryStore::default());
    let hub = Hub::over(store, ManualClock::at(START));
    probe.panics.store(true, Ordering::SeqCst);
    assert!(matches!(hub.run(grant("ada", "1")).await, Err(Failure::Unavailable)));
    let mut told = hub.engine.watch_store_failure();
    tokio::time::timeout(LONG, told.wait_for(Option::is_some)).await.expect("soon").expect("told");
    assert!(!hub.engine.is_writable());
}

#[tokio::test]
async fn a_broken_store_ends_the_hub_and_shows_nothing_of_the_last_batch() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let clock = ManualClock::at(START);
    let (store, probe) = Probed::over(SqliteStore::open(dir.path()).expect("free"));
    let hub = Hub::over(store, clock.clone());
    hub.run(grant("ada", "1")).await.expect("there is space");
    let before = hub.engine.with_world(|world| snapshot(world, START));
    let mut told = hub.engine.watch_store_failure();
    probe.close();
    probe.fail_with(broken());
    let orders = (0..50).map(|n| grant(&format!("owner-{n}"), "1"));
    let engine = hub.engine.clone();
    let waiting = tokio::spawn(async move { together(&engine, orders).await });
    probe.held().await;
    probe.open();
    let answers = waiting.await.expect("no panic");
    assert!(
        answers.iter().all(|answer| matches!(answer, Err(Failure::Unavailable))),
        "{answers:?}"
    );
    assert!(!hub.engine.is_writable());
    let why = tokio::time::timeout(LONG, told.wait_for(Option::is_some)).await.expect("soon");
    let why = why.expect("told").clone();
    assert!(why.expect("a reason").contains("as planned"));
    assert!(
        matches!(hub.run(grant("ada", "1")).await, Err(Failure::Unavailable)),
        "and none afterwards"
    );
    assert_eq!(probe.commits(), 2, "nothing was retried");
    assert_eq!(hub.engine.with_world(|world| snapshot(world, START)), before);
    assert_eq!(hub.account("ada").0, "11.00", "what is committed can still be read");
    let Hub { engine, lane, .. } = hub;
    drop(engine);
    tokio::task::spawn_blocking(|| lane.join()).await.expect("joins").expect("no panic");
    let hub = Hub::on_disk(dir.path(), &clock);
    assert_eq!(hub.engine.with_world(|world| snapshot(world, START)), before);
    hub.stop().await;
}

#[tokio::test]
async fn a_row_that_cannot_be_trusted_ends_the_hub_for_readers_and_lane_alike() {
    for by_lane in [true, false] {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let hub = Hub::on_disk(dir.path(), &ManualClock::at(START));
        let ada = hub.enrol(enrol("ada", "ada", &[])).await;
        let bob = hub.enrol(enrol("bob", "bob", &[("sum", "1")])).await;
        let job = hub.open(hub.ask(1, ada, "sum", "1")).await;
        hub.run(report(job, bob, true, "1")).await.expect("it is assigned");
        // Its row is in the tables once the hub was stopped.
        hub.stop().await;
        let hub = Hub::on_disk(dir.path(), &ManualClock::at(START));
        let file = dir.path().join(crate::store::sqlite::DB_FILE);
        let behind = rusqlite::Connection::open(file).expect("the file exists");
        behind.execute_batch("UPDATE archive SET body = upper(body)").expect("corrupted");
        if by_lane {
            let lost = hub.run(report(job, bob, true, "1")).await;
            assert!(matches!(lost, Err(Failure::Unavailable)), "{lost:?}");
        } else {
            assert!(matches!(hub.engine.load_job(job).await, Err(Failure::Unavailable)));
        }
        assert!(!hub.engine.is_writable());
        assert!(matches!(hub.run(grant("ada", "1")).await, Err(Failure::Unavailable)));
        assert_eq!(hub.account("ada").0, "9.00");
    }
}

#[tokio::test]
async fn a_store_whose_books_do_not_agree_is_not_started() {
    let spoils = [
        "DELETE FROM entries WHERE id = (SELECT max(id) FROM entries)",
        "DELETE FROM owners WHERE id = 1",
    ];
    for spoil in spoils {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let clock = ManualClock::at(START);
        let hub = Hub::on_disk(dir.path(), &clock);
        hub.run(grant("ada", "1")).await.expect("there is space");
        hub.stop().await;
        let file = dir.path().join(crate::store::sqlite::DB_FILE);
        rusqlite::Connection::open(file).expect("there").execute_batch(spoil).expect("spoilt");
        let store = SqliteStore::open(dir.path()).expect("free");
        let refused = start_engine(Box::new(store), Rules::default(), clock).err();
        assert!(matches!(refused, Some(StoreError::Corrupt(_))), "{spoil}: {refused:?}");
    }
}

//! What the lane does when idle: maintenance, removing expired rows, and clearing applied records.

use rialto_core::alias::Digest;
use rialto_core::idempotency::{ANSWER_TTL, Principal};

use super::*;
use crate::fixtures::{enrol, grant, message};
use crate::run::Idempotency;

/// Several times as long as the lane waits before it wakes by itself.
const A_WHILE: Duration = Duration::from_secs(2);

fn tended(probe: &Probe) -> u64 {
    probe.tended.load(Ordering::SeqCst)
}

#[tokio::test]
async fn the_store_is_tidied_up_when_nothing_else_is_to_do_and_then_left_alone() {
    let (store, probe) = Probed::over(MemoryStore::default());
    let hub = Hub::over(store, ManualClock::at(START));
    hub.until(|_| tended(&probe) > 0).await;
    let before = tended(&probe);
    hub.run(grant("ada", "1")).await.expect("granted");
    hub.until(|_| tended(&probe) > before).await;
    tokio::time::sleep(A_WHILE).await;
    let tidy = tended(&probe);
    tokio::time::sleep(A_WHILE).await;
    assert_eq!(tended(&probe), tidy, "woken without work");
    hub.stop().await;
}

#[tokio::test]
async fn an_answer_that_is_too_old_is_forgotten_once_and_everywhere() {
    let (store, probe) = Probed::over(MemoryStore::default());
    let hub = Hub::over(store, ManualClock::at(START));
    let (scope, request) = (Digest::of(&[b"scope"]), Digest::of(&[b"request"]));
    let principal = Principal::Operator;
    let once = Some(Idempotency { scope, request, principal });
    hub.engine.run_once(grant("ada", "1"), once).await.expect("granted");
    hub.clock.advance(ANSWER_TTL);
    for _ in 0..3 {
        hub.run(grant("ada", "1")).await.expect("granted");
        assert_eq!(probe.forgotten.load(Ordering::SeqCst), 1, "in the store");
        let now = hub.engine.now();
        assert_eq!(
            hub.engine.with_world(|world| world.expired_rows(now, 1).answers.len()),
            0,
            "in memory"
        );
    }
    hub.stop().await;
}

#[tokio::test]
async fn what_was_noted_of_a_reader_is_kept_until_it_is_published_and_no_longer() {
    let (store, probe) = Probed::over(MemoryStore::default());
    let hub = Hub::over(store, ManualClock::at(START));
    let ada = hub.enrol(enrol("ada", "ada", &[])).await;
    let bob = hub.enrol(enrol("bob", "bob", &[])).await;
    for text in ["one", "two"] {
        hub.run(Command::SendMessage(Box::new(message(bob, ada, text)))).await.expect("sent");
    }
    let noted = |hub: &Hub| hub.engine.inner.presented.lock().get(&ada).copied();
    hub.engine.record_presented(ada, 1);
    probe.close();
    let engine = hub.engine.clone();
    let held = tokio::spawn(async move { engine.run(grant("held", "1")).await });
    probe.held().await;
    // The next position is recorded while the first is being written.
    hub.engine.record_presented(ada, 2);
    probe.open();
    held.await.expect("no panic").expect("granted");
    assert_eq!((noted(&hub), hub.engine.read_position(ada)), (Some(2), 2));
    hub.run(grant("next", "1")).await.expect("granted");
    assert_eq!((noted(&hub), hub.engine.read_position(ada)), (None, 2));
    hub.stop().await;
}

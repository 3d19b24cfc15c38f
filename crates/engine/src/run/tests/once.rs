//! Repeats: the same request gets the first answer for a day, also after a restart.

use rialto_core::alias::Digest;
use rialto_core::idempotency::{ANSWER_TTL, Principal, SavedAnswer, SavedSize};
use rialto_core::refusal::Refusal;

use super::*;
use crate::fixtures::{enrol, grant, open, pay};
use crate::run::{Idempotency, RunResult};

fn key(name: &str, body: &str) -> Idempotency {
    let (scope, request) = (Digest::of(&[name.as_bytes()]), Digest::of(&[body.as_bytes()]));
    Idempotency { scope, request, principal: Principal::Operator }
}

async fn once(hub: &Hub, command: Command, key: Idempotency) -> Result<RunResult, Failure> {
    hub.engine.run_once(command, Some(key)).await
}

#[tokio::test]
async fn a_repeat_has_one_effect_and_the_first_answer() {
    let hub = Hub::in_memory();
    let first = once(&hub, grant("ada", "1"), key("k", "b")).await.expect("granted");
    assert!(!first.replayed);
    let again = once(&hub, grant("ada", "1"), key("k", "b")).await.expect("replayed");
    assert!(again.replayed);
    assert!(matches!(again.answer, Answer::Account { owner, .. } if owner.name == "ada"));
    assert_eq!(hub.account("ada").0, "11.00", "welcome and one grant");
    // Other scopes are other requests.
    let other = once(&hub, grant("ada", "1"), key("other", "b")).await.expect("granted");
    assert!(!other.replayed);
    assert_eq!(hub.account("ada").0, "12.00");
    hub.stop().await;
}

#[tokio::test]
async fn the_same_key_with_other_content_is_refused_and_does_nothing() {
    let hub = Hub::in_memory();
    once(&hub, grant("ada", "1"), key("k", "b")).await.expect("granted");
    let other = once(&hub, grant("ada", "5"), key("k", "another body")).await;
    assert!(matches!(other, Err(Failure::Refused(Refusal::SameIdOtherContent))), "{other:?}");
    assert_eq!(hub.account("ada").0, "11.00");
    let known = hub.engine.saved_answer(key("k", "another body")).await.expect("readable");
    assert_eq!(known, Some(Err(())));
    hub.stop().await;
}

#[tokio::test]
async fn a_lasting_refusal_is_remembered_and_a_passing_one_is_not() {
    let hub = Hub::in_memory();
    let ada = hub.enrol(enrol("ada", "ada", &[])).await;
    let order = || Command::Pay(Box::new(pay(1, "ada", "bob", "1")));
    let refused = once(&hub, order(), key("pay", "b")).await;
    assert!(matches!(refused, Err(Failure::Refused(Refusal::NoSuchOwner { .. }))));
    hub.run(grant("bob", "1")).await.expect("granted");
    let again = once(&hub, order(), key("pay", "b")).await;
    assert!(matches!(again, Err(Failure::Refused(Refusal::NoSuchOwner { .. }))), "{again:?}");
    assert_eq!(hub.account("bob").0, "11.00");

    let mut shy = enrol("bob", "bob", &[("sum", "1")]);
    shy.liveness = rialto_core::agent::Liveness::ByPolling;
    hub.enrol(shy).await;
    hub.clock.advance(Millis::minutes(10));
    let order = || Command::OpenJob(Box::new(open(1, ada, "sum", "1", hub.engine.now())));
    let refused = once(&hub, order(), key("job", "b")).await;
    assert!(matches!(refused, Err(Failure::Refused(Refusal::Offline))), "{refused:?}");
    hub.run(Command::Heartbeat { agent: AgentId(2) }).await.expect("it is back");
    let again = once(&hub, order(), key("job", "b")).await.expect("waiting helped");
    assert!(!again.replayed);
    hub.stop().await;
}

#[tokio::test]
async fn repeats_within_one_batch_are_repeats_too() {
    let (store, probe) = Probed::over(MemoryStore::default());
    let hub = Hub::over(store, ManualClock::at(START));
    probe.close();
    let run = |n: u64| {
        let engine = hub.engine.clone();
        let owner = format!("owner-{}", n % 2);
        let key = key(&owner, "b");
        tokio::spawn(async move { engine.run_once(grant(&owner, "1"), Some(key)).await })
    };
    let running: Vec<_> = (0..40).map(run).collect();
    probe.held().await;
    probe.open();
    let mut fresh = 0;
    for one in running {
        fresh += u32::from(!one.await.expect("no panic").expect("answered").replayed);
    }
    assert_eq!(fresh, 2);
    assert_eq!(hub.account("owner-0").0, "11.00");
    assert_eq!(hub.account("owner-1").0, "11.00");
    hub.stop().await;
}

#[tokio::test]
async fn a_repeat_after_a_restart_is_still_one() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let clock = ManualClock::at(START);
    let hub = Hub::on_disk(dir.path(), &clock);
    hub.run(grant("bob", "0")).await.expect("opened");
    hub.run(grant("ada", "5")).await.expect("granted");
    let order = || Command::Pay(Box::new(pay(1, "ada", "bob", "2")));
    let first = once(&hub, order(), key("k", "b")).await.expect("paid");
    let refused = once(&hub, grant("hub:issuance", "1"), key("no", "b")).await;
    assert!(matches!(refused, Err(Failure::Refused(_))));
    hub.stop().await;

    let hub = Hub::on_disk(dir.path(), &clock);
    let again = once(&hub, order(), key("k", "b")).await.expect("replayed");
    let (Answer::Transfer { transfer: one, .. }, Answer::Transfer { transfer: two, .. }) =
        (first.answer, again.answer)
    else {
        panic!("both are transfers")
    };
    assert_eq!((one, again.replayed), (two, true));
    assert_eq!(hub.account("bob").0, "12.00");
    let refused = once(&hub, grant("hub:issuance", "1"), key("no", "b")).await;
    assert!(matches!(refused, Err(Failure::Refused(Refusal::NoSuchOwner { .. }))));
    hub.stop().await;
}

#[tokio::test]
async fn after_a_day_it_is_forgotten_and_the_store_too() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let clock = ManualClock::at(START);
    let hub = Hub::on_disk(dir.path(), &clock);
    for n in 0..20 {
        once(&hub, grant("ada", "1"), key(&format!("k{n}"), "b")).await.expect("granted");
    }
    clock.advance(Millis(ANSWER_TTL.0 - 1));
    assert!(once(&hub, grant("ada", "1"), key("k0", "b")).await.expect("known").replayed);
    clock.advance(Millis(1));
    assert!(!once(&hub, grant("ada", "1"), key("k0", "b")).await.expect("granted").replayed);
    assert_eq!(hub.account("ada").0, "31.00", "welcome, twenty, and one a day later");
    hub.stop().await;
    let kept = SqliteStore::open(dir.path())
        .expect("free")
        .load_hot_rows()
        .expect("readable")
        .idempotency_entries;
    assert_eq!(kept.len(), 1, "{kept:?}");
}

#[tokio::test]
async fn without_room_for_its_answer_a_command_has_no_effect_and_uses_up_no_key() {
    let kept_per_principal = SavedSize { answers: 2, bytes: 0 };
    let rules = Rules { saved_per_principal: kept_per_principal, ..Rules::default() };
    let store = Box::new(MemoryStore::default());
    let hub = Hub::under(rules, store, ManualClock::at(START));
    for name in ["k1", "k2"] {
        once(&hub, grant("ada", "1"), key(name, "b")).await.expect("granted");
    }
    let refused = once(&hub, grant("ada", "1"), key("k3", "b")).await;
    assert!(matches!(refused, Err(Failure::Refused(Refusal::TooManySavedAnswers))), "{refused:?}");
    assert_eq!(hub.account("ada").0, "12.00");
    assert!(!hub.engine.has_idempotency_record(key("k3", "b").scope));
    assert!(once(&hub, grant("ada", "1"), key("k1", "b")).await.expect("known").replayed);
    let other = Idempotency { principal: Principal::Agent(AgentId(1)), ..key("k4", "b") };
    once(&hub, grant("ada", "1"), other).await.expect("another caller's share");
    hub.clock.advance(ANSWER_TTL);
    // Expired records are removed after the batch that found no capacity; then there is some.
    let _ = once(&hub, grant("ada", "1"), key("k3", "b")).await;
    assert!(once(&hub, grant("ada", "1"), key("k5", "b")).await.is_ok());
    hub.stop().await;
}

#[tokio::test]
async fn a_body_that_was_kept_is_read_back_after_a_restart() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let clock = ManualClock::at(START);
    let hub = Hub::on_disk(dir.path(), &clock);
    let answer = SavedAnswer::Answer { status: 201, body: "long ".repeat(9_999) };
    hub.run(key("k", "b").save(answer)).await.expect("kept");
    hub.stop().await;
    let hub = Hub::on_disk(dir.path(), &clock);
    let known = hub.engine.with_world(|world| world.saved_total());
    assert_eq!(known, SavedSize { answers: 1, bytes: 5 * 9_999 });
    let body = hub.engine.saved_answer(key("k", "b")).await.expect("readable");
    assert_eq!(body, Some(Ok((201, "long ".repeat(9_999)))));
    hub.stop().await;
}

#[tokio::test]
async fn rotating_on_and_on_leaves_the_keys_that_work_and_no_others() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let clock = ManualClock::at(START);
    let hub = Hub::on_disk(dir.path(), &clock);
    let ada = hub.enrol(enrol("ada", "ada", &[])).await;
    let holder = rialto_core::agent::key::Holder::Agent(ada);
    for n in 0..50 {
        let (hash, retire_others) = ([n; 32], true);
        let order = Command::IssueKey { holder, hash, retire_others, by_operator: false };
        hub.run(order).await.expect("issued");
        clock.advance(Millis::minutes(11));
    }
    hub.run(grant("ada", "1")).await.expect("granted");
    let keys = |hub: &Hub| hub.engine.with_world(|world| world.keys_of(ada).count());
    assert_eq!(keys(&hub), 1);
    hub.stop().await;
    let hub = Hub::on_disk(dir.path(), &clock);
    assert_eq!(keys(&hub), 1);
    assert!(hub.engine.with_world(|world| world.key(&[49; 32]).is_some()));
    hub.stop().await;
}

#[tokio::test]
async fn work_reported_under_a_key_is_not_counted_as_begun_twice() {
    let hub = Hub::in_memory();
    let ada = hub.enrol(enrol("ada", "ada", &[])).await;
    let mut busy = enrol("bob", "bob", &[("sum", "1")]);
    busy.terms.capacity.max_starts_per_minute = Some(2);
    let bob = hub.enrol(busy).await;
    let first = hub.open(hub.ask(1, ada, "sum", "1")).await;
    let done = crate::fixtures::report(first, bob, true, "1");
    once(&hub, done, key("result", "b")).await.expect("it is assigned");
    // It accepts two jobs a minute, and has started one.
    hub.open(hub.ask(2, ada, "sum", "1")).await;
    hub.stop().await;
}

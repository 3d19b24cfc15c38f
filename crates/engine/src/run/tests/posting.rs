//! Market orders: executed once, in one batch or in many, before or after a restart.

use std::collections::BTreeSet;

use rialto_core::command::Actor;
use rialto_core::envelope::Envelope;
use rialto_core::id::PostingId;
use rialto_core::job::Requester;
use rialto_core::testkit::market::market_order;

use super::*;
use crate::fixtures::market::submit;
use crate::fixtures::{HOME, enrol};
use crate::store::PageQuery;

/// A task of a requester that was not registered when the task was written.
fn arriving(hub: &Hub, n: u64) -> Envelope {
    let order = hub.ask(n, AgentId(0), "sum", "1");
    let order = OpenJob { requester: Requester::Guest("ada".to_owned()), ..order };
    let new_agent = Registration { actor: Actor::Owner, ..enrol("ada", "ada", &[]) };
    let task = Command::OpenJob(Box::new(order));
    market_order(HOME, &format!("task-{n}"), Some(new_agent), task)
}

/// A hub with a market, on disk.
fn on_disk(dir: &Path, clock: &Arc<ManualClock>) -> Hub {
    let store = SqliteStore::open(dir).expect("no other process has it open");
    Hub::with_market(Box::new(store), clock.clone())
}

fn posting(answer: &Answer) -> (PostingId, bool) {
    match answer {
        Answer::MarketOrder { record: posting, repeated } => (*posting, *repeated),
        other => panic!("expected a market order, got {other:?}"),
    }
}

#[tokio::test]
async fn simultaneous_orders_are_posted_once_and_register_their_signer_once() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let clock = ManualClock::at(START);
    let hub = on_disk(dir.path(), &clock);
    hub.enrol(enrol("bob", "bob", &[("sum", "1")])).await;
    // Five orders, eight times each, all concurrently.
    let orders: Vec<Envelope> = (0..40).map(|n| arriving(&hub, n % 5)).collect();
    let mut fresh = BTreeSet::new();
    for answer in together(&hub.engine, orders).await {
        let (id, repeated) = posting(&answer.expect("submissions are never refused"));
        assert!(repeated || fresh.insert(id), "{id} twice");
    }
    assert_eq!(fresh, (1..=5).map(PostingId).collect());
    assert_eq!(hub.engine.with_world(|world| world.agents().count()), 2);
    assert_eq!(hub.account("ada"), ("5.00".to_owned(), "5.00".to_owned()), "one welcome grant");
    let next = hub.engine.with_world(|world| world.next);
    hub.stop().await;
    let hub = on_disk(dir.path(), &clock);
    for n in 0..5 {
        let answer = hub.run(arriving(&hub, n)).await.expect("submissions are never refused");
        let (id, repeated) = posting(&answer);
        assert!(repeated && fresh.remove(&id), "{id} is the first answer's");
    }
    assert_eq!(hub.engine.with_world(|world| world.next), next);
    let (after, before) = (PostingId(0), PostingId(u64::MAX));
    let page = PageQuery::MarketRecords { after, before, newest_first: false, limit: 99 };
    assert_eq!(hub.engine.load_page(page).await.expect("readable").len(), 5);
    hub.stop().await;
    let report = crate::audit::audit_dir(dir.path()).expect("readable");
    assert!(report.is_clean(), "{report:#?}");
}

#[tokio::test]
async fn a_posting_that_could_not_be_written_was_never_posted() {
    let (store, probe) = Probed::over(MemoryStore::default());
    let hub = Hub::with_market(store, ManualClock::at(START));
    probe.fail_with(StoreError::Full);
    hub.run(submit("x", Command::RecordOnly)).await.expect_err("there is no space");
    assert_eq!(
        hub.engine.with_world(|world| (world.next.market_record, world.next.market_orders)),
        (PostingId(1), 0)
    );
    let again = hub.run(submit("x", Command::RecordOnly)).await.expect("there is space again");
    assert_eq!(posting(&again), (PostingId(1), false));
    hub.stop().await;
}

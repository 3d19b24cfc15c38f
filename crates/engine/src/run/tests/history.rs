//! Histories: complete and in order, whatever the size of the page.

use std::sync::Arc;

use rialto_core::id::{EntryId, NoticeId, OutcomeId};
use rialto_core::job::Job;

use super::*;
use crate::fixtures::{enrol, grant, report, send_message};
use crate::run::{HistoryPage, JobRole};

/// A hub where ada had ten jobs done by bob and five by cyd, and wrote to bob.
async fn busy(hub: &Hub) -> (AgentId, AgentId) {
    hub.run(grant("ada", "100")).await.expect("granted");
    let ada = hub.enrol(enrol("ada", "ada", &[])).await;
    let bob = hub.enrol(enrol("bob", "bob", &[("sum", "1")])).await;
    let cyd = hub.enrol(enrol("cyd", "cyd", &[("draw", "2")])).await;
    for n in 1..=15 {
        let (skill, by) = if n % 3 == 0 { ("draw", cyd) } else { ("sum", bob) };
        let job = hub.open(hub.ask(n, ada, skill, "3")).await;
        hub.run(report(job, by, n % 5 != 0, "1")).await.expect("it is assigned");
        hub.run(send_message(ada, bob, &format!("{n}"))).await.expect("there is space");
    }
    (ada, bob)
}

#[tokio::test]
async fn entries_of_an_owner_are_complete_on_pages_of_any_size() {
    let hub = Hub::in_memory();
    busy(&hub).await;
    for name in ["ada", "bob", "cyd", "hub:issuance"] {
        let owner = hub.engine.with_world(|world| {
            let id = world.owner_by_name(name).expect("known");
            world.owner(id).cloned().expect("known")
        });
        let all: Vec<u64> = {
            let page = crate::store::PageQuery::Entries { before: EntryId(u64::MAX), limit: 999 };
            let rows = hub.engine.load_page(page).await.expect("readable");
            let touches = |row: Row| match row {
                Row::Entry(entry) => {
                    let own = entry.from.owner == owner.id || entry.to.owner == owner.id;
                    own.then_some(entry.id.0)
                }
                other => panic!("not an entry: {other:?}"),
            };
            rows.into_iter().filter_map(touches).collect()
        };
        assert!(all.len() > 3, "{name} has {all:?}");
        for limit in [1, 3, 999] {
            let (mut walked, mut from) = (Vec::new(), owner.newest_entry);
            while from.is_some() {
                let page = hub.engine.entries_of(owner.id, from, limit, |_| true).await;
                let HistoryPage { rows, next } = page.expect("readable");
                assert!(rows.len() <= limit);
                walked.extend(rows.iter().map(|entry| entry.id.0));
                from = next.map(EntryId);
            }
            assert_eq!(walked, all, "{name} by {limit}");
        }
    }
    // An entry of another owner is not a valid cursor into that owner's account.
    let (bob, ada) =
        hub.engine.with_world(|world| (world.owner_by_name("bob"), world.owner_by_name("ada")));
    let ada =
        hub.engine.with_world(|world| world.owner(ada.expect("known")).cloned()).expect("known");
    let own = hub.engine.entries_of(bob.expect("known"), Some(EntryId(2)), 9, |_| true).await;
    assert!(own.expect("readable").rows.is_empty(), "{:?}", ada.newest_entry);
    hub.stop().await;
}

#[tokio::test]
async fn a_filter_leaves_lines_out_and_loses_none() {
    let hub = Hub::in_memory();
    busy(&hub).await;
    let owner = hub.engine.with_world(|world| {
        world.owner_by_name("ada").and_then(|id| world.owner(id).cloned()).expect("known")
    });
    let (mut found, mut from) = (0, owner.newest_entry);
    while from.is_some() {
        let paid = |entry: &rialto_core::ledger::Entry| entry.kind.is_payment();
        let page = hub.engine.entries_of(owner.id, from, 2, paid).await.expect("readable");
        found += page.rows.len();
        from = page.next.map(EntryId);
    }
    assert_eq!(found as u64, owner.payment_count);
    hub.stop().await;
}

#[tokio::test]
async fn jobs_and_outcomes_of_an_agent_are_complete() {
    let hub = Hub::in_memory();
    let (ada, bob) = busy(&hub).await;
    let agent_state = |id| {
        hub.engine.with_world(|world| world.agent_state(id).cloned()).expect("every agent has one")
    };
    let ids = |jobs: &[Arc<Job>]| jobs.iter().map(|job| job.id.0).collect::<Vec<_>>();
    for limit in [1, 4, 99] {
        let (mut asked, mut from) = (Vec::new(), agent_state(ada).last_requested);
        while from.is_some() {
            let page = hub.engine.jobs_of(JobRole::Requester, from, limit).await.expect("readable");
            asked.extend(ids(&page.rows));
            from = page.next.map(JobId);
        }
        assert_eq!(asked, (1..=15).rev().collect::<Vec<_>>());
        let (mut worked, mut from) = (Vec::new(), agent_state(bob).last_worked);
        while from.is_some() {
            let page = hub.engine.jobs_of(JobRole::Worker, from, limit).await.expect("readable");
            worked.extend(ids(&page.rows));
            from = page.next.map(JobId);
        }
        assert_eq!(worked, [14, 13, 11, 10, 8, 7, 5, 4, 2, 1]);
        let (mut numbers, mut from) = (Vec::new(), agent_state(bob).last_outcome);
        while from.is_some() {
            let page = hub.engine.outcomes_of(from, limit).await.expect("readable");
            numbers.extend(page.rows.iter().map(|outcome| outcome.number));
            from = page.next.map(OutcomeId);
        }
        assert_eq!(numbers, (1..=10).rev().collect::<Vec<_>>());
    }
    let none = hub.engine.jobs_of(JobRole::Requester, Some(JobId(99)), 9).await.expect("readable");
    assert!(none.rows.is_empty() && none.next.is_none(), "an invented cursor");
    hub.stop().await;
}

#[tokio::test]
async fn notices_are_complete_and_in_order_from_any_position() {
    let hub = Hub::in_memory();
    let (ada, bob) = busy(&hub).await;
    let to_bob = (0..900).map(|n| send_message(ada, bob, &format!("{n}")));
    assert!(together(&hub.engine, to_bob).await.iter().all(Result::is_ok));
    let inbox = hub.engine.with_world(|world| world.inbox(bob));
    assert_eq!(inbox.head, 10 + 15 + 900);
    for limit in [7, 100, 5_000] {
        let mut after = 0;
        loop {
            let page = hub.engine.load_notices(bob, after, limit).await.expect("readable");
            let Some(last) = page.last() else { break };
            assert!(page.len() <= limit);
            let positions: Vec<u64> = page.iter().map(|notice| notice.position).collect();
            assert_eq!(positions, (after + 1..=last.position).collect::<Vec<_>>());
            assert!(page.iter().all(|notice| notice.to == Some(bob)));
            after = last.position;
        }
        assert_eq!(after, inbox.head);
    }
    // New notices after a walk has left its seek points, and positions that do not exist.
    hub.run(send_message(ada, bob, "new")).await.expect("capacity");
    let newest = hub.engine.load_notices(bob, inbox.head, 9).await.expect("readable");
    assert_eq!(newest.iter().map(|notice| notice.position).collect::<Vec<_>>(), [inbox.head + 1]);
    assert!(newest.first().is_some_and(|notice| notice.id > NoticeId(900)));
    for (agent, after, limit) in
        [(bob, inbox.head + 1, 9), (bob, u64::MAX, 9), (bob, 0, 0), (AgentId(99), 0, 9)]
    {
        assert!(hub.engine.load_notices(agent, after, limit).await.expect("readable").is_empty());
    }
    hub.stop().await;
}

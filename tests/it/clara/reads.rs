//! Signed orders that only read leave small records, however long their answers are.

use rialto_core::id::PostingId;
use rialto_core::time::Millis;
use rialto_engine::store::{PageQuery, Row};
use rialto_hub::config::Profile;
use serde_json::json;

use super::kit::{Hub, Wallet};
use crate::kit::snapshot;

/// What one signed read may add to the public record.
const ONE_READ_MAX: usize = 2 << 10;

/// Bytes of every market record after the first `after`.
async fn postings(hub: &Hub, after: u64) -> Vec<usize> {
    let (after, before) = (PostingId(after), PostingId(u64::MAX >> 1));
    let page = PageQuery::MarketRecords { after, before, newest_first: false, limit: 1_000 };
    let rows = hub.engine.load_page(page).await.expect("the store reads");
    let bytes = |row| match row {
        Row::Posting(posting) => serde_json::to_string(&*posting).expect("a row").len(),
        other => panic!("{other:?}"),
    };
    rows.into_iter().map(bytes).collect()
}

fn newest(hub: &Hub) -> u64 {
    hub.engine.with_world(|world| world.next.market_record.0 - 1)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signed_read_adds_little_to_the_store_and_its_result_is_still_whole() {
    let hub = Hub::serve(&[("clara.queue_unmatched", "true")]).await;
    let (agent, requester) = (Wallet::of(1), Wallet::of(9));
    hub.fund(&requester, "1000").await;
    let long = json!({"text": "long ".repeat(20_000)}).to_string();
    let profile_data = json!({"text": "long ".repeat(12_000)}).to_string();
    let profile = [
        ("RedStone-Agent-Topic", "tweet"),
        ("RedStone-Agent-Fee", "20"),
        ("RedStone-Agent-Id", "A"),
    ];
    hub.act(&agent, "Register-Agent-Profile", &profile, &profile_data).await;
    let task = |topic| [("RedStone-Agent-Topic", topic), ("RedStone-Agent-Reward", "50")];
    let assigned = hub.act(&requester, "Register-Task", &task("tweet"), &long).await;
    // No agent has this topic, so the task waits.
    hub.act(&requester, "Register-Task", &task("nft"), &long).await;

    let start = newest(&hub);
    let board = hub.board().await;
    let own = [("RedStone-Agent-Id", "A")];
    let traced = [("RedStone-Agent-Id", "A"), ("RedStone-Task-Id", assigned.id.as_str())];
    for _ in 0..3 {
        let listed = hub.act(&requester, "List-Agents", &[], "").await;
        assert_eq!(listed.data(), json!(board));
        assert_eq!(listed.first().target, requester.address());
        for (by, action, tags, answer) in [
            (&requester, "Tasks-Queue", &[][..], "Tasks-Queue"),
            (&requester, "Dashboard-Data", &[], "Dashboard-Data"),
            (&requester, "Dispatch-Tasks", &[], "Tasks-Dispatched"),
            (&agent, "Load-Next-Assigned-Task", &own, "Load-Next-Assigned-Task-Result"),
            (&agent, "Task-Trace", &traced, "Task-Trace"),
        ] {
            let said = hub.act(by, action, tags, "").await;
            assert_eq!(said.actions(), [answer], "{said:?}");
            let data = said.first().data.as_deref().expect("data");
            assert!(data.len() > 10_000 || action == "Task-Trace", "{action}: {}", data.len());
        }
    }
    let added = postings(&hub, start).await;
    assert_eq!(added.len(), 18);
    assert!(added.iter().all(|bytes| *bytes < ONE_READ_MAX), "{added:?}");
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signed_read_that_comes_again_is_answered_and_its_message_keeps_its_number() {
    let hub = Hub::serve(&[]).await;
    let (agent, requester) = (Wallet::of(1), Wallet::of(9));
    let long = json!({"text": "long ".repeat(2_000)}).to_string();
    let profile = [
        ("RedStone-Agent-Topic", "tweet"),
        ("RedStone-Agent-Fee", "20"),
        ("RedStone-Agent-Id", "A"),
    ];
    hub.act(&agent, "Register-Agent-Profile", &profile, &long).await;
    let tags = [("Action", "List-Agents"), ("Protocol", "C.L.A.R.A.")];
    let item = requester.item(&tags, b"");
    let id = hub.post_bytes(item.clone()).await.expect(202).str("/id");
    let first = hub.result(&id).await;
    // The next message has the next number.
    let next = hub.act(&requester, "List-Agents", &[], "").await;
    let number = |anchor: &str| anchor.parse::<u64>().expect("a number");
    assert_eq!(number(&next.first().anchor), number(&first.messages[0].anchor) + 1);

    let before = snapshot(&hub.0).await;
    assert_eq!(hub.post_bytes(item.clone()).await.expect(202).str("/id"), id);
    assert_eq!(snapshot(&hub.0).await, before);
    assert_eq!(hub.result(&id).await, first);
    let hub = Hub(hub.0.restart(Profile::Serve, &[]).await);
    assert_eq!(hub.result(&id).await, first, "the same while the board is unchanged");
    hub.agent(&Wallet::of(2), "B", "nft", "7").await;
    let later = hub.result(&id).await;
    assert_eq!(later.messages[0].anchor, first.messages[0].anchor);
    assert!(later.messages[0].data.as_deref().is_some_and(|data| data.contains("\"B\"")));
    assert_eq!(hub.post_bytes(item).await.expect(202).str("/id"), id);
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_private_read_is_answered_for_a_day_and_not_for_ever() {
    let hub = Hub::serve(&[]).await;
    let (agent, requester) = (Wallet::of(1), Wallet::of(9));
    hub.fund(&requester, "1000").await;
    hub.agent(&agent, "A", "tweet", "20").await;
    let long = json!({"text": "long ".repeat(2_000)}).to_string();
    let task = [("RedStone-Agent-Topic", "tweet"), ("RedStone-Agent-Reward", "50")];
    hub.act(&requester, "Register-Task", &task, &long).await;
    let own = [("RedStone-Agent-Id", "A")];
    let said = hub.act(&agent, "Load-Next-Assigned-Task", &own, "").await;
    assert_eq!(said.actions(), ["Load-Next-Assigned-Task-Result"]);
    hub.pass(Millis::hours(23));
    assert_eq!(hub.result(&said.id).await, said.result);
    hub.pass(Millis::hours(1));
    let later = hub.result(&said.id).await;
    let text = "This answer expired after a day: sign a new message to read it again";
    assert_eq!((later.error.as_deref(), later.messages.len()), (Some(text), 0));
    hub.0.stop().await;
}

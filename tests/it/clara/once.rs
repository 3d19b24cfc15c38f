//! An item has one effect, however often it is posted (R72, section 6).

use rialto_hub::config::Profile;

use super::items::vectors;
use super::kit::{Hub, Wallet, about, account};
use crate::kit::{counted, together};

#[tokio::test(flavor = "multi_thread")]
async fn the_first_item_a_hundred_times_at_once_and_after_a_restart_is_one_agent() {
    let hub = Hub::serve(&[]).await;
    let (_, item, _) = vectors("valid").swap_remove(0);
    let id = "6nNtWEkuN97j10aSpM36wMBe0puNHFeR2X3Kni72f1k";
    assert_eq!(item.len(), 1310);
    let answers = together((0..50).map(|_| hub.post_bytes(item.clone()))).await;
    assert!(answers.iter().all(|reply| reply.status == 202 && reply.str("/id") == id));
    let (first, before) = (hub.result(id).await, counted(&hub.0));
    assert_eq!(first.messages[0].tag("Reference"), Some("1"));
    let hub = Hub(hub.0.restart(Profile::Serve, &[]).await);
    let answers = together((0..50).map(|_| hub.post_bytes(item.clone()))).await;
    assert!(answers.iter().all(|reply| reply.status == 202 && reply.str("/id") == id));
    assert_eq!(counted(&hub.0), before);
    assert_eq!(hub.result(id).await, first);
    assert_eq!(hub.board().await.len(), 1);
    let next = hub.agent(&Wallet::of(1), "next", "nft", "1").await;
    assert_eq!(next.first().tag("Reference"), Some("2"), "advanced by one");
    let page = hub.results("").await;
    assert_eq!(page.edges.len(), 2, "one Registered each");
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_and_a_result_that_come_again_hold_and_pay_once() {
    let hub = Hub::serve(&[]).await;
    let (agent, requester) = (Wallet::of(1), Wallet::of(9));
    hub.fund(&requester, "100").await;
    hub.agent(&agent, "A", "tweet", "20").await;
    let tags = [
        ("Action", "Register-Task"),
        ("Protocol", "C.L.A.R.A."),
        ("RedStone-Agent-Topic", "tweet"),
        ("RedStone-Agent-Reward", "50"),
    ];
    let task = requester.item(&tags, b"{}");
    let ids = together((0..20).map(|_| hub.post_bytes(task.clone()))).await;
    let id = ids[0].str("/id");
    assert!(ids.iter().all(|reply| reply.status == 202 && reply.str("/id") == id));
    assert_eq!(hub.account(&requester).await, account("50", "50"));
    let [first, second] = about("A", &id);
    let tags = [("Action", "Send-Result"), ("Protocol", "C.L.A.R.A."), first, second];
    let result = agent.item(&tags, b"{}");
    let done = together((0..20).map(|_| hub.post_bytes(result.clone()))).await;
    assert!(done.iter().all(|reply| reply.status == 202));
    assert_eq!(hub.result(&done[0].str("/id")).await.error, None);
    let hub = Hub(hub.0.restart(Profile::Serve, &[]).await);
    for item in [task, result] {
        hub.post_bytes(item).await.expect(202);
    }
    assert_eq!(hub.account(&requester).await, account("80", "0"));
    assert_eq!(hub.account(&agent).await, account("20", "0"));
    assert_eq!(hub.listed("A").await["totals"]["done"], 1);
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_is_remembered_like_any_result() {
    let hub = Hub::serve(&[]).await;
    let requester = Wallet::of(9);
    hub.fund(&requester, "100").await;
    let tags = [
        ("Action", "Register-Task"),
        ("Protocol", "C.L.A.R.A."),
        ("RedStone-Agent-Topic", "tweet"),
        ("RedStone-Agent-Reward", "50"),
    ];
    let task = requester.item(&tags, b"{}");
    let id = hub.post_bytes(task.clone()).await.expect(202).str("/id");
    let first = hub.result(&id).await;
    assert_eq!(first.error.as_deref(), Some("No agents to choose from"));
    hub.agent(&Wallet::of(1), "A", "tweet", "20").await;
    assert_eq!(hub.post_bytes(task).await.expect(202).str("/id"), id);
    assert_eq!(hub.result(&id).await, first, "not evaluated again");
    assert_eq!(hub.account(&requester).await, account("100", "0"));
    hub.0.stop().await;
}

//! One task from registration to payment.

use super::kit::{Hub, Wallet};

#[tokio::test(flavor = "multi_thread")]
async fn a_task_is_given_done_and_paid() {
    let hub = Hub::serve(&[]).await;
    let (agent, requester) = (Wallet::of(1), Wallet::of(2));
    hub.fund(&requester, "100").await;
    hub.agent(&agent, "A1", "tweet", "20").await;
    let task = hub.task(&requester, "tweet", "50", "roundRobin").await;
    assert_eq!(task.first().tag("Action"), Some("Agent-Task-Assignment"));
    assert_eq!(task.data()["reward"], "20");
    assert_eq!(hub.account(&requester).await, ("50.00".to_owned(), "50.00".to_owned()));
    let tags = [("RedStone-Agent-Id", "A1"), ("RedStone-Task-Id", task.id.as_str())];
    let done = hub.act(&agent, "Send-Result", &tags, r#"{"done":1}"#).await;
    assert_eq!(done.first().tag("Action"), Some("Task-Result"));
    assert_eq!(done.first().target, requester.address());
    assert_eq!(hub.account(&requester).await, ("80.00".to_owned(), "0.00".to_owned()));
    assert_eq!(hub.listed("A1").await["totals"]["rewards"], "20");
    hub.0.stop().await;
}

//! Credits: held, paid and released, with the worked numbers of the spec (R43, R50, R59, R61, R80).

use super::kit::{Hub, Wallet, account};

fn cast() -> (Wallet, Wallet, Wallet, Wallet) {
    (Wallet::of(1), Wallet::of(2), Wallet::of(3), Wallet::of(9))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_reward_is_held_and_the_fee_is_paid_once() {
    let hub = Hub::serve(&[]).await;
    let (a, _, _, requester) = cast();
    hub.fund(&requester, "100").await;
    hub.agent(&a, "A", "tweet", "20").await;
    let task = hub.task(&requester, "tweet", "50", "cheapest").await;
    assert_eq!(hub.account(&requester).await, account("50", "50"));
    let done = hub.deliver(&a, "A", &task.id).await;
    assert_eq!(done.first().tag("Fee"), Some("20"));
    assert_eq!(hub.account(&requester).await, account("80", "0"));
    assert_eq!(hub.account(&a).await, account("20", "0"));
    let again = hub.deliver(&a, "A", &task.id).await;
    assert_eq!(again.error(), format!("Already sent result for task {}", task.id));
    assert_eq!(hub.account(&a).await, account("20", "0"));
    assert_eq!(hub.account(&requester).await, account("80", "0"));
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_next_agent_is_paid_its_own_fee_from_the_same_hold() {
    let hub = Hub::serve(&[]).await;
    let (a, b, _, requester) = cast();
    hub.fund(&requester, "100").await;
    hub.agent(&a, "A", "tweet", "20").await;
    hub.agent(&b, "B", "tweet", "45").await;
    let task = hub.task(&requester, "tweet", "50", "cheapest").await;
    assert_eq!(task.chosen(), "A");
    let declined = hub.decline(&a, "A", &task.id).await;
    assert_eq!(declined.actions(), ["Task-Declined", "Agent-Task-Assignment"]);
    assert_eq!(declined.result.messages[1].target, b.address());
    let data = declined.result.messages[1].data.as_deref().expect("a task");
    let given: serde_json::Value = serde_json::from_str(data).expect("JSON");
    assert_eq!((&given["reward"], &given["agentId"]), (&"45".into(), &"B".into()));
    assert_eq!(hub.account(&requester).await, account("50", "50"));
    hub.deliver(&b, "B", &task.id).await;
    assert_eq!(hub.account(&requester).await, account("55", "0"));
    assert_eq!(hub.account(&b).await, account("45", "0"));
    assert_eq!(hub.account(&a).await, account("0", "0"));
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_agent_within_the_reward_is_an_error_and_nothing_is_held() {
    let hub = Hub::serve(&[]).await;
    let (a, b, _, requester) = cast();
    hub.fund(&requester, "100").await;
    hub.agent(&a, "A", "tweet", "60").await;
    hub.agent(&b, "B", "tweet", "70").await;
    for matching in ["roundRobin", "cheapest", "leastOccupied", "broadcast"] {
        let before = hub.held().await;
        let task = hub.task(&requester, "tweet", "50", matching).await;
        assert_eq!(task.error(), "No agents to choose from", "{matching}");
        assert_eq!(hub.held().await, before);
        assert_eq!(hub.account(&requester).await, account("100", "0"));
    }
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broadcast_holds_the_sum_of_the_fees_and_gives_each_share_back_by_itself() {
    let hub = Hub::serve(&[]).await;
    let (a, b, c, requester) = cast();
    hub.fund(&requester, "100").await;
    hub.agent(&a, "A", "tweet", "20").await;
    hub.agent(&b, "B", "nft", "50").await;
    hub.agent(&c, "C", "tweet", "80").await;
    let task = hub.task(&requester, "broadcast", "50", "roundRobin").await;
    assert_eq!(task.actions(), ["Agent-Task-Assignment"; 2]);
    assert_eq!(hub.account(&requester).await, account("30", "70"));
    hub.deliver(&a, "A", &task.id).await;
    assert_eq!(hub.account(&requester).await, account("30", "50"));
    let declined = hub.decline(&b, "B", &task.id).await;
    assert_eq!(declined.actions(), ["Task-Declined"], "a copy belongs to one agent");
    assert_eq!(hub.account(&requester).await, account("80", "0"));
    assert_eq!(hub.account(&a).await, account("20", "0"));
    assert_eq!(hub.listed("B").await["tasks"]["inbox"], serde_json::json!([]));
    let queue = hub.dry_run(&[("Action", "Tasks-Queue")], "").await;
    assert_eq!(queue.messages[0].data.as_deref(), Some("[]"));
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn too_little_is_an_error_that_says_how_little() {
    let hub = Hub::serve(&[]).await;
    let (a, b, _, requester) = cast();
    hub.fund(&requester, "49.99").await;
    hub.agent(&a, "A", "tweet", "20").await;
    hub.agent(&b, "B", "tweet", "30").await;
    let text = |n: &str| {
        format!("Requesting agent ({}) funds ({n}) are insufficient", requester.address())
    };
    for (topic, reward, matching) in [
        ("tweet", "50", "roundRobin"),
        ("tweet", "50", "query"),
        ("tweet", "30", "broadcast"),
        ("broadcast", "30", "roundRobin"),
    ] {
        let before = hub.held().await;
        let task = hub.task(&requester, topic, reward, matching).await;
        assert_eq!(task.error(), text("49"), "{topic} {reward} {matching}");
        assert_eq!(hub.held().await, before);
    }
    let stranger = Wallet::of(8);
    let task = hub.task(&stranger, "tweet", "20", "cheapest").await;
    let none = format!("Requesting agent ({}) funds (0) are insufficient", stranger.address());
    assert_eq!(task.error(), none);
    assert_eq!(hub.task(&requester, "tweet", "49", "cheapest").await.chosen(), "A");
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_payments_fees_only_steer() {
    let hub = Hub::serve(&[("clara.payments", "false")]).await;
    let (a, b, c, requester) = cast();
    hub.agent(&a, "A", "tweet", "30").await;
    hub.agent(&b, "B", "tweet", "20").await;
    hub.agent(&c, "C", "tweet", "80").await;
    let task = hub.task(&requester, "tweet", "50", "cheapest").await;
    assert_eq!((task.chosen(), &task.data()["reward"]), ("B", &"20".into()));
    let done = hub.deliver(&b, "B", &task.id).await;
    assert_eq!(done.first().tag("Fee"), Some("20"));
    let many = hub.task(&requester, "tweet", "50", "broadcast").await;
    assert_eq!(many.actions(), ["Agent-Task-Assignment"; 2]);
    let none = hub.task(&requester, "tweet", "10", "cheapest").await;
    assert_eq!(none.error(), "No agents to choose from");
    for wallet in [&a, &b, &requester] {
        assert_eq!(hub.account(wallet).await, account("0", "0"));
    }
    hub.0.stop().await;
}

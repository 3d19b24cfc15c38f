//! Reads of single tasks, and reads that need a signature (R74, R76, R78).

use serde_json::Value;

use super::kit::{Hub, Wallet, account};

const PROTOCOL: (&str, &str) = ("Protocol", "C.L.A.R.A.");
const SIGN: Option<&str> = Some("Sign this message to read it");

async fn market() -> (Hub, Wallet, Wallet) {
    let hub = Hub::serve(&[]).await;
    let (agent, requester) = (Wallet::of(1), Wallet::of(9));
    hub.fund(&requester, "1000").await;
    hub.agent(&agent, "A", "tweet", "20").await;
    (hub, agent, requester)
}

async fn load(hub: &Hub, by: &Wallet, what: &str, agent: Option<&str>) -> Option<Value> {
    let tags: Vec<_> = agent.map(|id| ("RedStone-Agent-Id", id)).into_iter().collect();
    let said = hub.act(by, what, &tags, "").await;
    assert_eq!(said.result.error, None);
    assert!(said.result.messages.len() <= 1, "one message or none");
    said.result.messages.first()?;
    assert_eq!(said.first().target, by.address());
    Some(said.data())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_oldest_task_is_loaded_and_stays_until_it_is_answered() {
    let (hub, agent, requester) = market().await;
    let next = async || load(&hub, &agent, "Load-Next-Assigned-Task", Some("A")).await;
    assert_eq!(next().await, None);
    let first = hub.task(&requester, "tweet", "50", "cheapest").await;
    let second = hub.task(&requester, "tweet", "50", "cheapest").await;
    assert_eq!(next().await, Some(first.data()));
    assert_eq!(next().await, Some(first.data()), "it stays the first");
    hub.deliver(&agent, "A", &first.id).await;
    assert_eq!(next().await, Some(second.data()));
    hub.decline(&agent, "A", &second.id).await;
    assert_eq!(next().await, None);
    let tags = [("RedStone-Agent-Id", "A")];
    let stranger = hub.act(&requester, "Load-Next-Assigned-Task", &tags, "").await;
    let text = format!("Agent A not registered for sender {}", requester.address());
    assert_eq!(stranger.error(), text);
    let nameless = hub.act(&agent, "Load-Next-Assigned-Task", &[], "").await;
    assert_eq!(nameless.error(), "Tag RedStone-Agent-Id is required");
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_result_is_loaded_once_oldest_first() {
    let (hub, agent, requester) = market().await;
    hub.agent(&requester, "own", "nft", "1").await;
    let mut wanted = Vec::new();
    for named in [None, Some("own"), None] {
        let mut tags = vec![("RedStone-Agent-Topic", "tweet"), ("RedStone-Agent-Reward", "50")];
        tags.extend(named.map(|id| ("RedStone-Agent-Id", id)));
        let task = hub.act(&requester, "Register-Task", &tags, "{}").await;
        wanted.push(hub.deliver(&agent, "A", &task.id).await.data());
    }
    let next = async |named| load(&hub, &requester, "Load-Next-Task-Result", named).await;
    assert_eq!(load(&hub, &agent, "Load-Next-Task-Result", None).await, None, "not for others");
    assert_eq!(next(None).await.as_ref(), Some(&wanted[0]));
    assert_eq!(next(Some("own")).await.as_ref(), Some(&wanted[1]));
    assert_eq!(next(Some("own")).await, None);
    let hub = Hub(hub.0.restart(rialto_hub::config::Profile::Serve, &[]).await);
    let next = async |named| load(&hub, &requester, "Load-Next-Task-Result", named).await;
    assert_eq!(next(None).await.as_ref(), Some(&wanted[2]));
    assert_eq!(next(None).await, None);
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_result_that_many_load_at_once_is_given_to_one() {
    let (hub, agent, requester) = market().await;
    let task = hub.task(&requester, "tweet", "50", "cheapest").await;
    hub.deliver(&agent, "A", &task.id).await;
    let all = crate::kit::together(
        (0..10).map(|_| load(&hub, &requester, "Load-Next-Task-Result", None)),
    )
    .await;
    assert_eq!(all.iter().flatten().count(), 1);
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_balance_is_shown_only_to_its_signer() {
    let (hub, agent, requester) = market().await;
    hub.fund(&requester, "0.75").await;
    let own = requester.address();
    for more in [&[][..], &[("Recipient", own.as_str())]] {
        let said = hub.act(&requester, "Balance", more, "").await;
        assert_eq!(said.actions(), ["Balance"]);
        assert_eq!(said.first().tag("Balance"), Some("1000"), "whole credits, rounded down");
        assert_eq!(said.first().tag("Account"), Some(own.as_str()));
    }
    let poor = hub.act(&Wallet::of(7), "Balance", &[], "").await;
    assert_eq!(poor.first().tag("Balance"), Some("0"));
    let curious = hub.act(&agent, "Balance", &[("Recipient", &own)], "").await;
    assert_eq!(curious.result.error.as_deref(), SIGN);
    for by in [&agent, &requester] {
        assert_eq!(hub.act(by, "Balances", &[], "").await.result.error.as_deref(), SIGN);
    }
    for action in [
        "Balance",
        "Balances",
        "Withdraw",
        "Withdraw-All",
        "Claim-Reward",
        "Claim-Reward-All",
        "Load-Next-Task-Result",
        "Load-Next-Assigned-Task",
        "Load-Next-Query",
        "Task-Trace",
    ] {
        let tags = [
            ("Action", action),
            PROTOCOL,
            ("Quantity", "1"),
            ("RedStone-Agent-Id", "A"),
            ("RedStone-Task-Id", "x"),
        ];
        let claimed = hub.dry_run_as(&own, &tags, "").await;
        assert_eq!(claimed.error.as_deref(), SIGN, "{action}");
        assert!(!format!("{claimed:?}").contains("1000"));
    }
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_does_not_reveal_the_payers_balance() {
    let (hub, _, requester) = market().await;
    let ask = async |reward: &str, topic: &str| {
        let tags = [
            ("Action", "Register-Task"),
            PROTOCOL,
            ("RedStone-Agent-Topic", topic),
            ("RedStone-Agent-Reward", reward),
        ];
        let said = hub.dry_run_as(&requester.address(), &tags, "{}").await;
        let tag = said.messages.first().and_then(|one| one.tag("Action").map(str::to_owned));
        (tag, said.error)
    };
    for topic in ["tweet", "broadcast"] {
        assert_eq!(ask("1000", topic).await, ask("1001", topic).await);
        assert_eq!(ask("1000", topic).await.1, None);
    }
    assert_eq!(hub.account(&requester).await, account("1000", "0"));
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn credits_do_not_leave_the_hub() {
    let (hub, _, requester) = market().await;
    for action in ["Withdraw", "Withdraw-All", "Claim-Reward", "Claim-Reward-All"] {
        let said = hub.act(&requester, action, &[("Quantity", "5")], "").await;
        assert_eq!(said.actions(), ["Claim-Reward-Failed"]);
        assert_eq!(said.first().tag("Balance"), Some("1000"));
        assert!(said.data().is_object());
    }
    assert_eq!(hub.account(&requester).await, account("1000", "0"));
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_read_by_its_owner_alone_is_not_in_the_results() {
    let (hub, agent, requester) = market().await;
    let task = hub.task(&requester, "tweet", "50", "cheapest").await;
    let own = [("RedStone-Agent-Id", "A")];
    hub.act(&agent, "Load-Next-Assigned-Task", &own, "").await;
    hub.act(&agent, "Load-Next-Query", &own, "").await;
    hub.act(&agent, "Balance", &[], "").await;
    hub.deliver(&agent, "A", &task.id).await;
    hub.act(&requester, "Load-Next-Task-Result", &[], "").await;
    hub.act(&requester, "Claim-Reward-All", &[], "").await;
    let page = hub.results("").await;
    let shown: Vec<_> = page
        .edges
        .iter()
        .flat_map(|edge| &edge.node.messages)
        .map(|one| one.tag("Action").expect("an action"))
        .collect();
    assert_eq!(shown, ["Registered", "Agent-Task-Assignment", "Task-Result"]);
    hub.0.stop().await;
}

//! Sealed auctions (2.7, R30, R77), with the worked numbers of the spec.

use rialto_core::time::Millis;
use rialto_hub::config::Profile;
use rialto_protocols::clara::wire::result::MessageResult;
use serde_json::{Value, json};

use super::kit::{Hub, Wallet, account};

/// Long enough for slow machines, so that only messages close an auction.
const LONG: &[(&str, &str)] = &[("jobs.auction_window", "30s")];

struct Scene {
    hub: Hub,
    a: Wallet,
    b: Wallet,
    c: Wallet,
    requester: Wallet,
}

/// A, B and C of one topic, registered in this order, and a requester with 100 credits.
async fn scene(flags: &[(&str, &str)]) -> Scene {
    let hub = Hub::serve(flags).await;
    let [a, b, c, requester] = [1, 2, 3, 9].map(Wallet::of);
    hub.fund(&requester, "100").await;
    for (by, id, fee) in [(&a, "A", "70"), (&b, "B", "1"), (&c, "C", "10")] {
        hub.agent(by, id, "tweet", fee).await;
    }
    Scene { hub, a, b, c, requester }
}

fn actions(result: &MessageResult) -> Vec<&str> {
    result.messages.iter().filter_map(|sent| sent.tag("Action")).collect()
}

fn data(sent: &rialto_protocols::clara::wire::result::MarketMessage) -> Value {
    serde_json::from_str(sent.data.as_deref().expect("data")).expect("JSON")
}

#[tokio::test(flavor = "multi_thread")]
async fn all_agents_of_the_topic_are_invited_and_the_reward_is_held_at_once() {
    let Scene { hub, a, requester, .. } = scene(LONG).await;
    hub.agent(&a, "N", "nft", "1").await;
    let id = hub.auction(&requester, "tweet", "50").await;
    assert_eq!(hub.account(&requester).await, account("50", "50"));
    let page = hub.results("?sort=DESC&limit=1").await;
    let mut asked = page.edges[0].node.messages.clone();
    asked.sort_by_key(|one| one.tag("Agent-Id").map(str::to_owned));
    let names: Vec<_> = asked.iter().map(|one| one.tag("Agent-Id").expect("an id")).collect();
    assert_eq!(names, ["A", "B", "C"], "any fee, but only this topic");
    for one in &asked {
        assert_eq!(one.tag("Action"), Some("Agent-Task-Query"));
        assert_eq!((one.tag("TaskId"), one.tag("Task-Id")), (Some(&*id), Some(&*id)));
        assert_eq!(one.tag("RedStone-Agent-Reward"), Some("50"));
    }
    assert_eq!(asked[0].target, a.address());
    let shown = data(&asked[0]);
    let closes = asked[0].tag("Closes-At").expect("a time").parse::<i64>().expect("a number");
    assert_eq!(shown["closesAt"], closes);
    // Counted from the arrival, which may be a moment before the task is recorded.
    let open = closes - shown["timestamp"].as_i64().expect("a number");
    assert!((1..=30_000).contains(&open), "{open}");
    let wanted = json!({"id": id, "agentId": "A", "requester": requester.address(),
        "maxReward": "50", "matchingStrategy": "query", "payload": {"say": "hello"},
        "topic": "tweet", "timestamp": shown["timestamp"], "block": shown["block"],
        "closesAt": closes});
    assert_eq!(shown, wanted);
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_lowest_offer_wins_among_equals_who_registered_first_and_the_last_answer_closes() {
    let Scene { hub, a, b, c, requester } = scene(LONG).await;
    let id = hub.auction(&requester, "tweet", "50").await;
    for (by, agent, fee) in [(&a, "A", "40"), (&c, "C", "30"), (&b, "B", "30")] {
        let said = hub.offer(by, agent, &id, fee).await;
        assert_eq!(said.actions(), ["Offer-Received"], "the winner is not revealed");
        assert_eq!(said.first().tag("Agent-Id"), Some(agent));
        assert_eq!(said.first().tag("TaskId"), Some(&*id));
        assert_eq!(said.first().target, by.address());
    }
    let result = hub.result(&id).await;
    assert_eq!(
        actions(&result),
        [
            "Agent-Task-Assignment",
            "Offer-Rejected",
            "Offer-Rejected",
            "Agent-Task-Query",
            "Agent-Task-Query",
            "Agent-Task-Query"
        ]
    );
    let won = &result.messages[0];
    assert_eq!((won.tag("Assigned-Agent-Id"), &*won.target), (Some("B"), &*b.address()));
    assert_eq!((&data(won)["reward"], &data(won)["strategy"]), (&json!("30"), &json!("query")));
    let mut lost: Vec<_> =
        result.messages[1..3].iter().map(|one| one.tag("Agent-Id").expect("an id")).collect();
    lost.sort_unstable();
    assert_eq!(lost, ["A", "C"]);
    // A client that polls the public results finds the same there.
    let public = hub.results("").await.edges.into_iter().flat_map(|edge| edge.node.messages);
    let public: Vec<_> = public.filter(|one| one.tag("TaskId") == Some(&*id)).collect();
    assert_eq!(public[public.len() - 3..], result.messages[..3]);
    assert_eq!(hub.listed("B").await["tasks"]["inbox"][&id]["reward"], "30");
    hub.deliver(&b, "B", &id).await;
    assert_eq!(hub.account(&requester).await, account("70", "0"));
    assert_eq!(hub.account(&b).await, account("30", "0"));
    assert_eq!(hub.result(&id).await, result, "it never changes again");
    let hub = Hub(hub.0.restart(Profile::Serve, LONG).await);
    assert_eq!(hub.result(&id).await, result);
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn reading_the_result_waits_for_the_end_of_the_window() {
    let Scene { hub, a, b, c, requester } = scene(LONG).await;
    let id = hub.auction(&requester, "tweet", "50").await;
    let answering = async {
        hub.offer(&a, "A", &id, "40").await;
        hub.decline(&b, "B", &id).await;
        hub.offer(&c, "C", &id, "41").await;
    };
    let (result, ()) = tokio::join!(hub.result(&id), answering);
    assert_eq!(actions(&result)[0], "Agent-Task-Assignment", "never in progress: {result:?}");
    assert_eq!(result.messages[0].tag("Agent-Id"), Some("A"));
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_window_closes_by_itself_and_the_winner_is_in_a_second_node() {
    let Scene { hub, b, requester, .. } = scene(&[]).await;
    let id = hub.auction(&requester, "tweet", "50").await;
    hub.offer(&b, "B", &id, "30").await;
    let before = hub.results("").await.edges.len();
    hub.pass(Millis(2_000));
    let result = hub.result(&id).await;
    assert_eq!(result.messages[0].tag("Agent-Id"), Some("B"));
    assert_eq!(
        actions(&result)[1..],
        ["Agent-Task-Query"; 3],
        "agents without an offer get nothing"
    );
    let page = hub.results("").await;
    assert_eq!(page.edges.len(), before + 1);
    let [asked, closed] = page.edges.last_chunk().expect("two");
    assert_eq!(actions(&asked.node), ["Agent-Task-Query"; 3]);
    assert_eq!(actions(&closed.node), ["Agent-Task-Assignment"]);
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn with_no_offer_the_hold_is_released_and_the_requester_told() {
    let Scene { hub, a, b, c, requester } = scene(LONG).await;
    let silent = hub.auction(&requester, "tweet", "50").await;
    hub.pass(Millis(30_000));
    let refused = format!("No offers for task {silent}");
    assert_eq!(hub.result(&silent).await.error.as_deref(), Some(refused.as_str()));
    assert_eq!(hub.account(&requester).await, account("100", "0"));
    let declined = hub.auction(&requester, "tweet", "50").await;
    for (by, agent) in [(&a, "A"), (&b, "B"), (&c, "C")] {
        assert_eq!(hub.decline(by, agent, &declined).await.actions(), ["Task-Declined"]);
    }
    let result = hub.result(&declined).await;
    assert_eq!(result.error, Some(format!("No offers for task {declined}")));
    assert!(result.messages.is_empty());
    assert_eq!(hub.account(&requester).await, account("100", "0"));
    let page = hub.results("?sort=DESC").await;
    let told: Vec<_> = page
        .edges
        .iter()
        .flat_map(|edge| &edge.node.messages)
        .filter(|sent| sent.tag("Action") == Some("Query-Failed"))
        .map(|sent| (sent.tag("TaskId").expect("an id"), sent.target.as_str()))
        .collect();
    let to = requester.address();
    assert_eq!(told, [(&*declined, &*to), (&*silent, &*to)]);
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_auction_without_a_capable_agent_is_an_error_at_once() {
    let Scene { hub, a, requester, .. } = scene(LONG).await;
    let task = hub.task(&requester, "nft", "50", "query").await;
    assert_eq!(task.error(), "No agents to choose from");
    hub.fund(&a, "50").await;
    hub.agent(&a, "only", "nft", "1").await;
    let tags = [
        ("RedStone-Agent-Topic", "nft"),
        ("RedStone-Agent-Reward", "50"),
        ("RedStone-Agent-Matching", "query"),
        ("RedStone-Agent-Id", "only"),
    ];
    let own = hub.act(&a, "Register-Task", &tags, "{}").await;
    assert_eq!(own.error(), "No agents to choose from", "the named agent is not invited");
    assert_eq!(hub.account(&a).await, account("50", "0"));
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn offers_that_cannot_be_are_errors() {
    let Scene { hub, a, b, c, requester } = scene(LONG).await;
    hub.agent(&c, "N", "nft", "1").await;
    let id = hub.auction(&requester, "tweet", "50").await;
    let offer = async |by: &Wallet, agent: &str, fee: &str| {
        hub.offer(by, agent, &id, fee).await.error().to_owned()
    };
    assert_eq!(offer(&a, "A", "51").await, "Offer 51 exceeds reward 50");
    assert_eq!(offer(&a, "A", "0").await, "Value Agent-Fee must be positive integer");
    assert_eq!(offer(&a, "A", "1.5").await, "Value Agent-Fee must be positive integer");
    assert_eq!(offer(&c, "N", "5").await, "Agent was not assigned to task", "it was not asked");
    let not_own = format!("Agent A not registered for sender {}", b.address());
    assert_eq!(offer(&b, "A", "5").await, not_own);
    assert_eq!(hub.offer(&a, "A", &id, "50").await.actions(), ["Offer-Received"]);
    assert_eq!(offer(&a, "A", "40").await, format!("Already offered for task {id}"));
    let unknown = hub.offer(&a, "A", &"A".repeat(43), "5").await;
    assert_eq!(unknown.error(), "Agent was not assigned to task");
    hub.pass(Millis(30_000));
    assert_eq!(offer(&b, "B", "5").await, format!("Auction for task {id} is closed"));
    let result = hub.result(&id).await;
    assert_eq!(result.messages[0].tag("Agent-Id"), Some("A"));
    assert_eq!(data(&result.messages[0])["reward"], "50");
    hub.0.stop().await;
}

//! How a task's agent is chosen (R28, R29, R31–R35, R40).

use std::collections::BTreeMap;

use rialto_hub::config::Profile;
use serde_json::json;

use super::kit::{Hub, Said, Wallet};

async fn market(agents: &[(&Wallet, &str, &str, &str)]) -> (Hub, Wallet) {
    let hub = Hub::serve(&[]).await;
    let requester = Wallet::of(9);
    hub.fund(&requester, "1000").await;
    for (by, id, topic, fee) in agents {
        hub.agent(by, id, topic, fee).await;
    }
    (hub, requester)
}

async fn turns(hub: &Hub, by: &Wallet, count: usize) -> Vec<String> {
    let mut chosen = Vec::new();
    for _ in 0..count {
        chosen.push(hub.task(by, "tweet", "50", "roundRobin").await.chosen().to_owned());
    }
    chosen
}

#[tokio::test(flavor = "multi_thread")]
async fn three_tasks_over_two_owners_go_a_b_a_and_a_restart_keeps_the_turn() {
    let (a, b) = (Wallet::of(1), Wallet::of(2));
    let (hub, requester) =
        market(&[(&a, "A", "tweet", "1"), (&b, "B", "tweet", "1"), (&a, "N", "nft", "1")]).await;
    assert_eq!(turns(&hub, &requester, 3).await, ["A", "B", "A"]);
    let other = hub.task(&requester, "nft", "50", "roundRobin").await;
    assert_eq!(other.chosen(), "N", "every topic rotates on its own");
    let hub = Hub(hub.0.restart(Profile::Serve, &[]).await);
    assert_eq!(turns(&hub, &requester, 2).await, ["B", "A"]);
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn owners_take_turns_and_each_owners_agents_within_its_turn() {
    let (x, y) = (Wallet::of(1), Wallet::of(2));
    let (hub, requester) =
        market(&[(&x, "X1", "tweet", "1"), (&x, "X2", "tweet", "1"), (&y, "Y", "tweet", "1")])
            .await;
    assert_eq!(turns(&hub, &requester, 5).await, ["X1", "Y", "X2", "Y", "X1"]);
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crowd_of_one_owner_gets_one_turn_in_two() {
    let (crowd, honest) = (Wallet::of(1), Wallet::of(2));
    let (hub, requester) = market(&[]).await;
    for n in 0..20 {
        hub.agent(&crowd, &format!("sybil-{n}"), "tweet", "1").await;
    }
    hub.agent(&honest, "honest", "tweet", "1").await;
    let chosen = turns(&hub, &requester, 8).await;
    assert_eq!(chosen.iter().filter(|one| *one == "honest").count(), 4, "{chosen:?}");
    let sybils: Vec<_> = chosen.iter().filter(|one| *one != "honest").collect();
    assert_eq!(sybils, ["sybil-0", "sybil-1", "sybil-2", "sybil-3"]);
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_cheapest_is_the_lowest_number_and_among_equals_the_first() {
    let wallets = [1, 2, 3, 4, 5].map(Wallet::of);
    let (hub, requester) = market(&[
        (&wallets[0], "thirty", "tweet", "30"),
        (&wallets[1], "twenty", "tweet", "20"),
        (&wallets[2], "nine", "tweet", "9"),
        (&wallets[3], "nine too", "tweet", "9"),
        (&wallets[4], "ten", "nft", "10"),
        (&wallets[0], "nine of nft", "nft", "9"),
    ])
    .await;
    for _ in 0..2 {
        let task = hub.task(&requester, "tweet", "50", "cheapest").await;
        assert_eq!((task.chosen(), &task.data()["reward"]), ("nine", &"9".into()));
    }
    assert_eq!(hub.task(&requester, "nft", "50", "cheapest").await.chosen(), "nine of nft");
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_least_occupied_has_the_smallest_inbox_and_among_equals_came_first() {
    let (a, b) = (Wallet::of(1), Wallet::of(2));
    let (hub, requester) = market(&[(&a, "A", "tweet", "9"), (&b, "B", "tweet", "1")]).await;
    let ask = async || hub.task(&requester, "tweet", "50", "leastOccupied").await;
    let first = ask().await;
    assert_eq!(first.chosen(), "A");
    assert_eq!(ask().await.chosen(), "B");
    assert_eq!(ask().await.chosen(), "A");
    assert_eq!(ask().await.chosen(), "B");
    hub.deliver(&a, "A", &first.id).await;
    assert_eq!(ask().await.chosen(), "A");
    hub.0.stop().await;
}

/// Fee by agent, from the assignments of a task.
fn copies(task: &Said) -> BTreeMap<String, String> {
    let sent = &task.result.messages;
    let count = sent.len().to_string();
    let mut copies = BTreeMap::new();
    for one in sent {
        assert_eq!(one.tag("Action"), Some("Agent-Task-Assignment"));
        assert_eq!(one.tag("Number-Of-Agents"), Some(count.as_str()));
        assert_eq!(one.tag("TaskId"), Some(task.id.as_str()));
        let data: serde_json::Value =
            serde_json::from_str(one.data.as_deref().expect("data")).expect("JSON");
        assert_eq!(data["id"], task.id.as_str());
        let agent = data["agentId"].as_str().expect("an id").to_owned();
        assert_eq!(one.tag("Agent-Id"), Some(agent.as_str()));
        copies.insert(agent, data["reward"].as_str().expect("a fee").to_owned());
    }
    copies
}

fn fees(all: &[(&str, &str)]) -> BTreeMap<String, String> {
    all.iter().map(|(id, fee)| ((*id).to_owned(), (*fee).to_owned())).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_topic_broadcast_goes_to_all_and_the_strategy_to_all_of_the_topic() {
    let (a, b, c) = (Wallet::of(1), Wallet::of(2), Wallet::of(9));
    let (hub, requester) = market(&[
        (&a, "A", "tweet", "20"),
        (&a, "A2", "discord", "30"),
        (&b, "B", "nft", "50"),
        (&b, "dear", "tweet", "51"),
        (&c, "own", "tweet", "1"),
        (&c, "own too", "tweet", "2"),
    ])
    .await;
    let tags = [
        ("RedStone-Agent-Topic", "broadcast"),
        ("RedStone-Agent-Reward", "50"),
        ("RedStone-Agent-Matching", "query"),
        ("RedStone-Agent-Id", "own"),
    ];
    let task = hub.act(&requester, "Register-Task", &tags, "{}").await;
    let wanted = fees(&[("A", "20"), ("A2", "30"), ("B", "50"), ("own too", "2")]);
    assert_eq!(copies(&task), wanted, "the matching is ignored, and the named agent left out");
    for (id, fee) in [("A", "20"), ("B", "50")] {
        let shown = hub.listed(id).await["tasks"]["inbox"][&task.id].clone();
        assert_eq!((&shown["agentId"], &shown["reward"]), (&json!(id), &json!(fee)));
    }
    let some = hub.task(&requester, "tweet", "50", "broadcast").await;
    assert_eq!(copies(&some), fees(&[("A", "20"), ("own", "1"), ("own too", "2")]));
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_requesters_named_agent_is_left_out_and_its_others_are_not() {
    let own = Wallet::of(9);
    let (hub, requester) =
        market(&[(&own, "own", "tweet", "1"), (&own, "other", "tweet", "5")]).await;
    let tags = [
        ("RedStone-Agent-Topic", "tweet"),
        ("RedStone-Agent-Reward", "50"),
        ("RedStone-Agent-Matching", "cheapest"),
        ("RedStone-Agent-Id", "own"),
    ];
    let task = hub.act(&requester, "Register-Task", &tags, "{}").await;
    assert_eq!(task.chosen(), "other");
    assert_eq!(task.first().tag("Requesting-Agent-Id"), Some("own"));
    assert_eq!(task.data()["requesterId"], "own");
    let nameless = hub.task(&requester, "tweet", "50", "cheapest").await;
    assert_eq!(nameless.chosen(), "own");
    assert_eq!(nameless.first().tag("Requesting-Agent-Id"), None);
    hub.0.stop().await;
}

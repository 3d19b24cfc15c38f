//! The order of discovery: score, then proven work, then price, then age (R22, and the worked
//! numbers of section 6).

use serde_json::json;

use crate::kit::{Agent, Behaviour, TestHub, Worker, digits, together};

/// A hub, one endpoint for all workers, and an orchestrator whose score stays at 50.
struct Market {
    hub: TestHub,
    worker: Worker,
    asking: Agent,
}

impl Market {
    async fn open() -> Self {
        let hub = TestHub::serve(&[("store.backend", "memory")]).await;
        let worker = Worker::start(Behaviour::Succeed(json!({}), "0")).await;
        let asking = hub.orchestrator("o1").await;
        hub.grant("o1", "1000").await;
        Self { hub, worker, asking }
    }

    async fn agent(&self, owner: &str, price: &str) -> Agent {
        self.hub.agent(owner, "s", price, Some(&self.worker.url)).await
    }

    /// Runs this many jobs at once, all with success or all with failure.
    async fn work(&self, by: &Agent, worker: &Agent, jobs: usize, well: bool) {
        let end = if well { Behaviour::Succeed(json!({}), "0") } else { Behaviour::Fail(None) };
        self.worker.behave(end);
        let hires = (0..jobs).map(|_| self.hub.hire(by, worker, "s", "0.20"));
        for reply in together(hires).await {
            reply.expect(200);
        }
    }

    /// Names, scores and prices in the shown order, the same at both paths.
    async fn order(&self) -> Vec<(String, String, String)> {
        let reply = self.hub.get("/discover?skill=s", None).await.expect(200);
        assert_eq!(self.hub.get("/registry/discover?skill=s", None).await.text, reply.text);
        let ids: Vec<String> =
            reply.text.split("\"agent_id\":").skip(1).map(str::to_owned).collect();
        let agents = reply.at("/agents");
        let owners = agents.as_array().expect("a list").iter();
        let owners = owners.map(|one| one["owner_id"].as_str().expect("an owner").to_owned());
        owners
            .zip(ids)
            .map(|(owner, text)| {
                (owner, digits(&text, "reputation_score"), digits(&text, "cost_per_call"))
            })
            .collect()
    }
}

fn row(owner: &str, score: &str, price: &str) -> (String, String, String) {
    (owner.to_owned(), score.to_owned(), price.to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_best_score_comes_first_and_equal_scores_go_by_price() {
    let market = Market::open().await;
    // One success and eight failures: 50 + 1 − 8 × 4.5 = 15, whose hires are worth 0.3.
    let poor = market.agent("poor", "0").await;
    market.hub.grant("poor", "10").await;
    market.work(&market.asking, &poor, 1, true).await;
    market.work(&market.asking, &poor, 8, false).await;
    assert_eq!(market.hub.score(&poor).await, "15.0");

    let ninety = market.agent("ninety", "0.10").await;
    let dear = market.agent("dear", "0.20").await;
    let cheap = market.agent("cheap", "0.10").await;
    market.work(&market.asking, &ninety, 40, true).await;
    for agent in [&dear, &cheap] {
        market.work(&market.asking, agent, 42, true).await;
        market.work(&poor, agent, 1, true).await;
    }
    let wanted = [
        row("cheap", "92.3", "0.10"),
        row("dear", "92.3", "0.20"),
        row("ninety", "90.0", "0.10"),
        row("poor", "15.0", "0.00"),
    ];
    assert_eq!(market.order().await, wanted);
    market.hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn at_equal_scores_who_has_worked_for_others_stands_before_who_has_not() {
    let market = Market::open().await;
    let new = market.agent("new", "0.10").await;
    market.agent("newer", "0.10").await;
    market.agent("newest but cheaper", "0.05").await;
    let proven = market.agent("proven", "0.20").await;
    // 9 × 1.0 − 2 × 4.5 = 0.
    market.work(&market.asking, &proven, 9, true).await;
    market.work(&market.asking, &proven, 2, false).await;
    let wanted = [
        row("proven", "50.0", "0.20"),
        row("newest but cheaper", "50.0", "0.05"),
        row("new", "50.0", "0.10"),
        row("newer", "50.0", "0.10"),
    ];
    assert_eq!(market.order().await, wanted);

    // Work for the same owner is not counted as proof.
    let body = json!({"agent_name": "n", "owner_id": "new", "skills": []});
    let sibling = market.hub.enrol(&body, Some(&new.key)).await;
    market.hub.grant("new", "1").await;
    market.work(&sibling, &new, 3, true).await;
    assert_eq!(market.order().await, wanted);
    market.hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn our_own_ranking_weighs_who_paid_and_what_an_owner_did_before_and_the_published_one_does_not()
 {
    let hub = TestHub::serve(&[]).await;
    let worker = Worker::start(Behaviour::Succeed(json!({}), "0.01")).await;
    let asking = hub.orchestrator("o1").await;
    let market = Market { hub, worker, asking };
    let hub = &market.hub;
    hub.grant("o1", "10").await;
    // One owner reports success seven times, and several owners once each.
    let ring = market.agent("ring", "0.01").await;
    market.work(&market.asking, &ring, 7, true).await;
    let liked = market.agent("liked", "0.01").await;
    for owner in ["o1", "x2", "y3", "z4", "v5", "w6"] {
        let by = if owner == "o1" { market.asking.clone() } else { hub.orchestrator(owner).await };
        hub.grant(owner, "1").await;
        market.work(&by, &liked, 1, true).await;
    }
    // An agent fails, leaves, and returns under another id of the same owner.
    let bad = market.agent("shady", "0.01").await;
    let sibling = hub.enrol(&named("shady", "spare"), Some(&bad.key)).await;
    market.work(&market.asking, &bad, 1, false).await;
    let gone = format!("/registry/agents/{}", bad.id);
    hub.call("DELETE", &gone, Some(&bad.key), None).await.expect(200);
    let again = json!({"agent_name": "again", "owner_id": "shady", "api_endpoint": market.worker.url,
        "skills": [{"skill_name": "s", "cost_per_call": 0.01}]});
    hub.enrol(&again, Some(&sibling.key)).await;
    market.agent("clean", "0.01").await;

    let published: Vec<String> = market.order().await.into_iter().map(|row| row.0).collect();
    assert_eq!(published, ["ring", "liked", "shady", "clean"], "by score, then by registration");
    let ours = async |hub: &TestHub| {
        let reply = hub.get("/v1/agents?skill=s", None).await.expect(200);
        let items = reply.at("/items");
        let shown = |one: &serde_json::Value| {
            let worth = one["rank_score"].as_f64().expect("a number");
            let owner = one["owner"].as_str().expect("an owner").to_owned();
            (owner, worth, one["counterparties"].as_u64(), one["owner_failures"].as_u64())
        };
        items.as_array().expect("a list").iter().map(shown).collect::<Vec<_>>()
    };
    let place = |owner: &str, worth, counterparties, failures| {
        (owner.to_owned(), worth, Some(counterparties), Some(failures))
    };
    let wanted = [
        place("liked", 56.0, 6, 0),
        place("ring", 55.0, 1, 0),
        place("clean", 50.0, 0, 0),
        place("shady", 45.5, 0, 1),
    ];
    assert_eq!(ours(hub).await, wanted);
    let hub = market.hub.restart(rialto_hub::config::Profile::Serve, &[]).await;
    assert_eq!(ours(&hub).await, wanted, "a restart loses nothing");
    hub.stop().await;
}

/// A registration of an agent that only acts for its owner.
fn named(owner: &str, name: &str) -> serde_json::Value {
    json!({"agent_name": name, "owner_id": owner, "skills": []})
}

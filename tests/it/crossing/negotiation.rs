//! Prices offered per job, and deferred work (B9, section 9).

use rialto_core::time::Millis;
use rialto_protocols::agora::MessageType;
use serde_json::{Value, json};

use super::books::{Balances, Counted, Names};
use super::cells::FLAGS;
use crate::agora::kit::{Hub, Key, Token, assert_error};
use crate::clara::kit::{Hub as Market, Wallet};
use crate::kit::{Agent, Reply, TestHub, digits, eventually};
use crate::openclaw::kit::{Hub as Claws, Node};

/// A registry orchestrator with 100.00, and an agora provider that makes offers.
struct Bargain {
    hub: Hub,
    boss: Agent,
    bob: Key,
    reads: Token,
    /// The provider's registry id.
    alias: String,
}

impl Bargain {
    async fn open() -> Self {
        let hub = Hub::serve(FLAGS).await;
        let bob = Key::of(2);
        let reads = hub.provider(&bob, "agora:weather:v1", None).await;
        let boss = hub.orchestrator("acme").await;
        hub.grant("acme", "100.00").await;
        let page = hub.get("/registry/discover?skill=weather", None).await.expect(200);
        assert_eq!(digits(&page.text, "cost_per_call"), "0.00");
        assert_eq!(page.str("/agents/0/skill/price"), "by_offer", "{}", page.text);
        let alias = page.str("/agents/0/agent_id");
        Self { hub, boss, bob, reads, alias }
    }

    async fn hire(&self, budget: f64) -> Reply {
        let body = json!({"orchestrator_id": self.boss.id, "skill_name": "weather",
            "input_data": {"city": "Tokyo"}, "budget": budget});
        let path = format!("/registry/agents/{}/jobs", self.alias);
        self.hub.post(&path, Some(&self.boss.key), &body).await
    }

    async fn shown(&self, job: &str) -> Reply {
        self.hub.get(&format!("/registry/jobs/{job}"), Some(&self.boss.key)).await
    }

    /// The provider's openclaw id, for the score of the other formula.
    async fn names(&self) -> Names {
        let page = self.hub.get("/openclaw/agents?capability=weather", None).await.expect(200);
        Names { registry: self.alias.clone(), openclaw: page.str("/agents/0/agent_id") }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_offer_within_the_budget_is_accepted_by_the_hub_and_is_what_is_paid() {
    let bargain = Bargain::open().await;
    let Bargain { hub, bob, reads, .. } = &bargain;
    let names = bargain.names().await;
    let job = bargain.hire(6.00).await.expect(202).str("/job_id");
    assert_eq!(hub.balance("acme").await, ("94.00".to_owned(), "6.00".to_owned()));
    let request = hub.newest_is(reads, MessageType::Request).await;
    assert_eq!(request["payload"]["budget"]["max"], 6);
    let id = request["id"].as_str().expect("an id");
    hub.tell(&bob.offer(id, json!(5.25))).await.expect(202);
    // The hub accepts for the requester, and marks this in the envelope.
    let accept = hub.newest_is(reads, MessageType::Accept).await;
    assert_eq!(accept["sender"]["id"], request["sender"]["id"]);
    assert_eq!(accept["bridge"]["protocol"], "registry");
    assert_eq!(accept["bridge"]["agent"], bargain.boss.id);
    assert_eq!(hub.tell(&bob.result(id)).await.expect(202).str("/payload/state"), "COMPLETED");
    assert_eq!(bargain.shown(&job).await.str("/status"), "SUCCESS");
    assert_eq!(digits(&bargain.shown(&job).await.text, "execution_cost"), "5.25");
    assert_eq!(hub.balance("acme").await, ("94.75".to_owned(), "0.00".to_owned()));
    assert_eq!(Balances::of(hub, &bob.owner()), Balances::with(5_250_000));
    let worker = Agent { id: bargain.alias.clone(), key: String::new(), owner: String::new() };
    assert_eq!(hub.score(&worker).await, "51.0");
    assert_eq!(Counted::of(hub, &names).await, Counted::GOOD);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_offer_above_the_bid_is_refused_and_a_lower_one_is_taken() {
    let bargain = Bargain::open().await;
    let Bargain { hub, bob, reads, .. } = &bargain;
    let job = bargain.hire(6.00).await.expect(202).str("/job_id");
    let request = hub.newest_is(reads, MessageType::Request).await;
    let id = request["id"].as_str().expect("an id");
    assert_error(&hub.tell(&bob.offer(id, json!(6.000001))).await, 402);
    assert_eq!(hub.balance("acme").await, ("94.00".to_owned(), "6.00".to_owned()));
    // Rounded up to the requester's cents, it never exceeds the bid.
    hub.tell(&bob.offer(id, json!(5.990001))).await.expect(202);
    hub.newest_is(reads, MessageType::Accept).await;
    hub.tell(&bob.result(id)).await.expect(202);
    assert_eq!(bargain.shown(&job).await.str("/status"), "SUCCESS");
    assert_eq!(hub.balance("acme").await, ("94.00".to_owned(), "0.00".to_owned()));
    assert_eq!(Balances::of(hub, &bob.owner()), Balances::with(6_000_000));
}

/// An openclaw agent that tweets for this price.
async fn tweeting(hub: &TestHub, price: Value) -> Node {
    let hub_time = Claws::time_of(hub);
    let mut identity = crate::openclaw::kit::identity("tweeting", hub_time);
    let can = crate::openclaw::kit::capability("tweet", json!({"price": price}));
    identity["capabilities"]["advertised_capabilities"] = json!([can]);
    let reply = hub.post("/openclaw/identity", None, &identity).await.expect(201);
    Node { id: reply.str("/agent_id"), key: reply.str("/api_key"), identity }
}

/// Posts an agora envelope to any hub, and returns the answer.
async fn tell(hub: &TestHub, said: &crate::agora::kit::Said) -> Reply {
    hub.post_text("/agora/envelopes", None, &said.text).await
}

/// Sends HELLO to any hub; returns a token.
async fn hello(hub: &TestHub, key: &Key, mut profile: Value) -> String {
    profile["inbox"] = true.into();
    let did = hub.get("/agora", None).await.expect(200).str("/hub");
    let to = rialto_protocols::kit::ed25519::PublicKey::parse(&did).expect("a key");
    let hello = key.sign_for(MessageType::Hello, &profile, Some(to));
    tell(hub, &hello).await.expect(200).str("/payload/inbox_token")
}

/// The newest envelope of a type in an inbox, once it is there.
async fn newest(hub: &TestHub, token: &str, kind: MessageType) -> Value {
    let mut found = Value::Null;
    eventually(async || {
        let page = hub.get("/agora/messages?after=0&limit=200", Some(token)).await.expect(200);
        let all = page.at("/messages").as_array().expect("a list").clone();
        let of_kind = |one: &&Value| one["envelope"]["type"] == kind.as_str();
        found = all.iter().rev().find(of_kind).map_or(Value::Null, |one| one["envelope"].clone());
        !found.is_null()
    })
    .await;
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn an_auction_is_answered_by_fixed_prices_and_by_one_that_is_named() {
    let market = Market::serve(&[("jobs.auction_window", "30s")]).await;
    let requester = Wallet::of(9);
    market.fund(&requester, "100").await;
    market.0.agent("acme", "tweet", "4.01", None).await;
    tweeting(&market, json!(3.5)).await;
    let bob = Key::of(2);
    let profile = json!({"name": "bob", "capabilities": ["agora:tweet:v1"]});
    let reads = hello(&market, &bob, profile).await;
    let task = market.auction(&requester, "tweet", "10").await;
    let request = newest(&market, &reads, MessageType::Request).await;
    assert_eq!(request["payload"]["budget"]["max"], 10);
    let id = request["id"].as_str().expect("an id").to_owned();
    // The last offer closes the auction: 2.5 is 3 here, less than 5 and 4.
    tell(&market, &bob.offer(&id, json!(2.5))).await.expect(202);
    let result = market.result(&task).await;
    let first = &result.messages[0];
    assert_eq!(first.tag("Action"), Some("Agent-Task-Assignment"), "{result:?}");
    let chosen = first.tag("Assigned-Agent-Id").expect("an agent");
    assert!(chosen.starts_with("agora/"), "{chosen}");
    let page = market.get("/agora/messages?after=0&limit=200", Some(&reads)).await.expect(200);
    let letters = page.at("/messages");
    let kinds: Vec<_> = letters
        .as_array()
        .expect("a list")
        .iter()
        .map(|one| one["envelope"]["type"].clone())
        .collect();
    assert_eq!(kinds, ["REQUEST", "ACCEPT"], "the winner's offer is accepted");
    tell(&market, &bob.result(&id)).await.expect(202);
    assert_eq!(
        Balances::of(&market, &format!("clara:{}", requester.address())),
        Balances::with(97_000_000)
    );
    assert_eq!(Balances::of(&market, &bob.owner()), Balances::with(3_000_000), "the whole price");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_lowest_fixed_price_wins_an_auction_rounded_up() {
    for (registry, openclaw, winner, fee) in
        [("0.10", json!(1.5), "registry/", 1), ("3", json!(1.5), "openclaw/", 2)]
    {
        let market = Market::serve(&[]).await;
        let requester = Wallet::of(9);
        market.fund(&requester, "100").await;
        market.0.agent("acme", "tweet", registry, None).await;
        tweeting(&market, openclaw).await;
        let task = market.auction(&requester, "tweet", "10").await;
        let result = market.result(&task).await;
        let first = result.messages.first().unwrap_or_else(|| panic!("{result:?}"));
        let chosen = first.tag("Assigned-Agent-Id").expect("an agent").to_owned();
        assert!(chosen.starts_with(winner), "{chosen}");
        let board = market.listed(&chosen).await;
        assert_eq!(board["tasks"]["inbox"][&task]["reward"], fee.to_string(), "{board}");
    }
}

/// Alice of agora requests a free `sum` from an openclaw agent.
async fn asked(hub: &Claws, alice: &Key, of: &Node) -> (String, Reply) {
    let agents = hub.get("/agora/agents?limit=200", None).await.expect(200).at("/agents");
    let agents = agents.as_array().expect("a list").clone();
    let entry = agents.iter().find(|one| one["native_id"] == of.id).expect("it is listed");
    let payload = json!({"resource": "agora:sum:v1", "params": {"a": 0.5}});
    let id = crate::agora::kit::fresh_id("REQUEST");
    let request = alice.sign_at(&id, hub.now(), MessageType::Request, &payload, None);
    let path = format!("/agora/agents/{}", entry["id"].as_str().expect("a key"));
    let reply = hub.call("POST", &path, None, Some(&request.text)).await;
    (request.id, reply)
}

async fn state(hub: &Claws, token: &str, id: &str) -> String {
    hub.get(&format!("/agora/requests/{id}"), Some(token)).await.expect(200).str("/state")
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_openclaw_agent_puts_off_is_pending_for_an_agora_requester_until_it_works() {
    let hub = Claws::serve(FLAGS).await;
    let worker = hub.node_with("worker", json!({"response_mode": "ask"})).await;
    let alice = Key::of(1);
    let reads = hello(&hub, &alice, json!({})).await;
    let mut works = hub.stream(&worker, "").await;
    let (id, reply) = asked(&hub, &alice, &worker).await;
    let uuid = reply.header("rialto-job").expect("an id").to_owned();
    reply.expect(202);
    let told = works.until("collaboration_request").await.data;
    assert_eq!((&told["request_id"], &told["accepted"]), (&json!(uuid), &json!(false)));
    let until = hub.time(Millis::seconds(30).0);
    let later = json!({"response_status": "deferred", "deferred_until": until,
        "collaboration_id": null});
    hub.respond(&worker, &told, later).await.expect(200);
    assert_eq!(state(&hub, &reads, &id).await, "PENDING");
    hub.pass(Millis::seconds(31));
    let again = works.until("collaboration_request").await.data;
    let yes = json!({"collaboration_id": uuid});
    hub.respond(&worker, &again, yes).await.expect(200);
    assert_eq!(state(&hub, &reads, &id).await, "PROCESSING");
    let work = crate::openclaw::kit::Work { id: uuid, request: again, by: worker };
    hub.result(&work, json!({})).await.expect(200);
    assert_eq!(state(&hub, &reads, &id).await, "COMPLETED");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_waits_for_an_openclaw_agent_in_maintenance_is_pending_until_it_is_back() {
    let hub = Claws::serve(FLAGS).await;
    let worker = hub.node("worker").await;
    let page = hub.get("/registry/discover?skill=sum", None).await.expect(200);
    let path = format!("/registry/agents/{}/jobs", page.str("/agents/0/agent_id"));
    let until = json!({"maintenance_until": hub.time(Millis::minutes(30).0)});
    hub.report(&worker, "maintenance", until).await.expect(200);
    let boss = hub.orchestrator("acme").await;
    let body = json!({"orchestrator_id": boss.id, "skill_name": "sum", "input_data": {"a": 0.5},
        "budget": 0});
    let job = hub.post(&path, Some(&boss.key), &body).await.expect(202);
    assert_eq!(job.str("/status"), "PENDING");
    let alice = Key::of(1);
    let reads = hello(&hub, &alice, json!({})).await;
    let (id, reply) = asked(&hub, &alice, &worker).await;
    assert_eq!(reply.expect(202).str("/payload/state"), "PENDING");
    hub.report(&worker, "idle", json!({})).await.expect(200);
    eventually(async || state(&hub, &reads, &id).await == "PROCESSING").await;
    let work = hub.list(&worker, "?role=responder&state=running").await.expect(200);
    assert_eq!(work.at("/collaborations").as_array().map(Vec::len), Some(2), "{}", work.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn approval_looks_like_pending_and_a_no_is_nobodys_failure() {
    let hub = Claws::serve(FLAGS).await;
    let worker = hub.able_node("worker", json!({"requires_approval": true})).await;
    let boss = hub.orchestrator("acme").await;
    let page = hub.get("/registry/discover?skill=sum", None).await.expect(200);
    let path = format!("/registry/agents/{}/jobs", page.str("/agents/0/agent_id"));
    for (yes, status) in [(true, "PENDING"), (false, "FAILURE")] {
        let body = json!({"orchestrator_id": boss.id, "skill_name": "sum",
            "input_data": {"a": 0.5}, "budget": 0});
        let reply = hub.post(&path, Some(&boss.key), &body).await.expect(202);
        let (job, uuid) = (reply.str("/job_id"), reply.header("rialto-job").expect("an id"));
        assert_eq!(
            hub.list(&worker, "?state=running&role=responder").await.at("/collaborations"),
            json!([])
        );
        hub.approve(&worker.key, uuid, yes).await.expect(200);
        let shown = hub.get(&format!("/registry/jobs/{job}"), Some(&boss.key)).await;
        assert_eq!(shown.str("/status"), status, "{}", shown.text);
        if yes {
            let view = hub.view(&worker, uuid).await;
            assert_eq!(view["state"], "running");
            let work = crate::openclaw::kit::Work {
                id: uuid.to_owned(),
                request: view["request"].clone(),
                by: worker.clone(),
            };
            hub.result(&work, json!({})).await.expect(200);
        } else {
            assert_eq!(shown.str("/error_code"), "EXECUTION_ERROR", "{}", shown.text);
        }
    }
    assert_eq!(hub.metrics(&worker).await["failed_collaborations"], 0);
}

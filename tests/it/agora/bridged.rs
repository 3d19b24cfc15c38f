//! Agents of other protocols under keys that the hub holds for them, and jobs between protocols
//! (R64, R70).

use rialto_core::alias::Protocol;
use rialto_protocols::agora::MessageType;
use rialto_protocols::kit::ed25519::PublicKey;
use serde_json::{Value, json};

use super::kit::{Hub, Key, Token, assert_error};
use super::scene::{credits, kinds};
use crate::kit::{Agent, Behaviour, Worker, counted, eventually};

const SUMMARIZE: &str = "agora:summarize:v1";

/// Alice of agora with ten credits, and a registry worker.
struct Bridge {
    hub: Hub,
    alice: Key,
    alice_reads: Token,
    worker: Agent,
    /// The worker's key here.
    alias: PublicKey,
}

impl Bridge {
    async fn build(price: &str, endpoint: Option<&str>) -> Self {
        let hub = Hub::serve(&[]).await;
        let alice = Key::of(1);
        hub.fund(&alice, "10").await;
        let alice_reads = hub.hello(&alice, json!({})).await;
        let worker = hub.agent("acme", "summarize", price, endpoint).await;
        let alias = entry(&hub, &worker).await["id"].as_str().expect("a key").to_owned();
        Self { hub, alice, alice_reads, worker, alias: PublicKey::parse(&alias).expect("a key") }
    }

    /// The jobs the worker gets when it polls.
    async fn work(&self) -> Vec<Value> {
        let path = format!("/registry/agents/{}/jobs", self.worker.id);
        let page = self.hub.get(&path, Some(&self.worker.key)).await.expect(200);
        page.at("/jobs").as_array().expect("a list").clone()
    }

    /// Checks that the hub signed this for the worker and that the envelope says so.
    async fn assert_held(&self, envelope: &Value) {
        assert_eq!(envelope["sender"]["id"], self.alias.did(), "{envelope}");
        let hub = self.hub.hub_key().await.did();
        let bridge = json!({"hub": hub, "protocol": "registry", "agent": self.worker.id});
        assert_eq!(envelope["bridge"], bridge, "{envelope}");
        assert_eq!(envelope["recipient"]["id"], self.alice.did(), "{envelope}");
    }
}

/// The directory entry of a registry worker.
async fn entry(hub: &Hub, worker: &Agent) -> Value {
    let agents = hub.get("/agora/agents", None).await.expect(200).at("/agents");
    let found = agents.as_array().expect("a list").iter().find(|one| one["native_id"] == worker.id);
    found.expect("it is listed").clone()
}

#[tokio::test]
async fn an_agent_of_another_protocol_is_listed_under_a_key_that_the_hub_holds() {
    let bridge = Bridge::build("0.50", None).await;
    let Bridge { hub, worker, alias, .. } = &bridge;
    let shown = entry(hub, worker).await;
    let hub_did = hub.hub_key().await.did();
    assert_eq!(shown["held_by"], hub_did);
    assert_eq!(shown["protocol"], "registry");
    assert_eq!(shown["capabilities"], json!([{"resource": SUMMARIZE, "price": 0.5}]));
    // The key is derived from the hub's secret and the agent's name only.
    let derived = hub.engine.hub_secret().derive("rialto agora alias v1", &native(worker));
    let derived = rialto_protocols::kit::ed25519::SecretKey::from_seed(&derived).public();
    assert_eq!(derived, *alias);
    let own = hub.get(&format!("/agora/agents/{}", bridge.alice.did()), None).await.expect(200);
    assert_eq!(own.at("/held_by"), Value::Null, "an agent's own key is not held by the hub");
    let Bridge { hub, worker, alias, .. } = bridge;
    let hub = hub.restart(&[]).await;
    assert_eq!(entry(&hub, &worker).await["id"], alias.did());
}

fn native(worker: &Agent) -> String {
    format!("{}:{}", Protocol::new("registry"), worker.id)
}

#[tokio::test]
async fn a_free_skill_is_begun_at_once_and_its_result_is_signed_for_the_worker() {
    let bridge = Bridge::build("0", None).await;
    let Bridge { hub, alice, alice_reads, worker, alias } = &bridge;
    let request = alice.request(SUMMARIZE, json!({}));
    let taken = hub.tell_to(&alias.did(), &request).await.expect(202);
    assert_eq!(taken.str("/payload/state"), "PROCESSING");
    let work = bridge.work().await;
    assert_eq!(work.len(), 1);
    assert_eq!(work[0]["skill_name"], "summarize");
    assert_eq!(work[0]["input_data"], json!({"q": "weather tokyo"}));
    let job = work[0]["job_id"].as_str().expect("an id");
    assert_eq!(Some(job), taken.header("rialto-job"), "the hub's own id, and not the requester's");
    hub.report(worker, job, "SUCCESS", "0").await.expect(200);
    let result = hub.newest(alice_reads).await;
    bridge.assert_held(&result).await;
    assert_eq!(result["type"], "RESULT");
    assert_eq!(result["payload"]["request_id"], request.id);
    assert_eq!(result["payload"]["status"], "success");
    assert_eq!(result["payload"]["data"], json!({"done": true}));
    assert_eq!(hub.state_of(alice_reads, &request.id).await, "COMPLETED");
    assert_eq!(hub.account(alice).await, credits("10", "0"));
}

#[tokio::test]
async fn parts_of_a_worker_of_another_protocol_are_partial_results_signed_for_it() {
    let bridge = Bridge::build("0", None).await;
    let Bridge { hub, alice, alice_reads, worker, alias } = &bridge;
    let request = alice.request(SUMMARIZE, json!({}));
    hub.tell_to(&alias.did(), &request).await.expect(202);
    let work = bridge.work().await;
    let job = work[0]["job_id"].as_str().expect("an id");
    let path = format!("/v1/jobs/{job}/parts");
    for page in 1..=2 {
        let part = json!({"artifact": {"page": page}});
        hub.post(&path, Some(&worker.key), &part).await.expect(200);
        let told = hub.newest(alice_reads).await;
        bridge.assert_held(&told).await;
        assert_eq!(told["type"], "RESULT");
        let payload =
            json!({"request_id": request.id, "status": "partial", "data": {"page": page}});
        assert_eq!(told["payload"], payload);
        assert_eq!(hub.state_of(alice_reads, &request.id).await, "PROCESSING");
    }
    // This protocol has no message for progress alone, and the trace says so.
    let path = format!("/v1/jobs/{job}/progress");
    hub.post(&path, Some(&worker.key), &json!({"fraction": 0.9})).await.expect(200);
    let trace = hub.get(&format!("/v1/jobs/{job}/trace"), Some(&worker.key)).await.expect(200);
    let hops = trace.at("/hops");
    let hop = hops.as_array().expect("hops").iter().find(|hop| hop["what"] == "progress");
    let note = &hop.expect("a hop")["notes"][0];
    let expected = (json!("/fraction"), json!("dropped"), json!("agora has no field for it"));
    assert_eq!((note["field"].clone(), note["fate"].clone(), note["why"].clone()), expected);
    hub.report(worker, job, "SUCCESS", "0").await.expect(200);
    assert_eq!(kinds(&hub.letters(alice_reads).await), ["RESULT", "RESULT", "RESULT"]);
}

#[tokio::test]
async fn a_question_to_a_requester_that_only_signs_is_an_error_at_once_and_no_failure() {
    let bridge = Bridge::build("0.50", None).await;
    let Bridge { hub, alice, alice_reads, worker, alias } = &bridge;
    let request = alice.request(SUMMARIZE, json!({"budget": {"max": 2}}));
    hub.tell_to(&alias.did(), &request).await.expect(202);
    let offer = hub.newest(alice_reads).await;
    hub.told(&alice.accept_id(offer["id"].as_str().expect("an id"))).await;
    let job = bridge.work().await[0]["job_id"].as_str().expect("an id").to_owned();
    let path = format!("/v1/jobs/{job}/ask");
    let asked = hub.post(&path, Some(&worker.key), &json!({"text": "Which city?"})).await;
    assert_eq!(asked.expect(200).str("/state"), "failed");
    let error = hub.newest(alice_reads).await;
    bridge.assert_held(&error).await;
    assert_eq!(error["type"], "ERROR");
    assert_eq!(error["payload"]["request_id"], request.id);
    assert_eq!(
        (&error["payload"]["code"], &error["payload"]["retryable"]),
        (&json!(400), &json!(false))
    );
    assert_eq!(error["payload"]["message"], "Which city?");
    assert_eq!(hub.state_of(alice_reads, &request.id).await, "FAILED");
    assert_eq!(hub.account(alice).await, credits("10", "0"));
    assert_eq!(hub.standing_of(&alias.did()).failures, 0);
    // The worker is told that the job is no longer its own.
    let known = format!("/v1/work?known={job}.1");
    let work = hub.get(&known, Some(&worker.key)).await.expect(200);
    assert_eq!(work.at("/gone"), json!([job]));
}

#[tokio::test]
async fn a_price_becomes_an_offer_and_is_held_and_paid_like_any_other() {
    let bridge = Bridge::build("0.50", None).await;
    let Bridge { hub, alice, alice_reads, worker, alias } = &bridge;
    let request = alice.request(SUMMARIZE, json!({"budget": {"max": 2}}));
    let taken = hub.tell_to(&alias.did(), &request).await.expect(202);
    assert_eq!(taken.str("/payload/state"), "NEGOTIATING");
    assert_eq!(hub.account(alice).await, credits("10", "0"));
    assert!(bridge.work().await.is_empty(), "no work starts with an offer");
    let offer = hub.newest(alice_reads).await;
    bridge.assert_held(&offer).await;
    assert_eq!(offer["type"], "OFFER");
    assert_eq!(offer["payload"]["request_id"], request.id);
    assert_eq!(offer["payload"]["cost"], 0.5);
    assert_eq!(offer["payload"]["ttl"], 60_000);
    let shown = hub.standing(alice_reads, &request.id).await;
    assert_eq!(shown["offers"][0]["offer_id"], offer["id"]);
    assert_eq!(shown["offers"][0]["provider"], alias.did());

    let accept = alice.accept_id(offer["id"].as_str().expect("an id"));
    assert_eq!(hub.told(&accept).await, "PROCESSING");
    assert_eq!(hub.account(alice).await, credits("9.5", "0.5"));
    let work = bridge.work().await;
    assert_eq!(work[0]["budget"], 0.5);
    let job = work[0]["job_id"].as_str().expect("an id");
    hub.report(worker, job, "SUCCESS", "0.50").await.expect(200);
    let result = hub.newest(alice_reads).await;
    bridge.assert_held(&result).await;
    assert_eq!(result["payload"]["request_id"], request.id);
    assert_eq!(hub.state_of(alice_reads, &request.id).await, "COMPLETED");
    assert_eq!(hub.account(alice).await, credits("9.5", "0"));
    assert_eq!(hub.balance("acme").await.0, "0.50");
    let letters = hub.letters(alice_reads).await;
    assert_eq!(kinds(&letters), ["OFFER", "RESULT"]);
}

#[tokio::test]
async fn a_worker_that_fails_is_an_error_signed_for_it_and_nothing_is_paid() {
    let bridge = Bridge::build("0.50", None).await;
    let Bridge { hub, alice, alice_reads, worker, alias } = &bridge;
    let request = alice.request(SUMMARIZE, json!({"budget": {"max": 2}}));
    hub.tell_to(&alias.did(), &request).await.expect(202);
    let offer = hub.newest(alice_reads).await;
    hub.told(&alice.accept_id(offer["id"].as_str().expect("an id"))).await;
    let job = bridge.work().await[0]["job_id"].as_str().expect("an id").to_owned();
    hub.report(worker, &job, "FAILURE", "0").await.expect(200);
    let error = hub.newest(alice_reads).await;
    bridge.assert_held(&error).await;
    assert_eq!(error["type"], "ERROR");
    assert_eq!(error["payload"]["code"], 500);
    assert_eq!(error["payload"]["request_id"], request.id);
    assert_eq!(hub.state_of(alice_reads, &request.id).await, "FAILED");
    assert_eq!(hub.account(alice).await, credits("10", "0"));
    assert_eq!(hub.standing_of(&alias.did()).failures, 1);
}

#[tokio::test]
async fn a_budget_below_its_price_and_a_resource_it_has_not_are_refused() {
    let bridge = Bridge::build("0.50", None).await;
    let Bridge { hub, alice, alias, .. } = &bridge;
    let before = hub.held().await;
    let low = alice.request(SUMMARIZE, json!({"budget": {"max": 0.49}}));
    assert_error(&hub.tell_to(&alias.did(), &low).await, 402);
    let other = alice.request("agora:paint:v1", json!({}));
    assert_error(&hub.tell_to(&alias.did(), &other).await, 404);
    // The hub offers only version 1 of the generated resource.
    let other = alice.request("agora:summarize:v2", json!({}));
    assert_error(&hub.tell_to(&alias.did(), &other).await, 404);
    assert_eq!(hub.held().await, before);
}

#[tokio::test]
async fn a_suspended_key_cannot_act() {
    let bridge = Bridge::build("0.50", None).await;
    let Bridge { hub, alice, alias, .. } = &bridge;
    // An envelope that names the alias as sender needs its signature, which only the hub can make.
    let mut forged = alice.request(SUMMARIZE, json!({})).json();
    forged["sender"]["id"] = alias.did().into();
    let before = hub.held().await;
    let reply = hub.post_text("/agora/envelopes", None, &forged.to_string()).await;
    assert_error(&reply, 401);
    // An envelope signed with a hub-held key is refused when it is posted to the hub.
    let secret = hub.engine.hub_secret().derive("rialto agora alias v1", &native(&bridge.worker));
    let secret = rialto_protocols::kit::ed25519::SecretKey::from_seed(&secret);
    let held = Key { composer: rialto_protocols::agora::EnvelopeSigner::new(secret) };
    for said in
        [held.request(SUMMARIZE, json!({})), held.sign(MessageType::Hello, &json!({"inbox": true}))]
    {
        assert_error(&hub.tell(&said).await, 401);
    }
    assert_eq!(hub.held().await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_at_an_endpoint_is_called_there() {
    let called = Worker::start(Behaviour::Succeed(json!({"sum": "short"}), "0.50")).await;
    let bridge = Bridge::build("0.50", Some(&called.url)).await;
    let Bridge { hub, alice, alice_reads, alias, .. } = &bridge;
    let request = alice.request(SUMMARIZE, json!({"budget": {"max": 2}}));
    hub.tell_to(&alias.did(), &request).await.expect(202);
    let offer = hub.newest_is(alice_reads, MessageType::Offer).await;
    hub.told(&alice.accept_id(offer["id"].as_str().expect("an id"))).await;
    let result = hub.newest_is(alice_reads, MessageType::Result).await;
    bridge.assert_held(&result).await;
    assert_eq!(result["payload"]["data"], json!({"sum": "short"}));
    assert_eq!(called.got()[0].json()["skill_name"], "summarize");
    assert_eq!(hub.balance("acme").await.0, "0.50");
}

/// Bob of agora, and a registry agent that hires him.
async fn hired(
    hub: &Hub,
    bob: &Key,
    resource: &str,
    price: Option<Value>,
) -> (Token, Agent, String) {
    let reads = hub.provider(bob, resource, price).await;
    let boss = hub.orchestrator("acme").await;
    hub.grant("acme", "10").await;
    let alias = hub.engine.with_world(|world| {
        let id = world.agent_by_alias(rialto_protocols::agora::ID, bob.did()).expect("an agent");
        world.alias_of(id, rialto_protocols::registry::ID).expect("an alias").to_owned()
    });
    (reads, boss, alias)
}

async fn hire(hub: &Hub, boss: &Agent, alias: &str, skill: &str, budget: f64) -> crate::kit::Reply {
    let body = json!({"orchestrator_id": boss.id, "skill_name": skill,
        "input_data": {"city": "Tokyo", "n": 1.50}, "budget": budget});
    hub.post(&format!("/registry/agents/{alias}/jobs"), Some(&boss.key), &body).await
}

#[tokio::test]
async fn a_job_of_the_registry_is_a_request_signed_for_its_requester_and_its_result_completes_it() {
    let hub = Hub::serve(&[("registry.sync_wait", "1ms")]).await;
    let bob = Key::of(2);
    let (reads, boss, alias) = hired(&hub, &bob, "agora:weather:v1", Some(json!(1.5))).await;
    let skill = skill_seen(&hub, &alias).await;
    let reply = hire(&hub, &boss, &alias, &skill, 2.0).await.expect(202);
    let job = reply.str("/job_id");
    let request = hub.newest_is(&reads, MessageType::Request).await;
    assert_eq!(
        request["payload"]["resource"], "agora:weather:v1",
        "with the resource that Bob listed"
    );
    assert_eq!(request["payload"]["params"], json!({"city": "Tokyo", "n": 1.50}));
    assert_eq!(request["bridge"]["protocol"], "registry");
    assert_eq!(request["bridge"]["agent"], boss.id);
    assert_eq!(request["recipient"]["id"], bob.did());
    assert_eq!(request["sender"]["id"], entry(&hub, &boss).await["id"]);
    let id = request["id"].as_str().expect("an id");
    let payload = json!({"request_id": id, "status": "success", "data": {"sky": "clear"}});
    assert_eq!(hub.told(&bob.sign(MessageType::Result, &payload)).await, "COMPLETED");
    assert_eq!(hub.state_of(&reads, id).await, "COMPLETED");
    let done = hub.get(&format!("/registry/jobs/{job}"), Some(&boss.key)).await.expect(200);
    assert_eq!(done.str("/status"), "SUCCESS", "{}", done.text);
    assert_eq!(done.at("/output_data"), json!({"sky": "clear"}));
    assert_eq!(hub.balance("acme").await, ("8.50".to_owned(), "0.00".to_owned()));
    assert_eq!(hub.spendable(&bob).await, "1.5");
}

/// The registry's name for Bob's only skill.
async fn skill_seen(hub: &Hub, alias: &str) -> String {
    let skills = hub.get("/registry/skills", None).await.expect(200).at("/skills");
    let skills = skills.as_array().expect("a list").clone();
    assert_eq!(skills.len(), 1, "{skills:?} of {alias}");
    skills[0].as_str().expect("a name").to_owned()
}

#[tokio::test]
async fn an_error_fails_the_job_of_the_registry_and_its_money_goes_back() {
    for code in [500, 503] {
        let hub = Hub::serve(&[("registry.sync_wait", "1ms")]).await;
        let bob = Key::of(2);
        let (reads, boss, alias) = hired(&hub, &bob, "agora:weather:v1", Some(json!(1.5))).await;
        let skill = skill_seen(&hub, &alias).await;
        let job = hire(&hub, &boss, &alias, &skill, 2.0).await.expect(202).str("/job_id");
        let request = hub.newest_is(&reads, MessageType::Request).await;
        let id = request["id"].as_str().expect("an id");
        hub.told(&bob.error(id, code)).await;
        let done = async || hub.get(&format!("/registry/jobs/{job}"), Some(&boss.key)).await;
        eventually(async || done().await.str("/status") == "FAILURE").await;
        assert_eq!(hub.balance("acme").await, ("10.00".to_owned(), "0.00".to_owned()));
        assert_eq!(hub.spendable(&bob).await, "0");
        assert_eq!(hub.standing_of(bob.did()).failures, u64::from(code == 500));
        // An unknown key may not answer the request.
        hub.refuses(&Key::of(9).result(id), 401).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_waits_is_answered_with_the_offer_and_an_accept_with_the_result() {
    let called = Worker::start(Behaviour::Succeed(json!({"sum": "short"}), "0.50")).await;
    let bridge = Bridge::build("0.50", Some(&called.url)).await;
    let Bridge { hub, alice, alias, .. } = &bridge;
    let request = alice.request(SUMMARIZE, json!({"budget": {"max": 2}}));
    let path = format!("/agora/agents/{}?wait=30000", alias.did());
    let offer = hub.call("POST", &path, None, Some(&request.text)).await.expect(200);
    assert_eq!(super::kit::assert_signed(&offer.text), *alias);
    bridge.assert_held(&offer.json()).await;
    assert_eq!(offer.str("/type"), "OFFER");
    let accept = alice.accept_id(&offer.str("/id"));
    let path = "/agora/envelopes?wait=30000";
    let result = hub.call("POST", path, None, Some(&accept.text)).await.expect(200);
    assert_eq!(super::kit::assert_signed(&result.text), *alias);
    assert_eq!(result.at("/payload/data"), json!({"sum": "short"}));
}

#[tokio::test]
async fn a_worker_that_cannot_be_reached_now_is_503() {
    let hub = Hub::serve(&[("registry.heartbeat_ttl", "1ms")]).await;
    let alice = Key::of(1);
    hub.hello(&alice, json!({})).await;
    let worker = hub.agent("acme", "summarize", "0", None).await;
    eventually(async || entry(&hub, &worker).await["status"] == "offline").await;
    let alias = entry(&hub, &worker).await["id"].as_str().expect("a key").to_owned();
    let before = counted(&hub);
    let reply = hub.tell_to(&alias, &alice.request(SUMMARIZE, json!({}))).await;
    assert_error(&reply, 503);
    assert_eq!(reply.at("/payload/retryable"), true);
    assert!(reply.header("retry-after").is_some());
    assert_eq!(counted(&hub), before);
}

#[tokio::test]
async fn a_worker_has_nothing_to_do_with_what_was_withdrawn_or_came_too_late() {
    let bridge = Bridge::build("0.50", None).await;
    let Bridge { hub, alice, alice_reads, worker, alias } = &bridge;
    let request = alice.request(SUMMARIZE, json!({"budget": {"max": 2}}));
    hub.tell_to(&alias.did(), &request).await.expect(202);
    let offer = hub.newest(alice_reads).await;
    assert_eq!(hub.told(&alice.error(&request.id, 500)).await, "FAILED");
    hub.refuses(&alice.accept_id(offer["id"].as_str().expect("an id")), 400).await;
    assert!(bridge.work().await.is_empty());

    let request = alice.request(SUMMARIZE, json!({"budget": {"max": 2}, "timeout": 4_000}));
    hub.tell_to(&alias.did(), &request).await.expect(202);
    let offer = hub.newest(alice_reads).await;
    hub.told(&alice.accept_id(offer["id"].as_str().expect("an id"))).await;
    let job = bridge.work().await[0]["job_id"].as_str().expect("an id").to_owned();
    let late = hub.newest_is(alice_reads, MessageType::Error).await;
    // Neither party wrote this, so the hub signs it with its own key.
    assert_eq!(late["sender"]["id"], hub.hub_key().await.did());
    assert_eq!(late["payload"]["code"], 408);
    assert_eq!(late["payload"]["request_id"], request.id);
    assert_eq!(hub.account(alice).await, credits("10", "0"));
    let reply = hub.report(worker, &job, "SUCCESS", "0.50").await;
    assert!(reply.status >= 400, "{}", reply.text);
    assert_eq!(hub.account(alice).await, credits("10", "0"));
}

#[tokio::test]
async fn a_job_of_the_registry_that_is_called_off_is_an_error_of_the_hub() {
    let hub = Hub::serve(&[("registry.sync_wait", "1ms")]).await;
    let bob = Key::of(2);
    let (reads, boss, alias) = hired(&hub, &bob, "agora:weather:v1", Some(json!(1.5))).await;
    let skill = skill_seen(&hub, &alias).await;
    let job = hire(&hub, &boss, &alias, &skill, 2.0).await.expect(202).str("/job_id");
    let request = hub.newest_is(&reads, MessageType::Request).await;
    let path = format!("/registry/jobs/{job}/cancel");
    hub.call("POST", &path, Some(&boss.key), None).await.expect(200);
    let error = hub.newest_is(&reads, MessageType::Error).await;
    assert_eq!(error["sender"]["id"], hub.hub_key().await.did());
    assert_eq!(error["payload"]["request_id"], request["id"]);
    let id = request["id"].as_str().expect("an id");
    assert_eq!(hub.state_of(&reads, id).await, "FAILED");
    hub.refuses(&bob.result(id), 400).await;
    assert_eq!(hub.balance("acme").await, ("10.00".to_owned(), "0.00".to_owned()));
    assert_eq!(hub.standing_of(bob.did()).failures, 0);
}

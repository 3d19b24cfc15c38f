//! Between protocols: a registry agent hired here, and an openclaw agent hired from the registry
//! (B8, B10, and the openclaw rows of docs/requirements.md, section 7).

use serde_json::{Value, json};

use super::kit::{Hub, Node, Work, assert_rejected};
use super::scene::credits;
use crate::kit::{Agent, Reply};

/// An agent's alias in another protocol's list.
async fn alias(hub: &Hub, list: &str, member: &str, native: &str) -> Value {
    let page = hub.get(list, None).await.expect(200).at("/agents");
    let found = page.as_array().expect("a list").iter().find(|one| one[member] == native);
    found.unwrap_or_else(|| panic!("{native} is not in {page}")).clone()
}

fn id(entry: &Value) -> String {
    entry["agent_id"].as_str().expect("an id").to_owned()
}

/// A registry worker, and its identity here.
async fn registered(hub: &Hub, price: &str) -> (Agent, Node) {
    let agent = hub.agent("acme", "summarize", price, None).await;
    let entry = alias(hub, "/openclaw/agents", "native_id", &agent.id).await;
    assert_eq!(entry["protocol"], "registry");
    let here = Node { id: id(&entry), key: agent.key.clone(), identity: entry };
    (agent, here)
}

async fn work_of(hub: &Hub, agent: &Agent) -> Vec<Value> {
    let path = format!("/registry/agents/{}/jobs", agent.id);
    let page = hub.get(&path, Some(&agent.key)).await.expect(200);
    page.at("/jobs").as_array().expect("a list").clone()
}

async fn hire(hub: &Hub, boss: &Agent, node: &str, budget: f64) -> Reply {
    let body = json!({"orchestrator_id": boss.id, "skill_name": "sum", "input_data": {"a": 0.5},
        "budget": budget});
    hub.post(&format!("/registry/agents/{node}/jobs"), Some(&boss.key), &body).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_registry_agent_is_hired_works_and_is_paid_like_any_other() {
    let hub = Hub::serve(&[]).await;
    let asker = hub.node("asker").await;
    hub.fund(&asker, "10").await;
    let (agent, here) = registered(&hub, "0.50").await;
    let mut hears = hub.stream(&asker, "").await;
    let mut watches = hub.stream(&asker, &format!("?watch={}", here.id)).await;
    let order = json!({"capability_id": "summarize", "input_data": {"text": "hello"}, "budget": 2});
    let work = hub.accepted(&asker, &here, order).await;
    assert_eq!(hub.account(&asker).await, credits("8.00", "2.00"));
    assert_eq!(hub.entry(&here.id).await["effective_status"], "busy");
    let jobs = work_of(&hub, &agent).await;
    assert_eq!(jobs.len(), 1);
    assert_eq!(jobs[0]["skill_name"], "summarize");
    assert_eq!(jobs[0]["input_data"], json!({"text": "hello"}));
    let job = jobs[0]["job_id"].as_str().expect("an id");
    assert_eq!(job, work.id, "the hub's own id, and not the requester's");
    hub.0.report(&agent, job, "SUCCESS", "0.50").await.expect(200);
    let told = hears.until("collaboration_result").await.data;
    assert_eq!(told["result_status"], "completed");
    assert_eq!(told["output_data"], json!({"done": true}));
    assert_eq!(told["collaboration_id"], work.id);
    assert_eq!(told["request_id"], work.request["request_id"]);
    assert_eq!(told["correlation_id"], work.request["correlation_id"]);
    assert_eq!(told["responder_agent_id"], here.id);
    let judged = watches.until("reputation_update").await.data;
    assert_eq!(judged["agent_id"], here.id);
    assert_eq!(hub.account(&asker).await, credits("9.50", "0.00"));
    assert_eq!(hub.balance("acme").await.0, "0.50");
    assert_eq!(hub.score(&agent).await, "51.0", "its own protocol counts it, too");
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_registry_agent_that_fails_is_refused_or_called_off_is_told_in_our_words() {
    let hub = Hub::serve(&[]).await;
    let asker = hub.node("asker").await;
    hub.fund(&asker, "10").await;
    let (agent, here) = registered(&hub, "0.50").await;
    let order = json!({"capability_id": "summarize", "input_data": {"text": "hello"}, "budget": 1});
    let mut hears = hub.stream(&asker, "").await;
    let failed = hub.accepted(&asker, &here, order.clone()).await;
    hub.0.report(&agent, &failed.id, "FAILURE", "0").await.expect(200);
    let told = hears.until("collaboration_result").await.data;
    assert_eq!(told["result_status"], "failed");
    assert_eq!(told["error"]["message"], "it broke");
    let off = hub.accepted(&asker, &here, order.clone()).await;
    work_of(&hub, &agent).await;
    hub.cancel(&asker, &off.id, &json!({})).await.expect(200);
    let late = hub.0.report(&agent, &off.id, "SUCCESS", "0.50").await;
    assert_eq!(late.status, 409, "{}", late.text);
    assert_eq!(hub.account(&asker).await, credits("10.00", "0.00"));
    let low = super::kit::with(&order, json!({"budget": 0.49}));
    assert_rejected(&hub.hire(&asker, &here, low).await, "policy_violation");
    let other = super::kit::with(&order, json!({"capability_id": "paint"}));
    assert_rejected(&hub.hire(&asker, &here, other).await, "capability_not_available");
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_registry_agent_asks_here_under_its_alias_with_its_own_key() {
    let hub = Hub::serve(&[]).await;
    let worker = hub.node("worker").await;
    let (_, boss) = registered(&hub, "0").await;
    let work = hub.accepted(&boss, &worker, json!({})).await;
    hub.result(&work, json!({})).await.expect(200);
    assert_eq!(hub.view(&boss, &work.id).await["state"], "completed");
    let mut hears = hub.stream(&boss, "").await;
    let told = hears.until("collaboration_result").await.data;
    assert_eq!(told["collaboration_id"], work.id);
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_hub_chooses_a_registry_agent_as_well() {
    let hub = Hub::serve(&[]).await;
    let asker = hub.node("asker").await;
    let (_, here) = registered(&hub, "0").await;
    let request = hub.request(&asker, json!({"capability_id": "summarize"}));
    let reply = hub.ask(&asker, &request).await.expect(200);
    assert_eq!(reply.str("/response_status"), "accepted", "{}", reply.text);
    assert_eq!(reply.str("/responder_agent_id"), here.id);
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_registry_orchestrator_hires_an_agent_of_ours() {
    let hub = Hub::serve(&[("registry.sync_wait", "1ms")]).await;
    let boss = hub.orchestrator("acme").await;
    hub.grant("acme", "10").await;
    let worker = hub.able_node("worker", json!({"price": 1.5})).await;
    let node =
        id(&alias(&hub, "/registry/discover?skill=sum", "agent_name", "chimera-worker").await);
    let mut works = hub.stream(&worker, "").await;
    let reply = hire(&hub, &boss, &node, 2.0).await.expect(202);
    let (job, uuid) = (reply.str("/job_id"), reply.header("rialto-job").expect("an id").to_owned());
    assert_eq!(hub.balance("acme").await, credits("8.00", "2.00"));
    let told = works.until("collaboration_request").await.data;
    assert_eq!(told["capability_id"], "sum");
    assert_eq!(told["input_data"], json!({"a": 0.5}));
    assert_eq!(told["accepted"], true);
    assert_eq!(told["collaboration_id"], uuid);
    assert_eq!((&told["request_id"], &told["correlation_id"]), (&json!(uuid), &json!(uuid)));
    assert!(told["requester_agent_id"].is_string() && told["deadline"].is_string(), "{told}");
    let work = Work { id: uuid, request: told, by: worker.clone() };
    hub.result(&work, json!({})).await.expect(200);
    let shown = hub.get(&format!("/registry/jobs/{job}"), Some(&boss.key)).await.expect(200);
    assert_eq!(shown.str("/status"), "SUCCESS");
    assert_eq!(shown.at("/output_data"), json!({"r": 1}));
    assert_eq!(hub.balance("acme").await, credits("8.50", "0.00"));
    assert_eq!(hub.account(&worker).await, credits("1.50", "0.00"));
    assert_eq!(hub.metrics(&worker).await["total_collaborations"], 1);
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_limits_of_an_agent_of_ours_hold_for_the_registry_too() {
    let hub = Hub::serve(&[("registry.sync_wait", "1ms")]).await;
    let boss = hub.orchestrator("acme").await;
    hub.node_with("worker", super::scene::limits(1, 100)).await;
    let node =
        id(&alias(&hub, "/registry/discover?skill=sum", "agent_name", "chimera-worker").await);
    hire(&hub, &boss, &node, 0.0).await.expect(202);
    let full = hire(&hub, &boss, &node, 0.0).await.expect(503);
    assert_eq!(full.str("/error_code"), "AGENT_OFFLINE");
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_answers_itself_says_yes_and_no_to_the_registry() {
    let hub = Hub::serve(&[("registry.sync_wait", "1ms")]).await;
    let boss = hub.orchestrator("acme").await;
    let worker = hub.node_with("worker", json!({"response_mode": "ask"})).await;
    let node =
        id(&alias(&hub, "/registry/discover?skill=sum", "agent_name", "chimera-worker").await);
    let mut works = hub.stream(&worker, "").await;
    let no = json!({"response_status": "rejected", "collaboration_id": null,
        "rejection_reason": {"code": "policy_violation", "message": "not for you"}});
    for (answer, status) in [(json!({}), "SUCCESS"), (no, "FAILURE")] {
        let job = hire(&hub, &boss, &node, 0.0).await.expect(202).str("/job_id");
        let told = works.until("collaboration_request").await.data;
        assert_eq!(told["accepted"], false);
        let uuid = told["collaboration_id"].as_str().expect("an id").to_owned();
        let answer = super::kit::with(&json!({"collaboration_id": uuid}), answer);
        hub.respond(&worker, &told, answer).await.expect(200);
        if status == "SUCCESS" {
            hub.result(&Work { id: uuid, request: told, by: worker.clone() }, json!({}))
                .await
                .expect(200);
        }
        let shown = hub.get(&format!("/registry/jobs/{job}"), Some(&boss.key)).await.expect(200);
        assert_eq!(shown.str("/status"), status, "{}", shown.text);
    }
    assert_eq!(hub.entry(&worker.id).await["trust_signals"]["total_collaborations"], 1);
    hub.0.stop().await;
}

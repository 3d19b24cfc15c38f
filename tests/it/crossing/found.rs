//! Regression tests for faults that a review of the running bridges found.

use serde_json::{Value, json};

use crate::agora::kit::{Hub, Key};
use crate::kit::TestHub;
use crate::relay::bridge::{QUICK, boss, reader};
use crate::relay::kit::envelope;

/// A value agora cannot sign: a number that parsers read differently.
const UNSIGNABLE: &str = r#"{"n":12345678901234567890}"#;

async fn hire(hub: &TestHub, skill: &str, input: &str, more: &str) -> (crate::kit::Agent, String) {
    let boss = boss(hub).await;
    let found = hub.get(&format!("/registry/discover?skill={skill}"), Some(&boss.key)).await;
    let worker = found.expect(200).str("/agents/0/agent_id");
    let body = format!(
        r#"{{"orchestrator_id":"{}","skill_name":"{skill}","input_data":{input},"budget":1{more}}}"#,
        boss.id
    );
    let path = format!("/registry/agents/{worker}/jobs");
    let reply = hub.call("POST", &path, Some(&boss.key), Some(&body)).await.expect(202);
    (boss, reply.header("rialto-job").expect("an id").to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_result_that_cannot_be_signed_is_carried_as_text() {
    let hub = Hub::serve(&[]).await;
    let bob = Key::of(1);
    let bob_reads = hub.hello(&bob, json!({"capabilities": ["agora:sum:v1"]})).await;
    let (_, job) = hire(&hub, "sum", UNSIGNABLE, r#","also":98765432109876543210"#).await;
    let request = hub.newest(&bob_reads).await;
    assert_eq!(request["type"], "REQUEST", "{request}");
    assert_eq!(request["id"], job);
    assert_eq!(request["payload"]["params"], json!({"json": UNSIGNABLE}));
    let also = request["payload"]["meta"]["json"].as_str().expect("as text");
    assert!(also.contains("98765432109876543210"), "{also}");
    // The reverse: a result that cannot be signed still reaches the payer.
    hub.fund(&bob, "5").await;
    let worker = hub.agent("globex", "count", "0", None).await;
    let request = bob.request("agora:count:v1", json!({}));
    hub.tell(&request).await.expect(202);
    let path = format!("/registry/agents/{}/jobs?wait=10", worker.id);
    let work = hub.get(&path, Some(&worker.key)).await.expect(200);
    let body = format!(
        r#"{{"job_id":"{}","agent_id":"{}","status":"SUCCESS","output_data":{UNSIGNABLE},"execution_cost":0,"execution_time_ms":1}}"#,
        work.str("/jobs/0/job_id"),
        worker.id
    );
    hub.call("POST", "/registry/results", Some(&worker.key), Some(&body)).await.expect(200);
    let result = hub.newest(&bob_reads).await;
    assert_eq!(result["payload"]["data"], json!({"json": UNSIGNABLE}), "{result}");
}

#[tokio::test(flavor = "multi_thread")]
async fn neither_marks_nor_words_to_a_third_party_pass_for_a_result() {
    let hub = TestHub::serve(QUICK).await;
    let (bob, mut inbox) = reader(&hub, "bob").await;
    let (eve, mut eves) = reader(&hub, "eve").await;
    let mut marked = envelope(&bob.id, "hello");
    marked["bridge"] = json!({"protocol": "registry", "agent": "victim"});
    let refused = hub.mail_to(&bob, &eve.id, &marked).await;
    assert_eq!(refused.status, 400, "{}", refused.text);
    let (boss, job) = hire(&hub, "message", r#"{"text":"how are you?"}"#, "").await;
    let given = inbox.message().await;
    let mut elsewhere = envelope(&bob.id, "that is none of your business");
    elsewhere["conversation_id"] = given.data["envelope"]["conversation_id"].clone();
    hub.mail_to(&bob, &eve.id, &elsewhere).await.expect(200);
    assert_eq!(eves.message().await.data["envelope"]["original_text"], elsewhere["original_text"]);
    let stands = hub.get(&format!("/v1/jobs/{job}"), Some(&boss.key)).await.expect(200);
    assert!(!stands.text.contains("none of your business"), "{}", stands.text);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn work_for_an_agent_of_another_protocol_is_marked_and_only_the_hub_can_mark_it() {
    let hub = TestHub::serve(QUICK).await;
    let (peer, _inbox) = reader(&hub, "bob").await;
    let worker = hub.agent("globex", "count", "0", None).await;
    let to = crate::relay::bridge::address(&hub, &worker.id).await;
    hub.mail_to(&peer, &to, &envelope(&peer.id, "one two")).await.expect(200);
    let path = format!("/registry/agents/{}/jobs?wait=10", worker.id);
    let work = hub.get(&path, Some(&worker.key)).await.expect(200);
    assert_eq!(work.at("/jobs/0/bridge"), json!({"protocol": "relay", "agent": peer.id}));
    let boss = boss(&hub).await;
    let body = json!({"orchestrator_id": boss.id, "skill_name": "count", "input_data": {},
        "budget": 0, "bridge": {"protocol": "relay", "agent": peer.id}});
    let forged = hub.post("/registry/jobs", Some(&boss.key), &body).await.expect(400);
    assert!(forged.text.contains("/bridge"), "{}", forged.text);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_with_very_many_members_is_traced_like_any_other() {
    let hub = TestHub::serve(QUICK).await;
    let (_bob, _inbox) = reader(&hub, "bob").await;
    let more: String = (0..5_000).map(|n| format!(r#","m{n}":{n}"#)).collect();
    let (boss, job) = hire(&hub, "message", r#"{"text":"hi"}"#, &more).await;
    let trace = hub.get(&format!("/v1/jobs/{job}/trace"), Some(&boss.key)).await.expect(200);
    let notes = trace.at("/hops/0/notes");
    let notes: &Vec<Value> = notes.as_array().expect("a list");
    assert!(notes.len() < 1_000, "{}", notes.len());
    let rest = notes.iter().find(|note| note["field"] == "/*").expect("the others together");
    assert_eq!(rest["value"], 5_000 - 255);
    hub.stop().await;
}

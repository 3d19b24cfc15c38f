//! The registry hires relay agents, which answer in the job's conversation.

use rialto_core::time::Millis;
use serde_json::{Value, json};

use super::bridge::{QUICK, account, answer, boss, bridged, error_of, reader, wish};
use super::kit::{Peer, assert_rejected, envelope, state, turn};
use crate::kit::{Agent, Reply, TestHub, eventually};
use crate::openclaw::kit as openclaw;

/// A job for a relay agent, and the hub's id of it.
async fn hire(hub: &TestHub, boss: &Agent, peer: &Peer, input: Value) -> (String, String) {
    let worker = hub.registry_name(peer);
    let body = json!({"orchestrator_id": boss.id, "skill_name": "message", "input_data": input,
        "budget": 1});
    let path = format!("/registry/agents/{}/jobs", worker.id);
    let reply = hub.post(&path, Some(&boss.key), &body).await.expect(202);
    (reply.str("/job_id"), reply.header("rialto-job").expect("an id").to_owned())
}

async fn job(hub: &TestHub, boss: &Agent, id: &str) -> Reply {
    hub.get(&format!("/registry/jobs/{id}"), Some(&boss.key)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_registry_job_is_a_message_and_the_next_one_its_result() {
    let hub = TestHub::serve(QUICK).await;
    let boss = boss(&hub).await;
    let (bob, mut inbox) = reader(&hub, "bob").await;
    let (id, uuid) = hire(&hub, &boss, &bob, json!({"text": "wie geht's?\n"})).await;
    assert_eq!(hub.balance("acme").await, account("9.00", "1.00"));
    let given = inbox.message().await;
    let from = given.data["sender_id"].as_str().expect("an address").to_owned();
    assert!(from.starts_with("acme-s-orchestrator-") && from.ends_with("@registry"), "{from}");
    let told = bridged(&given, &from, "registry");
    assert_eq!(told, (uuid.clone(), 1, "wie geht's?\n".to_owned()));
    let envelope = &given.data["envelope"];
    assert_eq!(given.data["job"], json!({"id": uuid, "skill": "message", "price": 0.0}));
    assert_eq!(given.data["bridge"]["agent"], boss.id);
    assert_eq!(job(&hub, &boss, &id).await.str("/status"), "PENDING");
    // It is in the history as well, and can be traced like any message.
    let history = hub.get("/relay/agent/messages", Some(&bob.key)).await.expect(200);
    assert_eq!(history.at("/data/0/envelope"), *envelope);
    let trace = given.data["trace_id"].as_str().expect("an id");
    let traced = hub.traced(&bob, trace).await.expect(200);
    assert_eq!(traced.at("/data/envelope"), *envelope);
    // The hand-over is recorded later, and then published.
    let state_now = async || hub.traced(&bob, trace).await.expect(200).str("/data/state");
    eventually(async || state_now().await == "presented").await;

    let said = answer(&hub, &bob, &given, "gut").await.expect(200);
    assert_eq!(said.str("/data/delivery"), "delivered");
    assert_eq!(said.header("rialto-job"), Some(uuid.as_str()));
    let done = job(&hub, &boss, &id).await;
    assert_eq!(done.str("/status"), "SUCCESS");
    assert_eq!(done.at("/output_data"), json!({"text": "gut"}));
    assert_eq!(hub.balance("acme").await, account("10.00", "0.00"), "the work is free");
    assert_eq!(hub.score(&hub.registry_name(&bob)).await, "51.0");
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_result_said_again_is_the_same_and_another_one_comes_too_late() {
    let hub = TestHub::serve(QUICK).await;
    let boss = boss(&hub).await;
    let (bob, mut inbox) = reader(&hub, "bob").await;
    let (id, uuid) = hire(&hub, &boss, &bob, json!({"text": "hello"})).await;
    let given = inbox.message().await;
    drop(inbox);
    // A restart in between changes nothing.
    let hub = hub.again(QUICK).await;
    let first = answer(&hub, &bob, &given, "gut").await.expect(200);
    let before = state(&hub).await;
    for _ in 0..2 {
        let again = answer(&hub, &bob, &given, "gut").await.expect(200);
        assert_eq!(again.at("/data"), first.at("/data"));
        assert_eq!(again.header("idempotency-replayed"), Some("true"));
    }
    let other = answer(&hub, &bob, &given, "schlecht").await;
    assert_rejected(&other, 409, "ERR_WRONG_STATE");
    assert_eq!(other.str("/error/field"), "/envelope/conversation_id");
    assert_eq!(state(&hub).await, before);
    let hub = hub.again(QUICK).await;
    assert_rejected(&answer(&hub, &bob, &given, "schlecht").await, 409, "ERR_WRONG_STATE");
    assert_eq!(job(&hub, &boss, &id).await.at("/output_data"), json!({"text": "gut"}));
    // An unrelated agent cannot answer it, whatever conversation it names.
    let eve = hub.join("eve").await;
    let to = given.data["sender_id"].as_str().expect("an address");
    let sent = hub.mail_to(&eve, to, &turn(&eve.id, "mine", &uuid, 2)).await.expect(202);
    assert_eq!(sent.header("rialto-job"), None, "it is just a message");
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_result_goes_to_its_requester_and_to_no_third_party() {
    let hub = TestHub::serve(QUICK).await;
    let boss = boss(&hub).await;
    let (bob, mut inbox) = reader(&hub, "bob").await;
    let eve = hub.join("eve").await;
    let (id, uuid) = hire(&hub, &boss, &bob, json!({"text": "hello"})).await;
    inbox.message().await;
    let mut said = envelope(&bob.id, "gut");
    said["conversation_id"] = uuid.as_str().into();
    hub.mail_to(&bob, "eve@chorus", &said).await.expect(202);
    assert_eq!(job(&hub, &boss, &id).await.str("/status"), "PENDING");
    let got = hub.get("/relay/agent/messages", Some(&eve.key)).await.expect(200);
    assert_eq!(got.at("/data/0/envelope/original_text"), "gut", "it is a normal message");
    hub.mail_to(&bob, "guest-01234567@bridge", &said).await.expect(200);
    assert_eq!(job(&hub, &boss, &id).await.str("/status"), "SUCCESS");
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn structured_input_comes_as_its_json_and_every_digit_is_kept() {
    let hub = TestHub::serve(QUICK).await;
    let boss = boss(&hub).await;
    let (bob, mut inbox) = reader(&hub, "bob").await;
    let worker = hub.registry_name(&bob);
    let input = r#"{"n":1.50,"text":"a \"b\""}"#;
    let body = format!(
        r#"{{"orchestrator_id":"{}","skill_name":"message","input_data":{input},"budget":0}}"#,
        boss.id
    );
    let path = format!("/registry/agents/{}/jobs", worker.id);
    hub.call("POST", &path, Some(&boss.key), Some(&body)).await.expect(202);
    assert_eq!(inbox.message().await.said(), input);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_reply_fails_the_job_and_one_about_the_envelope_refuses_it() {
    let hub = TestHub::serve(QUICK).await;
    let boss = boss(&hub).await;
    for (code, score) in [
        ("ADAPTATION_FAILED", "49.0"),
        ("MY_OWN_CODE", "49.0"),
        ("INVALID_ENVELOPE", "50.0"),
        ("UNSUPPORTED_VERSION", "50.0"),
    ] {
        let name = code.to_lowercase().replace('_', "-");
        let (bob, mut inbox) = reader(&hub, &name).await;
        let (id, _) = hire(&hub, &boss, &bob, json!({"text": "hello"})).await;
        let given = inbox.message().await;
        let no = json!({"status": "error", "error_code": code, "detail": "I cannot"}).to_string();
        answer(&hub, &bob, &given, &no).await.expect(200);
        let failed = job(&hub, &boss, &id).await;
        assert_eq!(failed.str("/status"), "FAILURE", "{code}");
        assert_eq!(failed.str("/error_message"), "I cannot");
        assert_eq!(hub.balance("acme").await, account("10.00", "0.00"));
        let moved = hub.score(&hub.registry_name(&bob)).await;
        assert_eq!(moved == "50.0", score == "50.0", "{code}: {moved}");
    }
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unanswered_job_is_taken_back_and_its_worker_notified() {
    let hub = TestHub::serve(QUICK).await;
    let boss = boss(&hub).await;
    let (bob, mut inbox) = reader(&hub, "bob").await;
    let (id, uuid) = hire(&hub, &boss, &bob, json!({"text": "hello"})).await;
    let given = inbox.message().await;
    hub.pass(Millis::minutes(10));
    let taken = inbox.message().await;
    let from = given.data["sender_id"].as_str().expect("an address");
    let (conversation, turn, said) = bridged(&taken, from, "registry");
    assert_eq!((&conversation, turn), (&uuid, 2));
    let (code, detail) = error_of(&said);
    assert_eq!(code, "ADAPTATION_FAILED");
    assert_eq!(detail, "the job was reassigned or cancelled: no result before the deadline");
    assert_rejected(&answer(&hub, &bob, &given, "gut").await, 409, "ERR_WRONG_STATE");
    assert_eq!(job(&hub, &boss, &id).await.str("/status"), "FAILURE");
    assert_eq!(hub.balance("acme").await, account("10.00", "0.00"));
    // An ended job is not sent again to an agent that reconnects.
    drop(inbox);
    let mut inbox = hub.inbox_at(&bob, "?ack=explicit", None).await;
    assert_eq!(error_of(inbox.message().await.said()).1, detail);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn work_that_waits_in_the_inbox_outlives_a_restart() {
    let hub = TestHub::serve(QUICK).await;
    let boss = boss(&hub).await;
    let (bob, inbox) = reader(&hub, "bob").await;
    let (id, uuid) = hire(&hub, &boss, &bob, json!({"text": "hello"})).await;
    drop(inbox);
    let hub = hub.again(QUICK).await;
    let mut inbox = hub.inbox_at(&bob, "?ack=explicit", None).await;
    let given = inbox.message().await;
    assert_eq!(given.data["envelope"]["conversation_id"], uuid);
    answer(&hub, &bob, &given, "gut").await.expect(200);
    assert_eq!(job(&hub, &boss, &id).await.str("/status"), "SUCCESS");
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_requester_without_an_account_is_a_guest() {
    let hub = TestHub::open(QUICK).await;
    let (bob, mut inbox) = reader(&hub, "bob").await;
    let worker = hub.registry_name(&bob);
    let body = json!({"orchestrator_id": "0b9d3c3e-7c51-4b6f-9d55-000000000001",
        "skill_name": "message", "input_data": {"text": "hello"}, "budget": 0});
    let reply = hub.post(&format!("/registry/agents/{}/jobs", worker.id), None, &body).await;
    let uuid = reply.expect(202).header("rialto-job").expect("an id").to_owned();
    let given = inbox.message().await;
    let guest = format!("guest-{}@bridge", &uuid[..8]);
    assert_eq!(bridged(&given, &guest, "registry").0, uuid);
    answer(&hub, &bob, &given, "gut").await.expect(200);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_of_the_relay_is_there_for_others_while_its_inbox_is_open() {
    let hub = openclaw::Hub::serve(QUICK).await;
    let bob = hub.join("bob").await;
    let worker = hub.registry_name(&bob);
    let found = async || {
        let page = hub.get("/registry/discover?skill=message", None).await.expect(200);
        page.at("/agents").as_array().expect("a list").clone()
    };
    let boss = boss(&hub).await;
    // Longer than an agent without activity counts as online.
    let silence = Millis::minutes(2);
    hub.pass(silence);
    eventually(async || found().await.is_empty()).await;
    assert_eq!(hub.entry(&worker.id).await["stale"], true);
    let reply = hub.0.hire(&boss, &worker, "message", "0").await.expect(503);
    assert_eq!(reply.str("/error_code"), "AGENT_OFFLINE");
    let inbox = hub.inbox(&bob).await;
    eventually(async || found().await.len() == 1).await;
    let here = found().await;
    assert_eq!(here[0]["agent_id"], worker.id);
    assert_eq!(here[0]["protocol"], "relay");
    let entry = hub.entry(&worker.id).await;
    assert_eq!((&entry["stale"], &entry["effective_status"]), (&json!(false), &json!("idle")));
    drop(inbox);
    eventually(async || hub.engine.inbox_reader_count() == 0).await;
    hub.pass(silence);
    eventually(async || found().await.is_empty()).await;
    // An endpoint makes an agent online as well, also one that used to poll.
    let body = json!({"agent_id": "bob", "endpoint": "http://127.0.0.1:9"});
    hub.post("/relay/register", Some(&bob.key), &body).await.expect(200);
    hub.pass(silence);
    assert_eq!(found().await.len(), 1);
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_relay_agent_that_asks_elsewhere_hears_of_the_end_in_its_inbox() {
    let hub = TestHub::serve(QUICK).await;
    let (ada, mut hears) = reader(&hub, "ada").await;
    let (bob, mut works) = reader(&hub, "bob").await;
    let (boss, worker) = (hub.registry_name(&ada), hub.registry_name(&bob));
    let reply = hub.hire(&boss, &worker, "message", "0").await.expect(202);
    let uuid = reply.header("rialto-job").expect("an id").to_owned();
    let given = works.message().await;
    assert_eq!(bridged(&given, &ada.id, "relay"), (uuid.clone(), 1, "hello".to_owned()));
    answer(&hub, &bob, &given, "gut").await.expect(200);
    assert_eq!(bridged(&hears.message().await, &bob.id, "relay"), (uuid, 2, "gut".to_owned()));
    // Between relay agents there are messages and no jobs, whatever an envelope says.
    let plain = wish(&ada, "hello", json!({"skill": "message", "budget": "no number"}));
    let sent = hub.mail_to(&ada, &bob.id, &plain).await.expect(200);
    assert_eq!(
        (sent.str("/data/delivery").as_str(), sent.header("rialto-job")),
        ("delivered_sse", None)
    );
    assert_eq!(works.message().await.data["envelope"], plain);
    hub.stop().await;
}

//! Relay agents hire registry agents by sending them messages (docs/requirements.md, sections 5 to
//! 7).

use rialto_core::time::Millis;
use serde_json::{Value, json};

use super::bridge::{QUICK, account, address, assert_no, bridged, error_of, reader, wish};
use super::kit::{Peer, assert_rejected, state};
use crate::kit::{Agent, Behaviour, TestHub, Worker};

/// The jobs that a registry worker gets when it polls.
async fn work_of(hub: &TestHub, worker: &Agent) -> Vec<Value> {
    let path = format!("/registry/agents/{}/jobs", worker.id);
    let page = hub.get(&path, Some(&worker.key)).await.expect(200);
    page.at("/jobs").as_array().expect("a list").clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_to_a_registry_agent_is_work_and_its_result_the_answer() {
    let hub = TestHub::serve(QUICK).await;
    let (ada, mut inbox) = reader(&hub, "ada").await;
    hub.fund_peer(&ada, "10").await;
    let worker = hub.agent("acme", "summarize", "0.50", None).await;
    let to = address(&hub, &worker.id).await;
    let more = json!({"budget": 2, "conversation_id": "tea", "turn_number": 4});
    let said = wish(&ada, "long „text“", more);
    let sent = hub.mail_to(&ada, &to, &said).await.expect(200);
    assert_eq!(sent.str("/data/delivery"), "delivered");
    assert_eq!(sent.at("/data/receiver_response"), json!({"status": "ok"}));
    let uuid = sent.header("rialto-job").expect("an id").to_owned();
    assert_eq!(sent.str("/data/trace_id"), uuid);
    assert_eq!(hub.account_of(&ada).await, account("8.00", "2.00"));

    let jobs = work_of(&hub, &worker).await;
    assert_eq!(jobs.len(), 1);
    assert_eq!(jobs[0]["input_data"], json!({"text": "long „text“"}));
    assert_eq!((&jobs[0]["job_id"], &jobs[0]["skill_name"]), (&json!(uuid), &json!("summarize")));
    let body = json!({"job_id": uuid, "agent_id": worker.id, "status": "SUCCESS",
        "output_data": {"text": "short"}, "execution_cost": 0.5, "execution_time_ms": 3});
    hub.post("/registry/results", Some(&worker.key), &body).await.expect(200);

    let answer = inbox.message().await;
    let told = bridged(&answer, &to, "registry");
    assert_eq!(told, ("tea".to_owned(), 5, "short".to_owned()));
    assert_eq!(answer.data["job"]["id"], uuid);
    assert_eq!(answer.data["bridge"]["agent"], worker.id);
    assert_eq!(hub.account_of(&ada).await, account("9.50", "0.00"));
    assert_eq!(hub.balance("acme").await.0, "0.50");
    assert_eq!(hub.score(&worker).await, "51.0");
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_turn_is_one_job_and_other_words_in_it_are_refused() {
    let hub = TestHub::serve(QUICK).await;
    let ada = hub.join("ada").await;
    hub.fund_peer(&ada, "10").await;
    let worker = hub.agent("acme", "summarize", "0.50", None).await;
    let to = address(&hub, &worker.id).await;
    let more = json!({"budget": 1, "conversation_id": "tea", "turn_number": 1});
    let said = wish(&ada, "a text", more.clone());
    let first = hub.mail_to(&ada, &to, &said).await.expect(200);
    let hub = hub.again(QUICK).await;
    // Also with a restart in between, the worker sees one job, and it is paid once.
    for _ in 0..2 {
        let again = hub.mail_to(&ada, &to, &said).await.expect(200);
        assert_eq!(again.header("idempotency-replayed"), Some("true"));
        assert_eq!(again.header("rialto-job"), first.header("rialto-job"));
        assert_eq!(again.at("/data"), first.at("/data"));
    }
    assert_eq!(work_of(&hub, &worker).await.len(), 1);
    let before = state(&hub).await;
    let other = hub.mail_to(&ada, &to, &wish(&ada, "another text", more)).await;
    assert_rejected(&other, 422, "ERR_IDEMPOTENCY_CONFLICT");
    assert_eq!(other.str("/error/field"), "/envelope/turn_number");
    assert_eq!(state(&hub).await, before);
    let uuid = first.header("rialto-job").expect("an id");
    hub.report(&worker, uuid, "SUCCESS", "0.50").await.expect(200);
    let again = hub.mail_to(&ada, &to, &said).await.expect(200);
    assert_eq!(again.at("/data"), first.at("/data"), "also after the job has ended");
    assert_eq!(hub.account_of(&ada).await, account("9.50", "0.00"));
    let mut inbox = hub.inbox(&ada).await;
    let told = bridged(&inbox.message().await, &to, "registry");
    assert_eq!(told, ("tea".to_owned(), 2, r#"{"done":true}"#.to_owned()), "its JSON (B19)");
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_conversation_the_job_is_one_and_each_message_another() {
    let hub = TestHub::serve(QUICK).await;
    let (ada, mut inbox) = reader(&hub, "ada").await;
    let worker = hub.agent("acme", "summarize", "0", None).await;
    let to = address(&hub, &worker.id).await;
    let ids: Vec<String> = {
        let mut ids = Vec::new();
        for _ in 0..2 {
            let sent = hub.mail_to(&ada, &to, &wish(&ada, "a text", json!({}))).await.expect(200);
            ids.push(sent.header("rialto-job").expect("an id").to_owned());
        }
        ids
    };
    assert_ne!(ids[0], ids[1]);
    for id in &ids {
        hub.report(&worker, id, "FAILURE", "0").await.expect(200);
        let (conversation, turn, said) = bridged(&inbox.message().await, &to, "registry");
        assert_eq!((&conversation, turn), (id, 2));
        let wanted = ("ADAPTATION_FAILED".to_owned(), "it broke".to_owned());
        assert_eq!(error_of(&said), wanted, "the worker's own text (B7)");
    }
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_paid_or_is_not_there_is_answered_no_and_leaves_nothing() {
    let hub = TestHub::serve(QUICK).await;
    let ada = hub.join("ada").await;
    hub.fund_peer(&ada, "1").await;
    let worker = hub.agent("acme", "summarize", "0.10", None).await;
    let to = address(&hub, &worker.id).await;
    let before = state(&hub).await;
    let costs = "costs 0.10 credits: add \"budget\": 0.10 to the envelope";
    for (more, detail) in [
        (json!({}), costs),
        (json!({"budget": 0.09}), costs),
        (json!({"budget": 1.01}), "not enough credits: 1.01"),
        (json!({"skill": "paint", "budget": 1}), "has no skill \"paint\"; it offers summarize"),
        (json!({"skill": "paint"}), "has no skill \"paint\""),
    ] {
        let reply = hub.mail_to(&ada, &to, &wish(&ada, "a text", more.clone())).await;
        assert_no(&reply, detail);
        assert_eq!(state(&hub).await, before, "{more}");
    }
    for (name, value) in [
        ("skill", json!(7)),
        ("skill", json!("")),
        ("input", json!([1])),
        ("input", json!("text")),
        ("budget", json!("1")),
        ("budget", json!(-1)),
        ("budget", json!(0.0000001)),
    ] {
        let mut said = wish(&ada, "a text", json!({"budget": 1}));
        said[name] = value;
        let reply = hub.mail_to(&ada, &to, &said).await;
        assert_rejected(&reply, 400, "ERR_VALIDATION");
        assert_eq!(reply.str("/error/field"), format!("/envelope/{name}"));
        assert_eq!(state(&hub).await, before);
    }
    // The exact price is enough.
    hub.mail_to(&ada, &to, &wish(&ada, "one more text", json!({"budget": 0.1}))).await.expect(200);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_no_is_an_error_where_failures_are_errors() {
    let hub = TestHub::serve(&[("relay.failed_status", "error")]).await;
    let ada = hub.join("ada").await;
    let worker = hub.agent("acme", "summarize", "0.10", None).await;
    let to = address(&hub, &worker.id).await;
    let reply = hub.mail_to(&ada, &to, &wish(&ada, "a text", json!({}))).await.expect(502);
    assert_eq!(reply.at("/success"), false);
    assert_eq!(reply.str("/error/code"), "ADAPTATION_FAILED");
    assert_eq!(reply.at("/error/retryable"), false);
    assert_eq!(reply.str("/data/delivery"), "rejected");
    assert_eq!(reply.str("/data/receiver_response/error_code"), "ADAPTATION_FAILED");
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_with_several_skills_is_written_to_unless_one_is_named_or_reads_messages() {
    let hub = TestHub::serve(QUICK).await;
    let ada = hub.join("ada").await;
    let skills = |names: &[&str]| -> Vec<Value> {
        let one = |name: &&str| json!({"skill_name": name, "cost_per_call": 0});
        names.iter().map(one).collect()
    };
    let enrol = async |name: &str, all: &[&str]| {
        let body = json!({"agent_name": name, "owner_id": name, "skills": skills(all)});
        let agent = hub.enrol(&body, None).await;
        (address(&hub, &agent.id).await, agent)
    };
    let (two, both) = enrol("two", &["sum", "paint"]).await;
    let (talks, talker) = enrol("talks", &["sum", "message"]).await;
    let (none, reads) = enrol("none", &[]).await;
    let plain = wish(&ada, "hello", json!({}));
    for (to, by) in [(&two, &both), (&none, &reads)] {
        let sent = hub.mail_to(&ada, to, &plain).await.expect(202);
        assert_eq!(sent.header("rialto-job"), None);
        let read = hub.get("/relay/agent/messages", Some(&by.key)).await.expect(200);
        assert_eq!(read.at("/data/0/envelope/original_text"), "hello");
        assert!(work_of(&hub, by).await.is_empty());
    }
    hub.mail_to(&ada, &talks, &plain).await.expect(200);
    assert_eq!(work_of(&hub, &talker).await[0]["skill_name"], "message");
    let named = wish(&ada, "hello", json!({"skill": "paint", "input": {"size": 1.50}}));
    hub.mail_to(&ada, &two, &named).await.expect(200);
    let work = work_of(&hub, &both).await;
    assert_eq!(work[0]["skill_name"], "paint");
    assert_eq!(work[0]["input_data"].to_string(), r#"{"size":1.5}"#);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn work_for_an_agent_that_is_away_waits_and_its_money_comes_back() {
    let hub = TestHub::serve(QUICK).await;
    let worker = hub.agent("acme", "summarize", "0.50", None).await;
    let ada = hub.join("ada").await;
    hub.fund_peer(&ada, "10").await;
    let to = address(&hub, &worker.id).await;
    hub.pass(Millis::minutes(2));
    let sent = hub.mail_to(&ada, &to, &wish(&ada, "a text", json!({"budget": 1}))).await;
    let sent = sent.expect(202);
    assert_eq!(sent.str("/data/delivery"), "queued");
    let uuid = sent.header("rialto-job").expect("an id").to_owned();
    assert_eq!(hub.traced(&ada, &uuid).await.expect(200).str("/data/state"), "queued");
    assert_eq!(hub.account_of(&ada).await, account("9.00", "1.00"));
    // An error that a retry does not help is returned at once.
    let reply = hub.mail_to(&ada, &to, &wish(&ada, "a text", json!({}))).await;
    assert_no(&reply, "costs 0.50 credits");
    let mut inbox = hub.inbox(&ada).await;
    hub.pass(Millis::minutes(10));
    let (conversation, _, said) = bridged(&inbox.message().await, &to, "registry");
    assert_eq!(conversation, uuid);
    assert_eq!(error_of(&said).0, "ADAPTATION_FAILED");
    assert_eq!(hub.account_of(&ada).await, account("10.00", "0.00"));
    assert_eq!(hub.traced(&ada, &uuid).await.expect(200).str("/data/state"), "expired");
    assert_eq!(hub.score(&worker).await, "50.0", "the worker never received it");
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_is_silent_for_ten_minutes_is_an_error_reply() {
    let hub = TestHub::serve(QUICK).await;
    let (ada, mut inbox) = reader(&hub, "ada").await;
    hub.fund_peer(&ada, "10").await;
    let worker = hub.agent("acme", "summarize", "0.50", None).await;
    let to = address(&hub, &worker.id).await;
    let sent = hub.mail_to(&ada, &to, &wish(&ada, "a text", json!({"budget": 1}))).await;
    let uuid = sent.expect(200).header("rialto-job").expect("an id").to_owned();
    assert_eq!(work_of(&hub, &worker).await.len(), 1);
    hub.pass(Millis::minutes(10));
    let (_, _, said) = bridged(&inbox.message().await, &to, "registry");
    assert_eq!(error_of(&said).1, "no result before the deadline");
    assert_eq!(hub.account_of(&ada).await, account("10.00", "0.00"));
    let late = hub.report(&worker, &uuid, "SUCCESS", "0.50").await;
    assert_eq!(late.status, 409, "{}", late.text);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_requester_at_an_endpoint_is_told_there_and_strangers_trace_nothing() {
    let hub = TestHub::serve(QUICK).await;
    let home = Worker::start(Behaviour::Say(200, r#"{"status":"ok"}"#.to_owned())).await;
    let ada = hub.join_at("ada", &home.url).await;
    let eve = hub.join("eve").await;
    let called = Worker::start(Behaviour::Succeed(json!({"text": "short"}), "0")).await;
    let worker = hub.agent("acme", "summarize", "0", Some(&called.url)).await;
    let to = address(&hub, &worker.id).await;
    let sent = hub.mail_to(&ada, &to, &wish(&ada, "a text", json!({}))).await.expect(200);
    let uuid = sent.header("rialto-job").expect("an id").to_owned();
    let got = home.heard(1).await[0].json();
    assert_eq!(got["envelope"]["original_text"], "short");
    assert_eq!(got["envelope"]["conversation_id"], uuid);
    assert_eq!(called.got()[0].json()["job_id"], uuid);
    let traced = hub.traced(&ada, &uuid).await.expect(200);
    assert_eq!(traced.str("/data/state"), "delivered");
    assert_eq!(traced.str("/data/sender_id"), ada.id);
    assert_eq!(traced.str("/data/receiver_id"), to);
    assert_eq!(traced.at("/data/envelope/original_text"), "a text");
    let stranger = hub.traced(&eve, &uuid).await.expect(404);
    let unknown = hub.traced(&eve, "6f8d4f0e-0000-4000-8000-000000000000").await.expect(404);
    assert_eq!(stranger.at("/error"), unknown.at("/error"));
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_operator_writes_to_agents_of_other_protocols_and_hires_none() {
    let hub = TestHub::serve(QUICK).await;
    let ada = hub.join("ada").await;
    hub.fund_peer(&ada, "10").await;
    let worker = hub.agent("acme", "summarize", "0", None).await;
    let to = address(&hub, &worker.id).await;
    let post = async |envelope: &Value| {
        let body = json!({"receiver_id": to, "envelope": envelope});
        hub.post("/relay/messages", Some(&hub.operator), &body).await
    };
    let sent = post(&wish(&ada, "hello", json!({}))).await.expect(202);
    assert_eq!(sent.header("rialto-job"), None);
    let read = hub.get("/relay/agent/messages", Some(&worker.key)).await.expect(200);
    assert_eq!(read.at("/data/0/envelope/original_text"), "hello");
    let before = state(&hub).await;
    let reply = post(&wish(&ada, "hello", json!({"skill": "summarize", "budget": 1}))).await;
    assert_rejected(&reply, 403, "ERR_FORBIDDEN");
    assert_eq!(state(&hub).await, before);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idempotency_key_makes_one_job_as_well() {
    let hub = TestHub::serve(QUICK).await;
    let ada: Peer = hub.join("ada").await;
    let worker = hub.agent("acme", "summarize", "0", None).await;
    let to = address(&hub, &worker.id).await;
    let body = json!({"receiver_id": to, "envelope": wish(&ada, "a text", json!({}))});
    let first = hub.post_once("/relay/messages", Some(&ada.key), "k", &body).await.expect(200);
    let again = hub.post_once("/relay/messages", Some(&ada.key), "k", &body).await.expect(200);
    assert_eq!(again.header("idempotency-replayed"), Some("true"));
    assert_eq!(again.at("/data"), first.at("/data"));
    assert_eq!(work_of(&hub, &worker).await.len(), 1);
    hub.stop().await;
}

//! The literal requests of the reference client and other foreign clients, and what they need of
//! the responses.
//!
//! The fixtures `client-*.json` follow the reference agent's source, with endpoints and addresses
//! of these tests; the tests read what it reads when it starts, and the document of the spec's
//! section 8.

use serde_json::{Value, json};

use super::bridge::{QUICK, address, assert_no, assert_strict, boss, reader};
use super::kit::{BOTH, assert_bad, assert_rejected, card, state};
use super::looks::trace;
use crate::kit::{Reply, TestHub};

const WITHOUT_CARD: &str =
    include_str!("../../../crates/protocols/src/relay/fixtures/client-register-without-card.json");
const ANNOUNCE: &str =
    include_str!("../../../crates/protocols/src/relay/fixtures/client-announce.json");
const NULLS: &str =
    include_str!("../../../crates/protocols/src/relay/fixtures/client-send-nulls.json");
const TURN: &str =
    include_str!("../../../crates/protocols/src/relay/fixtures/client-send-turn.json");
const HIRE: &str = include_str!("../../../crates/protocols/src/relay/fixtures/client-hire.json");
const A2A_MESSAGE: &str =
    include_str!("../../../crates/protocols/src/relay/fixtures/client-a2a-message.json");
const A2A_REQUEST: &str =
    include_str!("../../../crates/protocols/src/relay/fixtures/client-a2a-request.json");

const READS: &str = include_str!("../../../crates/protocols/src/relay/fixtures/client-reads.json");

/// The response to a read as the client makes it.
async fn read(hub: &TestHub, prefix: &str, name: &str) -> Reply {
    let all: Value = serde_json::from_str(READS).expect("JSON");
    let (method, path) = all[name].as_str().and_then(|line| line.split_once(' ')).expect(name);
    hub.call(method, &format!("{prefix}{path}"), None, None).await.expect(200)
}

#[tokio::test(flavor = "multi_thread")]
async fn every_listed_agent_has_a_card_that_can_be_read() {
    for prefix in BOTH {
        let hub = TestHub::serve(&[]).await;
        let path = format!("{prefix}/register");
        let reply = hub.post_text(&path, None, WITHOUT_CARD).await.expect(201);
        assert_eq!(reply.at("/data/registration/agent_card"), card());
        hub.agent("acme", "summarize", "0.10", None).await;
        let listed = read(&hub, prefix, "agents").await.at("/data");
        for one in listed.as_array().expect("a list") {
            // The client reads these two of every record and fails on a null.
            assert!(one["agent_card"]["user_culture"].is_string(), "{one}");
            assert!(one["agent_card"]["supported_languages"].is_array(), "{one}");
        }
        hub.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_optional_field_that_is_null_is_refused_as_the_schema_says() {
    let hub = TestHub::serve(&[]).await;
    let alice = hub.join("alice@chorus").await;
    hub.join("bob@chorus").await;
    let before = state(&hub).await;
    for prefix in BOTH {
        let path = format!("{prefix}/messages");
        let reply = hub.post_text(&path, Some(&alice.key), NULLS).await;
        assert_bad(&reply, "/envelope/cultural_context");
        assert_rejected(&reply, 400, "ERR_VALIDATION");
        for field in ["cultural_context", "conversation_id", "turn_number"] {
            let told = format!("/envelope/{field}: {field} must not be null: leave it out");
            assert!(reply.str("/error/message").contains(&told), "{}", reply.text);
        }
    }
    assert_eq!(state(&hub).await, before);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_announced_again_after_it_was_deleted_is_created() {
    for prefix in BOTH {
        let hub = TestHub::serve(&[]).await;
        let path = format!("{prefix}/agents");
        let operator = Some(hub.operator.as_str());
        hub.post_text(&path, operator, ANNOUNCE).await.expect(201);
        hub.post_text(&path, operator, ANNOUNCE).await.expect(200);
        let own = format!("{path}/agent-zh-CN%40localhost");
        hub.call("DELETE", &own, operator, None).await.expect(200);
        hub.post_text(&path, operator, ANNOUNCE).await.expect(201);
        hub.post_text(&path, operator, ANNOUNCE).await.expect(200);
        hub.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_by_an_agent_of_another_protocol_has_a_trace_id() {
    let hub = TestHub::serve(QUICK).await;
    let alice = hub.join("alice@chorus").await;
    let worker = hub.agent("acme", "summarize", "0.50", None).await;
    let body = HIRE.replace("RECEIVER", &address(&hub, &worker.id).await);
    let first = hub.post_text("/messages", Some(&alice.key), &body).await;
    assert_no(&first, "costs 0.50 credits");
    let second = hub.post_text("/messages", Some(&alice.key), &body).await;
    assert_ne!(trace(&first), trace(&second), "the id names one response only");
    hub.standing(&alice, &trace(&first)).await.expect(404);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_hub_says_of_a_job_stands_beside_the_envelope_everywhere() {
    let hub = TestHub::serve(QUICK).await;
    let boss = boss(&hub).await;
    let (bob, bobs) = reader(&hub, "bob@chorus").await;
    let given = hub.hire(&boss, &hub.registry_name(&bob), "message", "1").await.expect(202);
    let (alice, hers) = reader(&hub, "alice@chorus").await;
    let worker = hub.agent("globex", "summarize", "0", None).await;
    let body = HIRE.replace("RECEIVER", &address(&hub, &worker.id).await);
    let taken = hub.post_text("/messages", Some(&alice.key), &body).await.expect(200);
    let job = |reply: &Reply| reply.header("rialto-job").expect("an id").to_owned();
    hub.report(&worker, &job(&taken), "SUCCESS", "0").await.expect(200);
    // A job that the hub forwards, and a result that it returns.
    for (peer, mut inbox, job) in [(bob, bobs, job(&given)), (alice, hers, job(&taken))] {
        let event = inbox.message().await.data;
        let history = hub.get("/relay/agent/messages", Some(&peer.key)).await.expect(200);
        let trace = event["trace_id"].as_str().expect("an id");
        let traced = hub.standing(&peer, trace).await.expect(200);
        for shown in [&event, &history.at("/data/0"), &traced.at("/data")] {
            assert_strict(&shown["envelope"]);
            assert_eq!(shown["job"]["id"], job, "{shown}");
            assert_eq!(shown["bridge"]["protocol"], "registry", "{shown}");
        }
    }
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hub_without_a_rate_limit_does_not_tell_a_limit_of_zero() {
    let hub = TestHub::serve(&[("limits.writes_per_minute", "0")]).await;
    for prefix in BOTH {
        let document = read(&hub, prefix, "discovery").await;
        assert_eq!(document.at("/limits"), json!({"max_message_bytes": 65_536}));
    }
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_envelope_is_taken_out_of_an_a2a_message_and_out_of_the_request_that_sends_one() {
    let hub = TestHub::serve(&[]).await;
    let alice = hub.join("alice@chorus").await;
    let (_bob, mut inbox) = reader(&hub, "bob@chorus").await;
    for (body, at) in [
        (A2A_MESSAGE, "/envelope/parts/1/data"),
        (A2A_REQUEST, "/envelope/params/message/parts/1/data"),
    ] {
        let sent: Value = serde_json::from_str(body).expect("JSON");
        hub.post_text("/messages", Some(&alice.key), body).await.expect(200);
        assert_eq!(Some(&inbox.message().await.data["envelope"]), sent.pointer(at));
        // An error inside the envelope names its place.
        let wrong = body.replace("zh-CN", "chinese");
        let reply = hub.post_text("/messages", Some(&alice.key), &wrong).await;
        assert_bad(&reply, &format!("{at}/sender_culture"));
    }
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sender_in_a_loop_is_answered_at_once_and_its_message_is_delivered_later() {
    let hub = TestHub::serve(&[]).await;
    let alice = hub.join("alice@chorus").await;
    let (_bob, mut inbox) = reader(&hub, "bob@chorus").await;
    for n in 1..=5 {
        let body = TURN.replace("\"turn_number\":1", &format!("\"turn_number\":{n}"));
        let reply = hub.post_text("/messages", Some(&alice.key), &body).await;
        // The inbox is open, so a message is only queued when the loop guard delays it.
        let (status, word) = if n <= 3 { (200, "delivered_sse") } else { (202, "queued") };
        assert_eq!((reply.status, reply.str("/data/delivery").as_str()), (status, word));
        let event = inbox.message().await;
        assert_eq!(event.data["envelope"]["turn_number"], n);
        assert_eq!(event.data["trace_id"], trace(&reply));
    }
    hub.stop().await;
}

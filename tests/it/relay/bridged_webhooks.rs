//! Relay agents with an endpoint, hired from the registry (B16).

use rialto_core::time::Millis;
use serde_json::json;

use super::bridge::{QUICK, account, assert_strict, boss};
use super::kit::{Peer, turn};
use crate::kit::{Agent, Behaviour, ClosedPort, Reply, TestHub, Worker, eventually};

const OK: &str = r#"{"status":"ok"}"#;

async fn hire(hub: &TestHub, boss: &Agent, peer: &Peer) -> Reply {
    hub.hire(boss, &hub.registry_name(peer), "message", "1").await
}

async fn ended(hub: &TestHub, boss: &Agent, job: &str) -> Reply {
    let look = async || hub.get(&format!("/registry/jobs/{job}"), Some(&boss.key)).await;
    eventually(async || look().await.str("/status") != "PENDING").await;
    look().await
}

#[tokio::test(flavor = "multi_thread")]
async fn work_is_posted_to_the_endpoint_and_answered_by_a_message() {
    let hub = TestHub::serve(QUICK).await;
    let boss = boss(&hub).await;
    let called = Worker::start(Behaviour::Say(200, OK.to_owned())).await;
    let bob = hub.join_at("bob", &called.url).await;
    let taken = hire(&hub, &boss, &bob).await.expect(202);
    let uuid = taken.header("rialto-job").expect("an id").to_owned();
    let got = called.heard(1).await;
    let envelope = got[0].json()["envelope"].clone();
    assert_strict(&envelope);
    assert_eq!(envelope["original_text"], "hello");
    assert_eq!(envelope["conversation_id"], uuid);
    assert_eq!(got[0].json()["job"]["skill"], "message");
    assert!(got[0].headers.contains_key("webhook-signature"));
    let to = envelope["sender_id"].as_str().expect("an address");
    hub.mail_to(&bob, to, &turn(&bob.id, "gut", &uuid, 2)).await.expect(200);
    let done = ended(&hub, &boss, &taken.str("/job_id")).await;
    assert_eq!(done.str("/status"), "SUCCESS");
    assert_eq!(done.at("/output_data"), json!({"text": "gut"}));
    assert_eq!(called.got().len(), 1);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_error_of_an_endpoint_is_a_failure_or_a_refusal() {
    let hub = TestHub::serve(QUICK).await;
    let boss = boss(&hub).await;
    for (status, code, scored) in [
        (200, "ADAPTATION_FAILED", true),
        (500, "ADAPTATION_FAILED", true),
        (200, "SOMETHING_ELSE", true),
        (200, "", true),
        (200, "INVALID_ENVELOPE", false),
        (400, "INVALID_ENVELOPE", false),
        (400, "UNSUPPORTED_VERSION", false),
        (400, "ADAPTATION_FAILED", true),
        (422, "SOMETHING_ELSE", false),
        (429, "ERR_RATE_LIMITED", false),
        (503, "ERR_UNAVAILABLE", false),
    ] {
        let mut said = json!({"status": "error", "detail": "not today"});
        if !code.is_empty() {
            said["error_code"] = code.into();
        }
        let called = Worker::start(Behaviour::Say(status, said.to_string())).await;
        let name = format!("bob-{status}-{}", code.to_lowercase().replace('_', "-"));
        let bob = hub.join_at(name.trim_end_matches('-'), &called.url).await;
        let job = hire(&hub, &boss, &bob).await.str("/job_id");
        let failed = ended(&hub, &boss, &job).await;
        assert_eq!(failed.str("/status"), "FAILURE", "{status} {code}");
        assert_eq!(failed.str("/error_message"), "not today", "{status} {code}");
        assert_eq!(hub.balance("acme").await, account("10.00", "0.00"));
        let score = hub.score(&hub.registry_name(&bob)).await;
        assert_eq!(score != "50.0", scored, "{status} {code}: {score}");
    }
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_that_refuses_the_request_has_not_got_the_work_and_is_not_blamed() {
    let hub = TestHub::serve(QUICK).await;
    let boss = boss(&hub).await;
    for status in [400, 404, 422, 429] {
        let said = json!({"detail": "text is missing"}).to_string();
        let called = Worker::start(Behaviour::Say(status, said)).await;
        let bob = hub.join_at(&format!("bob-{status}"), &called.url).await;
        let job = hire(&hub, &boss, &bob).await.str("/job_id");
        let failed = ended(&hub, &boss, &job).await;
        let why = format!("the agent's endpoint answered HTTP {status}");
        assert_eq!(failed.str("/status"), "FAILURE", "{status}");
        assert_eq!(failed.str("/error_message"), why);
        assert_eq!(hub.balance("acme").await, account("10.00", "0.00"));
        assert_eq!(hub.score(&hub.registry_name(&bob)).await, "50.0", "{status}");
    }
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_that_cannot_be_reached_is_tried_again_until_the_work_is_over() {
    let hub = TestHub::serve(QUICK).await;
    let boss = boss(&hub).await;
    let closed = ClosedPort::take();
    let bob = hub.join_at("bob", &closed.url).await;
    let job = hire(&hub, &boss, &bob).await.expect(202).str("/job_id");
    let tried = |times: u32| {
        hub.engine.with_world(|world| {
            let mut pushes = world.deliveries_due(rialto_core::time::Timestamp::NEVER);
            pushes.any(|push| push.attempts == times)
        })
    };
    eventually(async || tried(1)).await;
    // The first retry is after five seconds; by then the agent is back.
    let called = Worker::at(closed.listen(), Behaviour::Say(200, OK.to_owned()));
    hub.pass(Millis::seconds(5));
    assert_eq!(called.heard(1).await[0].json()["envelope"]["original_text"], "hello");
    drop(called);
    hub.pass(Millis::minutes(10));
    let failed = ended(&hub, &boss, &job).await;
    assert_eq!(failed.str("/status"), "FAILURE");
    assert_eq!(hub.balance("acme").await, account("10.00", "0.00"));
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_open_inbox_comes_before_the_endpoint() {
    let hub = TestHub::serve(QUICK).await;
    let boss = boss(&hub).await;
    let called = Worker::start(Behaviour::Say(200, OK.to_owned())).await;
    let bob = hub.join_at("bob", &called.url).await;
    let mut inbox = hub.inbox(&bob).await;
    let job = hire(&hub, &boss, &bob).await.str("/job_id");
    let given = inbox.message().await;
    let uuid = given.data["envelope"]["conversation_id"].as_str().expect("an id").to_owned();
    hub.mail_to(&bob, "x@registry", &turn(&bob.id, "gut", &uuid, 2)).await.expect(200);
    assert_eq!(ended(&hub, &boss, &job).await.str("/status"), "SUCCESS");
    assert!(called.got().is_empty());
    hub.stop().await;
}

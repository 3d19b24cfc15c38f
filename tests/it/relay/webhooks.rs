//! Endpoints: what is posted, what the responses mean, and what follows a failure (R40–R42, R45,
//! R73, R74).

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use rialto_core::time::Millis;
use serde_json::{Value, json};
use sha2::Sha256;

use super::kit::{Peer, assert_wrapped, envelope, registration, turn, with};
use super::looks::{header, trace};
use crate::kit::{Behaviour, ClosedPort, Got, Reply, TestHub, Worker, eventually};

const OK: &str = r#"{"status":"ok"}"#;
const UNREACHABLE: &str = "ERR_AGENT_UNREACHABLE";

fn say(status: u16, text: &str) -> Behaviour {
    Behaviour::Say(status, text.to_owned())
}

/// Alice, and Bob with an endpoint and its secret.
async fn pair(hub: &TestHub, endpoint: &str) -> (Peer, Peer, String) {
    let alice = hub.join("alice@chorus").await;
    let body = with(&registration("bob@chorus"), "/endpoint", Some(endpoint.into()));
    let reply = hub.post("/relay/register", None, &body).await.expect(201);
    let bob = Peer { id: reply.str("/data/agent_id"), key: reply.str("/data/api_key") };
    (alice, bob, reply.str("/data/webhook_secret"))
}

/// The signature of a delivery with a secret, without code of the hub.
fn signature(got: &Got, secret: &str) -> String {
    let key = STANDARD.decode(secret.strip_prefix("whsec_").expect("a secret")).expect("base64");
    let (id, at) = (header(got, "webhook-id"), header(got, "webhook-timestamp"));
    let mut mac = Hmac::<Sha256>::new_from_slice(&key).expect("a key");
    mac.update(format!("{id}.{at}.{}", got.body).as_bytes());
    format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
}

/// Verifies a delivery as Standard Webhooks describes it.
fn assert_signed(got: &Got, secret: &str) {
    assert_eq!(header(got, "webhook-signature"), signature(got, secret));
    let at = header(got, "webhook-timestamp");
    let now =
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970");
    let at: u64 = at.parse().expect("whole seconds");
    assert!(now.as_secs().abs_diff(at) <= 60, "{at} is not the current time");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_secret_signs_beside_the_old_one_for_a_day_and_then_alone() {
    let hub = TestHub::serve(&[]).await;
    let worker = Worker::start(say(200, OK)).await;
    let (alice, bob, old) = pair(&hub, &worker.url).await;
    let renewed = hub.post("/v1/webhooks/secret", Some(&bob.key), &json!({})).await.expect(200);
    let new = renewed.str("/webhook_secret");
    assert_ne!(new, old);
    let said = envelope(&alice.id, "hello");
    for (day, good) in [(0, vec![&new, &old]), (1, vec![&new])] {
        hub.pass(Millis::hours(24 * day));
        hub.mail(&alice, &bob, &said).await.expect(200);
        let got = worker.got().pop().expect("it was called");
        let expected: Vec<String> = good.iter().map(|secret| signature(&got, secret)).collect();
        assert_eq!(header(&got, "webhook-signature"), expected.join(" "), "day {day}");
    }
    hub.stop().await;
}

/// A failed delivery as the requirements define it: the request itself succeeded.
#[track_caller]
fn assert_failed(reply: &Reply, code: &str, next: &str) {
    assert_eq!(reply.status, 200, "{}", reply.text);
    assert_wrapped(reply, true);
    let data = reply.at("/data");
    let detail = reply.str("/data/detail");
    let wanted = json!({"delivery": "failed", "error_code": code, "detail": detail,
        "trace_id": trace(reply)});
    assert_eq!(data, wanted);
    assert!(detail.ends_with(&format!("; kept in the receiver's inbox, {next}")), "{detail}");
    // The address behind an endpoint is not revealed.
    assert!(!detail.contains("127.0.0.1"), "{detail}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_is_posted_the_envelope_signed_under_the_trace_id() {
    let hub = TestHub::serve(&[]).await;
    let worker = Worker::start(say(200, OK)).await;
    let (alice, bob, secret) = pair(&hub, &format!("{}/receive", worker.url)).await;
    let mut said = envelope(&alice.id, "下午一起喝杯咖啡?");
    said["x_extra"] = json!({"a": [1]});
    let reply = hub.mail(&alice, &bob, &said).await.expect(200);
    assert_wrapped(&reply, true);
    let data = json!({"delivery": "delivered", "receiver_response": {"status": "ok"},
        "trace_id": trace(&reply)});
    assert_eq!(reply.at("/data"), data);
    let got = worker.got();
    assert_eq!(got.len(), 1);
    assert_eq!(got[0].path, "/receive");
    assert_eq!(header(&got[0], "content-type"), "application/json");
    assert_eq!(got[0].json(), json!({"envelope": said}));
    assert_eq!(header(&got[0], "webhook-id"), trace(&reply));
    assert_signed(&got[0], &secret);
    assert_eq!(hub.pushes(), []);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn any_json_object_below_500_is_the_receivers_own_answer() {
    let hub = TestHub::serve(&[]).await;
    let worker = Worker::start(say(200, OK)).await;
    let (alice, bob, _) = pair(&hub, &worker.url).await;
    let error = r#"{"status":"error","error_code":"ADAPTATION_FAILED","detail":"no model"}"#;
    let invalid = r#"{"status":"error","error_code":"INVALID_ENVELOPE","detail":"x"}"#;
    let own = r#"{ "status" : "ok", "n": 1.0, "deep": {"é": [null, "\u2028"]} }"#;
    let answers = [(200, OK), (200, error), (400, invalid), (404, "{}"), (499, own), (201, own)];
    for (n, (status, answer)) in answers.into_iter().enumerate() {
        worker.behave(say(status, answer));
        let reply = hub.say(&alice, &bob, &format!("message {n}")).await.expect(200);
        assert_eq!(reply.str("/data/delivery"), "delivered");
        assert!(reply.text.contains(&format!("\"receiver_response\":{answer}")), "{}", reply.text);
        assert_eq!(hub.state_of(&alice, &trace(&reply)).await, "delivered");
    }
    assert_eq!(hub.pushes(), []);
    // None of it is left in the inbox.
    let inbox = hub.inbox(&bob).await;
    assert_eq!(inbox.hello.expect("it was read").data["backlog"], 0);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_other_answer_is_a_failed_delivery_that_is_kept() {
    let hub = TestHub::serve(&[]).await;
    let worker = Worker::start(say(200, OK)).await;
    let (alice, bob, _) = pair(&hub, &worker.url).await;
    let elsewhere = Worker::start(say(200, OK)).await;
    let large = format!(r#"{{"text":"{}"}}"#, "x".repeat(70_000));
    let answers = [
        say(500, OK),
        say(503, "{}"),
        say(302, OK),
        say(304, ""),
        Behaviour::Redirect(elsewhere.url.clone()),
        say(200, ""),
        say(204, ""),
        say(200, "ok"),
        say(200, "<html>"),
        say(200, "[]"),
        say(200, "\"ok\""),
        say(200, "null"),
        say(200, r#"{"status":"ok""#),
        say(200, &large),
    ];
    let count = answers.len();
    for (n, answer) in answers.into_iter().enumerate() {
        let what = format!("{answer:?}");
        worker.behave(answer);
        let reply = hub.say(&alice, &bob, &format!("message {n}")).await;
        assert_failed(&reply, UNREACHABLE, "next try in 5 s");
        let standing = hub.standing(&alice, &trace(&reply)).await.expect(200);
        assert_eq!(standing.str("/data/state"), "failed", "{what}");
        assert_eq!(standing.at("/data/attempts"), 1, "{what}");
    }
    assert!(elsewhere.got().is_empty(), "a redirect is not followed");
    assert_eq!(hub.pushes().len(), count);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_connection_is_unreachable_and_silence_is_a_timeout() {
    let hub = TestHub::serve(&[("egress.timeout", "1s")]).await;
    let closed = ClosedPort::take();
    let silent = Worker::start(Behaviour::Dawdle(Duration::from_secs(600))).await;
    let (alice, bob, _) = pair(&hub, &closed.url).await;
    let carol = hub.join_at("carol@chorus", &silent.url).await;
    let reply = hub.say(&alice, &bob, "is anybody there?").await;
    assert_failed(&reply, UNREACHABLE, "next try in 5 s");
    let reply = hub.say(&alice, &carol, "is anybody there?").await;
    assert_failed(&reply, "ERR_TIMEOUT", "next try in 5 s");
    assert_eq!(hub.state_of(&alice, &trace(&reply)).await, "failed");
    assert_eq!(silent.got().len(), 1);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hub_can_be_set_to_call_a_failed_delivery_an_error() {
    let set = [("relay.failed_status", "error"), ("egress.timeout", "1s")];
    let hub = TestHub::serve(&set).await;
    let worker = Worker::start(say(500, OK)).await;
    let silent = Worker::start(Behaviour::Dawdle(Duration::from_secs(600))).await;
    let (alice, bob, _) = pair(&hub, &worker.url).await;
    let carol = hub.join_at("carol@chorus", &silent.url).await;
    for (to, status, code) in [(&bob, 502, UNREACHABLE), (&carol, 504, "ERR_TIMEOUT")] {
        let reply = hub.say(&alice, to, "hello").await;
        assert_eq!(reply.status, status, "{}", reply.text);
        assert_wrapped(&reply, false);
        assert_eq!(reply.str("/error/code"), code);
        assert_eq!(reply.at("/error/retryable"), true);
        let detail = reply.str("/data/detail");
        let wanted = json!({"delivery": "failed", "error_code": code, "detail": detail,
            "trace_id": trace(&reply)});
        assert_eq!(reply.at("/data"), wanted);
        // An error for the sender; the message is stored all the same.
        assert_eq!(hub.state_of(&alice, &trace(&reply)).await, "failed");
        assert_eq!(hub.inbox(to).await.message().await.said(), "hello");
    }
    // A message refused before any delivery has the usual form.
    let reply = hub.say(&alice, &Peer { id: "nobody@chorus".into(), ..bob }, "hello").await;
    super::kit::assert_rejected(&reply, 404, "ERR_AGENT_NOT_FOUND");
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hub_can_be_set_to_keep_nothing_for_who_is_not_there() {
    for failed_status in ["ok", "error"] {
        let set = [("relay.offline", "fail"), ("relay.failed_status", failed_status)];
        let hub = TestHub::serve(&set).await;
        let (alice, bob) = (hub.join("alice@chorus").await, hub.join("bob@chorus").await);
        let reply = hub.say(&alice, &bob, "hello").await;
        assert_eq!(reply.status, if failed_status == "ok" { 200 } else { 502 }, "{}", reply.text);
        assert_eq!(reply.str("/data/delivery"), "failed");
        assert_eq!(reply.str("/data/error_code"), UNREACHABLE);
        assert!(
            reply.str("/data/detail").ends_with("the message was not stored"),
            "{}",
            reply.text
        );
        super::kit::assert_error(&hub.standing(&alice, &trace(&reply)).await, 404, "ERR_NOT_FOUND");
        let mut inbox = hub.inbox(&bob).await;
        assert_eq!(inbox.hello.as_ref().expect("it was read").data["backlog"], 0);
        // An open inbox gets it.
        hub.say(&alice, &bob, "hello again").await.expect(200);
        assert_eq!(inbox.message().await.said(), "hello again");
        // An endpoint that fails is reachable; messages it missed are stored.
        let worker = Worker::start(say(500, "")).await;
        let carol = hub.join_at("carol@chorus", &worker.url).await;
        hub.say(&alice, &carol, "kept").await;
        assert_eq!(hub.inbox(&carol).await.message().await.said(), "kept");
        hub.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_that_is_gone_is_switched_off_and_the_agent_reads_instead() {
    let hub = TestHub::serve(&[]).await;
    let worker = Worker::start(say(410, OK)).await;
    let (alice, bob, _) = pair(&hub, &worker.url).await;
    let reply = hub.say(&alice, &bob, "first").await;
    assert_failed(&reply, UNREACHABLE, "no further attempt");
    assert!(reply.str("/data/detail").contains("410 Gone"), "{}", reply.text);
    assert_eq!(hub.state_of(&alice, &trace(&reply)).await, "failed");
    worker.behave(say(200, OK));
    // From now on it is an agent without endpoint.
    let reply = hub.say(&alice, &bob, "second").await.expect(202);
    assert_eq!(reply.str("/data/delivery"), "queued");
    assert_eq!(worker.got().len(), 1);
    assert!(hub.pushes().iter().all(|push| push.next_try.is_none()));
    assert_eq!(hub.inbox(&bob).await.texts(2).await, ["first", "second"]);
    hub.heard_by(0).await;
    // The agent registers its endpoint again.
    let body = with(&registration(&bob.id), "/endpoint", Some(worker.url.as_str().into()));
    hub.post("/relay/register", Some(&bob.key), &body).await.expect(200);
    let reply = hub.say(&alice, &bob, "third").await.expect(200);
    assert_eq!(reply.str("/data/delivery"), "delivered");
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_message_is_delivered_on_connect_and_not_pushed_again() {
    let hub = TestHub::serve(&[]).await;
    let worker = Worker::start(say(500, "")).await;
    let (alice, bob, _) = pair(&hub, &worker.url).await;
    let mut traces = Vec::new();
    for n in 0..3 {
        traces.push(trace(&hub.say(&alice, &bob, &format!("message {n}")).await.expect(200)));
    }
    let mut inbox = hub.inbox(&bob).await;
    assert_eq!(inbox.texts(3).await, ["message 0", "message 1", "message 2"]);
    // The next message makes the hub record the hand-over.
    hub.say(&alice, &bob, "message 3").await.expect(200);
    for trace in &traces {
        assert_eq!(hub.state_of(&alice, trace).await, "presented");
    }
    worker.behave(say(200, OK));
    // A manual retry, earlier than scheduled, finds nothing left to deliver.
    for push in hub.pushes() {
        retry(&hub, push.notice.0).await;
    }
    eventually(async || hub.pushes().is_empty()).await;
    assert_eq!(worker.got().len(), 3, "only the first attempts");
    hub.stop().await;
}

async fn retry(hub: &TestHub, push: u64) {
    let path = format!("/v1/operator/pushes/{push}/retry");
    let reply = hub.call("POST", &path, Some(&hub.operator), None).await;
    assert!(reply.status < 300, "{}", reply.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_message_is_tried_again_after_five_seconds_under_the_same_id() {
    let hub = TestHub::serve(&[]).await;
    let worker = Worker::start(say(500, "")).await;
    let (alice, bob, secret) = pair(&hub, &worker.url).await;
    let reply = hub.say(&alice, &bob, "hello").await;
    assert_failed(&reply, UNREACHABLE, "next try in 5 s");
    worker.behave(say(200, r#"{"status":"ok","late":true}"#));
    let got = worker.heard(2).await;
    assert_signed(&got[1], &secret);
    assert_eq!(header(&got[1], "webhook-id"), trace(&reply));
    assert_eq!(got[0].body, got[1].body);
    let seconds = |got: &Got| header(got, "webhook-timestamp").parse::<i64>().expect("seconds");
    assert!(seconds(&got[1]) >= seconds(&got[0]) + 4);
    eventually(async || hub.pushes().is_empty()).await;
    let standing = hub.standing(&alice, &trace(&reply)).await.expect(200);
    assert_eq!(standing.str("/data/state"), "delivered");
    assert_eq!(standing.at("/data/attempts"), 2);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tries_follow_the_ladder_to_its_end_and_the_message_stays() {
    /// Seconds until the next attempt, after each failure.
    const LADDER: [i64; 7] = [5, 300, 1_800, 7_200, 18_000, 36_000, 36_000];
    let hub = TestHub::serve(&[]).await;
    let worker = Worker::start(say(500, "")).await;
    let (alice, bob, _) = pair(&hub, &worker.url).await;
    let reply = hub.say(&alice, &bob, "hello").await.expect(200);
    for (attempts, wait_s) in (1..).zip(LADDER) {
        eventually(async || hub.pushes()[0].attempts == attempts).await;
        let push = hub.pushes().remove(0);
        let left = push.next_try.expect("another try").since(hub.engine.now()).0;
        // Some time has passed, and the previous step is far shorter.
        assert!(left <= wait_s * 1_000 && left > wait_s * 1_000 - 60_000, "{attempts}: {left}");
        // Retried manually, since the wait is too long for a test.
        retry(&hub, push.notice.0).await;
    }
    eventually(async || hub.pushes()[0].attempts == 8).await;
    assert_eq!(hub.pushes()[0].next_try, None);
    assert_eq!(worker.got().len(), 8);
    let standing = hub.standing(&alice, &trace(&reply)).await.expect(200);
    assert_eq!(standing.str("/data/state"), "failed");
    assert_eq!(standing.at("/data/attempts"), 8);
    assert_eq!(hub.inbox(&bob).await.message().await.said(), "hello");
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_endpoint_missed_waits_in_order_before_what_comes_next() {
    let hub = TestHub::serve(&[]).await;
    let worker = Worker::start(say(500, "")).await;
    let (alice, bob, _) = pair(&hub, &worker.url).await;
    for n in 0..3 {
        assert_failed(
            &hub.say(&alice, &bob, &format!("missed {n}")).await,
            UNREACHABLE,
            "next try in 5 s",
        );
    }
    let mut inbox = hub.inbox(&bob).await;
    hub.say(&alice, &bob, "new").await.expect(200);
    assert_eq!(inbox.texts(4).await, ["missed 0", "missed 1", "missed 2", "new"]);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sender_that_hangs_up_does_not_stop_the_delivery() {
    let hub = TestHub::serve(&[]).await;
    let worker = Worker::start(Behaviour::Dawdle(Duration::from_millis(300))).await;
    let (alice, bob, _) = pair(&hub, &worker.url).await;
    let body = json!({"receiver_id": bob.id, "envelope": turn(&alice.id, "hello", "c", 1)});
    let url = format!("{}/messages", hub.url);
    let request = hub.http.post(url).bearer_auth(&alice.key).body(body.to_string()).send();
    let asking = tokio::spawn(request);
    worker.heard(1).await;
    asking.abort();
    // The turn identifies the message, and a repeat gets its outcome once it has one.
    let outcome = async || -> Value {
        let reply = hub.post("/messages", Some(&alice.key), &body).await;
        reply.at("/data/delivery")
    };
    eventually(async || hub.pushes().is_empty()).await;
    assert_eq!(outcome().await, "delivered");
    assert_eq!(worker.got().len(), 1);
    hub.stop().await;
}

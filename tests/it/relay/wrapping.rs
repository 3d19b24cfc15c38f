//! Envelopes in A2A messages: unwrapped from both forms, and wrapped in the one a recipient chose
//! (R79, R88).

use serde_json::{Value, json};

use super::kit::{Peer, assert_bad, assert_rejected, envelope, registration, turn, with};
use super::looks::trace;
use crate::kit::{Behaviour, TestHub, Worker};

const MEDIA_TYPE: &str = "application/vnd.chorus.envelope+json";
const OK: &str = r#"{"status":"ok"}"#;

fn part_1_0(envelope: &Value) -> Value {
    json!({"data": envelope, "mediaType": MEDIA_TYPE})
}

fn part_0_3(envelope: &Value) -> Value {
    json!({"kind": "data", "data": envelope, "metadata": {"mediaType": MEDIA_TYPE}})
}

/// An A2A message with these parts, in the terms of its version.
fn wrapped(parts: &[Value]) -> Value {
    match parts.iter().any(|part| part.get("kind").is_some()) {
        true => json!({"kind": "message", "messageId": "m-1", "role": "user", "parts": parts}),
        false => json!({"messageId": "m-1", "role": "ROLE_USER", "parts": parts}),
    }
}

/// What a recipient of each format gets.
fn expected(format: &str, envelope: &Value, trace: &str) -> Value {
    match format {
        "a2a-1.0" => {
            json!({"role": "ROLE_USER", "parts": [part_1_0(envelope)], "messageId": trace})
        }
        "a2a-0.3" => json!({"kind": "message", "role": "user", "parts": [part_0_3(envelope)],
            "messageId": trace}),
        _ => envelope.clone(),
    }
}

async fn join_as(hub: &TestHub, id: &str, format: &str, endpoint: Option<&str>) -> Peer {
    let mut body = registration(id);
    if !format.is_empty() {
        body["envelope_format"] = format.into();
    }
    if let Some(endpoint) = endpoint {
        body["endpoint"] = endpoint.into();
    }
    hub.join_with(&body).await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_envelope_in_either_a2a_shape_is_taken_out_and_treated_as_any_other() {
    let hub = TestHub::serve(&[]).await;
    let worker = Worker::start(Behaviour::Say(200, OK.to_owned())).await;
    let (alice, bob) = (hub.join("alice@chorus").await, hub.join("bob@chorus").await);
    let carol = hub.join_at("carol@chorus", &worker.url).await;
    let mut inbox = hub.inbox(&bob).await;
    let mut said = envelope(&alice.id, "wrapped 你好");
    said["x_extra"] = json!({"a": [1]});
    let talk = json!({"text": "see below"});
    for (n, parts) in [
        vec![part_1_0(&said)],
        vec![part_0_3(&said)],
        vec![talk.clone(), part_1_0(&said)],
        vec![json!({"kind": "text", "text": "see below"}), part_0_3(&said), talk],
    ]
    .into_iter()
    .enumerate()
    {
        let mut sent = wrapped(&parts);
        // A separate conversation, so that the same text is not a loop.
        let said = with(&said, "/conversation_id", Some(n.to_string().into()));
        for part in sent["parts"].as_array_mut().expect("a list") {
            if part.get("data").is_some() {
                part["data"] = said.clone();
            }
        }
        let reply = hub.mail(&alice, &bob, &sent).await.expect(200);
        let event = inbox.message().await;
        assert_eq!(event.data["envelope"], said, "without the message around it");
        assert_eq!(event.data["trace_id"], trace(&reply));
        hub.mail(&alice, &carol, &sent).await.expect(200);
        assert_eq!(worker.got().pop().expect("a call").json(), json!({"envelope": said}));
    }
    hub.stop().await;
}

/// Numbers in a protobuf `Struct` are doubles, so the official A2A SDK writes turns as 1.0.
#[tokio::test(flavor = "multi_thread")]
async fn a_turn_number_written_as_a_double_by_the_a2a_sdk_is_a_turn_number() {
    let hub = TestHub::serve(&[]).await;
    let (alice, bob) = (hub.join("alice@chorus").await, hub.join("bob@chorus").await);
    let mut inbox = hub.inbox(&bob).await;
    let sent = include_str!("../../../crates/protocols/src/relay/fixtures/a2a-sdk.json");
    let body = format!(r#"{{"receiver_id": "{}", "envelope": {sent}}}"#, bob.id);
    let reply = hub.post_text("/messages", Some(&alice.key), &body).await.expect(200);
    let event = inbox.message().await;
    assert_eq!(event.data["envelope"]["turn_number"], json!(1.0));
    // The same turn written as an integer is a conflict, since its envelope differs.
    let plain = turn(&alice.id, "something else", "c-1", 1);
    let other = hub.mail(&alice, &bob, &plain).await;
    assert_eq!(other.str("/error/field"), "/envelope/turn_number", "{}", other.text);
    assert_eq!(trace(&reply), event.data["trace_id"].as_str().expect("an id"));
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_inside_a_wrapped_envelope_is_refused_by_its_place() {
    let hub = TestHub::serve(&[]).await;
    let (alice, bob) = (hub.join("alice@chorus").await, hub.join("bob@chorus").await);
    let said = envelope(&alice.id, "hello");
    let send = async |sent: &Value| hub.mail(&alice, &bob, sent).await;
    let bad = with(&said, "/sender_culture", Some("english".into()));
    for part in [part_1_0(&bad), part_0_3(&bad)] {
        let reply = send(&wrapped(&[part])).await;
        assert_bad(&reply, "/envelope/parts/0/data/sender_culture");
        assert_rejected(&reply, 400, "ERR_VALIDATION");
    }
    // The sender is checked as if it were not wrapped.
    let forged = envelope(&bob.id, "hello");
    let reply = send(&wrapped(&[part_1_0(&forged)])).await;
    assert_rejected(&reply, 403, "ERR_SENDER_MISMATCH");
    // Exactly one envelope, in whatever form.
    let other = json!({"data": said, "mediaType": "application/json"});
    for parts in [
        vec![part_1_0(&said), part_1_0(&said)],
        vec![part_1_0(&said), part_0_3(&said)],
        vec![],
        vec![other],
    ] {
        let reply = send(&wrapped(&parts)).await;
        assert_bad(&reply, "/envelope/parts");
        assert_rejected(&reply, 400, "ERR_VALIDATION");
    }
    let inbox = hub.inbox(&bob).await;
    assert_eq!(inbox.hello.expect("it was read").data["backlog"], 0, "nothing was stored");
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_is_the_same_wrapped_or_not() {
    let hub = TestHub::serve(&[]).await;
    let (alice, bob) = (hub.join("alice@chorus").await, hub.join("bob@chorus").await);
    let said = turn(&alice.id, "hello", "c", 1);
    let first = hub.mail(&alice, &bob, &said).await.expect(202);
    for again in [part_1_0(&said), part_0_3(&said)] {
        let reply = hub.mail(&alice, &bob, &wrapped(&[again])).await.expect(202);
        assert_eq!(trace(&reply), trace(&first));
    }
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_gets_events_and_posts_in_the_format_it_asked_for() {
    let hub = TestHub::serve(&[]).await;
    let worker = Worker::start(Behaviour::Say(200, OK.to_owned())).await;
    let alice = hub.join("alice@chorus").await;
    for format in ["", "a2a-1.0", "a2a-0.3"] {
        let name = if format.is_empty() { "plain" } else { &format[4..] };
        let reader = join_as(&hub, &format!("reader-{name}@chorus"), format, None).await;
        let called =
            join_as(&hub, &format!("called-{name}@chorus"), format, Some(&worker.url)).await;
        let said = envelope(&alice.id, "hello\n世界");
        // One that waited and one that did not.
        let waited = trace(&hub.mail(&alice, &reader, &said).await.expect(202));
        let mut inbox = hub.inbox(&reader).await;
        let live = trace(&hub.mail(&alice, &reader, &said).await.expect(200));
        for trace in [waited, live] {
            let event = inbox.message().await;
            assert_eq!(event.data["envelope"], expected(format, &said, &trace), "{format}");
            assert_eq!(event.data["sender_id"], alice.id);
        }
        let posted = trace(&hub.mail(&alice, &called, &said).await.expect(200));
        let got = worker.got().pop().expect("a call").json();
        assert_eq!(got, json!({"envelope": expected(format, &said, &posted)}), "{format}");
    }
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_came_wrapped_goes_out_in_the_receivers_format() {
    let hub = TestHub::serve(&[]).await;
    let alice = hub.join("alice@chorus").await;
    let bob = join_as(&hub, "bob@chorus", "a2a-0.3", None).await;
    let mut inbox = hub.inbox(&bob).await;
    let said = envelope(&alice.id, "hello");
    let reply = hub.mail(&alice, &bob, &wrapped(&[part_1_0(&said)])).await.expect(200);
    let event = inbox.message().await;
    assert_eq!(event.data["envelope"], expected("a2a-0.3", &said, &trace(&reply)));
    // The format can be changed; later reads use the new one.
    let body = with(&registration(&bob.id), "/envelope_format", Some("a2a-1.0".into()));
    hub.post("/relay/register", Some(&bob.key), &body).await.expect(200);
    let reply = hub.say(&alice, &bob, "again").await.expect(200);
    let said = envelope(&alice.id, "again");
    let event = inbox.message().await;
    assert_eq!(event.data["envelope"], expected("a2a-1.0", &said, &trace(&reply)));
    // A lookup returns the envelope itself.
    let standing = hub.standing(&alice, &trace(&reply)).await.expect(200);
    assert_eq!(standing.at("/data/envelope"), said);
    hub.stop().await;
}

//! Deliveries to endpoints: the bare envelope is posted with its receipt in a header, unless it is
//! read on a stream (R31, R72, D18, 2.5).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use rialto_protocols::agora::MessageType;
use rialto_protocols::agora::wire::receipt;
use serde_json::{Value, json};
use sha2::Sha256;

use super::kit::{Hub, Key, Said, Token, assert_error, assert_vouched};
use super::scene::{Pair, SEARCH, kinds};
use crate::kit::{Behaviour, Got, Worker, eventually};

fn say(status: u16) -> Behaviour {
    Behaviour::Say(status, String::new())
}

fn header<'a>(got: &'a Got, name: &str) -> &'a str {
    got.headers.get(name).unwrap_or_else(|| panic!("no {name}")).to_str().expect("text")
}

/// Bob registers an endpoint and gets its secret.
async fn at_endpoint(hub: &Hub, key: &Key, url: &str) -> (Token, String) {
    let profile = json!({"inbox": true, "endpoint": url});
    let hello = key.sign_for(MessageType::Hello, &profile, Some(hub.hub_key().await));
    let welcome = hub.tell(&hello).await.expect(200);
    // A secret is only in the first answer.
    let again = hub.tell(&hello).await.expect(200).json();
    assert_eq!(again.pointer("/payload/webhook_secret"), None);
    assert_eq!(again.pointer("/payload/inbox_token"), None);
    (Token(welcome.str("/payload/inbox_token")), welcome.str("/payload/webhook_secret"))
}

/// Verifies a delivery as Standard Webhooks describes it, without code of the hub.
fn assert_webhook(got: &Got, secret: &str) {
    let key = STANDARD.decode(secret.strip_prefix("whsec_").expect("a secret")).expect("base64");
    let (id, at) = (header(got, "webhook-id"), header(got, "webhook-timestamp"));
    let mut mac = Hmac::<Sha256>::new_from_slice(&key).expect("a key");
    mac.update(format!("{id}.{at}.{}", got.body).as_bytes());
    let expected = format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()));
    assert_eq!(header(got, "webhook-signature"), expected);
}

/// Checks what was posted: the envelope, with its receipt in the header.
async fn assert_posted(hub: &Hub, got: &Got) -> Value {
    let receipt = receipt::from_header(header(got, "agora-receipt")).expect("a receipt");
    let receipt: Value = serde_json::from_str(&receipt).expect("JSON");
    let envelope: Value = serde_json::from_str(&got.body).expect("JSON");
    assert_vouched(hub.hub_key().await, &json!({"envelope": envelope, "receipt": receipt}));
    assert_eq!(header(got, "content-type"), "application/json");
    envelope
}

async fn note(pair: &Pair) -> Said {
    let said = pair.alice.sign_for(MessageType::Hello, &json!({"x": "é"}), Some(pair.bob.public()));
    pair.hub.tell(&said).await.expect(202);
    said
}

async fn arrived(hub: &Hub) {
    eventually(async || hub.pushes().is_empty()).await;
}

async fn retry(hub: &Hub) {
    for push in hub.pushes() {
        let path = format!("/v1/operator/pushes/{}/retry", push.notice.0);
        let reply = hub.call("POST", &path, Some(&hub.operator), None).await;
        assert!(reply.status < 300, "{}", reply.text);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_is_posted_the_bare_envelope_with_its_receipt_signed_with_the_secret() {
    let pair = Pair::meet().await;
    let worker = Worker::start(say(204)).await;
    let (_, secret) = at_endpoint(&pair.hub, &pair.bob, &format!("{}/agora", worker.url)).await;
    let request = pair.ask(json!({"budget": {"max": 6}})).await;
    let got = worker.heard(1).await;
    assert_eq!(got[0].path, "/agora");
    assert_eq!(got[0].body, request.text, "no byte of it is changed");
    assert_posted(&pair.hub, &got[0]).await;
    assert_webhook(&got[0], &secret);
    arrived(&pair.hub).await;
    // It is still in the inbox.
    assert_eq!(pair.hub.newest(&pair.bob_reads).await, request.json());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_whole_negotiation_is_pushed_to_both() {
    let pair = Pair::meet().await;
    let Pair { hub, alice, bob, .. } = &pair;
    let (hers, his) = (Worker::start(say(200)).await, Worker::start(say(200)).await);
    at_endpoint(hub, alice, &hers.url).await;
    at_endpoint(hub, bob, &his.url).await;
    let request = pair.agree(json!(2), json!({"budget": {"max": 6}})).await;
    hub.told(&bob.partial(&request.id, false)).await;
    hub.told(&bob.result(&request.id)).await;
    let timed = pair.ask(json!({"timeout": 500})).await;
    pair.fails(&timed).await;
    for (worker, wanted) in [
        (&hers, vec!["OFFER", "RESULT", "RESULT", "ERROR"]),
        (&his, vec!["REQUEST", "ACCEPT", "REQUEST", "ERROR"]),
    ] {
        let mut came = Vec::new();
        for got in worker.heard(wanted.len()).await {
            came.push(assert_posted(hub, &got).await["type"].as_str().expect("text").to_owned());
        }
        // Deliveries run concurrently: only the inbox is ordered.
        let (mut wanted, mut sorted) = (wanted.clone(), came.clone());
        wanted.sort_unstable();
        sorted.sort_unstable();
        assert_eq!(sorted, wanted);
    }
    arrived(hub).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_not_chosen_is_told_at_its_endpoint() {
    let pair = Pair::meet().await;
    let Pair { hub, alice, .. } = &pair;
    let carol = Key::of(3);
    let worker = Worker::start(say(200)).await;
    let carol_reads = hub.provider(&carol, SEARCH, None).await;
    let (_, secret) = at_endpoint(hub, &carol, &worker.url).await;
    let request = pair.ask(json!({"budget": {"max": 6}})).await;
    let offer = pair.offer(&request, json!(2)).await;
    hub.told(&carol.offer(&request.id, json!(3))).await;
    hub.told(&alice.accept(&offer)).await;
    // Reading an envelope cancels its delivery, so the inbox is read last.
    let got = worker.heard(2).await;
    let letters = hub.letters(&carol_reads).await;
    assert_eq!(kinds(&letters), ["REQUEST", "STATUS"]);
    let closed = got.iter().find(|got| got.json()["type"] == "STATUS").expect("it was told");
    assert_eq!(assert_posted(hub, closed).await, letters[1]["envelope"]);
    assert_webhook(closed, &secret);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_offer_for_a_worker_of_another_protocol_is_pushed_too() {
    let pair = Pair::meet().await;
    let Pair { hub, alice, alice_reads, .. } = &pair;
    let worker = Worker::start(say(200)).await;
    at_endpoint(hub, alice, &worker.url).await;
    let bridged = hub.agent("acme", "summarize", "0.50", None).await;
    let agents = hub.get("/agora/agents", None).await.expect(200).at("/agents");
    let listed = agents.as_array().expect("a list").iter();
    let entry = listed.clone().find(|one| one["native_id"] == bridged.id).expect("it is listed");
    let request = alice.request("agora:summarize:v1", json!({"budget": {"max": 1}}));
    hub.tell_to(entry["id"].as_str().expect("a key"), &request).await.expect(202);
    let got = worker.heard(1).await;
    let offer = assert_posted(hub, &got[0]).await;
    assert_eq!(offer["type"], "OFFER");
    assert_eq!(offer, hub.newest(alice_reads).await, "the same on every transport");
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_pushed_while_a_stream_is_open_and_everything_after_it() {
    let pair = Pair::meet().await;
    let Pair { hub, bob, .. } = &pair;
    let worker = Worker::start(say(200)).await;
    let (reads, _) = at_endpoint(hub, bob, &worker.url).await;
    let mut inbox = hub.agora_inbox(&reads, None).await;
    for _ in 0..3 {
        let said = note(&pair).await;
        assert_eq!(*super::kit::envelope_of(&inbox.next().await), said.json());
    }
    // A read envelope needs no delivery.
    arrived(hub).await;
    assert_eq!(worker.got().len(), 0);
    drop(inbox);
    hub.heard_by(0).await;
    let said = note(&pair).await;
    assert_eq!(worker.heard(1).await[0].body, said.text);
    arrived(hub).await;
    assert_eq!(worker.got().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_push_is_tried_again_under_the_same_id_and_is_readable_meanwhile() {
    let pair = Pair::meet().await;
    let Pair { hub, bob, .. } = &pair;
    let worker = Worker::start(say(500)).await;
    let (reads, secret) = at_endpoint(hub, bob, &worker.url).await;
    let said = note(&pair).await;
    worker.heard(1).await;
    eventually(async || hub.pushes().first().is_some_and(|push| push.attempts == 1)).await;
    assert!(hub.pushes()[0].next_try.is_some(), "a retry is scheduled");
    let page = hub.get("/agora/messages?after=9", Some(&reads.0)).await.expect(200);
    assert_eq!(page.at("/messages"), json!([]), "reading another page does not count");
    worker.behave(say(200));
    retry(hub).await;
    let got = worker.heard(2).await;
    assert_eq!(got[1].body, said.text);
    assert_eq!(header(&got[0], "webhook-id"), header(&got[1], "webhook-id"));
    for one in &got {
        assert_webhook(one, &secret);
        assert_posted(hub, one).await;
    }
    arrived(hub).await;
    // An envelope that is read before the retry is not posted again.
    worker.behave(say(500));
    note(&pair).await;
    eventually(async || hub.pushes().first().is_some_and(|push| push.attempts == 1)).await;
    let count = worker.got().len();
    assert_eq!(hub.letters(&reads).await.len(), 2);
    retry(hub).await;
    arrived(hub).await;
    assert_eq!(worker.got().len(), count);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_that_is_gone_is_switched_off_until_it_is_named_again() {
    let pair = Pair::meet().await;
    let Pair { hub, bob, .. } = &pair;
    let worker = Worker::start(say(410)).await;
    let (reads, _) = at_endpoint(hub, bob, &worker.url).await;
    let first = note(&pair).await;
    worker.heard(1).await;
    eventually(async || hub.pushes().iter().all(|push| push.next_try.is_none())).await;
    worker.behave(say(200));
    let second = note(&pair).await;
    let letters = hub.letters_by(&reads, 2).await;
    assert_eq!(letters[0]["envelope"], first.json());
    assert_eq!(letters[1]["envelope"], second.json());
    assert_eq!(worker.got().len(), 1);
    at_endpoint(hub, bob, &worker.url).await;
    let third = note(&pair).await;
    assert_eq!(worker.heard(2).await[1].body, third.text);
    assert_eq!(worker.got().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_has_moved_since_it_asked_is_told_where_it_is_now() {
    let pair = Pair::meet().await;
    let Pair { hub, alice, alice_reads, .. } = &pair;
    let (old, new) = (Worker::start(say(200)).await, Worker::start(say(200)).await);
    at_endpoint(hub, alice, &old.url).await;
    let request = pair.ask(json!({"timeout": 3_000})).await;
    at_endpoint(hub, alice, &new.url).await;
    pair.fails(&request).await;
    let got = new.heard(1).await;
    assert_eq!(assert_posted(hub, &got[0]).await, hub.newest(alice_reads).await);
    arrived(hub).await;
    assert_eq!(old.got().len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_kept_for_an_endpoint_outlives_the_hub() {
    let pair = Pair::meet().await;
    let worker = Worker::start(say(500)).await;
    let (_, secret) = at_endpoint(&pair.hub, &pair.bob, &worker.url).await;
    let said = note(&pair).await;
    worker.heard(1).await;
    eventually(async || pair.hub.pushes().first().is_some_and(|push| push.attempts == 1)).await;
    let Pair { hub, .. } = pair;
    let hub = hub.restart(&[]).await;
    worker.behave(say(200));
    retry(&hub).await;
    let got = worker.heard(2).await;
    assert_eq!(got[1].body, said.text);
    assert_webhook(&got[1], &secret);
    arrived(&hub).await;
}

#[tokio::test]
async fn an_endpoint_that_may_not_be_called_is_refused_with_the_hello() {
    let pair = Pair::meet().await;
    let Pair { hub, bob, .. } = &pair;
    let before = hub.held().await;
    for url in [
        "http://10.0.0.1/",
        "https://169.254.169.254/latest",
        "http://user:pass@127.0.0.1/",
        "ftp://127.0.0.1/",
        "nonsense",
        "",
    ] {
        let hello = bob.sign_for(
            MessageType::Hello,
            &json!({"endpoint": url, "inbox": true}),
            Some(hub.hub_key().await),
        );
        let reply = hub.tell(&hello).await;
        assert_error(&reply, 400);
        assert_eq!(reply.str("/payload/field"), "/payload/endpoint", "{url}");
    }
    assert_eq!(hub.held().await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_names_an_endpoint_after_asking_is_told_the_end_there() {
    let pair = Pair::meet().await;
    let Pair { hub, alice, alice_reads, .. } = &pair;
    let request = pair.ask(json!({"timeout": 3_000})).await;
    let worker = Worker::start(say(200)).await;
    at_endpoint(hub, alice, &worker.url).await;
    pair.fails(&request).await;
    let got = worker.heard(1).await;
    assert_eq!(assert_posted(hub, &got[0]).await, hub.newest(alice_reads).await);
}

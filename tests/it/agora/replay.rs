//! Repeats and replays (R25, R30, D5).

use rialto_protocols::agora::MessageType;
use serde_json::json;

use super::kit::{Hub, Key, assert_error};
use super::pen::{Pen, state};
use crate::kit::{Process, Reply, http, together};
use crate::relay::kit::with;

const SEARCH: &str = "agora:search:v1";

#[tokio::test(flavor = "multi_thread")]
async fn the_same_envelope_again_gets_the_first_answer_and_does_nothing() {
    let hub = Hub::serve(&[]).await;
    let (alice, bob) = (Key::of(1), Key::of(2));
    hub.fund(&alice, "10").await;
    let reads = hub.hello(&alice, json!({})).await;
    hub.provider(&bob, SEARCH, None).await;
    let request = alice.request(SEARCH, json!({"budget": {"max": 9}}));
    let offer = bob.offer(&request.id, json!(4));
    let said = [request.clone(), offer.clone(), alice.accept(&offer), bob.result(&request.id)];
    let mut answers = Vec::new();
    for one in &said {
        answers.push(hub.tell(one).await.expect(202));
    }
    assert_eq!(hub.balance(&bob.owner()).await.0, "4.00");
    let before = state(&hub).await;
    // Whatever the request's state, each repeat gets its first answer.
    for (one, first) in said.iter().zip(&answers) {
        let again = hub.tell(one).await.expect(202);
        assert_eq!(again.at("/payload"), first.at("/payload"));
        assert_eq!(again.header("rialto-job"), first.header("rialto-job"));
    }
    assert_eq!(state(&hub).await, before);
    assert_eq!(hub.state_of(&reads, &request.id).await, "COMPLETED");
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_at_once_are_one() {
    let hub = Hub::serve(&[]).await;
    let (alice, bob) = (Key::of(1), Key::of(2));
    let reads = hub.provider(&bob, SEARCH, None).await;
    let request = alice.request(SEARCH, json!({}));
    let all = together((0..10).map(|_| hub.tell(&request))).await;
    let jobs: Vec<_> = all.iter().map(|reply| reply.header("rialto-job")).collect();
    assert!(jobs[0].is_some() && jobs.iter().all(|job| *job == jobs[0]), "{jobs:?}");
    for reply in &all {
        assert_eq!((reply.status, reply.at("/payload")), (202, all[0].at("/payload")));
    }
    assert_eq!(hub.ids(&reads).await, [request.id]);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_ten_that_share_an_id_one_is_taken() {
    let hub = Hub::serve(&[]).await;
    let (alice, bob) = (Pen::of(1), Key::of(2));
    let reads = hub.hello(&bob, json!({})).await;
    let texts = (0..10).map(|n| {
        let draft = with(&alice.note(bob.public()), "/id", Some(json!("once")));
        alice.sign(&with(&draft, "/payload/n", Some(json!(n))))
    });
    let texts: Vec<String> = texts.collect();
    let all = together(texts.iter().map(|text| hub.post_envelope(text))).await;
    let taken: Vec<usize> = (0..10).filter(|n| all[*n].status == 202).collect();
    let [taken] = taken[..] else { panic!("{taken:?} were accepted") };
    assert_eq!(all.iter().filter(|reply| reply.status == 400).count(), 9);
    let letters = hub.letters(&reads).await;
    assert_eq!(letters.len(), 1);
    assert_eq!(letters[0]["envelope"]["payload"]["n"], taken);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kill_forgets_nothing_that_was_answered() {
    let data = tempfile::TempDir::new().expect("a directory");
    let http = http();
    let post = async |hub: &Process, text: &str| {
        let url = format!("{}/agora/envelopes", hub.url);
        Reply::of(http.post(url).body(text.to_owned()).send().await.expect("an answer")).await
    };
    let (alice, bob) = (Pen::of(1), Key::of(2));
    let hub = Process::start("serve", data.path(), &[]);
    let hello = bob.sign(MessageType::Hello, &json!({"capabilities": [SEARCH]}));
    post(&hub, &hello.text).await.expect(200);
    let asked = alice.draft("REQUEST", json!({"resource": SEARCH, "params": {}}));
    let first = post(&hub, &alice.sign(&asked)).await.expect(202);
    hub.kill();
    let hub = Process::start("serve", data.path(), &[]);
    let again = post(&hub, &alice.sign(&asked)).await.expect(202);
    assert_eq!(again.at("/payload"), first.at("/payload"));
    assert_eq!(again.header("rialto-job"), first.header("rialto-job"));
    let other = with(&asked, "/payload/params", Some(json!({"q": "other"})));
    assert_error(&post(&hub, &alice.sign(&other)).await, 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_id_with_other_content_is_refused_whatever_it_says() {
    let hub = Hub::serve(&[]).await;
    let (alice, bob) = (Pen::of(1), Key::of(2));
    let reads = hub.provider(&bob, SEARCH, None).await;
    let first = with(&alice.note(bob.public()), "/id", Some(json!("once")));
    hub.post_envelope(&alice.sign(&first)).await.expect(202);
    let before = state(&hub).await;
    let request = json!({"resource": SEARCH, "params": {}});
    for other in [
        with(&first, "/payload/status", Some(json!("idle"))),
        with(&first, "/timestamp", Some(json!(super::pen::from_now(-1)))),
        with(&first, "/more", Some(json!(1))),
        with(&first, "/recipient", Some(json!(bob.did()))),
        with(&first, "/recipient", None),
        with(&alice.draft("HELLO", json!({})), "/id", Some(json!("once"))),
        with(&alice.draft("REQUEST", request), "/id", Some(json!("once"))),
    ] {
        let reply = hub.post_envelope(&alice.sign(&other)).await;
        assert_eq!(reply.status, 400, "{other}: {}", reply.text);
        assert_error(&reply, 400);
        assert!(reply.str("/payload/hint").contains("UUID"), "{}", reply.text);
        assert_eq!(reply.str("/payload/message_id"), "once");
    }
    assert_eq!(state(&hub).await, before);
    assert_eq!(hub.ids(&reads).await, ["once"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_forgets_nothing_that_was_said() {
    let hub = Hub::serve(&[]).await;
    let (alice, bob) = (Pen::of(1), Key::of(2));
    let reads = hub.provider(&bob, SEARCH, None).await;
    let asked = alice.draft("REQUEST", json!({"resource": SEARCH, "params": {}}));
    let note = alice.note(bob.public());
    let first = hub.post_envelope(&alice.sign(&asked)).await.expect(202);
    hub.post_envelope(&alice.sign(&note)).await.expect(202);
    let hub = hub.restart(&[]).await;
    let before = state(&hub).await;
    let again = hub.post_envelope(&alice.sign(&asked)).await.expect(202);
    assert_eq!(again.at("/payload"), first.at("/payload"));
    assert_eq!(again.header("rialto-job"), first.header("rialto-job"));
    hub.post_envelope(&alice.sign_removed(&note)).await.expect(202);
    for other in [
        with(&asked, "/payload/params", Some(json!({"q": "other"}))),
        with(&note, "/payload/status", Some(json!("idle"))),
    ] {
        assert_error(&hub.post_envelope(&alice.sign(&other)).await, 400);
    }
    assert_eq!(state(&hub).await, before);
    assert_eq!(hub.letters(&reads).await.len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_for_one_cannot_be_passed_to_another() {
    let hub = Hub::serve(&[]).await;
    let (alice, bob, carol) = (Key::of(1), Key::of(2), Key::of(3));
    let bob_reads = hub.provider(&bob, SEARCH, None).await;
    let carol_reads = hub.provider(&carol, SEARCH, None).await;
    // Their recipient is only in the path, and the first one is final.
    let request = alice.request(SEARCH, json!({}));
    let status = alice.sign(MessageType::Status, &json!({"status": "busy"}));
    let hello = alice.sign(MessageType::Hello, &json!({"nonce": "n"}));
    let error = alice.sign(MessageType::Error, &json!({"code": 500, "message": "broken"}));
    for said in [&request, &status, &hello, &error] {
        hub.tell_to(bob.did(), said).await.expect(202);
        let before = state(&hub).await;
        let reply = hub.tell_to(carol.did(), said).await;
        assert_error(&reply, 400);
        assert!(reply.str("/payload/message").contains("another recipient"), "{}", reply.text);
        // The repeat cannot be redirected to the hub or sent without a recipient.
        for path in [format!("/agora/agents/{}", hub.hub_key().await), "/agora/envelopes".into()] {
            let reply = hub.call("POST", &path, None, Some(&said.text)).await;
            assert_eq!(reply.status, 400, "{path} {said:?}: {}", reply.text);
        }
        // An unknown recipient gets the same answer.
        assert_error(&hub.tell_to(Key::of(9).did(), said).await, 400);
        assert_eq!(state(&hub).await, before);
        hub.tell_to(bob.did(), said).await.expect(202);
    }
    assert_eq!(hub.letters(&carol_reads).await.len(), 0);
    assert_eq!(hub.letters(&bob_reads).await.len(), 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_open_request_cannot_be_directed_to_one_agent_later() {
    let hub = Hub::serve(&[]).await;
    let (alice, bob, carol) = (Key::of(1), Key::of(2), Key::of(3));
    let bob_reads = hub.provider(&bob, SEARCH, None).await;
    let request = alice.request(SEARCH, json!({}));
    hub.tell(&request).await.expect(202);
    let carol_reads = hub.provider(&carol, SEARCH, None).await;
    for to in [&bob, &carol] {
        assert_error(&hub.tell_to(to.did(), &request).await, 400);
    }
    assert_eq!(hub.ids(&bob_reads).await, [request.id]);
    assert_eq!(hub.letters(&carol_reads).await.len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_refused_may_be_said_again_when_it_is_right() {
    let hub = Hub::serve(&[]).await;
    let (alice, bob) = (Key::of(1), Key::of(2));
    let request = alice.request(SEARCH, json!({}));
    assert_error(&hub.tell(&request).await, 404);
    let note = alice.sign(MessageType::Status, &json!({}));
    assert_error(&hub.tell_to(bob.did(), &note).await, 404);
    let reads = hub.provider(&bob, SEARCH, None).await;
    hub.tell(&request).await.expect(202);
    hub.tell_to(bob.did(), &note).await.expect(202);
    assert_eq!(hub.ids(&reads).await, [request.id, note.id]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_answer_stays_the_same_when_the_recipient_has_left() {
    let hub = Hub::serve(&[]).await;
    let (alice, bob) = (Key::of(1), Key::of(2));
    hub.provider(&bob, SEARCH, None).await;
    let note = alice.sign_for(MessageType::Status, &json!({"status": "busy"}), Some(bob.public()));
    let first = hub.tell(&note).await.expect(202);
    let request = alice.request(SEARCH, json!({}));
    let asked = hub.tell_to(bob.did(), &request).await.expect(202);
    remove(&hub, &bob).await;
    assert_error(&hub.tell_to(bob.did(), &alice.sign(MessageType::Status, &json!({}))).await, 404);
    assert_eq!(hub.tell(&note).await.expect(202).at("/payload"), first.at("/payload"));
    let again = hub.tell_to(bob.did(), &request).await.expect(202);
    assert_eq!(again.at("/payload"), asked.at("/payload"));
    assert_eq!(again.header("rialto-job"), asked.header("rialto-job"));
}

/// The operator removes an agent.
pub async fn remove(hub: &Hub, key: &Key) {
    let path = format!("/v1/operator/agents/{}", key.did());
    hub.call("DELETE", &path, Some(&hub.operator), None).await.expect(200);
}

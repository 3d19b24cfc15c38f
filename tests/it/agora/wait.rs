//! `?wait=ms`: the response of a POST carries the answer (2.1, R68).

use rialto_protocols::agora::MessageType;
use serde_json::json;

use super::kit::{Hub, Key, Said, assert_error, assert_signed};
use super::scene::{Pair, SEARCH, assert_hub_error};
use crate::kit::{Reply, eventually};

/// Posts an envelope and waits for its answer.
async fn tell_and_wait(hub: &Hub, said: &Said, wait: &str) -> Reply {
    hub.call("POST", &format!("/agora/envelopes?wait={wait}"), None, Some(&said.text)).await
}

/// Waits until Bob has the envelope, so that what he sends next answers it.
async fn comes_to_bob(pair: &Pair, said: &Said) {
    eventually(async || {
        let letters = pair.hub.letters(&pair.bob_reads).await;
        letters.iter().any(|letter| letter["envelope"]["id"] == said.id)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_is_answered_with_the_first_envelope_that_answers_it() {
    for (what, kind) in [("result", "RESULT"), ("offer", "OFFER"), ("error", "ERROR")] {
        let pair = Pair::meet().await;
        let Pair { hub, alice, bob, alice_reads, .. } = &pair;
        let request = alice.request(SEARCH, json!({"budget": {"max": 6}}));
        let answer = match what {
            "result" => bob.result(&request.id),
            "offer" => bob.offer(&request.id, json!(1)),
            _ => bob.error(&request.id, 500),
        };
        let (reply, ()) = tokio::join!(tell_and_wait(hub, &request, "30000"), async {
            comes_to_bob(&pair, &request).await;
            hub.told(&answer).await;
        });
        // A forwarded ERROR of the other party is a 200 of the hub.
        let reply = reply.expect(200);
        assert_eq!(reply.text, answer.text, "forwarded as signed");
        assert_eq!(reply.str("/type"), kind);
        assert_eq!(assert_signed(&reply.text), bob.public());
        assert!(reply.header("rialto-job").is_some());
        // It is in the inbox as well.
        assert_eq!(hub.newest(alice_reads).await, answer.json());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_accept_is_answered_with_the_result_or_the_error() {
    for fails in [false, true] {
        let pair = Pair::meet().await;
        let Pair { hub, alice, bob, .. } = &pair;
        let request = pair.ask(json!({"budget": {"max": 6}})).await;
        let offer = pair.offer(&request, json!(2)).await;
        let answer = if fails { bob.error(&request.id, 503) } else { bob.result(&request.id) };
        let accept = alice.accept(&offer);
        let (reply, ()) = tokio::join!(tell_and_wait(hub, &accept, "30000"), async {
            comes_to_bob(&pair, &accept).await;
            hub.told(&answer).await;
        });
        // Not with the offer that came before it.
        assert_eq!(reply.expect(200).text, answer.text);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn when_nothing_came_the_answer_is_that_it_was_taken() {
    let pair = Pair::meet().await;
    let Pair { hub, alice, bob, .. } = &pair;
    let other = pair.ask(json!({})).await;
    for wait in ["1", "0", "50"] {
        let request = alice.request(SEARCH, json!({}));
        let reply = tell_and_wait(hub, &request, wait).await.expect(202);
        assert_eq!(reply.str("/payload/status"), "accepted");
        assert_eq!(reply.str("/payload/request_id"), request.id);
    }
    // An answer to another request does not end the wait.
    let request = alice.request(SEARCH, json!({}));
    let (reply, ()) = tokio::join!(tell_and_wait(hub, &request, "1500"), async {
        comes_to_bob(&pair, &request).await;
        hub.told(&bob.result(&other.id)).await;
    });
    assert_eq!(reply.expect(202).str("/payload/request_id"), request.id);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_part_is_an_answer() {
    let pair = Pair::meet().await;
    let Pair { hub, alice, bob, .. } = &pair;
    let request = alice.request(SEARCH, json!({}));
    let part = bob.partial(&request.id, false);
    let (reply, ()) = tokio::join!(tell_and_wait(hub, &request, "30000"), async {
        comes_to_bob(&pair, &request).await;
        hub.told(&part).await;
    });
    assert_eq!(reply.expect(200).text, part.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_hubs_own_error_is_an_answer_too() {
    let pair = Pair::meet().await;
    let Pair { hub, alice, alice_reads, .. } = &pair;
    let request = alice.request(SEARCH, json!({"timeout": 500}));
    let reply = tell_and_wait(hub, &request, "30000").await.expect(200);
    assert_eq!(assert_signed(&reply.text), hub.hub_key().await);
    assert_eq!(reply.at("/payload/code"), 408);
    let letters = hub.letters(alice_reads).await;
    assert_hub_error(hub.hub_key().await, &letters[0], &request, 408);
    assert_eq!(letters[0]["envelope"], reply.json(), "the same envelope in both reads");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_asks_again_gets_the_answer_that_came_meanwhile() {
    let pair = Pair::meet().await;
    let Pair { hub, alice, bob, .. } = &pair;
    let request = alice.request(SEARCH, json!({}));
    tell_and_wait(hub, &request, "1").await.expect(202);
    let result = bob.result(&request.id);
    hub.told(&result).await;
    assert_eq!(tell_and_wait(hub, &request, "30000").await.expect(200).text, result.text);
    assert_eq!(hub.letters(&pair.bob_reads).await.len(), 1, "it was asked once");
}

#[tokio::test(flavor = "multi_thread")]
async fn it_works_for_the_agent_in_the_path_and_at_the_prefix_itself() {
    let pair = Pair::meet().await;
    let Pair { hub, alice, bob, .. } = &pair;
    for path in [format!("/agora/agents/{}", bob.did()), "/agora".to_owned()] {
        let request = alice.request(SEARCH, json!({}));
        let result = bob.result(&request.id);
        let path = format!("{path}?wait=30000");
        let (reply, ()) = tokio::join!(hub.call("POST", &path, None, Some(&request.text)), async {
            comes_to_bob(&pair, &request).await;
            hub.told(&result).await;
        });
        assert_eq!(reply.expect(200).text, result.text);
    }
}

#[tokio::test]
async fn other_messages_are_answered_at_once() {
    let pair = Pair::meet().await;
    let Pair { hub, alice, bob, .. } = &pair;
    let request = pair.ask(json!({"budget": {"max": 6}})).await;
    for said in [
        bob.offer(&request.id, json!(1)),
        bob.sign(MessageType::Status, &json!({"status": "busy"})),
        alice.sign_for(MessageType::Hello, &json!({}), Some(bob.public())),
        alice.error(&request.id, 500),
    ] {
        tell_and_wait(hub, &said, "30000").await.expect(202);
    }
    let hello = alice.sign(MessageType::Hello, &json!({}));
    assert_eq!(tell_and_wait(hub, &hello, "30000").await.expect(200).str("/type"), "WELCOME");
    // A refusal is returned at once and keeps its status.
    assert_error(&tell_and_wait(hub, &bob.result(&request.id), "30000").await, 400);
}

#[tokio::test]
async fn a_wait_that_is_none_is_refused_and_nothing_is_taken() {
    let pair = Pair::meet().await;
    let Pair { hub, alice, .. } = &pair;
    for wait in ["-1", "30001", "x", "", "1.5", "1e5", "99999999999999999999"] {
        let before = hub.held().await;
        let request = alice.request(SEARCH, json!({}));
        let reply = tell_and_wait(hub, &request, wait).await;
        assert_error(&reply, 400);
        assert!(reply.str("/payload/message").contains("wait"), "{wait}: {}", reply.text);
        assert_eq!(hub.held().await, before, "{wait}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_accept_said_again_is_answered_with_what_came_of_it_and_not_with_its_offer() {
    let pair = Pair::meet().await;
    let Pair { hub, alice, bob, .. } = &pair;
    let request = pair.ask(json!({"budget": {"max": 6}})).await;
    let offer = pair.offer(&request, json!(2)).await;
    let accept = alice.accept(&offer);
    tell_and_wait(hub, &accept, "1").await.expect(202);
    // There is no answer yet, and the accepted offer does not answer its ACCEPT.
    tell_and_wait(hub, &accept, "1").await.expect(202);
    let result = bob.result(&request.id);
    hub.told(&result).await;
    assert_eq!(tell_and_wait(hub, &accept, "30000").await.expect(200).text, result.text);
    // A repeat gets the first answer.
    assert_eq!(tell_and_wait(hub, &request, "30000").await.expect(200).text, offer.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_of_an_agent_that_was_not_asked_is_ignored() {
    let pair = Pair::meet().await;
    let Pair { hub, alice, bob, .. } = &pair;
    let mallory = Key::of(9);
    let request = alice.request(SEARCH, json!({}));
    // Mallory has her own request to Alice under the same id, and withdraws it.
    let payload = json!({"resource": SEARCH, "params": {}});
    let kind = MessageType::Request;
    let own = mallory.sign_at(&request.id, super::kit::now(), kind, &payload, Some(alice.public()));
    let result = bob.result(&request.id);
    let (reply, ()) = tokio::join!(tell_and_wait(hub, &request, "30000"), async {
        comes_to_bob(&pair, &request).await;
        hub.told(&own).await;
        assert_eq!(hub.told(&mallory.error(&request.id, 500)).await, "FAILED");
        hub.told(&result).await;
    });
    assert_eq!(reply.expect(200).text, result.text);
}

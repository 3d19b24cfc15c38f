//! REQUEST, OFFER, ACCEPT, RESULT between two agents, and what each state refuses (R32, R34–R38,
//! R40, R41, R43, R47–R49, R51, R52, D10, D15).

use rialto_protocols::agora::MessageType;
use serde_json::{Value, json};

use super::kit::{Key, assert_error};
use super::scene::{Pair, credits, offer};

#[tokio::test]
async fn every_message_moves_the_request_on_and_reaches_the_other_party_as_it_was_signed() {
    let pair = Pair::meet().await;
    let Pair { hub, alice, bob, alice_reads, bob_reads } = &pair;
    let request = pair.ask(json!({"budget": {"max": 6}})).await;
    assert_eq!(pair.state(&request).await, "PENDING");
    assert_eq!(hub.newest(bob_reads).await, request.json());
    let first = pair.offer(&request, json!(5.25)).await;
    assert_eq!(pair.state(&request).await, "NEGOTIATING");
    assert_eq!(hub.newest(alice_reads).await, first.json());
    // The offer's id is its envelope's id, and the request's id is the REQUEST's.
    let accept = alice.accept(&first);
    assert_eq!(hub.told(&accept).await, "PROCESSING");
    assert_eq!(pair.state(&request).await, "PROCESSING");
    assert_eq!(hub.newest(bob_reads).await, accept.json());
    let result = bob.result(&request.id);
    assert_eq!(hub.told(&result).await, "COMPLETED");
    assert_eq!(pair.state(&request).await, "COMPLETED");
    assert_eq!(hub.newest(alice_reads).await, result.json());
    // There are no further envelopes.
    assert_eq!(hub.letters(alice_reads).await.len(), 2);
    assert_eq!(hub.letters(bob_reads).await.len(), 2);
}

#[tokio::test]
async fn four_offers_may_be_made_and_any_one_of_them_accepted_but_no_second() {
    let pair = Pair::meet().await;
    let Pair { hub, alice, bob, bob_reads, .. } = &pair;
    let request = pair.ask(json!({"budget": {"max": 6}})).await;
    let mut offers = Vec::new();
    for cost in [5.0, 4.0, 3.5, 3.0] {
        offers.push(pair.offer(&request, json!(cost)).await);
    }
    let refused = hub.refuses(&bob.offer(&request.id, json!(1)), 400).await;
    assert!(refused.str("/payload/message").contains('4'), "{}", refused.text);
    assert_eq!(hub.told(&alice.accept(&offers[2])).await, "PROCESSING");
    assert_eq!(pair.account().await, credits("6.5", "3.5"));
    for other in [&offers[0], &offers[2], &offers[3]] {
        hub.refuses(&alice.accept(other), 400).await;
    }
    // The chosen provider is not notified about its own other offers.
    assert_eq!(hub.letters(bob_reads).await.len(), 2);
    hub.told(&bob.result(&request.id)).await;
    assert_eq!(
        (pair.account().await, pair.earned().await),
        (credits("6.5", "0"), "3.5".to_owned())
    );
}

#[tokio::test]
async fn what_comes_in_the_wrong_state_is_refused() {
    let pair = Pair::meet().await;
    let Pair { hub, alice, bob, .. } = &pair;
    let request = pair.ask(json!({"budget": {"max": 6}})).await;
    let first = pair.offer(&request, json!(2)).await;
    // A worker that has made an offer waits for the answer.
    hub.refuses(&bob.result(&request.id), 400).await;
    hub.refuses(&bob.partial(&request.id, false), 400).await;
    hub.told(&alice.accept(&first)).await;
    hub.refuses(&bob.offer(&request.id, json!(1)), 400).await;
    hub.refuses(&alice.accept(&first), 400).await;
    // A requester that has accepted cannot withdraw.
    hub.refuses(&alice.error(&request.id, 500), 400).await;
    hub.told(&bob.result(&request.id)).await;
    for late in [
        bob.result(&request.id),
        bob.partial(&request.id, true),
        bob.offer(&request.id, json!(1)),
        bob.error(&request.id, 500),
        alice.error(&request.id, 500),
        alice.accept(&first),
    ] {
        let refused = hub.refuses(&late, 400).await;
        assert_eq!(refused.at("/payload/retryable"), false);
    }
    assert_eq!(pair.state(&request).await, "COMPLETED");
}

#[tokio::test]
async fn nothing_can_be_said_about_a_request_that_failed() {
    let pair = Pair::meet().await;
    let Pair { hub, alice, bob, .. } = &pair;
    let request = pair.ask(json!({"budget": {"max": 6}})).await;
    let first = pair.offer(&request, json!(2)).await;
    assert_eq!(hub.told(&bob.error(&request.id, 503)).await, "FAILED");
    for late in [
        bob.result(&request.id),
        bob.offer(&request.id, json!(1)),
        bob.error(&request.id, 500),
        alice.accept(&first),
        alice.error(&request.id, 500),
    ] {
        hub.refuses(&late, 400).await;
    }
    assert_eq!(pair.state(&request).await, "FAILED");
    assert_eq!(pair.account().await, credits("10", "0"));
}

#[tokio::test]
async fn other_agents_get_the_same_answer_as_for_unused_ids() {
    let pair = Pair::meet().await;
    let Pair { hub, alice, bob, .. } = &pair;
    let mallory = Key::of(9);
    hub.hello(&mallory, json!({})).await;
    let request = pair.ask(json!({"budget": {"max": 6}})).await;
    let first = pair.offer(&request, json!(2)).await;
    let message = async |by: &Key, kind, payload: Value| {
        let refused = hub.refuses(&by.sign(kind, &payload), 401).await;
        (refused.str("/payload/message"), refused.at("/payload/retryable"))
    };
    let nobodys = message(&mallory, MessageType::Accept, json!({"offer_id": "never"})).await;
    for id in [&*request.id, "never"] {
        let terms = json!({"request_id": id, "cost": 1, "ttl": 1, "eta": 0});
        let output = json!({"request_id": id, "status": "success", "data": {}});
        let error = json!({"request_id": id, "code": 500, "message": "no"});
        for (kind, payload) in [
            (MessageType::Offer, terms),
            (MessageType::Result, output),
            (MessageType::Error, error),
        ] {
            assert_eq!(message(&mallory, kind, payload).await, nobodys, "{kind} {id}");
        }
    }
    let taken = json!({"offer_id": first.id});
    assert_eq!(message(&mallory, MessageType::Accept, taken.clone()).await, nobodys);
    // Neither party may act as the other.
    assert_eq!(message(bob, MessageType::Accept, taken).await, nobodys);
    let own = json!({"request_id": request.id, "cost": 1, "ttl": 1, "eta": 0});
    assert_eq!(message(alice, MessageType::Offer, own).await, nobodys);
    let own = json!({"request_id": request.id, "status": "success", "data": {}});
    assert_eq!(message(alice, MessageType::Result, own).await, nobodys);
    // An offer's id is not valid as a request's id, nor the reverse.
    let crossed = json!({"request_id": first.id, "status": "success", "data": {}});
    assert_eq!(message(bob, MessageType::Result, crossed).await, nobodys);
    assert_eq!(message(alice, MessageType::Accept, json!({"offer_id": request.id})).await, nobodys);
    assert_eq!(pair.state(&request).await, "NEGOTIATING");
}

#[tokio::test]
async fn a_newcomer_that_is_refused_leaves_no_trace() {
    let pair = Pair::meet().await;
    let mallory = Key::of(9);
    pair.hub.refuses(&mallory.accept_id("never"), 401).await;
    let path = format!("/agora/agents/{}", mallory.did());
    assert_error(&pair.hub.get(&path, None).await, 404);
}

#[tokio::test]
async fn the_members_of_each_message_have_their_types_and_ranges() {
    let pair = Pair::meet().await;
    let Pair { hub, alice, bob, .. } = &pair;
    let request = pair.ask(json!({"budget": {"max": 6}})).await;
    let ask = json!({"resource": "agora:search:v1", "params": {}});
    let terms = json!({"request_id": request.id, "cost": 1, "ttl": 1, "eta": 0});
    let output = json!({"request_id": request.id, "status": "success", "data": {}});
    let error = json!({"request_id": request.id, "code": 500, "message": "no"});
    let accept = json!({"offer_id": "o"});
    let none = Value::Null;
    let long = json!("x".repeat(257));
    let bad = [
        (
            alice,
            MessageType::Request,
            &ask,
            "resource",
            vec![none.clone(), json!(1), json!(""), long],
        ),
        (alice, MessageType::Request, &ask, "params", vec![none.clone(), json!([]), json!("{}")]),
        (alice, MessageType::Request, &ask, "budget", vec![json!(5), json!("5"), json!([5])]),
        (
            alice,
            MessageType::Request,
            &ask,
            "timeout",
            vec![json!(0), json!(-1), json!(1.5), json!("1000"), json!(86_400_001)],
        ),
        (bob, MessageType::Offer, &terms, "request_id", vec![none.clone(), json!(1), json!("")]),
        (
            bob,
            MessageType::Offer,
            &terms,
            "cost",
            vec![none.clone(), json!(-1), json!("1"), json!(0.000_000_1), json!(1e10)],
        ),
        (
            bob,
            MessageType::Offer,
            &terms,
            "ttl",
            vec![none.clone(), json!(0), json!(-1), json!(1.5)],
        ),
        (
            bob,
            MessageType::Offer,
            &terms,
            "eta",
            vec![none.clone(), json!(-1), json!("0"), json!(0.5)],
        ),
        (alice, MessageType::Accept, &accept, "offer_id", vec![none.clone(), json!(7), json!("")]),
        (alice, MessageType::Accept, &accept, "payment_proof", vec![json!(1), json!({})]),
        (bob, MessageType::Result, &output, "request_id", vec![none.clone(), json!(1)]),
        (
            bob,
            MessageType::Result,
            &output,
            "status",
            vec![none.clone(), json!("failed"), json!("SUCCESS"), json!(true)],
        ),
        (
            bob,
            MessageType::Result,
            &output,
            "data",
            vec![none.clone(), json!([]), json!("x"), json!(1)],
        ),
        (bob, MessageType::Result, &output, "final", vec![json!("true"), json!(1)]),
        (bob, MessageType::Error, &error, "code", vec![none.clone(), json!("500"), json!(500.5)]),
        (bob, MessageType::Error, &error, "message", vec![none.clone(), json!(1)]),
        (bob, MessageType::Error, &error, "request_id", vec![json!(1), json!({})]),
    ];
    let before = hub.held().await;
    for (by, kind, good, member, values) in bad {
        for value in values {
            let mut payload = good.clone();
            payload[member] = value.clone();
            let reply = hub.tell(&by.sign(kind, &payload)).await;
            assert_error(&reply, 400);
            let field = reply.str("/payload/field");
            assert_eq!(field, format!("/payload/{member}"), "{kind} {value}: {}", reply.text);
            assert!(reply.str("/payload/message").contains(member), "{}", reply.text);
            assert!(reply.at("/payload/example").is_object(), "{}", reply.text);
        }
    }
    assert_eq!(hub.held().await, before);
    // The limits of the ranges are valid.
    hub.told(&alice.request("agora:search:v1", json!({"timeout": 86_400_000}))).await;
    hub.told(&offer(bob, &request.id, json!(0), json!(1), json!(0))).await;
}

#[tokio::test]
async fn a_proof_of_payment_is_kept_and_passed_on_and_not_interpreted() {
    let pair = Pair::meet().await;
    let Pair { hub, alice, bob, bob_reads, .. } = &pair;
    let request = pair.ask(json!({"budget": {"max": 6}})).await;
    let offer = pair.offer(&request, json!(2)).await;
    let payload = json!({"offer_id": offer.id, "payment_proof": "ipfs://☂\n{\"paid\":1000}"});
    let accept = alice.sign_for(MessageType::Accept, &payload, Some(bob.public()));
    hub.told(&accept).await;
    assert_eq!(hub.newest(bob_reads).await["payload"], payload);
    // Nothing is paid for it.
    assert_eq!(pair.account().await, credits("8", "2"));
    let kept = hub.engine.with_world(|world| {
        world.live_jobs().find_map(|job| job.payment.proof.clone()).expect("it is kept")
    });
    assert_eq!(payload["payment_proof"], kept);
    hub.told(&bob.result(&request.id)).await;
    assert_eq!(pair.earned().await, "2");
}

#[tokio::test]
async fn the_requester_may_withdraw_until_a_worker_starts() {
    for offered in [false, true] {
        let pair = Pair::meet().await;
        let Pair { hub, alice, bob, bob_reads, .. } = &pair;
        let request = pair.ask(json!({"budget": {"max": 6}})).await;
        let mut offers = Vec::new();
        if offered {
            offers.push(pair.offer(&request, json!(2)).await);
        }
        let withdrawal = alice.error(&request.id, 500);
        assert_eq!(hub.told(&withdrawal).await, "FAILED");
        assert_eq!(pair.state(&request).await, "FAILED");
        assert_eq!(hub.newest(bob_reads).await, withdrawal.json());
        hub.refuses(&bob.result(&request.id), 400).await;
        for offer in &offers {
            hub.refuses(&alice.accept(offer), 400).await;
        }
        assert_eq!(pair.account().await, credits("10", "0"));
        assert_eq!(hub.standing_of(bob.did()), Default::default(), "neither party failed");
    }
}

#[tokio::test]
async fn an_unanswered_offer_stays_open() {
    let pair = Pair::meet().await;
    let Pair { hub, alice, alice_reads, bob_reads, .. } = &pair;
    let request = pair.ask(json!({"budget": {"max": 6}})).await;
    let first = pair.offer(&request, json!(2)).await;
    let second = pair.offer(&request, json!(1)).await;
    // There is no message that declines an offer: an offer that is not accepted gets no answer.
    assert_eq!(hub.letters(bob_reads).await.len(), 1);
    let offers = hub.standing(alice_reads, &request.id).await["offers"].clone();
    assert_eq!(offers[0]["offer_id"], first.id);
    assert_eq!(offers[1]["offer_id"], second.id);
    hub.told(&alice.accept(&second)).await;
    assert_eq!(pair.account().await, credits("9", "1"));
}

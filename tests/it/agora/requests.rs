//! `GET /requests/{id}`: the state of a request, for its parties only (R34–R39, 2.1).

use rialto_protocols::agora::MessageType;
use rialto_protocols::kit::rfc3339;
use serde_json::{Value, json};

use super::kit::{Key, Said, Token, assert_error, foreign, fresh_id, now};
use super::scene::{Pair, SEARCH, offer};

/// The answer, with the members that are always present.
async fn shown(pair: &Pair, reads: &Token, request: &Said) -> Value {
    let shown = pair.hub.standing(reads, &request.id).await;
    let members: Vec<&str> = shown.as_object().expect("an object").keys().map(|k| &**k).collect();
    assert_eq!(members, ["deadline", "offers", "provider", "request_id", "state"]);
    assert_eq!(shown["request_id"], request.id);
    rfc3339::parse(shown["deadline"].as_str().expect("text")).expect("a moment");
    shown
}

#[tokio::test]
async fn both_parties_see_every_state_on_the_way() {
    let pair = Pair::meet().await;
    let Pair { hub, alice, bob, alice_reads, bob_reads } = &pair;
    let request = pair.ask(json!({"budget": {"max": 6}})).await;
    let both = async |state: &str, offers: &Value| {
        for reads in [alice_reads, bob_reads] {
            let shown = shown(&pair, reads, &request).await;
            assert_eq!(shown["state"], state);
            assert_eq!(shown["provider"], bob.did());
            assert_eq!(shown["offers"], *offers);
        }
    };
    both("PENDING", &json!([])).await;
    let offer = offer(bob, &request.id, json!(5.25), json!(60_000), json!(1_234));
    hub.told(&offer).await;
    let expires_at = shown(&pair, alice_reads, &request).await["offers"][0]["expires_at"].clone();
    let offers = json!([{"offer_id": offer.id, "provider": bob.did(), "cost": 5.25, "eta": 1_234,
        "expires_at": expires_at}]);
    both("NEGOTIATING", &offers).await;
    hub.told(&alice.accept(&offer)).await;
    both("PROCESSING", &offers).await;
    hub.told(&bob.partial(&request.id, false)).await;
    both("PROCESSING", &offers).await;
    hub.told(&bob.result(&request.id)).await;
    both("COMPLETED", &offers).await;
}

#[tokio::test]
async fn a_failed_request_is_shown_as_failed_however_it_failed() {
    let pair = Pair::meet().await;
    let Pair { hub, alice, bob, .. } = &pair;
    let refused = pair.ask(json!({})).await;
    hub.told(&bob.error(&refused.id, 404)).await;
    let withdrawn = pair.ask(json!({})).await;
    hub.told(&alice.error(&withdrawn.id, 500)).await;
    let silent = pair.ask(json!({"timeout": 500})).await;
    pair.fails(&silent).await;
    for request in [&refused, &withdrawn, &silent] {
        assert_eq!(pair.state(request).await, "FAILED");
    }
}

#[tokio::test]
async fn a_provider_sees_its_own_offers_and_the_requester_sees_all() {
    let pair = Pair::meet().await;
    let Pair { hub, alice, bob, alice_reads, bob_reads } = &pair;
    let (carol, dave) = (Key::of(3), Key::of(4));
    let carol_reads = hub.provider(&carol, SEARCH, None).await;
    let dave_reads = hub.provider(&dave, SEARCH, None).await;
    let request = pair.ask(json!({"budget": {"max": 6}})).await;
    let bobs = pair.offer(&request, json!(5)).await;
    let carols = carol.offer(&request.id, json!(4));
    hub.told(&carols).await;
    let seen = async |reads: &Token| -> Vec<String> {
        let shown = shown(&pair, reads, &request).await;
        let offers = shown["offers"].as_array().expect("a list").clone();
        offers.iter().map(|one| one["offer_id"].as_str().expect("text").to_owned()).collect()
    };
    assert_eq!(seen(alice_reads).await, [&*bobs.id, &carols.id]);
    assert_eq!(seen(bob_reads).await, [&*bobs.id]);
    assert_eq!(seen(&carol_reads).await, [&*carols.id]);
    assert_eq!(seen(&dave_reads).await, Vec::<String>::new());
    // No provider yet; then one.
    assert_eq!(shown(&pair, alice_reads, &request).await["provider"], Value::Null);
    hub.told(&alice.accept(&bobs)).await;
    assert_eq!(shown(&pair, alice_reads, &request).await["provider"], bob.did());
    assert_eq!(seen(&carol_reads).await, [&*carols.id]);
}

#[tokio::test]
async fn a_stranger_is_told_what_is_told_about_nothing() {
    let pair = Pair::meet().await;
    let hub = &pair.hub;
    let mallory = hub.hello(&Key::of(9), json!({})).await;
    let request = pair.ask(json!({"budget": {"max": 6}})).await;
    let offer = pair.offer(&request, json!(1)).await;
    let asked = async |id: &str, reads: &Token| {
        let reply = hub.get(&format!("/agora/requests/{id}"), Some(&reads.0)).await;
        assert_error(&reply, 404);
        reply.at("/payload")
    };
    let nothing = asked("never", &mallory).await;
    assert_eq!(asked(&request.id, &mallory).await, nothing);
    assert_eq!(asked("never", &pair.alice_reads).await, nothing);
    // The id of an offer is not a request id, for either party.
    assert_eq!(asked(&offer.id, &pair.alice_reads).await, nothing);
    // The hub's own job id is not valid here either.
    let uuid = hub.engine.with_world(|world| world.live_jobs().next().expect("a job").uuid);
    assert_eq!(asked(&uuid.to_string(), &mallory).await, nothing);
}

#[tokio::test]
async fn only_an_inbox_token_opens_it() {
    let pair = Pair::meet().await;
    let request = pair.ask(json!({})).await;
    let path = format!("/agora/requests/{}", request.id);
    let broken = format!("{}A", pair.alice_reads.0);
    for key in [None, Some("at_"), Some(broken.as_str()), Some(pair.hub.operator.as_str())] {
        assert_error(&pair.hub.get(&path, key).await, 401);
    }
    // A token is valid until its expiry, also over a restart.
    let Pair { hub, alice_reads, .. } = pair;
    let hub = hub.restart(&[]).await;
    assert_eq!(hub.state_of(&alice_reads, &request.id).await, "PENDING");
}

#[tokio::test]
async fn two_requesters_may_use_one_id_and_each_sees_its_own() {
    let pair = Pair::meet().await;
    let Pair { hub, alice, bob, alice_reads, bob_reads } = &pair;
    let (carol, dave) = (Key::of(3), Key::of(4));
    let carol_reads = hub.hello(&carol, json!({})).await;
    let dave_reads = hub.provider(&dave, "agora:paint:v1", None).await;
    let same = |by: &Key, resource: &str| {
        let payload = json!({"resource": resource, "params": {}});
        let kind = MessageType::Request;
        by.sign_at("one-id", now(), kind, &payload, None)
    };
    let (hers, other) = (same(alice, SEARCH), same(&carol, "agora:paint:v1"));
    hub.told(&hers).await;
    hub.told(&other).await;
    hub.told(&bob.result("one-id")).await;
    assert_eq!(shown(&pair, alice_reads, &hers).await["state"], "COMPLETED");
    assert_eq!(shown(&pair, bob_reads, &hers).await["state"], "COMPLETED");
    assert_eq!(shown(&pair, &carol_reads, &other).await["state"], "PENDING");
    assert_eq!(shown(&pair, &dave_reads, &other).await["provider"], dave.did());
}

#[tokio::test]
async fn any_id_can_be_asked_for() {
    let pair = Pair::meet().await;
    for id in ["a/b", "ä ö?x=1#y", "../requests", "%2F", "{\"a\":1}", &"x".repeat(128)] {
        let payload = json!({"resource": SEARCH, "params": {}});
        let kind = MessageType::Request;
        let request = pair.alice.sign_at(id, now(), kind, &payload, None);
        pair.hub.told(&request).await;
        let escaped = crate::relay::kit::escaped(id);
        for reads in [&pair.alice_reads, &pair.bob_reads] {
            let shown = pair.hub.standing(reads, &escaped).await;
            assert_eq!((&shown["request_id"], &shown["state"]), (&json!(id), &json!("PENDING")));
        }
        assert_eq!(pair.hub.told(&pair.bob.result(id)).await, "COMPLETED");
    }
}

#[tokio::test]
async fn an_offer_for_ever_is_shown_and_can_be_taken() {
    let pair = Pair::meet().await;
    let request = pair.ask(json!({"budget": {"max": 6}})).await;
    let most = json!(9_007_199_254_740_991_i64);
    let endless = offer(&pair.bob, &request.id, json!(1), most.clone(), most.clone());
    pair.hub.told(&endless).await;
    for reads in [&pair.alice_reads, &pair.bob_reads] {
        let shown = shown(&pair, reads, &request).await["offers"][0].clone();
        assert_eq!(shown["eta"], most);
        rfc3339::parse(shown["expires_at"].as_str().expect("text")).expect("a moment");
    }
    assert_eq!(pair.hub.told(&pair.alice.accept(&endless)).await, "PROCESSING");
}

#[tokio::test]
async fn another_requesters_equal_id_neither_blocks_an_offer_nor_hides_a_request() {
    let pair = Pair::meet().await;
    let Pair { hub, alice, bob, alice_reads, bob_reads } = &pair;
    let carol = Key::of(3);
    let carol_reads = hub.hello(&carol, json!({})).await;
    let (asked, terms) = (&foreign(MessageType::Request)[0], &foreign(MessageType::Offer)[0]);
    let id = "11111111-1111-1111-1111-111111111111";
    for by in [alice, &carol] {
        hub.told(&by.sign_text(id, now(), MessageType::Request, asked, None)).await;
    }
    // Both are listed, the older first, each with its requester.
    let both = hub.standing(bob_reads, id).await;
    assert_eq!((&both["requester"], &both["state"]), (&json!(alice.did()), &json!("PENDING")));
    assert_eq!(both["others"][0]["requester"], carol.did());
    // The recipient of an OFFER decides which request is meant.
    let offer_to = |to: Option<&Key>| {
        bob.sign_text(&fresh_id("offer"), now(), MessageType::Offer, terms, to.map(Key::public))
    };
    let unclear = hub.refuses(&offer_to(None), 400).await;
    assert!(unclear.str("/payload/hint").contains("recipient"), "{}", unclear.text);
    let (hers, carols) = (offer_to(Some(alice)), offer_to(Some(&carol)));
    assert_eq!(hub.told(&hers).await, "NEGOTIATING");
    assert_eq!(hub.newest(alice_reads).await, hers.json());
    assert_eq!(hub.letters(&carol_reads).await.len(), 0);
    assert_eq!(hub.told(&carols).await, "NEGOTIATING");
    // Once one of them has ended, the id means the other.
    hub.told(&carol.error(id, 500)).await;
    let left = hub.standing(bob_reads, id).await;
    assert_eq!((&left["requester"], left.get("others")), (&json!(alice.did()), None));
    assert_eq!(hub.told(&offer_to(None)).await, "NEGOTIATING");
    let path = format!("{id}?requester={}", carol.did());
    assert_eq!(hub.standing(bob_reads, &path).await["state"], "FAILED");
}

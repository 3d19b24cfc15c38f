//! Recipients of envelopes: by member, by path, by request id, by resource (R26–R31, D6, D20).

use rialto_protocols::agora::MessageType;
use serde_json::json;

use super::kit::{Hub, Key, assert_error, envelope_of};
use super::pen::{Pen, state};
use crate::relay::kit::with;

const SEARCH: &str = "agora:search:v1";

#[tokio::test(flavor = "multi_thread")]
async fn the_path_names_the_recipient_else_the_envelope_and_both_must_agree() {
    let hub = Hub::serve(&[]).await;
    let (alice, bob, carol) = (Key::of(1), Key::of(2), Key::of(3));
    let (bob_reads, carol_reads) =
        (hub.hello(&bob, json!({})).await, hub.hello(&carol, json!({})).await);
    let by_path = alice.sign(MessageType::Status, &json!({"n": 1}));
    hub.tell_to(bob.did(), &by_path).await.expect(202);
    let by_member = alice.sign_for(MessageType::Status, &json!({"n": 2}), Some(bob.public()));
    hub.tell(&by_member).await.expect(202);
    let by_both = alice.sign_for(MessageType::Status, &json!({"n": 3}), Some(bob.public()));
    hub.tell_to(bob.did(), &by_both).await.expect(202);
    let text = with(&Pen::of(1).note(bob.public()), "/recipient", Some(json!(bob.did())));
    hub.post_envelope(&Pen::of(1).sign(&text)).await.expect(202);
    assert_eq!(hub.letters(&bob_reads).await.len(), 4);
    let before = state(&hub).await;
    for kind in [MessageType::Status, MessageType::Hello, MessageType::Welcome] {
        let torn = alice.sign_for(kind, &json!({}), Some(bob.public()));
        let reply = hub.tell_to(carol.did(), &torn).await;
        assert_error(&reply, 400);
        assert_eq!(reply.str("/payload/field"), "/recipient");
        // A path must not redirect an envelope for Bob to the hub.
        assert_error(&hub.tell_to(&hub.hub_key().await.did(), &torn).await, 400);
    }
    assert_eq!(state(&hub).await, before);
    assert_eq!(hub.letters(&carol_reads).await.len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_about_a_request_goes_to_its_other_party_and_nowhere_else() {
    let hub = Hub::serve(&[]).await;
    let (alice, bob, carol) = (Key::of(1), Key::of(2), Key::of(3));
    hub.fund(&alice, "10").await;
    let alice_reads = hub.hello(&alice, json!({})).await;
    let bob_reads = hub.provider(&bob, SEARCH, None).await;
    let carol_reads = hub.hello(&carol, json!({})).await;
    let request = alice.request(SEARCH, json!({"budget": {"max": 5}}));
    hub.tell(&request).await.expect(202);
    let offer = bob.offer(&request.id, json!(1));
    let said = [
        (&bob, offer.clone(), &alice, &alice_reads),
        (&alice, alice.accept_id(&offer.id), &bob, &bob_reads),
        (&bob, bob.partial(&request.id, false), &alice, &alice_reads),
        (&bob, bob.result(&request.id), &alice, &alice_reads),
    ];
    for (_, one, to, reads) in &said {
        let before = state(&hub).await;
        // To another agent or to the hub: this contradicts the request id.
        for wrong in [carol.public(), hub.hub_key().await] {
            assert_error(&hub.tell_to(&wrong.did(), one).await, 400);
        }
        assert_error(&hub.tell_to(Key::of(9).did(), one).await, 404);
        assert_eq!(state(&hub).await, before);
        hub.tell(one).await.expect(202);
        assert_eq!(hub.newest(reads).await, one.json());
        // Naming the actual recipient makes it a repeat; naming another is an error (R30).
        let before = state(&hub).await;
        hub.tell_to(to.did(), one).await.expect(202);
        assert_error(&hub.tell_to(carol.did(), one).await, 400);
        assert_eq!(state(&hub).await, before);
    }
    // An ERROR of either party reaches the other.
    let request = alice.request(SEARCH, json!({}));
    hub.tell(&request).await.expect(202);
    let error = bob.error(&request.id, 503);
    assert_error(&hub.tell_to(carol.did(), &error).await, 400);
    hub.tell(&error).await.expect(202);
    assert_eq!(hub.newest(&alice_reads).await, error.json());
    assert_eq!(hub.letters(&carol_reads).await.len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_without_a_receiver_goes_to_agents_that_list_exactly_its_resource() {
    let hub = Hub::serve(&[("agora.fanout", "3")]).await;
    let alice = Key::of(1);
    hub.hello(&alice, json!({"capabilities": [SEARCH]})).await;
    let mut reads = Vec::new();
    for (number, resource) in (2..).zip([SEARCH, SEARCH, SEARCH, SEARCH, "agora:search:v10"]) {
        reads.push(hub.provider(&Key::of(number), resource, None).await);
    }
    let asked = async |id: &str| {
        let mut asked = Vec::new();
        for reads in &reads {
            asked.push(hub.ids(reads).await.iter().any(|one| one == id));
        }
        asked
    };
    // With a budget, the best few are invited to offer; all rank equally, so the earliest win.
    let many = alice.request(SEARCH, json!({"budget": {"max": 5}}));
    hub.tell(&many).await.expect(202);
    assert_eq!(asked(&many.id).await, [true, true, true, false, false]);
    // Without a budget, one worker is chosen.
    let one = alice.request(SEARCH, json!({}));
    hub.tell(&one).await.expect(202);
    assert_eq!(asked(&one.id).await, [true, false, false, false, false]);
    // Offline agents rank after online ones.
    let away = Key::of(2).sign(MessageType::Status, &json!({"status": "offline"}));
    hub.tell(&away).await.expect(202);
    let other = alice.request(SEARCH, json!({}));
    hub.tell(&other).await.expect(202);
    assert_eq!(asked(&other.id).await, [false, true, false, false, false]);
    let before = state(&hub).await;
    for resource in ["agora:search", "agora:search:v2", "AGORA:SEARCH:V1", "*"] {
        for more in [json!({}), json!({"budget": {"max": 5}})] {
            let reply = hub.tell(&alice.request(resource, more)).await;
            assert_error(&reply, 404);
            assert!(reply.str("/payload/hint").contains("/agora/agents?resource="));
        }
    }
    assert_eq!(state(&hub).await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_better_score_comes_before_an_earlier_registration() {
    let hub = Hub::serve(&[]).await;
    let (alice, bob, carol) = (Key::of(1), Key::of(2), Key::of(3));
    hub.fund(&alice, "10").await;
    let bob_reads = hub.provider(&bob, SEARCH, None).await;
    let carol_reads = hub.provider(&carol, SEARCH, None).await;
    // Carol completes paid work.
    let request = alice.request(SEARCH, json!({"budget": {"max": 5}}));
    hub.tell_to(carol.did(), &request).await.expect(202);
    let offer = carol.offer(&request.id, json!(1));
    for said in [&offer, &alice.accept(&offer), &carol.result(&request.id)] {
        hub.tell(said).await.expect(202);
    }
    let next = alice.request(SEARCH, json!({}));
    hub.tell(&next).await.expect(202);
    assert_eq!(hub.ids(&carol_reads).await.last(), Some(&next.id));
    assert_eq!(hub.letters(&bob_reads).await.len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_greeting_without_address_is_for_the_hub_and_a_status_for_the_directory() {
    let hub = Hub::serve(&[]).await;
    let alice = Key::of(1);
    let entry = || async { hub.get(&format!("/agora/agents/{}", Key::of(1).did()), None).await };
    let hello = alice.sign(MessageType::Hello, &json!({"name": "alice", "capabilities": [SEARCH]}));
    let welcome = hub.tell(&hello).await.expect(200);
    assert_eq!(welcome.str("/type"), "WELCOME");
    assert_eq!(entry().await.expect(200).str("/status"), "idle");
    for word in ["busy", "error", "maintenance", "offline", "idle"] {
        let status = alice.sign(MessageType::Status, &json!({"status": word}));
        let taken = hub.tell(&status).await.expect(202);
        assert_eq!(taken.at("/payload"), json!({"status": "accepted", "message_id": status.id}));
        assert_eq!(entry().await.expect(200).str("/status"), word);
    }
    let status = alice.sign(MessageType::Status, &json!({"capabilities": ["agora:time:v1"]}));
    hub.tell(&status).await.expect(202);
    let shown = entry().await.expect(200);
    assert_eq!(shown.at("/capabilities"), json!([{"resource": "agora:time:v1"}]));
    assert_eq!(shown.str("/name"), "alice", "omitted members stay");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_welcome_and_an_error_about_nothing_need_an_address() {
    let hub = Hub::serve(&[]).await;
    let (alice, bob) = (Key::of(1), Key::of(2));
    let reads = hub.hello(&bob, json!({})).await;
    let welcome = alice.sign(MessageType::Welcome, &json!({"nonce": "n"}));
    let error = alice.sign(MessageType::Error, &json!({"code": 500, "message": "broken"}));
    let before = state(&hub).await;
    for said in [&welcome, &error] {
        let reply = hub.tell(said).await;
        assert_error(&reply, 400);
        assert_eq!(reply.str("/payload/field"), "/recipient");
        assert!(reply.at("/payload/example").is_object());
    }
    assert_eq!(state(&hub).await, before);
    for said in [&welcome, &error] {
        hub.tell_to(bob.did(), said).await.expect(202);
        assert_eq!(hub.newest(&reads).await, said.json());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_recipient_is_404_and_a_known_one_is_written_to_at_any_time() {
    let hub = Hub::serve(&[]).await;
    let (alice, bob) = (Key::of(1), Key::of(2));
    let note = |n: u8| alice.sign_for(MessageType::Status, &json!({"n": n}), Some(bob.public()));
    let before = state(&hub).await;
    assert_error(&hub.tell(&note(0)).await, 404);
    let status = alice.sign(MessageType::Status, &json!({}));
    for nobody in [bob.did(), "nobody", "did:key:z6Mk", "%FF"] {
        assert_error(&hub.tell_to(nobody, &status).await, 404);
    }
    let request = alice.request(SEARCH, json!({}));
    assert_error(&hub.tell_to(bob.did(), &request).await, 404);
    // The hub offers no resource of its own.
    assert_error(&hub.tell_to(&hub.hub_key().await.did(), &request).await, 404);
    assert_eq!(state(&hub).await, before);
    let reads = hub.hello(&bob, json!({})).await;
    // Unread envelopes survive a restart and arrive in order, with receipts.
    let first = note(1);
    hub.tell(&first).await.expect(202);
    let hub = hub.restart(&[]).await;
    let second = note(2);
    hub.tell(&second).await.expect(202);
    let mut inbox = hub.agora_inbox(&reads, None).await;
    for said in [&first, &second] {
        let event = inbox.next().await;
        assert_eq!(*envelope_of(&event), said.json());
        super::kit::assert_vouched(hub.hub_key().await, &event.data);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn agents_greet_each_other_with_whatever_they_like() {
    let hub = Hub::serve(&[]).await;
    let (alice, bob) = (Key::of(1), Key::of(2));
    let reads = hub.hello(&bob, json!({})).await;
    // Between agents these payloads only have to be objects; the hub does not read them.
    let strange = json!({"nonce": 7, "capabilities": "all", "inbox": "yes", "status": ["x"],
        "endpoint": "nowhere", "name": {"first": "A"}});
    for kind in [MessageType::Hello, MessageType::Welcome, MessageType::Status] {
        for payload in [&json!({}), &strange] {
            let said = alice.sign_for(kind, payload, Some(bob.public()));
            let taken = hub.tell(&said).await.expect(202);
            assert_eq!(taken.str("/type"), "STATUS");
            assert!(taken.json().pointer("/payload/inbox_token").is_none());
            assert_eq!(hub.newest(&reads).await, said.json());
        }
    }
    let entry = hub.get(&format!("/agora/agents/{}", alice.did()), None).await.expect(200);
    assert_eq!(entry.at("/capabilities"), json!([]));
}

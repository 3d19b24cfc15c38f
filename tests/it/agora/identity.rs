//! Identities are keys, in any spelling (R7, R13, R15, R21–R23, D12).

use rialto_protocols::kit::base64url;
use rialto_protocols::kit::ed25519::PublicKey;
use serde_json::json;

use super::kit::{Hub, Key, assert_error};
use super::pen::{Pen, state};
use crate::relay::kit::with;

#[tokio::test(flavor = "multi_thread")]
async fn three_spellings_of_a_key_are_one_agent_shown_as_did_key() {
    let hub = Hub::serve(&[]).await;
    let (alice, bob) = (Pen::of(1), Key::of(2));
    let bob_reads = hub.hello(&bob, json!({})).await;
    let reads = hub.hello(&Key::of(1), json!({"name": "alice"})).await;
    for id in alice.spellings() {
        // As a sender,
        let draft = with(&alice.note(bob.public()), "/sender/id", Some(json!(id)));
        hub.post_envelope(&alice.sign(&draft)).await.expect(202);
        // as a recipient in both shapes,
        for (member, value) in [("/recipient", json!(id)), ("/recipient/id", json!(id))] {
            let draft = with(&Pen::of(2).note(alice.key()), member, Some(value));
            hub.post_envelope(&Pen::of(2).sign(&draft)).await.expect(202);
        }
        // and in a path.
        let note = bob.sign(rialto_protocols::agora::MessageType::Status, &json!({}));
        hub.tell_to(&id, &note).await.expect(202);
        let shown = hub.get(&format!("/agora/agents/{id}"), None).await.expect(200);
        assert_eq!((shown.str("/id"), shown.str("/name")), (alice.did(), "alice".to_owned()));
    }
    assert_eq!(hub.letters(&reads).await.len(), 12);
    let letters = hub.letters(&bob_reads).await;
    assert_eq!(letters.len(), 4);
    for letter in letters {
        assert_eq!(letter["receipt"]["payload"]["message_sender"], alice.did());
    }
    let all = hub.get("/agora/agents", None).await.expect(200).at("/agents");
    assert_eq!(all.as_array().expect("a list").len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_id_used_under_one_spelling_is_used_under_all() {
    let hub = Hub::serve(&[]).await;
    let (alice, bob) = (Pen::of(1), Key::of(2));
    let reads = hub.hello(&bob, json!({})).await;
    let draft = with(&alice.note(bob.public()), "/id", Some(json!("once")));
    hub.post_envelope(&alice.sign(&draft)).await.expect(202);
    let before = state(&hub).await;
    for id in &alice.spellings()[1..] {
        let draft = with(&draft, "/sender/id", Some(json!(id)));
        assert_error(&hub.post_envelope(&alice.sign(&draft)).await, 400);
    }
    assert_eq!(state(&hub).await, before);
    assert_eq!(hub.ids(&reads).await, ["once"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_weak_key_is_not_accepted_as_an_identity() {
    let hub = Hub::serve(&[]).await;
    let bob = Key::of(2);
    hub.hello(&bob, json!({})).await;
    let mut weak = vec![[0; 32], [0; 32], [0; 32]];
    weak[1][0] = 1;
    (weak[2][0], weak[2][31]) = (1, 0x80);
    for (first, last) in [(0xec, 0x7f), (0xed, 0x7f), (0xee, 0x7f), (0xec, 0xff), (0xff, 0xff)] {
        let mut bytes = [0xff; 32];
        (bytes[0], bytes[31]) = (first, last);
        weak.push(bytes);
    }
    // Two of order eight.
    for hex in [
        "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
        "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
    ] {
        weak.push(*PublicKey::parse(hex).expect("hex").as_bytes());
    }
    // The identity point as R and 0 as S: a careless verifier accepts this from such keys for any
    // text.
    let mut forged = [0; 64];
    forged[0] = 1;
    let before = state(&hub).await;
    for bytes in weak {
        for id in [PublicKey::from_bytes(bytes).did(), base64url::encode(&bytes)] {
            let draft = with(&Pen::of(1).note(bob.public()), "/sender/id", Some(json!(id)));
            for signature in [base64url::encode(&forged), base64url::encode(&[0; 64])] {
                let text = with(&draft, "/sender/signature", Some(json!(signature))).to_string();
                let reply = hub.post_envelope(&text).await;
                assert_error(&reply, 401);
                assert!(reply.str("/payload/message").contains("weak"), "{}", reply.text);
            }
        }
    }
    assert_eq!(state(&hub).await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_of_another_kind_is_not_known_and_other_text_is_no_key() {
    let hub = Hub::serve(&[]).await;
    let (alice, bob) = (Pen::of(1), Key::of(2));
    hub.hello(&bob, json!({})).await;
    let did = alice.did();
    let before = state(&hub).await;
    for (id, code) in [
        // secp256k1 and X25519, from the did:key method's own examples.
        ("did:key:zQ3shokFTS3brHcDQrn82RUDfCZESWL1ZdCEJwekUDPQiYBme".to_owned(), 401),
        ("did:key:z6LSeu9HkTHSfLLeUs2nnzUSNedgDUevfNQgQjQC23ZCit6F".to_owned(), 401),
        ("alice".to_owned(), 400),
        (String::new(), 400),
        ("did:web:agent.example".to_owned(), 400),
        (did.replacen("did:key:", "DID:KEY:", 1), 400),
        (format!("{did}#{}", &did[8..]), 400),
        (format!("{did}1"), 400),
        (did.replacen("did:key:z", "did:key:z1", 1), 400),
        (did.replacen("did:key:z", "did:key:m", 1), 400),
        (did[..did.len() - 1].to_owned(), 400),
        (format!(" {did}"), 400),
        (format!("{}=", alice.spellings()[1]), 400),
        (alice.spellings()[1][..42].to_owned(), 400),
        (alice.spellings()[3][..62].to_owned(), 400),
        (format!("0x{}", alice.spellings()[3]), 400),
    ] {
        let draft = with(&alice.note(bob.public()), "/sender/id", Some(json!(id)));
        let reply = hub.post_envelope(&alice.sign(&draft)).await;
        assert_eq!(reply.status, code, "{id}: {}", reply.text);
        assert_error(&reply, code);
        if code == 400 {
            assert_eq!(reply.str("/payload/field"), "/sender/id");
        }
    }
    assert_eq!(state(&hub).await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_an_agent_from_its_first_accepted_message_on() {
    let hub = Hub::serve(&[("ledger.welcome_grant", "25.00")]).await;
    let (alice, bob) = (Pen::of(1), Key::of(2));
    let known = || async { hub.get(&format!("/agora/agents/{}", Pen::of(1).did()), None).await };
    hub.hello(&bob, json!({})).await;
    let before = state(&hub).await;
    // A refused envelope registers no agent.
    let stale = with(&alice.note(bob.public()), "/timestamp", Some(json!("2026-01-01T00:00:00Z")));
    assert_error(&hub.post_envelope(&alice.sign(&stale)).await, 401);
    let nowhere = alice.note(Key::of(9).public());
    assert_error(&hub.post_envelope(&alice.sign(&nowhere)).await, 404);
    assert_error(&hub.tell(&Key::of(1).accept_id("no-such-offer")).await, 401);
    assert_error(&known().await, 404);
    assert_eq!(state(&hub).await, before);
    // An accepted one does, and its owner gets the welcome grant once.
    hub.post_envelope(&alice.sign(&alice.note(bob.public()))).await.expect(202);
    assert_eq!(known().await.expect(200).str("/id"), alice.did());
    assert_eq!(hub.balance(&Key::of(1).owner()).await.0, "25.00");
    hub.hello(&Key::of(1), json!({})).await;
    hub.post_envelope(&alice.sign(&alice.note(bob.public()))).await.expect(202);
    assert_eq!(hub.balance(&Key::of(1).owner()).await.0, "25.00");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_owner_that_was_granted_something_first_is_welcomed_once_as_well() {
    let hub = Hub::serve(&[("ledger.welcome_grant", "25.00")]).await;
    let alice = Key::of(1);
    hub.fund(&alice, "10").await;
    assert_eq!(hub.balance(&alice.owner()).await.0, "35.00");
    hub.hello(&alice, json!({})).await;
    assert_eq!(hub.balance(&alice.owner()).await.0, "35.00");
}

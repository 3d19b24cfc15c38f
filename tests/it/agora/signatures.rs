//! What is signed, how, and what a signature proves (R11–R18, R20, D1–D3, section 6).
//!
//! The protocol's own tests show without a hub that every bit of an envelope is signed and that no
//! second spelling of a signature passes. These tests show it over HTTP.

use rialto_protocols::agora::wire::envelope::{self, Envelope};
use rialto_protocols::agora::wire::signature;
use rialto_protocols::agora::{MessageType, SignatureForm};
use serde_json::{Value, json};

use super::kit::{Hub, Key, Said, Token, assert_error, assert_signed};
use super::pen::{Pen, canonical, state};
use crate::relay::kit::with;

/// Alice sends, Bob reads.
async fn two(hub: &Hub) -> (Pen, Key, Token) {
    let bob = Key::of(2);
    let reads = hub.hello(&bob, json!({})).await;
    (Pen::of(1), bob, reads)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_byte_anywhere_is_refused_and_changes_nothing() {
    let hub = Hub::serve(&[]).await;
    let (alice, bob, reads) = two(&hub).await;
    let good = alice.sign(&alice.note(bob.public()));
    let before = state(&hub).await;
    for at in 0..good.len() {
        let mut bytes = good.clone().into_bytes();
        bytes[at] ^= 1;
        let reply = hub.send("POST", "/agora/envelopes", &[], &bytes).await;
        let changed = String::from_utf8_lossy(&bytes);
        assert!([400, 401].contains(&reply.status), "{changed}: {}", reply.text);
        assert_error(&reply, reply.status);
    }
    assert_eq!(state(&hub).await, before);
    hub.post_envelope(&good).await.expect(202);
    assert_eq!(hub.letters(&reads).await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_value_and_a_member_more_or_less_are_refused() {
    let hub = Hub::serve(&[]).await;
    let (alice, bob, _) = two(&hub).await;
    let mut draft = alice.note(bob.public());
    draft["extra"] = json!({"deep": [1, {"n": 2.5}]});
    let good: Value = serde_json::from_str(&alice.sign(&draft)).expect("JSON");
    let before = state(&hub).await;
    for (member, value) in [
        ("/id", Some(json!("another"))),
        ("/type", Some(json!("HELLO"))),
        ("/payload", Some(json!({}))),
        ("/payload/status", Some(json!("idle"))),
        ("/payload/status", None),
        ("/payload/more", Some(json!(null))),
        ("/recipient", None),
        ("/recipient/id", Some(json!(Key::of(3).did()))),
        ("/recipient", Some(json!(bob.did()))),
        ("/sender/more", Some(json!(""))),
        ("/sender/id", Some(json!(Key::of(3).did()))),
        ("/extra/deep/0", Some(json!(2))),
        ("/extra/deep/0", Some(json!("1"))),
        ("/extra/deep/1/n", None),
        ("/extra", None),
        ("/more", Some(json!(false))),
        ("/timestamp", Some(json!(super::pen::from_now(1)))),
    ] {
        let changed = with(&good, member, value);
        let reply = hub.post_envelope(&changed.to_string()).await;
        assert_eq!(reply.status, 401, "{changed}: {}", reply.text);
        assert_error(&reply, 401);
        assert!(reply.str("/payload/hint").contains("RFC 8785"), "{}", reply.text);
    }
    assert_eq!(state(&hub).await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn order_white_space_and_escapes_of_the_text_do_not_matter() {
    let hub = Hub::serve(&[]).await;
    let (alice, bob, reads) = two(&hub).await;
    let draft = with(&alice.note(bob.public()), "/payload/list", Some(json!([1, 2.5, "a"])));
    let good: Value = serde_json::from_str(&alice.sign(&draft)).expect("JSON");
    // Other member order, many lines, other spellings of numbers and letters.
    let pretty = |value: &Value| serde_json::to_string_pretty(value).expect("JSON");
    let members = ["type", "timestamp", "sender", "recipient", "protocol", "payload", "id"];
    let lines = members.map(|name| format!("\t{:?} :\r\n {}", name, pretty(&good[name])));
    let text = format!("\n{{{}}} \n", lines.join(" ,\n"));
    let text = text.replacen("2.5", "25.0e-1", 1).replacen("\"busy\"", r#""b\u0075sy""#, 1);
    let text = text.replacen('é', r"\u00e9", 1).replacen('😀', r"\ud83d\ude00", 1);
    assert_ne!(text, good.to_string());
    hub.post_envelope(&text).await.expect(202);
    // It is forwarded unchanged, and the receipt matches it.
    let page = hub.get("/agora/messages", Some(&reads.0)).await.expect(200);
    assert!(page.text.contains(text.trim()), "{}", page.text);
    assert_eq!(hub.newest(&reads).await, good);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signature_over_the_envelope_without_its_place_is_taken_too() {
    let hub = Hub::serve(&[]).await;
    let (alice, bob, reads) = two(&hub).await;
    let text = alice.sign_removed(&alice.note(bob.public()));
    hub.post_envelope(&text).await.expect(202);
    // The receipt, which is verified here, covers the form that was signed.
    assert_eq!(hub.newest(&reads).await, serde_json::from_str::<Value>(&text).expect("JSON"));
    // The hub itself signs the other form.
    let answer = hub.post_envelope(&alice.sign(&alice.note(bob.public()))).await.expect(202);
    for text in [answer.text, hub.letters(&reads).await[0]["receipt"].to_string()] {
        let json = envelope::read_json(text.as_bytes()).expect("an envelope");
        let envelope = Envelope::read(&json).expect("an envelope");
        assert_eq!(signature::verify(&envelope).expect("a signature").form, SignatureForm::Empty);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_signed_both_ways_is_one_request_with_one_answer() {
    let hub = Hub::serve(&[]).await;
    let (alice, bob) = (Pen::of(1), Key::of(2));
    let reads = hub.provider(&bob, "agora:search:v1", None).await;
    let draft = alice.draft("REQUEST", json!({"resource": "agora:search:v1", "params": {}}));
    let first = hub.post_envelope(&alice.sign(&draft)).await.expect(202);
    let before = state(&hub).await;
    let second = hub.post_envelope(&alice.sign_removed(&draft)).await.expect(202);
    assert_eq!(second.at("/payload"), first.at("/payload"));
    assert_eq!(second.header("rialto-job"), first.header("rialto-job"));
    assert!(first.header("rialto-job").is_some());
    assert_eq!(state(&hub).await, before);
    assert_eq!(hub.letters(&reads).await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signature_has_one_spelling_and_perhaps_its_padding() {
    let hub = Hub::serve(&[]).await;
    let (alice, bob, reads) = two(&hub).await;
    // A signature with a character that differs in the other alphabet, and one with spare bits to
    // set.
    let good: Value = loop {
        let good: Value =
            serde_json::from_str(&alice.sign(&alice.note(bob.public()))).expect("JSON");
        if good["sender"]["signature"].as_str().expect("text").contains(['-', '_']) {
            break good;
        }
    };
    let signature = good["sender"]["signature"].as_str().expect("text");
    assert_eq!(signature.len(), 86);
    let last = signature.chars().last().expect("a digit");
    let spare = char::from(last as u8 + 1);
    let before = state(&hub).await;
    for wrong in [
        signature.replace('-', "+").replace('_', "/"),
        format!("{signature}="),
        format!("{signature}==="),
        format!("{signature} "),
        format!(" {signature}"),
        format!("{}\n{}", &signature[..40], &signature[40..]),
        signature[..85].to_owned(),
        signature[..84].to_owned(),
        format!("{signature}A"),
        format!("{signature}AA"),
        format!("{}{spare}", &signature[..85]),
        String::new(),
        "base64-signature".to_owned(),
    ] {
        let text = with(&good, "/sender/signature", Some(json!(wrong))).to_string();
        let reply = hub.post_envelope(&text).await;
        assert_eq!(reply.status, 401, "{wrong}: {}", reply.text);
        assert_error(&reply, 401);
    }
    assert_eq!(state(&hub).await, before);
    let padded = with(&good, "/sender/signature", Some(json!(format!("{signature}=="))));
    hub.post_envelope(&padded.to_string()).await.expect(202);
    // Both spellings are the same message.
    hub.post_envelope(&good.to_string()).await.expect(202);
    assert_eq!(hub.letters(&reads).await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_key_is_the_senders_and_another_key_is_refused() {
    let hub = Hub::serve(&[]).await;
    let (alice, bob, reads) = two(&hub).await;
    let mallory = Pen::of(3);
    let before = state(&hub).await;
    let draft = alice.note(bob.public());
    let forged = mallory.sign(&draft);
    assert_error(&hub.post_envelope(&forged).await, 401);
    // A bearer token beside it is not a proof either.
    let bearer = format!("Bearer {}", reads.0);
    let headers = [("authorization", bearer.as_str())];
    let reply = hub.send("POST", "/agora/envelopes", &headers, forged.as_bytes()).await;
    assert_error(&reply, 401);
    // Another envelope's signature, by the right key.
    let other: Value = serde_json::from_str(&alice.sign(&alice.note(bob.public()))).expect("JSON");
    let moved = with(&draft, "/sender/signature", Some(other["sender"]["signature"].clone()));
    assert_error(&hub.post_envelope(&moved.to_string()).await, 401);
    assert_eq!(state(&hub).await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn numbers_and_names_are_canonical_as_the_book_works_them_out() {
    let hub = Hub::serve(&[]).await;
    let (alice, bob, reads) = two(&hub).await;
    let draft = with(&alice.note(bob.public()), "/payload", Some(json!("here")));
    let given = r#"{"n":[5.0,-0,4.50,2e-3,0.000001,1e-7,1e21,1E30,333333333.33333329],
        "\ufb33":6,"😀":5,"€":4,"ö":3,"1":2,"\r":1}"#;
    let worked = "{\"\\r\":1,\"1\":2,\"n\":[5,0,4.5,0.002,0.000001,1e-7,1e+21,1e+30,\
        333333333.3333333],\"ö\":3,\"€\":4,\"😀\":5,\"\u{fb33}\":6}";
    // The canonical text is built by hand, not by the hub's code.
    let sorted = canonical(&draft.to_string()).replacen(r#""here""#, worked, 1);
    let text = draft.to_string().replacen(r#""here""#, given, 1);
    hub.post_envelope(&alice.sign_over(&text, &sorted)).await.expect(202);
    assert_eq!(hub.letters(&reads).await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_published_vectors_are_only_too_old_and_pass_a_hub_that_waits_long_enough() {
    let vectors = include_str!("../../../crates/protocols/src/agora/fixtures/vectors.json");
    let vectors: Value = serde_json::from_str(vectors).expect("JSON");
    let said = |at: usize| Said {
        id: vectors["vectors"][at]["envelope"]["id"].as_str().expect("an id").to_owned(),
        text: vectors["vectors"][at]["envelope"].to_string(),
    };
    let hub = Hub::serve(&[]).await;
    for at in [0, 1] {
        let reply = hub.tell(&said(at)).await;
        assert_error(&reply, 401);
        assert!(reply.str("/payload/message").contains("stale timestamp"), "{}", reply.text);
    }
    // With valid time and signature, it only needs a provider.
    let hub = Hub::serve(&[("agora.window", "36500d")]).await;
    assert_error(&hub.tell(&said(0)).await, 404);
    let reads = hub.provider(&Key::of(2), "agora:search:v1", None).await;
    let taken = hub.tell(&said(0)).await.expect(202);
    assert_eq!(taken.str("/payload/request_id"), said(0).id);
    assert_eq!(hub.letters(&reads).await[0]["envelope"], said(0).json());
    // The second is a RESULT of an agent that was not asked: its signature is valid.
    let reply = hub.tell(&said(1)).await;
    assert_error(&reply, 401);
    assert!(reply.str("/payload/message").contains("no request"), "{}", reply.text);
    let broken = said(0).text.replacen("tokyo", "osaka", 1);
    let reply = hub.post_envelope(&broken).await;
    assert!(reply.str("/payload/message").contains("signature"), "{}", reply.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_the_hub_says_is_signed_with_its_own_key() {
    let hub = Hub::serve(&[]).await;
    let (alice, bob, reads) = two(&hub).await;
    let own = hub.hub_key().await;
    let hello = Key::of(1).sign(MessageType::Hello, &json!({}));
    let said = [
        hub.tell(&hello).await.expect(200).text,
        hub.post_envelope(&alice.sign(&alice.note(bob.public()))).await.expect(202).text,
        hub.post_envelope("{").await.expect(400).text,
        hub.get("/agora/nothing", None).await.expect(404).text,
        hub.call("DELETE", "/agora/agents", None, None).await.expect(405).text,
        hub.get("/agora/messages", None).await.expect(401).text,
        hub.letters(&reads).await[0]["receipt"].to_string(),
    ];
    for text in said {
        assert_eq!(assert_signed(&text), own, "{text}");
    }
}

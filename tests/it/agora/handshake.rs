//! HELLO to the hub and the WELCOME it answers with (R60, R69, section 2.4, section 7).

use rialto_protocols::agora::MessageType;
use serde_json::json;

use super::kit::{Hub, Key, assert_error, assert_signed, foreign, fresh_id, now};
use super::pen::{Pen, state};
use crate::kit::ClosedPort;
use crate::relay::kit::{assert_stamp, with};

#[tokio::test(flavor = "multi_thread")]
async fn a_welcome_proves_that_this_hello_was_heard_by_this_hub() {
    let hub = Hub::serve(&[]).await;
    let (alice, own) = (Key::of(1), hub.hub_key().await);
    let payload = json!({"nonce": "n-1", "name": "alice", "inbox": true});
    for path in ["/agora/envelopes", "/agora", &format!("/agora/agents/{own}")] {
        let hello = alice.sign_for(MessageType::Hello, &payload, Some(own));
        let welcome = hub.call("POST", path, None, Some(&hello.text)).await.expect(200);
        assert_eq!(assert_signed(&welcome.text), own);
        assert_eq!(welcome.str("/type"), "WELCOME");
        assert_eq!(welcome.str("/recipient/id"), alice.did());
        let said = welcome.at("/payload");
        assert_eq!(said["nonce"], "n-1");
        assert_eq!(said["hello_id"], hello.id);
        assert_eq!(said["hello_sender"], alice.did());
        assert_eq!(said["hub"], own.did());
        assert!(said["inbox_token"].as_str().expect("a token").starts_with("at_"));
        assert_stamp(said["inbox_token_expires_at"].as_str().expect("a time"));
        assert!(said.get("webhook_secret").is_none());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sender_that_spells_its_key_otherwise_is_welcomed_under_its_did() {
    let hub = Hub::serve(&[]).await;
    let alice = Pen::of(1);
    let draft = alice.draft("HELLO", json!({}));
    let draft = with(&draft, "/sender/id", Some(json!(alice.spellings()[1])));
    let welcome = hub.post_envelope(&alice.sign(&draft)).await.expect(200);
    assert_eq!(welcome.str("/payload/hello_sender"), alice.did());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_is_only_for_a_hello_that_was_signed_for_this_hub_and_asks_for_one() {
    let hub = Hub::serve(&[]).await;
    let (alice, own) = (Key::of(1), hub.hub_key().await);
    let wants = json!({"inbox": true});
    // Signed without a recipient: any third party could bring it here, also under the hub's own
    // path.
    let open = alice.sign(MessageType::Hello, &wants);
    let other = alice.sign(MessageType::Hello, &wants);
    let modest = alice.sign_for(MessageType::Hello, &json!({}), Some(own));
    let never = alice.sign_for(MessageType::Hello, &json!({"inbox": false}), Some(own));
    let welcomes = [
        hub.tell(&open).await.expect(200),
        hub.tell_to(&own.did(), &other).await.expect(200),
        hub.tell(&modest).await.expect(200),
        hub.tell(&never).await.expect(200),
    ];
    for welcome in welcomes {
        assert_eq!(welcome.str("/type"), "WELCOME");
        assert!(!welcome.text.contains("at_"), "{}", welcome.text);
        assert!(welcome.json().pointer("/payload/inbox_token_expires_at").is_none());
    }
    // Signed for another hub or agent: not valid here.
    let away = alice.sign_for(MessageType::Hello, &wants, Some(Key::of(9).public()));
    assert_error(&hub.tell(&away).await, 404);
    assert_error(&hub.tell_to(&own.did(), &away).await, 400);
    // Too old, so it may have been captured.
    let stale = Pen::of(1).draft("HELLO", wants);
    let stale = with(&stale, "/recipient", Some(json!(own.did())));
    let stale = with(&stale, "/timestamp", Some(json!(super::pen::from_now(-61))));
    let reply = hub.post_envelope(&Pen::of(1).sign(&stale)).await;
    assert_error(&reply, 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hello_that_is_repeated_is_welcomed_again_without_any_secret() {
    let hub = Hub::serve(&[]).await;
    let (closed, own) = (ClosedPort::take(), hub.hub_key().await);
    let alice = Pen::of(1);
    let payload = json!({"nonce": "n", "inbox": true, "endpoint": closed.url});
    let draft = with(&alice.draft("HELLO", payload), "/recipient", Some(json!(own.did())));
    let first = hub.post_envelope(&alice.sign(&draft)).await.expect(200);
    assert!(first.str("/payload/inbox_token").starts_with("at_"));
    assert!(!first.str("/payload/webhook_secret").is_empty());
    // A replayed HELLO yields no secret: not in another spelling, at another path or after a
    // restart.
    let again = hub.post_envelope(&alice.sign(&draft)).await.expect(200);
    let before = state(&hub).await;
    let form = hub.post_envelope(&alice.sign_removed(&draft)).await.expect(200);
    let path = format!("/agora/agents/{own}");
    let path = hub.call("POST", &path, None, Some(&alice.sign(&draft))).await.expect(200);
    assert_eq!(state(&hub).await, before);
    let hub = hub.restart(&[]).await;
    let later = hub.post_envelope(&alice.sign(&draft)).await.expect(200);
    for welcome in [again, form, path, later] {
        assert_eq!(welcome.str("/type"), "WELCOME");
        let said = json!({"nonce": "n", "hello_id": draft["id"], "hello_sender": alice.did(),
            "hub": own.did()});
        assert_eq!(welcome.at("/payload"), said);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_brings_a_secret_and_must_be_one_that_may_be_called() {
    let hub = Hub::serve(&[("egress.allow", "")]).await;
    let alice = Key::of(1);
    let before = state(&hub).await;
    for endpoint in
        ["http://127.0.0.1:9/in", "https://10.0.0.1/in", "https://169.254.169.254/latest"]
    {
        let hello = alice.sign(MessageType::Hello, &json!({"endpoint": endpoint}));
        let reply = hub.tell(&hello).await;
        assert_error(&reply, 400);
        assert_eq!(reply.str("/payload/field"), "/payload/endpoint");
    }
    assert_eq!(state(&hub).await, before);
    let profile = json!({"endpoint": "https://agent.example/in"});
    let to_hub = alice.sign_for(MessageType::Hello, &profile, Some(hub.hub_key().await));
    let welcome = hub.tell(&to_hub).await.expect(200);
    assert!(!welcome.str("/payload/webhook_secret").is_empty());
    // Without a recipient, it may have been brought by a third party.
    let welcome = hub.tell(&alice.sign(MessageType::Hello, &profile)).await.expect(200);
    assert!(welcome.json().pointer("/payload/webhook_secret").is_none());
    let entry = hub.get(&format!("/agora/agents/{}", alice.did()), None).await.expect(200);
    assert!(!entry.text.contains("agent.example"), "the endpoint is private");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hello_may_hold_anything_but_promises_that_cannot_be_kept() {
    let hub = Hub::serve(&[]).await;
    let alice = Key::of(1);
    // Unknown members are ignored.
    for payload in [
        json!({}),
        json!({"nonce": 7, "name": ["x"], "greeting": {"deep": [1]}}),
        json!({"nonce": null, "capabilities": null, "endpoint": null, "inbox": null}),
    ] {
        let welcome = hub.tell(&alice.sign(MessageType::Hello, &payload)).await.expect(200);
        assert!(welcome.json().pointer("/payload/nonce").is_none());
    }
    // Members that would be listed, called or issued must be valid.
    let before = state(&hub).await;
    let many: Vec<String> = (0..101).map(|n| format!("agora:r{n}:v1")).collect();
    for (payload, field) in [
        (json!({"capabilities": many}), "/payload/capabilities"),
        (json!({"capabilities": ["a", "a"]}), "/payload/capabilities/1"),
        (
            json!({"capabilities": [{"resource": "a", "price": -1}]}),
            "/payload/capabilities/0/price",
        ),
        (json!({"endpoint": "here"}), "/payload/endpoint"),
        (json!({"nonce": "n".repeat(257)}), "/payload/nonce"),
    ] {
        let reply = hub.tell(&alice.sign(MessageType::Hello, &payload)).await;
        assert_error(&reply, 400);
        assert_eq!(reply.str("/payload/field"), field, "{}", reply.text);
    }
    assert_eq!(state(&hub).await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hello_and_a_status_with_members_of_another_shape_are_taken() {
    let hub = Hub::serve(&[]).await;
    let (key, bob) = (Key::of(1), Key::of(2));
    let bob_reads = hub.hello(&bob, json!({})).await;
    let entry = async || hub.get(&format!("/agora/agents/{}", key.did()), None).await.expect(200);
    let sign = |kind: MessageType, payload: &str, to| {
        key.sign_text(&fresh_id(kind.as_str()), now(), kind, payload, to)
    };
    for hello in foreign(MessageType::Hello) {
        let welcome = hub.tell(&sign(MessageType::Hello, &hello, None)).await.expect(200);
        assert_eq!(welcome.str("/type"), "WELCOME");
        let shown = entry().await;
        assert_eq!(shown.at("/capabilities"), json!([]), "{hello}");
        assert_ne!(shown.str("/name"), "", "an empty name is ignored");
    }
    let known = json!({"capabilities": ["agora:time:v1"], "name": "clock"});
    hub.tell(&key.sign(MessageType::Hello, &known)).await.expect(200);
    for (kind, status) in [(MessageType::Hello, 200), (MessageType::Status, 202)] {
        for payload in foreign(kind) {
            hub.tell(&sign(kind, &payload, None)).await.expect(status);
            let shown = entry().await;
            let stays = json!([{"resource": "agora:time:v1"}]);
            assert_eq!(shown.at("/capabilities"), stays, "{payload}");
            assert_eq!(shown.str("/name"), "clock", "omitted members stay");
            // Another agent receives it unchanged.
            let said = sign(kind, &payload, Some(bob.public()));
            hub.tell(&said).await.expect(202);
            assert_eq!(hub.newest(&bob_reads).await, said.json());
        }
    }
    // A member of the known shape is still validated.
    let wrong = json!({"capabilities": [{"resource": "agora:time:v1", "price": -1}]});
    let refused = hub.tell(&key.sign(MessageType::Hello, &wrong)).await;
    assert_error(&refused, 400);
    assert_eq!(refused.str("/payload/field"), "/payload/capabilities/0/price");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_websocket_s_url_is_one_that_its_clients_can_use() {
    let hub = Hub::serve(&[]).await;
    let shown = hub.get("/agora", None).await.expect(200).str("/endpoints/websocket");
    assert_eq!(shown, format!("{}/agora/ws", hub.url.replace("http://", "ws://")));
    tokio_tungstenite::connect_async(shown).await.expect("a socket");
}

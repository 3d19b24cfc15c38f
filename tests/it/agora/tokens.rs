//! Inbox tokens: what they open, and what not (R69, R71, D21).
//!
//! Their expiry after an hour is tested where the time is an argument:
//! `a_token_works_until_its_hour_is_over_and_no_other_text_does`.

use rialto_protocols::agora::MessageType;
use serde_json::json;

use super::kit::{Hub, Key, Said, Token, assert_error, assert_signed, now};
use super::pen::{Pen, state};

const SEARCH: &str = "agora:search:v1";
/// The routes that need a token.
const READING: [(&str, &str, Option<&str>); 4] = [
    ("GET", "/agora/messages", None),
    ("GET", "/agora/inbox", None),
    ("POST", "/agora/inbox/ack", Some(r#"{"up_to":0}"#)),
    ("GET", "/agora/requests/r", None),
];

/// Alice has sent Bob a request, which is in his inbox; Eve is registered as well.
async fn three(hub: &Hub) -> ([Key; 3], [Token; 3], Said) {
    let (alice, bob, eve) = (Key::of(1), Key::of(2), Key::of(3));
    let alice_reads = hub.hello(&alice, json!({})).await;
    let bob_reads = hub.provider(&bob, SEARCH, None).await;
    let eve_reads = hub.hello(&eve, json!({})).await;
    let request = alice.request(SEARCH, json!({"budget": {"max": 1}}));
    hub.tell(&request).await.expect(202);
    ([alice, bob, eve], [alice_reads, bob_reads, eve_reads], request)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_reads_only_its_own_inbox_and_requests() {
    let hub = Hub::serve(&[]).await;
    let (_, [alice, bob, eve], request) = three(&hub).await;
    assert_eq!(hub.ids(&bob).await, [request.id.as_str()]);
    assert_eq!(hub.ids(&alice).await.len() + hub.ids(&eve).await.len(), 0);
    for party in [&alice, &bob] {
        assert_eq!(hub.state_of(party, &request.id).await, "PENDING");
    }
    // An unknown caller gets the same answer as for an id that does not exist.
    let path = |id: &str| format!("/agora/requests/{id}");
    let there = hub.get(&path(&request.id), Some(&eve.0)).await;
    let not = hub.get(&path("nothing"), Some(&eve.0)).await;
    for reply in [&there, &not] {
        assert_error(reply, 404);
    }
    assert_eq!(there.at("/payload"), not.at("/payload"));
    // Acknowledging applies only to the caller's own inbox.
    hub.post("/agora/inbox/ack", Some(&eve.0), &json!({"up_to": 1})).await.expect(200);
    let page = hub.get("/agora/messages", Some(&bob.0)).await.expect(200);
    assert_eq!(page.at("/messages").as_array().expect("a list").len(), 1);
    let acked = hub.post("/agora/inbox/ack", Some(&bob.0), &json!({"up_to": 1})).await.expect(200);
    assert_eq!(acked.json(), json!({"acked_to": 1, "pending": 0}));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_survives_a_restart_and_is_another_hubs_business_nowhere() {
    let hub = Hub::serve(&[]).await;
    let (_, [_, bob, _], request) = three(&hub).await;
    let hub = hub.restart(&[]).await;
    assert_eq!(hub.ids(&bob).await, [request.id]);
    let other = Hub::serve(&[]).await;
    three(&other).await;
    for (method, path, body) in READING {
        assert_error(&other.call(method, path, Some(&bob.0), body).await, 401);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_expires_an_hour_after_its_hello() {
    let hub = Hub::serve(&[]).await;
    let hello =
        Key::of(1).sign_for(MessageType::Hello, &json!({"inbox": true}), Some(hub.hub_key().await));
    let before = now();
    let welcome = hub.tell(&hello).await.expect(200);
    let until = welcome.str("/payload/inbox_token_expires_at");
    let until = rialto_protocols::kit::rfc3339::parse(&until).expect("a time");
    let hour = 3_600_000;
    assert!((before.0 + hour..=now().0 + hour).contains(&until.0), "{}", welcome.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_else_opens_an_inbox() {
    let hub = Hub::serve(&[]).await;
    let (_, [_, bob, _], _) = three(&hub).await;
    let (registry, relay) = (hub.orchestrator("o").await, hub.join("ada").await);
    let mut changed = bob.0.clone().into_bytes();
    changed[20] ^= 1;
    let changed = String::from_utf8(changed).expect("text");
    let before = state(&hub).await;
    for (method, path, body) in READING {
        for key in [
            None,
            Some(""),
            Some("at_"),
            Some(changed.as_str()),
            Some(&bob.0[..bob.0.len() - 1]),
            Some(bob.0.trim_start_matches("at_")),
            Some(Key::of(2).did()),
            Some(&registry.key),
            Some(&relay.key),
            Some(&hub.operator),
        ] {
            let reply = hub.call(method, path, key, body).await;
            assert_eq!(reply.status, 401, "{path} with {key:?}: {}", reply.text);
            assert_error(&reply, 401);
            assert_eq!(assert_signed(&reply.text), hub.hub_key().await);
            assert!(reply.str("/payload/hint").contains("HELLO"), "{}", reply.text);
        }
        // A token in the query is not accepted.
        let query = format!("{path}?token={0}&access_token={0}", bob.0);
        assert_error(&hub.call(method, &query, None, body).await, 401);
    }
    assert_eq!(state(&hub).await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_cannot_send_and_opens_no_other_door() {
    let hub = Hub::serve(&[]).await;
    let ([_, bob, _], [_, bob_reads, _], request) = three(&hub).await;
    let pen = Pen::of(2);
    let offer = json!({"request_id": request.id, "cost": 1, "ttl": 60_000, "eta": 0});
    let unsigned = pen.draft("OFFER", offer).to_string();
    let forged = Pen::of(3).sign_text(&unsigned, rialto_protocols::agora::SignatureForm::Empty);
    let before = state(&hub).await;
    for path in ["/agora/envelopes", "/agora", &format!("/agora/agents/{}", Key::of(1).did())] {
        for text in [&unsigned, &forged] {
            assert_error(&hub.call("POST", path, Some(&bob_reads.0), Some(text)).await, 401);
        }
    }
    for (method, path, body) in [
        ("GET", "/v1/me", None),
        ("GET", "/v1/inbox", None),
        ("GET", "/relay/agent/messages", None),
        ("POST", "/registry/heartbeat", Some(json!({"agent_id": bob.did()}))),
        (
            "POST",
            "/registry/transfer",
            Some(json!({"from_owner": bob.owner(), "to_owner": "o", "amount": 1})),
        ),
        ("POST", "/v1/keys/rotate", Some(json!({}))),
    ] {
        let body = body.map(|body| body.to_string());
        let reply = hub.call(method, path, Some(&bob_reads.0), body.as_deref()).await;
        assert_eq!(reply.status, 401, "{path}: {}", reply.text);
    }
    assert_eq!(state(&hub).await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_taken_off_the_lists_reads_no_more_until_it_says_hello_again() {
    let hub = Hub::serve(&[]).await;
    let ([_, bob, _], [_, bob_reads, _], request) = three(&hub).await;
    super::replay::remove(&hub, &bob).await;
    assert_error(&hub.get("/agora/messages", Some(&bob_reads.0)).await, 401);
    let reply = hub.tell(&bob.offer(&request.id, json!(1))).await;
    assert_error(&reply, 401);
    assert!(reply.str("/payload/hint").contains("HELLO"), "{}", reply.text);
    let again = hub.hello(&bob, json!({})).await;
    assert_eq!(hub.ids(&again).await[0], request.id);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_hubs_secret_is_its_owners_alone_and_in_no_answer_and_no_store() {
    let hub = Hub::serve(&[]).await;
    let ([_, bob, _], [_, bob_reads, _], request) = three(&hub).await;
    let file = hub.dir.path().join("hub.key");
    let secret = std::fs::read(&file).expect("a secret");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::metadata(&file).expect("a file").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    let spelled = [
        secret.iter().map(|byte| format!("{byte:02x}")).collect::<String>(),
        rialto_protocols::kit::base64url::encode(&secret),
    ];
    let answers = [
        hub.get("/agora", None).await,
        hub.get("/agora/agents", None).await,
        hub.get("/agora/messages", Some(&bob_reads.0)).await,
        hub.get(&format!("/agora/requests/{}", request.id), Some(&bob_reads.0)).await,
        hub.tell(&bob.sign(MessageType::Hello, &json!({"endpoint": "https://agent.example/in"})))
            .await,
        hub.post_envelope("{}").await,
        hub.get("/metrics", None).await,
        hub.get("/v1/operator/stats", Some(&hub.operator)).await,
    ];
    for answer in answers {
        for text in &spelled {
            assert!(!answer.text.to_lowercase().contains(&text.to_lowercase()));
        }
    }
    let dir = hub.restart(&[]).await;
    for entry in std::fs::read_dir(dir.dir.path()).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.is_file() && path != file {
            let kept = std::fs::read(&path).expect("bytes");
            let found = |bytes: &[u8]| kept.windows(bytes.len()).any(|window| window == bytes);
            assert!(!found(&secret), "{}", path.display());
            assert!(!spelled.iter().any(|text| found(text.as_bytes())), "{}", path.display());
        }
    }
}

//! Callers that are refused or over the limit, or call while the hub cannot write (section 5).

use rialto_engine::keys::{Key, KeyPrefix};
use rialto_engine::random::{OsRandom, RandomSource};
use serde_json::json;

use super::market::{Market, SKILL, success};
use crate::kit::{TestHub, assert_later, assert_refused, counted, snapshot};

/// A well-formed key that was never issued.
fn unknown(kind: KeyPrefix) -> String {
    Key::from_random(kind, OsRandom.new_key_bytes()).expose().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_unknown_and_revoked_keys_get_one_and_the_same_answer() {
    let market = Market::keyed(&[]).await;
    let gone = market.hub.orchestrator("gone").await;
    market
        .hub
        .call("DELETE", &format!("/registry/agents/{}", gone.id), Some(&gone.key), None)
        .await
        .expect(200);
    let job = market.pending().await;
    let (worker, asking) = (&market.working.id, &market.asking.id);
    let before = snapshot(&market.hub).await;
    // The bodies are invalid on purpose: they are not read.
    let calls = [
        ("POST", "/registry/jobs".to_owned()),
        ("POST", "/jobs".to_owned()),
        ("POST", format!("/registry/agents/{worker}/jobs")),
        ("GET", format!("/jobs/{job}")),
        ("POST", format!("/registry/jobs/{job}/cancel")),
        ("GET", format!("/registry/agents/{worker}/jobs")),
        ("POST", "/results".to_owned()),
        ("POST", "/registry/transfer".to_owned()),
        ("POST", "/heartbeat".to_owned()),
        ("POST", "/accounts".to_owned()),
        ("GET", "/accounts/o1".to_owned()),
        ("DELETE", format!("/registry/agents/{asking}")),
        ("GET", "/audit".to_owned()),
        ("GET", "/economy".to_owned()),
    ];
    for (method, path) in calls {
        let body = (method == "POST").then_some("{nonsense");
        let missing = market.hub.call(method, &path, None, body).await;
        assert_refused(&missing, 401, "UNAUTHORIZED");
        let mut cut = market.working.key.clone();
        cut.pop();
        let wrong = [
            unknown(KeyPrefix::AGENT),
            unknown(KeyPrefix::OPERATOR),
            gone.key.clone(),
            cut,
            "x".to_owned(),
            String::new(),
        ];
        for key in wrong {
            let reply = market.hub.call(method, &path, Some(&key), body).await;
            assert_eq!(
                (reply.status, &reply.text),
                (401, &missing.text),
                "{method} {path} {key:?}"
            );
        }
        let scheme = [("authorization", format!("Basic {}", market.working.key))];
        let headers: Vec<(&str, &str)> =
            scheme.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let reply =
            market.hub.send(method, &path, &headers, body.unwrap_or_default().as_bytes()).await;
        assert_eq!((reply.status, &reply.text), (401, &missing.text), "{method} {path} Basic");
    }
    assert_eq!(snapshot(&market.hub).await, before);
    market.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_is_shown_is_checked_even_where_none_is_needed() {
    for market in Market::both(&[]).await {
        let bad = unknown(KeyPrefix::AGENT);
        let id = &market.working.id;
        let paths = [
            format!("/discover?skill={SKILL}"),
            "/skills".to_owned(),
            format!("/registry/agents/{id}"),
            format!("/reputation/{id}"),
            "/registry/health".to_owned(),
        ];
        for path in paths {
            market.hub.get(&path, None).await.expect(200);
            market.hub.get(&path, Some(&market.working.key)).await.expect(200);
            assert_refused(&market.hub.get(&path, Some(&bad)).await, 401, "UNAUTHORIZED");
        }
        let body = json!({"agent_name": "n", "owner_id": "new", "skills": []});
        assert_refused(&market.hub.post("/register", Some(&bad), &body).await, 401, "UNAUTHORIZED");
        market.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn too_many_writes_or_registrations_are_told_when_to_come_back() {
    let hub = TestHub::serve(&[
        ("limits.writes_per_minute", "3"),
        ("limits.registrations_per_minute", "2"),
    ])
    .await;
    let asking = hub.orchestrator("o1").await;
    let other = hub.orchestrator("o2").await;
    let before = counted(&hub);
    let body = json!({"agent_name": "n", "owner_id": "o3", "skills": []});
    for path in ["/registry/register", "/register"] {
        let reply = hub.post(path, None, &body).await;
        let wait = reply.at("/error/retry_after_seconds").as_u64().expect("seconds");
        assert!((1..=60).contains(&wait), "{wait}");
        assert_later(&reply, 429, "RATE_LIMITED", wait);
    }
    assert_eq!(counted(&hub), before);
    for _ in 0..3 {
        hub.post("/heartbeat", Some(&asking.key), &json!({"agent_id": asking.id}))
            .await
            .expect(200);
    }
    let before = counted(&hub);
    let reply = hub.post("/registry/accounts", Some(&asking.key), &json!({"owner_id": "o1"})).await;
    let wait = reply.at("/error/retry_after_seconds").as_u64().expect("seconds");
    assert_later(&reply, 429, "RATE_LIMITED", wait);
    assert_eq!(counted(&hub), before);
    // Other callers are not affected, and reads are not limited.
    hub.post("/heartbeat", Some(&other.key), &json!({"agent_id": other.id})).await.expect(200);
    for _ in 0..10 {
        hub.get("/accounts/o1", Some(&asking.key)).await.expect(200);
    }
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hub_that_cannot_write_says_so_and_goes_on_reading() {
    let market = Market::keyed(&[]).await;
    let job = market.pending().await;
    market.hub.engine.stop().await;
    let pay = json!({"from_owner": "o1", "to_owner": "acme", "amount": 1});
    let tries = [
        market.hub.post("/transfer", Some(&market.asking.key), &pay).await,
        market.report(&success(&job, &market.working, "0.10")).await,
        market
            .hub
            .post("/register", None, &json!({"agent_name": "n", "owner_id": "new", "skills": []}))
            .await,
        market.ask(&market.working, json!({})).await,
    ];
    for reply in tries {
        assert_later(&reply, 503, "UNAVAILABLE", 1);
    }
    assert_eq!(market.accounts().await, ["99.85", "0.15", "0.00"]);
    market.shown(&job).await.expect(202);
    let health = market.hub.get("/registry/health", None).await.expect(503);
    assert_eq!(health.str("/status"), "unavailable");
    market.hub.get("/readyz", None).await.expect(503);
    market.hub.get("/livez", None).await.expect(200);
    market.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_key_and_no_secret_is_in_the_data_directory() {
    let hub = TestHub::serve(&[]).await;
    let body = json!({"agent_name": "n", "owner_id": "o1", "skills": [], "api_endpoint": "https://agent.example"});
    let once = [("idempotency-key", "first")];
    let made = hub.send("POST", "/register", &once, body.to_string().as_bytes()).await.expect(201);
    let (key, secret) = (made.str("/api_key"), made.str("/webhook_secret"));
    let mut again = body.clone();
    again["agent_id"] = made.str("/agent_id").into();
    again["rotate_key"] = true.into();
    let rotated = hub.post("/register", Some(&key), &again).await.expect(200).str("/api_key");
    assert_ne!(rotated, key);
    hub.get("/accounts/o1", Some(&rotated)).await.expect(200);
    let operator = hub.operator.clone();
    let dir = hub.stop().await;
    let mut files = 0;
    for file in std::fs::read_dir(dir.path()).expect("a directory") {
        let bytes = std::fs::read(file.expect("a file").path()).expect("readable");
        let holds = |word: &str| bytes.windows(word.len()).any(|some| some == word.as_bytes());
        for word in [&key, &rotated, &secret, &operator] {
            assert!(!holds(&word[..24]), "{}… is on disk", &word[..10]);
        }
        files += 1;
    }
    assert!(files >= 2, "{files}");
}

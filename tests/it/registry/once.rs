//! `Idempotency-Key`: a repeated request has one effect and one answer (C9).

use rialto_hub::config::Profile;
use serde_json::{Value, json};

use super::forms::{both_modes, job, registration, with};
use crate::kit::{
    Agent, Behaviour, Reply, TestHub, Worker, assert_malformed, assert_refused, counted, snapshot,
    together,
};

/// A post with an idempotency key.
async fn post(hub: &TestHub, path: &str, key: Option<&str>, once: &str, body: &Value) -> Reply {
    let bearer = key.map(|key| format!("Bearer {key}"));
    let mut headers = vec![("idempotency-key", once)];
    if let Some(bearer) = &bearer {
        headers.push(("authorization", bearer));
    }
    hub.send("POST", path, &headers, body.to_string().as_bytes()).await
}

fn replayed(reply: &Reply) -> bool {
    reply.header("idempotency-replayed") == Some("true")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_registration_sent_twice_makes_one_agent_and_shows_its_key_once() {
    for hub in both_modes().await {
        for (path, owner) in [("/registry/register", "acme"), ("/register", "globex")] {
            let body = registration(owner);
            let first = post(&hub, path, None, "k1", &body).await.expect(201);
            assert!(!replayed(&first));
            let before = snapshot(&hub).await;
            let again = post(&hub, path, None, "k1", &body).await.expect(201);
            assert!(replayed(&again));
            assert_eq!(again.header("content-type"), Some("application/json"));
            let mut wanted = first.json();
            for secret in ["api_key", "webhook_secret"] {
                assert!(wanted.as_object_mut().expect("an object").remove(secret).is_some());
            }
            assert_eq!(again.json(), wanted);
            assert!(again.text.contains("\"reputation_score\":50.0"), "{}", again.text);
            let other = with(&body, "/agent_name", Some(json!("another")));
            let refused = post(&hub, path, None, "k1", &other).await;
            assert_refused(&refused, 422, "IDEMPOTENCY_CONFLICT");
            assert_eq!(snapshot(&hub).await, before);
        }
        hub.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_key_and_no_secret_is_written_to_the_disk() {
    let hub = TestHub::serve(&[]).await;
    let body = with(&registration("acme"), "/agent_name", Some(json!("a name to be found")));
    let reply = post(&hub, "/register", None, "k1", &body).await.expect(201);
    let (key, secret) = (reply.str("/api_key"), reply.str("/webhook_secret"));
    let rotating = with(&body, "/agent_id", Some(reply.at("/agent_id")));
    let rotating = with(&rotating, "/rotate_key", Some(json!(true)));
    let fresh =
        post(&hub, "/register", Some(&key), "k2", &rotating).await.expect(200).str("/api_key");
    let again = post(&hub, "/register", Some(&key), "k2", &rotating).await.expect(200);
    assert!(replayed(&again) && again.json().get("api_key").is_none(), "{}", again.text);
    let dir = hub.stop().await;
    let mut written = Vec::new();
    for file in std::fs::read_dir(dir.path()).expect("a directory") {
        written.extend(std::fs::read(file.expect("a file").path()).expect("its bytes"));
    }
    let holds = |text: &str| written.windows(text.len()).any(|part| part == text.as_bytes());
    assert!(holds("a name to be found"), "the search finds stored texts");
    for hidden in [&key, &fresh, &secret] {
        assert!(!holds(hidden) && !holds(&hidden[6..]), "a secret is on disk");
    }
}

/// An orchestrator with credits, and a worker with an endpoint.
async fn pair(hub: &TestHub) -> (Agent, Agent, Worker) {
    let worker = Worker::start(Behaviour::Succeed(json!({"n": 1}), "0.10")).await;
    let asking = hub.orchestrator("o1").await;
    let working = hub.agent("acme", "analyze_text", "0.10", Some(&worker.url)).await;
    hub.grant("o1", "1.00").await;
    (asking, working, worker)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_sent_twice_runs_once_even_without_an_id_of_its_own() {
    for hub in both_modes().await {
        let (asking, working, worker) = pair(&hub).await;
        let body = job(&asking, "analyze_text");
        let to_agent = format!("/registry/agents/{}/jobs", working.id);
        for (n, path) in ["/registry/jobs", "/jobs", &to_agent].into_iter().enumerate() {
            let once = format!("k{n}");
            let first = post(&hub, path, Some(&asking.key), &once, &body).await.expect(200);
            assert!(!replayed(&first));
            let before = snapshot(&hub).await;
            let again = post(&hub, path, Some(&asking.key), &once, &body).await.expect(200);
            assert!(replayed(&again));
            assert_eq!(again.text, first.text);
            let other = with(&body, "/budget", Some(json!(0.16)));
            let refused = post(&hub, path, Some(&asking.key), &once, &other).await;
            assert_refused(&refused, 422, "IDEMPOTENCY_CONFLICT");
            assert_eq!(snapshot(&hub).await, before);
            assert_eq!(worker.got().len(), n + 1);
        }
        hub.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_belongs_to_its_caller_and_its_path() {
    let hub = TestHub::serve(&[]).await;
    let (asking, working, worker) = pair(&hub).await;
    let other = hub.orchestrator("o2").await;
    hub.grant("o2", "1.00").await;
    let body = json!({"skill_name": "analyze_text", "budget": 0.15});
    let first = post(&hub, "/jobs", Some(&asking.key), "k", &body).await.expect(200);
    let theirs = post(&hub, "/jobs", Some(&other.key), "k", &body).await.expect(200);
    let path = format!("/registry/agents/{}/jobs", working.id);
    let elsewhere = post(&hub, &path, Some(&asking.key), "k", &body).await.expect(200);
    let ids = [&first, &theirs, &elsewhere].map(|reply| reply.str("/job_id"));
    assert!(ids[0] != ids[1] && ids[0] != ids[2] && ids[1] != ids[2]);
    assert!([&first, &theirs, &elsewhere].into_iter().all(|reply| !replayed(reply)));
    assert_eq!(worker.got().len(), 3);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn many_repeats_at_once_have_one_effect_and_one_answer() {
    let hub = TestHub::serve(&[]).await;
    let (asking, _, worker) = pair(&hub).await;
    let body = job(&asking, "analyze_text");
    let replies =
        together((0..16).map(|_| post(&hub, "/jobs", Some(&asking.key), "k", &body))).await;
    for reply in &replies {
        assert_eq!((reply.status, &reply.text), (200, &replies[0].text));
    }
    assert_eq!(replies.iter().filter(|reply| !replayed(reply)).count(), 1);
    assert_eq!(worker.got().len(), 1);
    let body = registration("new");
    let agents = together((0..16).map(|_| post(&hub, "/register", None, "k", &body))).await;
    assert_eq!(agents.iter().filter(|reply| reply.json().get("api_key").is_some()).count(), 1);
    assert!(
        agents
            .iter()
            .all(|reply| reply.status == 201 && reply.at("/agent_id") == agents[0].at("/agent_id"))
    );
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_are_remembered_over_a_restart() {
    let hub = TestHub::serve(&[]).await;
    let (asking, _, worker) = pair(&hub).await;
    let body = job(&asking, "analyze_text");
    let ran = post(&hub, "/jobs", Some(&asking.key), "k", &body).await.expect(200);
    let made = post(&hub, "/register", None, "k", &registration("new")).await.expect(201);
    let hub = hub.restart(Profile::Serve, &[]).await;
    let before = snapshot(&hub).await;
    let again = post(&hub, "/jobs", Some(&asking.key), "k", &body).await.expect(200);
    assert_eq!((again.text.as_str(), replayed(&again)), (ran.text.as_str(), true));
    let again = post(&hub, "/register", None, "k", &registration("new")).await.expect(201);
    assert_eq!((again.str("/agent_id"), replayed(&again)), (made.str("/agent_id"), true));
    let other = with(&body, "/budget", Some(json!(0.5)));
    post(&hub, "/jobs", Some(&asking.key), "k", &other).await.expect(422);
    assert_eq!(snapshot(&hub).await, before);
    assert_eq!(worker.got().len(), 1);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_never_tried_is_not_remembered() {
    for hub in both_modes().await {
        let (asking, _, _worker) = pair(&hub).await;
        let before = counted(&hub);
        let good = registration("new");
        let bad = with(&good, "/agent_name", None);
        for _ in 0..2 {
            let reply = post(&hub, "/register", None, "k", &bad).await;
            assert_malformed(&reply, "/agent_name");
            assert!(!replayed(&reply));
            let reply =
                post(&hub, "/jobs", Some("rk_nonsense"), "k", &job(&asking, "analyze_text")).await;
            assert_refused(&reply, 401, "UNAUTHORIZED");
            assert!(!replayed(&reply));
            let headers =
                [("idempotency-key", "k"), ("connection", "close"), ("content-encoding", "gzip")];
            hub.send("POST", "/registry/register", &headers, b"{}").await.expect(415);
            let large = " ".repeat((1 << 20) + 1).into_bytes();
            hub.send("POST", "/registry/register", &headers[..2], &large).await.expect(413);
        }
        assert_eq!(counted(&hub), before, "not even the idempotency key");
        let reply = post(&hub, "/register", None, "k", &good).await.expect(201);
        assert!(!replayed(&reply));
        let reply = post(&hub, "/jobs", Some(&asking.key), "k", &job(&asking, "analyze_text"))
            .await
            .expect(200);
        assert!(!replayed(&reply));
        hub.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_has_at_most_256_characters() {
    let hub = TestHub::serve(&[]).await;
    let (asking, _, worker) = pair(&hub).await;
    let before = snapshot(&hub).await;
    for once in [String::new(), "k".repeat(257), "k".repeat(4_000)] {
        for (path, body) in [
            ("/registry/register", registration("new")),
            ("/register", registration("new")),
            ("/registry/jobs", job(&asking, "analyze_text")),
            ("/jobs", job(&asking, "analyze_text")),
        ] {
            let reply = post(&hub, path, Some(&asking.key), &once, &body).await;
            assert_malformed(&reply, "Idempotency-Key");
        }
    }
    assert_eq!(snapshot(&hub).await, before);
    assert!(worker.got().is_empty());
    let body = job(&asking, "analyze_text");
    post(&hub, "/jobs", Some(&asking.key), &"k".repeat(256), &body).await.expect(200);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_no_longer_works_gets_no_old_answers() {
    let hub = TestHub::serve(&[]).await;
    let (asking, _, _worker) = pair(&hub).await;
    let body = job(&asking, "analyze_text");
    post(&hub, "/jobs", Some(&asking.key), "k", &body).await.expect(200);
    let gone = format!("/registry/agents/{}", asking.id);
    hub.call("DELETE", &gone, Some(&asking.key), None).await.expect(200);
    let reply = post(&hub, "/jobs", Some(&asking.key), "k", &body).await;
    assert_refused(&reply, 401, "UNAUTHORIZED");
    // A former key is still valid for registering again.
    let back =
        with(&with(&registration("o1"), "/agent_id", Some(json!(asking.id))), "/skills", None);
    post(&hub, "/register", Some(&asking.key), "back", &back).await.expect(200);
    let reply = post(&hub, "/jobs", Some(&asking.key), "k", &body).await.expect(200);
    assert!(replayed(&reply));
    hub.stop().await;
}

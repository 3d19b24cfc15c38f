//! Saved answers for repeated requests: none for reads, the others on disk and within limits.

use rialto_core::idempotency::{SavedAnswer, SavedSize};
use rialto_engine::store::{Row, RowKey};
use rialto_hub::app::operations;
use rialto_hub::config::Profile;
use rialto_protocols::adapter::Access;
use serde_json::{Value, json};

use crate::kit::{Agent, Behaviour, Reply, TestHub, Worker, counted, eventually, snapshot};

/// A call with an idempotency key.
async fn keyed(hub: &TestHub, path: &str, by: Option<&str>, once: &str, body: &Value) -> Reply {
    let bearer = by.map(|key| format!("Bearer {key}"));
    let mut headers = vec![("idempotency-key", once)];
    if let Some(bearer) = &bearer {
        headers.push(("authorization", bearer));
    }
    hub.send("POST", path, &headers, body.to_string().as_bytes()).await
}

fn replayed(reply: &Reply) -> bool {
    reply.header("idempotency-replayed") == Some("true")
}

fn kept(hub: &TestHub) -> SavedSize {
    hub.engine.with_world(|world| world.saved_total())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_public_operation_keeps_nothing_whatever_key_it_is_shown() {
    for posture in [Profile::Serve, Profile::Dev] {
        let hub = TestHub::start(posture, &[], tempfile::TempDir::new().expect("a place")).await;
        let agent = hub.agent("acme", "analyze_text", "0.10", None).await;
        let before = counted(&hub);
        let public: Vec<_> = operations()
            .into_iter()
            .filter(|route| route.access == Access::Public && route.method == "POST")
            .collect();
        assert!(public.iter().any(|route| route.path == "/discover"), "{public:?}");
        for route in public {
            let path = route.path.replace("{agent_id}", &agent.id);
            let body = json!({"skill": "analyze_text", "skill_name": "analyze_text"});
            for by in [None, Some(agent.key.as_str()), Some(hub.operator.as_str())] {
                for once in ["k1", "k1", "k2"] {
                    let reply = keyed(&hub, &path, by, once, &body).await;
                    assert!(reply.status < 500 && !replayed(&reply), "{path}: {reply:?}");
                }
            }
        }
        // Nor is an answer saved for an unknown path.
        keyed(&hub, "/registry/nowhere", None, "k", &json!({})).await.expect(404);
        keyed(&hub, "/registry/jobs/1", None, "k", &json!({})).await;
        assert_eq!((kept(&hub), counted(&hub)), (SavedSize::default(), before), "{posture:?}");
        hub.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stranger_that_finds_nothing_leaves_nothing_behind() {
    for posture in [Profile::Serve, Profile::Dev] {
        let hub = TestHub::start(posture, &[], tempfile::TempDir::new().expect("a place")).await;
        let before = counted(&hub);
        for n in 0..4 {
            let once = format!("k{n}");
            for path in ["/registry/callbacks/bogus", "/relay/receive/x", "/v1/jobs/x/cancel"] {
                let body = json!({"status": "SUCCESS", "output_data": {}});
                let reply = keyed(&hub, path, None, &once, &body).await;
                assert!((400..500).contains(&reply.status) && !replayed(&reply), "{reply:?}");
            }
        }
        assert_eq!((kept(&hub), counted(&hub)), (SavedSize::default(), before), "{posture:?}");
        // Answers to a known caller are saved, whatever they are.
        let agent = hub.agent("acme", "analyze_text", "0.10", None).await;
        let key = Some(agent.key.as_str());
        let path = "/registry/callbacks/bogus";
        keyed(&hub, path, key, "k", &json!({})).await.expect(404);
        assert!(replayed(&keyed(&hub, path, key, "k", &json!({})).await));
        hub.stop().await;
    }
}

/// A worker with long answers, and an agent that calls it.
async fn pair(hub: &TestHub) -> (Agent, Agent, Worker) {
    let output = json!({"text": "long ".repeat(20_000)});
    let worker = Worker::start(Behaviour::Succeed(output, "0.10")).await;
    let asking = hub.orchestrator("o1").await;
    let working = hub.agent("acme", "analyze_text", "0.10", Some(&worker.url)).await;
    hub.grant("o1", "1.00").await;
    (asking, working, worker)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_body_of_a_kept_answer_lies_on_disk_and_is_told_again_byte_for_byte() {
    let hub = TestHub::serve(&[]).await;
    let (asking, _, worker) = pair(&hub).await;
    let body = json!({"orchestrator_id": asking.id, "skill_name": "analyze_text",
        "input_data": {"text": "hello"}, "budget": 1.0});
    let first = keyed(&hub, "/registry/jobs", Some(&asking.key), "k1", &body).await.expect(200);
    assert!(first.text.len() > 100_000);
    let hub = {
        let known = hub
            .engine
            .with_world(|world| world.idempotency_entries().next().cloned())
            .expect("it is kept");
        assert_eq!((known.bytes, &known.receipt), (first.text.len() as u64, &None));
        let row =
            hub.engine.load_row(RowKey::IdempotencyRecord(known.id)).await.expect("it can be read");
        let Some(Row::Memory(row)) = row else { panic!("no row") };
        assert!(matches!(&row.answer, SavedAnswer::Answer { body, .. } if *body == first.text));
        let again = keyed(&hub, "/registry/jobs", Some(&asking.key), "k1", &body).await;
        assert!(replayed(&again) && again.text == first.text);
        hub.restart(Profile::Serve, &[]).await
    };
    assert_eq!(kept(&hub), SavedSize { answers: 1, bytes: first.text.len() as u64 });
    let again = keyed(&hub, "/registry/jobs", Some(&asking.key), "k1", &body).await.expect(200);
    assert!(replayed(&again) && again.text == first.text);
    assert_eq!(worker.got().len(), 1);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn at_its_cap_a_caller_is_refused_before_anything_happens_and_its_repeats_are_not() {
    for limit in ["limits.kept_answers", "limits.kept_answer_bytes"] {
        let hub = TestHub::serve(&[(limit, "1")]).await;
        let agent = hub.agent("acme", "analyze_text", "0.10", None).await;
        let beat = json!({"agent_id": agent.id});
        let key = Some(agent.key.as_str());
        let first = keyed(&hub, "/registry/heartbeat", key, "k1", &beat).await.expect(200);
        let before = (snapshot(&hub).await, counted(&hub));
        for (path, code) in [
            ("/registry/heartbeat", "UNAVAILABLE"),
            ("/heartbeat", "UNAVAILABLE"),
            ("/relay/messages", "ERR_UNAVAILABLE"),
            ("/messages", "ERR_UNAVAILABLE"),
            ("/openclaw/status", "UNAVAILABLE"),
            ("/openclaw/collaborations", "UNAVAILABLE"),
            ("/v1/messages", "too_many_kept"),
            ("/v1/jobs", "too_many_kept"),
        ] {
            let refused = keyed(&hub, path, key, "k2", &beat).await.expect(507);
            assert!(refused.text.contains(code), "{path}: {}", refused.text);
            assert!(refused.text.contains("Idempotency-Key") || path.starts_with("/openclaw"));
            assert_eq!(refused.header("retry-after"), Some("600"), "{path}");
        }
        assert_eq!((snapshot(&hub).await, counted(&hub)), before);
        let again = keyed(&hub, "/registry/heartbeat", key, "k1", &beat).await.expect(200);
        assert!(replayed(&again) && again.text == first.text);
        // Without an idempotency key it is accepted, and other callers have their own share.
        hub.post("/registry/heartbeat", key, &beat).await.expect(200);
        let grant = json!({"owner": "acme", "amount": 1.00});
        let operator = Some(hub.operator.as_str());
        keyed(&hub, "/v1/operator/grants", operator, "k1", &grant).await.expect(201);
        // Once the first answer is a day old, there is capacity again.
        hub.pass(rialto_core::idempotency::ANSWER_TTL);
        eventually(async || kept(&hub) == SavedSize::default()).await;
        let later = keyed(&hub, "/registry/heartbeat", key, "k2", &beat).await;
        assert!(later.status == 200 && !replayed(&later), "{later:?}");
        hub.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_strangers_does_not_keep_agents_from_using_keys() {
    let hub = TestHub::serve(&[("limits.kept_answers_total", "8")]).await;
    let body = |n: usize| json!({"agent_name": "a", "owner_id": format!("o{n}"), "skills": []});
    let agent = hub.orchestrator("acme").await;
    for n in 0..2 {
        let once = format!("k{n}");
        keyed(&hub, "/register", None, &once, &body(n)).await.expect(201);
    }
    keyed(&hub, "/register", None, "k2", &body(2)).await.expect(507);
    hub.post("/register", None, &body(2)).await.expect(201);
    let beat = json!({"agent_id": agent.id});
    for n in 0..20 {
        let once = format!("k{n}");
        keyed(&hub, "/heartbeat", Some(&agent.key), &once, &beat).await.expect(200);
    }
    hub.stop().await;
}

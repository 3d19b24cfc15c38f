//! The same job twice, and the same job by another caller (R38); who may be an orchestrator (R39).

use rialto_hub::config::Profile;
use serde_json::{Value, json};

use super::forms::{JOB_ID, both_modes, job, job_posts, with};
use crate::kit::{Agent, Behaviour, Reply, TestHub, Worker, assert_refused, snapshot, together};

fn named(body: &Value, id: &str) -> Value {
    with(body, "/job_id", Some(json!(id)))
}

async fn pair(hub: &TestHub, endpoint: Option<&str>) -> (Agent, Agent) {
    let asking = hub.orchestrator("o1").await;
    let working = hub.agent("acme", "analyze_text", "0.10", endpoint).await;
    hub.grant("o1", "1.00").await;
    (asking, working)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_job_is_answered_with_the_first_result_and_runs_nothing() {
    for hub in both_modes().await {
        let worker = Worker::start(Behaviour::Succeed(json!({"n": 1}), "0.10")).await;
        let (asking, working) = pair(&hub, Some(&worker.url)).await;
        let body = named(&job(&asking, "analyze_text"), JOB_ID);
        let path = format!("/registry/agents/{}/jobs", working.id);
        let first = hub.post(&path, Some(&asking.key), &body).await.expect(200);
        let before = snapshot(&hub).await;
        worker.behave(Behaviour::Fail(None));
        // The same content in another form: spacing, order, case, trailing zeros, another time.
        let reworded = format!(
            r#"{{ "timestamp_utc":"2026-02-12T00:00:00Z", "budget":0.150, "job_id":"{}",
            "input_data" : {{"text":"Revenue for Q3 was \u002442,000..."}}, "skill_name":"analyze_text",
            "callback_url":"https://orchestrator.example/results","orchestrator_id":"{}" }}"#,
            JOB_ID.to_uppercase(),
            asking.id.to_uppercase()
        );
        for again in [body.to_string(), reworded] {
            let reply = hub.post_text(&path, Some(&asking.key), &again).await.expect(200);
            assert_eq!(reply.text, first.text);
            assert_eq!(reply.header("rialto-job"), first.header("rialto-job"));
        }
        assert_eq!(snapshot(&hub).await, before);
        assert_eq!(worker.got().len(), 1);
        hub.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeat_is_the_same_job_however_its_agent_is_named() {
    let hub = TestHub::serve(&[]).await;
    let worker = Worker::start(Behaviour::Succeed(json!({}), "0.10")).await;
    let (asking, working) = pair(&hub, Some(&worker.url)).await;
    let body = named(&job(&asking, "analyze_text"), JOB_ID);
    let [(by_path, plain), (by_body, with_agent), _] = job_posts(&working, &body);
    let first = hub.post(&by_path, Some(&asking.key), &plain).await.expect(200);
    for (path, body) in
        [(&by_path, &with_agent), (&by_body, &with_agent), (&"/jobs".to_owned(), &with_agent)]
    {
        assert_eq!(hub.post(path, Some(&asking.key), body).await.expect(200).text, first.text);
    }
    // Leaving the choice to the hub makes it another request.
    assert_refused(
        &hub.post("/jobs", Some(&asking.key), &plain).await,
        422,
        "IDEMPOTENCY_CONFLICT",
    );
    assert_eq!(worker.got().len(), 1);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeat_of_a_job_that_waits_is_told_to_wait_and_after_it_gets_the_result() {
    let hub = TestHub::serve(&[]).await;
    let (asking, working) = pair(&hub, None).await;
    let body = with(&named(&job(&asking, "analyze_text"), JOB_ID), "/callback_url", None);
    let first = hub.post("/jobs", Some(&asking.key), &body).await.expect(202);
    let again = hub.post("/registry/jobs", Some(&asking.key), &body).await.expect(202);
    assert_eq!(again.text, first.text);
    assert_eq!(hub.balance("o1").await.1, "0.15", "held once");
    let work = hub.get(&format!("/registry/agents/{}/jobs", working.id), Some(&working.key)).await;
    assert_eq!(work.at("/jobs").as_array().map(Vec::len), Some(1));
    hub.report(&working, JOB_ID, "SUCCESS", "0.10").await.expect(200);
    let ended = hub.post("/jobs", Some(&asking.key), &body).await.expect(200);
    assert_eq!(ended.str("/status"), "SUCCESS");
    let kept = hub.get(&format!("/jobs/{JOB_ID}"), Some(&asking.key)).await.expect(200);
    assert_eq!(kept.text, ended.text);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeat_is_answered_after_a_restart_and_after_the_agent_has_left() {
    let hub = TestHub::serve(&[]).await;
    let worker = Worker::start(Behaviour::Succeed(json!({"n": 1}), "0.10")).await;
    let (asking, working) = pair(&hub, Some(&worker.url)).await;
    let body = named(&job(&asking, "analyze_text"), JOB_ID);
    let path = format!("/registry/agents/{}/jobs", working.id);
    let first = hub.post(&path, Some(&asking.key), &body).await.expect(200);
    let hub = hub.restart(Profile::Serve, &[]).await;
    assert_eq!(hub.post(&path, Some(&asking.key), &body).await.expect(200).text, first.text);
    hub.call("DELETE", &format!("/registry/agents/{}", working.id), Some(&working.key), None)
        .await
        .expect(200);
    assert_eq!(hub.post(&path, Some(&asking.key), &body).await.expect(200).text, first.text);
    let new = named(&body, "00000001-7dec-11d0-a765-00a0c91e6bf6");
    assert_refused(&hub.post(&path, Some(&asking.key), &new).await, 404, "NOT_FOUND");
    assert_eq!(worker.got().len(), 1);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_id_with_other_content_or_of_another_requester_is_refused() {
    for hub in both_modes().await {
        let worker = Worker::start(Behaviour::Succeed(json!({}), "0.10")).await;
        let (asking, working) = pair(&hub, Some(&worker.url)).await;
        let other =
            hub.enrol(&json!({"agent_name": "n", "owner_id": "o1"}), Some(&asking.key)).await;
        let body = named(&job(&asking, "analyze_text"), JOB_ID);
        let path = format!("/registry/agents/{}/jobs", working.id);
        hub.post(&path, Some(&asking.key), &body).await.expect(200);
        let before = snapshot(&hub).await;
        for (field, value) in [
            ("/input_data", Some(json!({"text": "something else"}))),
            ("/input_data", None),
            ("/budget", Some(json!(0.16))),
            ("/skill_name", Some(json!("translate"))),
            ("/callback_url", Some(json!("https://elsewhere.example/"))),
            ("/callback_url", None),
        ] {
            let reply = hub.post(&path, Some(&asking.key), &with(&body, field, value)).await;
            assert_refused(&reply, 422, "IDEMPOTENCY_CONFLICT");
        }
        // A sibling shares the owner and the balance, but not the jobs.
        let theirs = with(&body, "/orchestrator_id", Some(json!(other.id)));
        for body in [&theirs, &with(&theirs, "/budget", Some(json!(0.5)))] {
            for path in [&path, "/registry/jobs", "/jobs"] {
                assert_refused(&hub.post(path, Some(&other.key), body).await, 409, "CONFLICT");
            }
        }
        assert_eq!(snapshot(&hub).await, before);
        assert_eq!(worker.got().len(), 1);
        hub.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn many_repeats_at_once_are_one_job() {
    let hub = TestHub::serve(&[]).await;
    let worker = Worker::start(Behaviour::Succeed(json!({"n": 1}), "0.10")).await;
    let (asking, _) = pair(&hub, Some(&worker.url)).await;
    let body = named(&job(&asking, "analyze_text"), JOB_ID);
    let replies = together((0..24).map(|_| hub.post("/jobs", Some(&asking.key), &body))).await;
    for reply in &replies {
        assert_eq!((reply.status, &reply.text), (200, &replies[0].text));
    }
    assert_eq!(worker.got().len(), 1);
    assert_eq!(hub.balance("o1").await, ("0.90".to_owned(), "0.00".to_owned()));
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_cannot_name_another_agent_as_requester() {
    for hub in both_modes().await {
        let (asking, working) = pair(&hub, None).await;
        let sibling =
            hub.enrol(&json!({"agent_name": "n", "owner_id": "o1"}), Some(&asking.key)).await;
        let before = snapshot(&hub).await;
        for posing in
            [&working.id, &sibling.id, "demo_orchestrator", "00000000-0b3b-4b1a-9c1a-1a2b3c4d5e6f"]
        {
            let body = with(&job(&asking, "analyze_text"), "/orchestrator_id", Some(json!(posing)));
            for (path, body) in job_posts(&working, &named(&body, JOB_ID)) {
                let reply = hub.post(&path, Some(&asking.key), &body).await;
                assert_refused(&reply, 403, "FORBIDDEN");
                let by_operator = hub.post(&path, Some(&hub.operator), &body).await;
                assert_refused(&by_operator, 403, "FORBIDDEN");
            }
        }
        assert_eq!(snapshot(&hub).await, before);
        let own = with(
            &job(&asking, "analyze_text"),
            "/orchestrator_id",
            Some(json!(asking.id.to_uppercase())),
        );
        hub.post("/jobs", Some(&asking.key), &own).await.expect(202);
        hub.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_open_hub_lets_strangers_ask_for_what_is_free_and_nothing_else() {
    let hub = TestHub::open(&[]).await;
    let worker = Worker::start(Behaviour::Succeed(json!({}), "0")).await;
    let paid = hub.agent("acme", "both", "0.10", Some(&worker.url)).await;
    hub.agent("acme2", "paid", "0.10", Some(&worker.url)).await;
    let free = hub.agent("globex", "both", "0", Some(&worker.url)).await;
    let before = snapshot(&hub).await;
    let ask = |skill: &str, budget: f64| json!({"orchestrator_id": "demo_orchestrator", "skill_name": skill, "budget": budget});
    let to = |agent: &Agent| format!("/registry/agents/{}/jobs", agent.id);
    for (path, body) in [
        (to(&paid), ask("both", 0.15)),
        ("/jobs".to_owned(), ask("paid", 0.15)),
        ("/registry/jobs".to_owned(), ask("paid", 1e9)),
    ] {
        let reply: Reply = hub.post(&path, None, &body).await;
        assert_refused(&reply, 403, "FORBIDDEN");
        assert_eq!(reply.str("/status"), "FAILURE");
    }
    assert_eq!(snapshot(&hub).await, before);
    assert!(worker.got().is_empty());
    for (path, body) in [(to(&free), ask("both", 0.0)), ("/jobs".to_owned(), ask("both", 0.15))] {
        let reply = hub.post(&path, None, &body).await.expect(200);
        assert_eq!(reply.str("/agent_id"), free.id);
        assert_eq!(
            worker.got().pop().expect("a call").json()["orchestrator_id"],
            "demo_orchestrator"
        );
    }
    // An unregistered orchestrator is known by its name, and its jobs by their ids.
    let first = named(&ask("both", 0.0), JOB_ID);
    let answer = hub.post(&to(&free), None, &first).await.expect(200);
    assert_eq!(hub.post(&to(&free), None, &first).await.expect(200).text, answer.text);
    let other = with(&first, "/orchestrator_id", Some(json!("another_orchestrator")));
    assert_refused(&hub.post(&to(&free), None, &other).await, 409, "CONFLICT");
    // A registered one needs no key on an open hub, and pays.
    let asking = hub.orchestrator("o1").await;
    let body = json!({"orchestrator_id": asking.id, "skill_name": "both", "budget": 0.15});
    worker.behave(Behaviour::Succeed(json!({}), "0.10"));
    hub.post(&to(&paid), None, &body).await.expect(200);
    assert_eq!(hub.balance("o1").await.0, "99.90");
    let gone = format!("/registry/agents/{}", asking.id);
    hub.call("DELETE", &gone, None, None).await.expect(200);
    assert_refused(&hub.post("/jobs", None, &body).await, 403, "FORBIDDEN");
    hub.stop().await;
}

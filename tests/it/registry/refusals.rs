//! A refused job leaves nothing behind (R34, R37).

use serde_json::json;

use super::forms::{JOB_ID, Recorded, both_modes, job, job_posts, with};
use super::market::fresh_id;
use crate::kit::{
    Agent, Behaviour, ClosedPort, TestHub, Worker, assert_later, assert_refused, snapshot,
};

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_cannot_be_connected_to_is_offline_and_the_job_never_was() {
    for hub in both_modes().await {
        let nobody = ClosedPort::take();
        let asking = hub.orchestrator("o1").await;
        hub.grant("o1", "1.00").await;
        let money = hub.balance("o1").await;
        let working = hub.agent("acme", "analyze_text", "0.10", Some(&nobody.url)).await;
        let body = with(&job(&asking, "analyze_text"), "/job_id", Some(json!(JOB_ID)));
        let before = snapshot(&hub).await;
        for (n, (path, body)) in job_posts(&working, &body).into_iter().enumerate() {
            let reply = hub.post(&path, Some(&asking.key), &body).await;
            assert_later(&reply, 503, "AGENT_OFFLINE", 30);
            assert_eq!(reply.str("/status"), "FAILURE", "{n}");
            assert_eq!(hub.balance("o1").await, money);
            for path in [format!("/jobs/{JOB_ID}"), format!("/registry/jobs/{JOB_ID}")] {
                assert_refused(&hub.get(&path, Some(&asking.key)).await, 404, "NOT_FOUND");
            }
            let work =
                hub.get(&format!("/registry/agents/{}/jobs", working.id), Some(&asking.key)).await;
            work.expect(404);
        }
        let after = snapshot(&hub).await;
        for path in ["/registry/economy", "/registry/audit?limit=500"] {
            assert_eq!(after.shown[path], before.shown[path]);
        }
        assert_eq!(hub.score(&working).await, "50.0");

        // With a new endpoint the agent is online again, and the id is still free.
        let worker = Worker::start(Behaviour::Succeed(json!({}), "0.10")).await;
        let moved = json!({"agent_id": working.id, "agent_name": "n", "owner_id": "acme", "api_endpoint": worker.url,
            "skills": [{"skill_name": "analyze_text", "cost_per_call": 0.10}]});
        hub.post("/register", Some(&working.key), &moved).await.expect(200);
        let reply = hub.post("/jobs", Some(&asking.key), &body).await.expect(200);
        assert_eq!(reply.str("/job_id"), JOB_ID);
        assert_eq!(worker.got().len(), 1);
        hub.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_id_of_a_refused_job_may_be_sent_again() {
    let hub = TestHub::serve(&[]).await;
    let worker = Worker::start(Behaviour::Succeed(json!({}), "0.10")).await;
    let asking = hub.orchestrator("o1").await;
    let working = hub.agent("acme", "analyze_text", "0.10", Some(&worker.url)).await;
    let good = with(&job(&asking, "analyze_text"), "/job_id", Some(json!(JOB_ID)));
    let path = format!("/registry/agents/{}/jobs", working.id);
    let before = snapshot(&hub).await;
    for (field, wrong, status, code) in [
        ("/skill_name", json!("translate"), 422, "SKILL_MISMATCH"),
        ("/budget", json!(0.09), 402, "BUDGET_INSUFFICIENT"),
        ("/budget", json!(0.15), 402, "TRANSFER_FAILED"),
        ("/budget", json!(0.155), 400, "INVALID_REQUEST"),
        ("/currency", json!("dollars"), 400, "INVALID_REQUEST"),
        ("/orchestrator_id", json!(working.id), 403, "FORBIDDEN"),
    ] {
        for path in [&path, "/registry/jobs", "/jobs"] {
            let reply =
                hub.post(path, Some(&asking.key), &with(&good, field, Some(wrong.clone()))).await;
            assert_refused(&reply, status, code);
            let kept = hub.get(&format!("/registry/jobs/{JOB_ID}"), Some(&asking.key)).await;
            assert_refused(&kept, 404, "NOT_FOUND");
        }
    }
    assert_eq!(snapshot(&hub).await, before);
    assert!(worker.got().is_empty());
    hub.grant("o1", "0.15").await;
    let reply = hub.post(&path, Some(&asking.key), &good).await.expect(200);
    assert_eq!(
        (reply.str("/job_id"), reply.str("/status")),
        (JOB_ID.to_owned(), "SUCCESS".to_owned())
    );
    assert_eq!(hub.balance("o1").await, ("0.05".to_owned(), "0.00".to_owned()));
    // A refused id is not claimed: another orchestrator could use it.
    let other = hub.orchestrator("o2").await;
    let theirs = with(
        &job(&other, "translate"),
        "/job_id",
        Some(json!("00000001-7dec-11d0-a765-00a0c91e6bf6")),
    );
    hub.post("/jobs", Some(&other.key), &theirs).await.expect(422);
    let ours = with(
        &with(&theirs, "/orchestrator_id", Some(json!(asking.id))),
        "/skill_name",
        Some(json!("free")),
    );
    hub.agent("globex", "free", "0", None).await;
    let ours = with(&ours, "/budget", Some(json!(0)));
    hub.post("/jobs", Some(&asking.key), &ours).await.expect(202);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_names_its_real_cause_and_the_field() {
    let hub = TestHub::serve(&[]).await;
    let asking = hub.orchestrator("o1").await;
    let id = fresh_id();
    let started = Recorded::of("register", &[("AGENT_ID", &id)]);
    let key = started.send(&hub, None).await.expect(201).str("/api_key");
    let working = Agent { id, key, owner: "demo_owner".to_owned() };
    hub.agent("globex", "calculate", "0.10", None).await;
    let before = snapshot(&hub).await;
    // The agent registers again under a new id: the owner's name is taken, the agent's id is not.
    let again = Recorded::of("register", &[("AGENT_ID", &fresh_id())]);
    for path in [again.path.clone(), format!("/registry{}", again.path)] {
        let reply = Recorded { path, ..again.clone() }.send(&hub, None).await;
        assert_refused(&reply, 409, "CONFLICT");
        assert_eq!(reply.str("/error/field"), "/owner_id");
        assert!(reply.str("/detail").starts_with("owner_id is taken"), "{}", reply.text);
    }
    let reply = started.send(&hub, None).await;
    assert_refused(&reply, 409, "CONFLICT");
    assert_eq!(reply.str("/detail"), "this id is already in use; choose another id");
    // The named agent lacks the skill, although another agent has it.
    let ids = [("AGENT_ID", &*working.id), ("ORCHESTRATOR_ID", &asking.id), ("JOB_ID", JOB_ID)];
    let by_path = Recorded::of("hire", &ids).send(&hub, Some(&asking.key)).await;
    let [_, (path, body), _] = job_posts(&working, &job(&asking, "calculate"));
    let by_body = hub.post(&path, Some(&asking.key), &body).await;
    for reply in [by_path, by_body] {
        assert_refused(&reply, 422, "SKILL_MISMATCH");
        assert_eq!(reply.str("/error/field"), "/skill_name");
        let message = reply.str("/error_message");
        assert!(message.starts_with("the agent does not offer this skill"), "{message}");
    }
    let nobody = hub.post("/jobs", Some(&asking.key), &job(&asking, "juggle")).await;
    assert_refused(&nobody, 422, "SKILL_MISMATCH");
    assert_eq!(nobody.str("/error_message"), "no agent offers this skill");
    assert_eq!(snapshot(&hub).await, before);
    hub.stop().await;
}

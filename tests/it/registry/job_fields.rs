//! Every field of a job with invalid values (R30, and the table of section 2.4). Each refusal's
//! example is tested, too: the body corrected by it is valid.

use serde_json::{Value, json};

use super::forms::{both_modes, job, job_posts, with};
use crate::kit::{Agent, TestHub, assert_malformed, counted, repaired, snapshot};

/// An orchestrator, and a worker that polls.
async fn pair(hub: &TestHub) -> (Agent, Agent) {
    let asking = hub.orchestrator("o1").await;
    let working = hub.agent("acme", "analyze_text", "0.10", None).await;
    hub.grant("o1", "1000").await;
    (asking, working)
}

/// Refused at every route, without effect, and valid once corrected.
async fn refuse(
    hub: &TestHub,
    (asking, working): &(Agent, Agent),
    field: &str,
    wrong: Option<Value>,
) {
    let body = with(&job(asking, "analyze_text"), field, wrong);
    for (path, body) in job_posts(working, &body) {
        let before = counted(hub);
        let reply = hub.post(&path, Some(&asking.key), &body).await;
        assert_malformed(&reply, field);
        assert_eq!(counted(hub), before, "{path} {body}");
        let better = repaired(&body, &reply);
        let again = hub.post(&path, Some(&asking.key), &better).await;
        assert_ne!(again.status, 400, "{field} repaired to {better}: {}", again.text);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_is_paid_in_the_one_currency_there_is() {
    for hub in both_modes().await {
        let pair = pair(&hub).await;
        let wrong = ["", "USD", "chorus_credits_v2", "CHORUS_CREDITS_V1", "chorus_credits_v1 "]
            .map(Value::from);
        for currency in wrong.into_iter().chain([json!(1), json!({}), json!(["chorus_credits_v1"])])
        {
            refuse(&hub, &pair, "/currency", Some(currency)).await;
        }
        for fine in [None, Some(Value::Null), Some(json!("chorus_credits_v1"))] {
            let body = with(&job(&pair.0, "analyze_text"), "/currency", fine);
            for (path, body) in job_posts(&pair.1, &body) {
                hub.post(&path, Some(&pair.0.key), &body).await.expect(202);
            }
        }
        hub.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_with_a_wrong_field_is_refused_by_that_field() {
    let hub = TestHub::serve(&[]).await;
    let pair = pair(&hub).await;
    for (field, wrong) in [
        ("/skill_name", None),
        ("/skill_name", Some(Value::Null)),
        ("/skill_name", Some(json!(""))),
        ("/skill_name", Some(json!(7))),
        ("/skill_name", Some(json!("s".repeat(129)))),
        ("/skill_name", Some(json!("a\u{200b}b"))),
        ("/budget", None),
        ("/budget", Some(Value::Null)),
        ("/budget", Some(json!("0.15"))),
        ("/budget", Some(json!(-0.01))),
        ("/budget", Some(json!(0.155))),
        ("/input_data", Some(json!("text"))),
        ("/input_data", Some(json!(["text"]))),
        ("/input_data", Some(json!(7))),
        ("/job_id", Some(json!("job-1"))),
        ("/job_id", Some(json!(1))),
        ("/orchestrator_id", Some(json!(7))),
        ("/orchestrator_id", Some(json!(""))),
        ("/orchestrator_id", Some(json!("o".repeat(129)))),
        ("/orchestrator_id", Some(json!("a\nb"))),
        ("/callback_url", Some(json!(7))),
        ("/callback_url", Some(json!("results"))),
        ("/callback_url", Some(json!("ftp://orchestrator.example/"))),
        ("/callback_url", Some(json!("https://10.1.2.3/results"))),
        ("/callback_url", Some(json!("http://169.254.169.254/"))),
        ("/callback_url", Some(json!("https://user@orchestrator.example/"))),
        ("/timestamp_utc", Some(json!("now"))),
        ("/timestamp_utc", Some(json!(1_770_819_309))),
    ] {
        refuse(&hub, &pair, field, wrong).await;
    }
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_agent_a_job_names_must_be_one_and_only_one() {
    let hub = TestHub::serve(&[]).await;
    let (asking, working) = pair(&hub).await;
    let body = job(&asking, "analyze_text");
    let before = snapshot(&hub).await;
    for wrong in [json!("bob"), json!(""), json!(7)] {
        for path in ["/registry/jobs", "/jobs"] {
            let reply = hub
                .post(path, Some(&asking.key), &with(&body, "/agent_id", Some(wrong.clone())))
                .await;
            assert_malformed(&reply, "/agent_id");
        }
    }
    let path = format!("/registry/agents/{}/jobs", working.id);
    let other = with(&body, "/agent_id", Some(json!(asking.id)));
    assert_malformed(&hub.post(&path, Some(&asking.key), &other).await, "/agent_id");
    assert_malformed(
        &hub.post("/registry/agents/bob/jobs", Some(&asking.key), &body).await,
        "agent_id",
    );
    let unknown = "00000000-0b3b-4b1a-9c1a-1a2b3c4d5e6f";
    let path_to_nobody = format!("/registry/agents/{unknown}/jobs");
    hub.post(&path_to_nobody, Some(&asking.key), &body).await.expect(404);
    let to_nobody = with(&body, "/agent_id", Some(json!(unknown)));
    hub.post("/jobs", Some(&asking.key), &to_nobody).await.expect(404);
    assert_eq!(snapshot(&hub).await, before);
    let same = with(&body, "/agent_id", Some(json!(working.id.to_uppercase())));
    hub.post(&path, Some(&asking.key), &same).await.expect(202);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_without_an_orchestrator_needs_a_key_to_tell_who_asks() {
    for hub in both_modes().await {
        let (asking, working) = pair(&hub).await;
        let body = with(&job(&asking, "analyze_text"), "/orchestrator_id", None);
        let before = snapshot(&hub).await;
        for (path, body) in job_posts(&working, &body) {
            let reply = hub.post(&path, None, &body).await;
            match hub.post("/heartbeat", None, &json!({})).await.status {
                401 => assert_eq!(reply.status, 401, "{}", reply.text),
                _ => {
                    assert_eq!(reply.status, 400, "{}", reply.text);
                    assert_eq!(reply.str("/error/field"), "/orchestrator_id");
                    assert_eq!(reply.str("/error_code"), "INVALID_REQUEST");
                }
            }
        }
        assert_eq!(snapshot(&hub).await, before);
        for (path, body) in job_posts(&working, &body) {
            hub.post(&path, Some(&asking.key), &body).await.expect(202);
        }
        hub.stop().await;
    }
}

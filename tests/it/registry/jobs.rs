//! Jobs on their way to the agent: what it receives, what the hub checks before, and that a refusal
//! leaves nothing (R29, R31–R37).

use serde_json::{Value, json};

use super::forms::{JOB_ID, both_modes, job, job_posts, with};
use crate::kit::{
    Agent, Behaviour, Reply, TestHub, Worker, assert_later, assert_refused, eventually, snapshot,
};

/// A worker for 0.10 at that endpoint, and an orchestrator with this many credits.
async fn pair(hub: &TestHub, endpoint: Option<&str>, credits: &str) -> (Agent, Agent) {
    let asking = hub.orchestrator("o1").await;
    let working = hub.agent("acme", "analyze_text", "0.10", endpoint).await;
    hub.grant("o1", credits).await;
    (asking, working)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_agent_gets_the_eight_fields_as_they_were_sent_but_for_the_callback() {
    for hub in both_modes().await {
        let worker = Worker::start(Behaviour::Succeed(json!({}), "0.10")).await;
        let (asking, working) = pair(&hub, Some(&worker.url), "10").await;
        for (n, (path, body)) in
            job_posts(&working, &job(&asking, "analyze_text")).into_iter().enumerate()
        {
            let id = format!("0000000{n}-7dec-11d0-a765-00a0c91e6bf6");
            let body = with(&body, "/job_id", Some(json!(id)));
            let answer = hub.post(&path, Some(&asking.key), &body).await.expect(200);
            assert_eq!(answer.str("/job_id"), id);
            let got = worker.got().pop().expect("a call");
            assert_eq!(got.path, "/jobs");
            let sent = got.json();
            for field in [
                "job_id",
                "orchestrator_id",
                "skill_name",
                "input_data",
                "budget",
                "currency",
                "timestamp_utc",
            ] {
                assert_eq!(sent[field], body[field], "{field}");
            }
            let late = sent["callback_url"].as_str().expect("a URL");
            let token = late.strip_prefix(&format!("{}/registry/callbacks/", hub.url));
            assert!(token.is_some_and(|token| token.len() >= 32), "{late}");
            assert_eq!(sent.as_object().expect("an object").len(), 8);
            assert_eq!(got.headers["content-type"], "application/json");
        }
        assert_eq!(worker.got().len(), 3);
        hub.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_job_leaves_out_is_filled_in_for_the_agent() {
    let hub = TestHub::serve(&[]).await;
    let worker = Worker::start(Behaviour::Succeed(json!({}), "0")).await;
    let (asking, _) = pair(&hub, Some(&worker.url), "1").await;
    for callback in [None, Some(Value::Null), Some(json!(""))] {
        let least = json!({"skill_name": "analyze_text", "budget": 0.1});
        let body = with(&least, "/callback_url", callback);
        let answer = hub.post("/jobs", Some(&asking.key), &body).await.expect(200);
        let got = worker.got().pop().expect("a call");
        let sent = got.json();
        assert_eq!(sent["job_id"], answer.at("/job_id"));
        assert_eq!(sent["orchestrator_id"], asking.id.as_str());
        assert_eq!(sent["input_data"], json!({}));
        assert_eq!(sent["currency"], "chorus_credits_v1");
        assert!(got.body.contains("\"budget\":0.10"), "{}", got.body);
        assert!(sent["timestamp_utc"].as_str().is_some_and(|time| time.ends_with('Z')));
        assert!(sent["callback_url"].as_str().is_some_and(|url| url.starts_with(&hub.url)));
    }
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_input_reaches_the_agent_digit_by_digit() {
    let hub = TestHub::serve(&[]).await;
    let worker = Worker::start(Behaviour::Succeed(json!({}), "0")).await;
    let (asking, working) = pair(&hub, Some(&worker.url), "1").await;
    let input = r#"{"a":1.10, "b":1e2, "c":12345678901234567890, "d":-0.0, "e":1E-400,
        "f":0.1000000000000000055511151231257827, "g" : "\u00e9\/é\ud83e\udd9c", "z":[null,true,{}],"a b":{"":[[]]}}"#;
    let body = format!(r#"{{"skill_name":"analyze_text","budget":0.10,"input_data":{input}}}"#);
    hub.post_text("/registry/jobs", Some(&asking.key), &body).await.expect(200);
    let got = worker.got().pop().expect("a call");
    assert!(got.body.contains(&format!("\"input_data\":{input}")), "{}", got.body);

    let polling = hub.agent("poller", "poll", "0", None).await;
    let body = format!(r#"{{"skill_name":"poll","budget":0,"input_data":{input}}}"#);
    hub.post_text("/jobs", Some(&asking.key), &body).await.expect(202);
    let work = hub.get(&format!("/registry/agents/{}/jobs", polling.id), Some(&polling.key)).await;
    assert!(work.text.contains(&format!("\"input_data\":{input}")), "{}", work.text);
    assert!(!working.id.is_empty());
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn members_the_hub_does_not_know_reach_the_agent_as_they_came() {
    let hub = TestHub::serve(&[]).await;
    let worker = Worker::start(Behaviour::Succeed(json!({}), "0")).await;
    let (asking, working) = pair(&hub, Some(&worker.url), "1").await;
    let polling = hub.agent("poller", "analyze_text", "0", None).await;
    let more = r#""priority":1.10,"x-trace":{"a" : [1e2]},"nothing":null,"status":"FAILURE""#;
    for (agent, id) in [(&working, JOB_ID), (&polling, "00000001-7dec-11d0-a765-00a0c91e6bf6")] {
        let ask = |more: &str| {
            let ids = format!(r#""job_id":"{id}","agent_id":"{}""#, agent.id);
            format!(r#"{{{ids},"skill_name":"analyze_text","budget":0.10,{more}}}"#)
        };
        let first = hub.post_text("/jobs", Some(&asking.key), &ask(more)).await;
        assert!([200, 202].contains(&first.status), "{}", first.text);
        // They are part of the request's identity.
        let again = hub.post_text("/jobs", Some(&asking.key), &ask(more)).await;
        assert_eq!((again.status, again.text), (first.status, first.text));
        let changed = ask(&more.replace("1.10", "1.2"));
        let other = hub.post_text("/jobs", Some(&asking.key), &changed).await;
        assert_refused(&other, 422, "IDEMPOTENCY_CONFLICT");
    }
    let fetch = format!("/registry/agents/{}/jobs", polling.id);
    let fetched = hub.get(&fetch, Some(&polling.key)).await.expect(200).text;
    for text in [&worker.got()[0].body, &fetched] {
        for member in more.split(",\"").map(|member| member.trim_start_matches('"')) {
            assert!(text.contains(member), "{member} in {text}");
        }
        assert!(!text.contains("agent_id"), "the recipient needs no agent_id: {text}");
    }
    assert_eq!(worker.got().len(), 1);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_jobs_path_is_added_to_the_endpoint_once() {
    let hub = TestHub::serve(&[]).await;
    let worker = Worker::start(Behaviour::Succeed(json!({}), "0")).await;
    let asking = hub.orchestrator("o1").await;
    for (n, (end, path)) in [
        ("", "/jobs"),
        ("/", "/jobs"),
        ("/jobs", "/jobs"),
        ("/jobs/", "/jobs"),
        ("/x/", "/x/jobs"),
        ("/myjobs", "/myjobs/jobs"),
    ]
    .into_iter()
    .enumerate()
    {
        let agent =
            hub.agent(&format!("w{n}"), "s", "0", Some(&format!("{}{end}", worker.url))).await;
        hub.hire(&asking, &agent, "s", "0").await.expect(200);
        assert_eq!(worker.got().pop().expect("a call").path, path, "{end}");
    }
    hub.stop().await;
}

/// A refused job: its code, and the result's fields for clients that read only those.
#[track_caller]
fn assert_job_refused(reply: &Reply, id: &str, status: u16, code: &str) {
    match code {
        "AGENT_OFFLINE" => assert_later(reply, status, code, 30),
        _ => assert_refused(reply, status, code),
    }
    assert_eq!(reply.str("/status"), "FAILURE");
    assert_eq!(reply.str("/job_id"), id);
    assert_eq!(reply.at("/output_data"), Value::Null);
    assert!(reply.text.contains("\"execution_cost\":0.00"), "{}", reply.text);
    assert_eq!(reply.at("/execution_time_ms"), 0);
    assert!(reply.str("/timestamp_utc").ends_with('Z'));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_is_checked_for_skill_then_budget_then_presence_then_funds() {
    let hub = TestHub::serve(&[("registry.heartbeat_ttl", "200ms")]).await;
    let (asking, working) = pair(&hub, None, "0.10").await;
    let other = hub.agent("globex", "translate", "0.10", Some("https://agent.example")).await;
    // The worker is offline, and the balance of 0.10 is below every budget but the last.
    let silent = format!("/registry/agents/{}", working.id);
    eventually(async || hub.get(&silent, None).await.str("/status") == "offline").await;
    let base = with(&job(&asking, "analyze_text"), "/job_id", Some(json!(JOB_ID)));
    let ask = |skill: &str, budget: f64| {
        with(&with(&base, "/skill_name", Some(json!(skill))), "/budget", Some(json!(budget)))
    };
    let before = snapshot(&hub).await;
    for (skill, budget, status, code) in [
        ("translate", 0.05, 422, "SKILL_MISMATCH"),
        ("translate", 0.15, 422, "SKILL_MISMATCH"),
        ("analyze_text", 0.09, 402, "BUDGET_INSUFFICIENT"),
        ("analyze_text", 0.0, 402, "BUDGET_INSUFFICIENT"),
        ("analyze_text", 0.15, 503, "AGENT_OFFLINE"),
        ("analyze_text", 0.10, 503, "AGENT_OFFLINE"),
    ] {
        let path = format!("/registry/agents/{}/jobs", working.id);
        let reply = hub.post(&path, Some(&asking.key), &ask(skill, budget)).await;
        assert_job_refused(&reply, JOB_ID, status, code);
        assert_eq!(reply.str("/agent_id"), working.id);
    }
    let named = with(&ask("translate", 0.15), "/agent_id", Some(json!(other.id)));
    for path in ["/jobs", "/registry/jobs"] {
        let reply = hub.post(path, Some(&asking.key), &named).await;
        assert_job_refused(&reply, JOB_ID, 402, "TRANSFER_FAILED");
    }
    assert_eq!(snapshot(&hub).await.lasting(), before.lasting());
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_budget_equal_to_the_price_is_enough_and_a_cent_less_is_not() {
    for hub in both_modes().await {
        let worker = Worker::start(Behaviour::Succeed(json!({}), "0.10")).await;
        let (asking, working) = pair(&hub, Some(&worker.url), "1").await;
        for (path, body) in job_posts(&working, &job(&asking, "analyze_text")) {
            let low = with(&body, "/budget", Some(json!(0.09)));
            let reply = hub.post(&path, Some(&asking.key), &low).await;
            assert_refused(&reply, 402, "BUDGET_INSUFFICIENT");
            let equal = with(&body, "/budget", Some(json!(0.10)));
            let reply = hub.post(&path, Some(&asking.key), &equal).await.expect(200);
            assert_eq!(reply.str("/status"), "SUCCESS");
        }
        assert_eq!(worker.got().len(), 3, "a refused job is not sent");
        hub.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_enough_credits_nothing_is_sent_and_nothing_held() {
    let hub = TestHub::serve(&[]).await;
    let worker = Worker::start(Behaviour::Succeed(json!({}), "0.10")).await;
    let (asking, working) = pair(&hub, Some(&worker.url), "0.12").await;
    let before = snapshot(&hub).await;
    for (path, body) in job_posts(&working, &job(&asking, "analyze_text")) {
        let reply = hub.post(&path, Some(&asking.key), &body).await;
        assert_refused(&reply, 402, "TRANSFER_FAILED");
        assert_eq!(reply.str("/status"), "FAILURE");
    }
    assert_eq!(snapshot(&hub).await, before);
    assert!(worker.got().is_empty());
    // Credits held for one job cannot be spent on another.
    worker.behave(Behaviour::Pending);
    hub.hire(&asking, &working, "analyze_text", "0.10").await.expect(202);
    assert_eq!(hub.balance("o1").await, ("0.02".to_owned(), "0.10".to_owned()));
    let reply = hub.hire(&asking, &working, "analyze_text", "0.10").await;
    assert_refused(&reply, 402, "TRANSFER_FAILED");
    assert_eq!(worker.got().len(), 1);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_fails_at_its_work_is_an_execution_error_and_costs_nothing() {
    let hub = TestHub::serve(&[]).await;
    let worker = Worker::start(Behaviour::Fail(None)).await;
    let (asking, working) = pair(&hub, Some(&worker.url), "1").await;
    let other_job = format!(
        r#"{{"job_id":"{JOB_ID}","status":"SUCCESS","output_data":{{}},"execution_cost":0}}"#
    );
    for (behaviour, status) in [
        (Behaviour::Fail(None), 200),
        (Behaviour::Fail(Some("EXECUTION_ERROR")), 200),
        (Behaviour::Fail(Some("SEGFAULT")), 200),
        (Behaviour::Say(500, "{}".to_owned()), 502),
        (Behaviour::Say(503, r#"{"status":"SUCCESS","output_data":{}}"#.to_owned()), 502),
        (Behaviour::Say(200, "<html>".to_owned()), 502),
        (Behaviour::Say(200, String::new()), 502),
        (Behaviour::Say(200, "[]".to_owned()), 502),
        (Behaviour::Say(200, r#"{"status":"DONE"}"#.to_owned()), 502),
        (Behaviour::Say(200, other_job), 502),
        (Behaviour::Redirect(format!("{}/jobs", worker.url)), 502),
    ] {
        worker.behave(behaviour.clone());
        let reply = hub.hire(&asking, &working, "analyze_text", "0.15").await;
        assert_eq!(reply.status, status, "{behaviour:?}: {}", reply.text);
        assert_eq!(reply.str("/status"), "FAILURE");
        assert_eq!(reply.str("/error_code"), "EXECUTION_ERROR");
        assert!(!reply.str("/error_message").is_empty());
        assert_eq!(reply.at("/output_data"), Value::Null);
        assert_eq!(hub.balance("o1").await, ("1.00".to_owned(), "0.00".to_owned()));
        let kept = hub
            .get(&format!("/jobs/{}", reply.str("/job_id")), Some(&asking.key))
            .await
            .expect(200);
        assert_eq!(kept.text, reply.text, "the failure is kept");
    }
    assert_eq!(worker.got().len(), 11, "no job is sent twice");
    hub.stop().await;
}

use std::time::Duration;

use rialto_core::money::Credits;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, copy, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use uuid::Uuid;

use super::{Reply, Stand};
use crate::RetryPolicy;
use crate::registry::direct::Peer;
use crate::registry::{JobOutcome, JobSpec};
use crate::testing::{RecordedRequest, TestServer, answer};

const SPEC_JOB: &str = include_str!("../../../../../protocols/src/registry/fixtures/job.json");
const JOB_ID: &str = "f81d4fae-7dec-11d0-a765-00a0c91e6bf6";
const ASKER: &str = "a3b8d1b6-0b3b-4b1a-9c1a-1a2b3c4d5e6f";

fn job(skill: &str, input: Value, budget: &str) -> String {
    let fields = json!({"job_id": JOB_ID, "orchestrator_id": ASKER, "skill_name": skill,
        "input_data": input, "currency": "chorus_credits_v1", "callback_url": null});
    fields.to_string().replacen('{', &format!("{{\"budget\":{budget},"), 1)
}

fn assert_refused(reply: &Reply, status: u16, code: &str, of_job: bool) {
    let body = reply.json();
    assert_eq!((reply.status, &body["error_code"]), (status, &json!(code)), "{body}");
    assert_eq!(body["error"]["code"], code);
    assert_eq!(body["error_message"], body["detail"]);
    assert_eq!(body["status"], if of_job { "FAILURE" } else { "error" });
    assert_eq!(body.get("job_id").is_some(), of_job, "{body}");
}

#[tokio::test]
async fn the_specs_job_is_answered_with_a_result_of_the_specs_shape() {
    let stand = Stand::with(|works| {
        let skill = crate::agent::Skill::new("analyze_text", "0.10").expect("a skill");
        works.all().skill(skill, works.hand())
    })
    .await;
    let text = SPEC_JOB.replace("\"job_id\": \"uuid\"", &format!("\"job_id\": \"{JOB_ID}\""));
    let reply = stand.post("/jobs", text.replace("\"uuid\"", &format!("\"{ASKER}\""))).await;
    let body = reply.json();
    assert_eq!((reply.status, &body["status"]), (200, &json!("SUCCESS")), "{body}");
    assert_eq!(body["job_id"], JOB_ID);
    assert_eq!(body["agent_id"], stand.identity.id().to_string());
    assert_eq!(body["output_data"], json!({"text": "Revenue for Q3 was $42,000..."}));
    assert!(reply.text.contains(r#""execution_cost":0.10,"#), "{}", reply.text);
    assert_eq!((&body["error_message"], &body["error_code"]), (&Value::Null, &Value::Null));
    assert!(body["execution_time_ms"].is_u64() && body["timestamp_utc"].is_string());
}

#[tokio::test]
async fn refusals_come_in_order_with_their_codes_and_leave_nothing_behind() {
    let stand = Stand::new().await;
    let hi = || json!({"text": "hi"});
    for (body, status, code) in [
        (job("sing", json!({}), "0"), 422, "SKILL_MISMATCH"),
        (job("shout", json!({}), "0.04"), 402, "BUDGET_INSUFFICIENT"),
        (job("shout", json!({"text": 1}), "0.05"), 400, "INVALID_REQUEST"),
    ] {
        assert_refused(&stand.post("/jobs", body).await, status, code, true);
        assert_eq!(stand.get(&format!("/jobs/{JOB_ID}")).await.status, 404);
    }
    for body in [
        "{".to_owned(),
        job("shout", hi(), "0.051"),
        job("shout", hi(), "-1"),
        job("shout", hi(), "\"1\""),
        job("shout", json!([]), "1"),
        job("shout", hi(), "1").replace("chorus_credits_v1", "dollars"),
        job("shout", hi(), "1").replace(JOB_ID, "seven"),
    ] {
        assert_refused(&stand.post("/jobs", body).await, 400, "INVALID_REQUEST", false);
    }
    assert_refused(&stand.post("/jobs", " ".repeat(1 << 21)).await, 413, "TOO_LARGE", false);
    let zipped = [("content-encoding", "gzip")];
    let reply = stand.send(reqwest::Method::POST, "/jobs", job("shout", hi(), "1"), &zipped).await;
    assert_refused(&reply, 415, "UNSUPPORTED_ENCODING", false);
    let other = Uuid::from_u128(1).to_string();
    let elsewhere =
        job("shout", hi(), "1").replacen('{', &format!("{{\"agent_id\":\"{other}\","), 1);
    assert_refused(&stand.post("/jobs", elsewhere).await, 404, "NOT_FOUND", true);
    assert_eq!(stand.get("/jobs").await.status, 405);
    assert_eq!(stand.get("/jobs/seven").await.status, 400);
    assert_eq!(stand.works.begun(), 0);
    // The id is still free.
    assert_eq!(stand.post("/jobs", job("shout", hi(), "0.05")).await.status, 200);
}

#[tokio::test]
async fn what_the_agent_makes_of_a_job_is_its_answer() {
    let stand = Stand::new().await;
    for (skill, why) in [("fail", "it broke"), ("decline", "not today")] {
        let id = Uuid::new_v5(&Uuid::NAMESPACE_OID, skill.as_bytes()).to_string();
        let reply = stand.post("/jobs", job(skill, json!({}), "1").replace(JOB_ID, &id)).await;
        let body = reply.json();
        assert_eq!((reply.status, &body["status"]), (200, &json!("FAILURE")), "{body}");
        assert_eq!(body["error_code"], "EXECUTION_ERROR");
        assert_eq!(body["error_message"], why);
        assert_eq!(body["output_data"], Value::Null);
        assert!(reply.text.contains(r#""execution_cost":0.00,"#), "{}", reply.text);
    }
}

#[tokio::test]
async fn a_job_is_done_once_however_often_it_is_sent() {
    let stand = Stand::new().await;
    let body = || job("held", json!({"a": 1.5}), "1");
    let first = stand.post("/jobs", body());
    let again = stand.post("/jobs", body().replace("1.5", "1.5 "));
    let (one, two, running) = tokio::join!(first, again, async {
        stand.begun(1).await;
        let running = stand.get(&format!("/jobs/{JOB_ID}")).await;
        stand.works.gate.add_permits(1);
        running
    });
    assert_eq!((running.status, &running.json()["status"]), (202, &json!("PENDING")));
    assert_eq!((one.status, &one.text), (200, &two.text));
    let (later, looked) =
        (stand.post("/jobs", body()).await, stand.get(&format!("/jobs/{JOB_ID}")).await);
    assert_eq!((&later.text, &looked.text), (&one.text, &one.text));
    let other = stand.post("/jobs", job("held", json!({"a": 2}), "1")).await;
    assert_refused(&other, 422, "IDEMPOTENCY_CONFLICT", true);
    let stranger = stand.post("/jobs", body().replace(ASKER, "another-requester")).await;
    assert_refused(&stranger, 409, "CONFLICT", true);
    assert_eq!(stand.works.begun(), 1);
}

#[tokio::test]
async fn a_caller_that_hangs_up_finds_the_result_when_it_comes_back() {
    let stand = Stand::new().await;
    let body = || job("held", json!({}), "1");
    tokio::select! {
        _ = stand.post("/jobs", body()) => panic!("it is held"),
        () = stand.begun(1) => {}
    }
    stand.works.gate.add_permits(1);
    assert_eq!(stand.post("/jobs", body()).await.json()["status"], "SUCCESS");
    assert_eq!(stand.works.begun(), 1);
}

#[tokio::test]
async fn a_typed_peer_hires_and_reads_refusals() {
    let stand = Stand::new().await;
    let peer = Peer::new(&stand.url).expect("a peer");
    let budget = Credits::parse("0.05", 2).expect("an amount");
    let order = JobSpec::new("shout", r#"{"text":"hi"}"#).budget(budget);
    let job = order.build().expect("a job");
    let standing = peer.hire(&job).await.expect("done");
    assert_eq!(standing.outcome, JobOutcome::Done(r#"{"text":"HI"}"#.to_owned()));
    assert_eq!((standing.cost, standing.agent_id), (budget, Some(stand.identity.id())));
    assert_eq!(peer.hire(&job).await.expect("the same"), standing);
    assert_eq!(peer.job(job.id()).await.expect("the same"), standing);
    assert_eq!(stand.works.begun(), 1);
    let poor = JobSpec::new("shout", r#"{"text":"hi"}"#).build().expect("a job");
    let refused = peer.hire(&poor).await.expect_err("too little");
    assert!(refused.to_string().contains("0.05"), "{refused}");
}

/// A proxy between a peer and an agent that drops the first response.
async fn lossy(agent: &Stand) -> String {
    let to = agent.url.trim_start_matches("http://").to_owned();
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    tokio::spawn(async move {
        let mut number = 0;
        while let Ok((mut peer, _)) = listener.accept().await {
            let mut agent = TcpStream::connect(&to).await.expect("the agent");
            number += 1;
            if number > 1 {
                let _ = copy_bidirectional(&mut peer, &mut agent).await;
                continue;
            }
            let (mut asks, _) = peer.split();
            let (mut answers, mut hears) = agent.split();
            let mut answered = [0];
            tokio::select! {
                _ = copy(&mut asks, &mut hears) => {}
                _ = answers.read(&mut answered) => {}
            }
        }
    });
    url
}

#[tokio::test]
async fn a_lost_answer_costs_no_second_run() {
    let stand = Stand::new().await;
    let retry = RetryPolicy { initial_delay: Duration::from_millis(1), ..RetryPolicy::default() };
    let peer = Peer::new(&lossy(&stand).await).expect("a peer").with_retry(retry);
    let job = JobSpec::new("echo", r#"{"a":1}"#).build().expect("a job");
    let standing = peer.hire(&job).await.expect("done");
    assert_eq!(standing.outcome, JobOutcome::Done(r#"{"a":1}"#.to_owned()));
    assert_eq!(stand.works.begun(), 1);
}

#[tokio::test]
async fn a_callback_url_that_is_too_long_is_refused() {
    let stand = Stand::new().await;
    let long = format!("http://127.0.0.1/{}", "x".repeat(2 << 10));
    let job = job("echo", json!({}), "0").replace("null", &json!(long).to_string());
    let reply = stand.post("/jobs", job).await;
    assert_refused(&reply, 400, "INVALID_REQUEST", false);
    assert_eq!(reply.json()["error"]["field"], "/callback_url");
}

#[tokio::test(start_paused = true)]
async fn a_job_that_an_agent_has_forgotten_is_sent_again() {
    let said = |status: &str, output: &str| {
        let body = json!({"job_id": JOB_ID, "agent_id": ASKER, "status": status,
            "execution_cost": 0.0, "execution_time_ms": 0, "error_message": null,
            "error_code": null, "timestamp_utc": "2026-02-11T14:15:09Z"});
        body.to_string().replacen('{', &format!(r#"{{"output_data":{output},"#), 1)
    };
    let (pending, done) = (said("PENDING", "null"), said("SUCCESS", "{}"));
    let stage = TestServer::new(move |heard: &RecordedRequest, number| {
        match (heard.method.as_str(), number) {
            ("POST", 0) => answer(202, "", &pending),
            ("POST", _) => answer(200, "", &done),
            _ => answer(404, "", r#"{"error_code":"NOT_FOUND"}"#),
        }
    })
    .await;
    let id = Uuid::parse_str(JOB_ID).expect("an id");
    let job = JobSpec::new("echo", "{}").id(id).build().expect("a job");
    let hired = Peer::new(&stage.url).expect("a peer").hire(&job).await.expect("done");
    assert_eq!(hired.outcome, JobOutcome::Done("{}".to_owned()));
    let methods: Vec<_> = stage.heard().into_iter().map(|heard| heard.method).collect();
    assert_eq!(methods, ["POST", "GET", "POST"]);
}

//! The types of the spec's section 2: ids, times, states, scores (R1–R4, R6, R7). Amounts are in
//! `numbers`.

use rialto_hub::app::operations;
use rialto_protocols::registry::ID;
use serde_json::{Value, json};
use uuid::Uuid;

use super::forms::{AGENT_ID, JOB_ID, both_modes, job, job_posts, registration, with};
use crate::kit::{
    Agent, Behaviour, TestHub, Worker, assert_malformed, counted, digits, snapshot, together,
};

/// Texts that are almost UUIDs.
const NO_UUIDS: [&str; 9] = [
    "",
    "bob",
    "demo_orchestrator",
    "a3b8d1b60b3b4b1a9c1a1a2b3c4d5e6f",
    "{a3b8d1b6-0b3b-4b1a-9c1a-1a2b3c4d5e6f}",
    "urn:uuid:a3b8d1b6-0b3b-4b1a-9c1a-1a2b3c4d5e6f",
    "a3b8d1b6-0b3b-4b1a-9c1a-1a2b3c4d5e6",
    "a3b8d1b6-0b3b-4b1a-9c1a-1a2b3c4d5e6g",
    " a3b8d1b6-0b3b-4b1a-9c1a-1a2b3c4d5e6f",
];

#[tokio::test(flavor = "multi_thread")]
async fn every_operation_answers_in_json_whatever_it_is_sent() {
    for hub in both_modes().await {
        let caller = hub.orchestrator("o1").await;
        let own =
            |path: &str| operations().into_iter().filter(|row| row.path.ends_with(path)).count();
        assert!(own("/transfer") == 2 && own("/audit") == 2, "the table has the root paths, too");
        for row in operations().into_iter().filter(|row| row.protocol == Some(ID)) {
            for part in ["x", "%ff", AGENT_ID] {
                let path: Vec<&str> = row
                    .path
                    .split('/')
                    .map(|p| if p.starts_with('{') { part } else { p })
                    .collect();
                for body in [&b"{}"[..], b"\xff", b""] {
                    let key = format!("Bearer {}", caller.key);
                    let headers = [("authorization", key.as_str())];
                    let reply = hub.send(row.method, &path.join("/"), &headers, body).await;
                    let what = format!(
                        "{} {} {}: {}",
                        row.method,
                        path.join("/"),
                        reply.status,
                        reply.text
                    );
                    assert_eq!(reply.header("content-type"), Some("application/json"), "{what}");
                    assert!(reply.json().is_object(), "{what}");
                }
            }
        }
        hub.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_is_json_whatever_its_content_type_says() {
    let hub = TestHub::serve(&[]).await;
    let types =
        ["", "text/plain", "application/x-www-form-urlencoded", "application/json; charset=latin1"];
    for (n, kind) in types.into_iter().enumerate() {
        let body = registration(&format!("o{n}")).to_string();
        let path = if n % 2 == 0 { "/registry/register" } else { "/register" };
        let headers = [("content-type", kind)];
        let reply =
            hub.send("POST", path, &headers[usize::from(kind.is_empty())..], body.as_bytes()).await;
        assert_eq!(reply.status, 201, "{kind}: {}", reply.text);
    }
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn discovery_can_be_asked_by_get_and_by_post_with_the_same_names() {
    let hub = TestHub::serve(&[]).await;
    hub.enrol(&registration("acme"), None).await;
    let query = "skill=analyze_text&min_reputation=40&max_cost=0.20&min_jobs=0&limit=50&offset=0";
    let body = json!({"skill": "analyze_text", "min_reputation": 40, "max_cost": 0.20,
        "min_jobs": 0, "limit": 50, "offset": 0});
    let wanted = hub.get(&format!("/registry/discover?{query}"), None).await.expect(200);
    assert_eq!(wanted.at("/total"), 1);
    for base in ["/registry/discover", "/discover"] {
        assert_eq!(hub.get(&format!("{base}?{query}"), None).await.expect(200).text, wanted.text);
        assert_eq!(hub.post(base, None, &body).await.expect(200).text, wanted.text);
    }
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_id_is_a_uuid_of_any_version_and_nothing_else() {
    for hub in both_modes().await {
        let versions = [
            JOB_ID,
            AGENT_ID,
            "20917bb1-7e13-5f41-9321-10f5be2a3322",
            "018f3a5e-7b1c-7c3d-8e4f-5a6b7c8d9e0f",
        ];
        for (n, id) in versions.into_iter().enumerate() {
            let shouted =
                with(&registration(&format!("o{n}")), "/agent_id", Some(json!(id.to_uppercase())));
            let path = if n % 2 == 0 { "/registry/register" } else { "/register" };
            let reply = hub.post(path, None, &shouted).await.expect(201);
            assert_eq!(reply.str("/agent_id"), id, "ids are shown in lower case");
        }
        let made =
            hub.post("/register", None, &registration("p")).await.expect(201).str("/agent_id");
        assert_eq!(made.parse::<Uuid>().expect("a UUID").get_version_num(), 4);

        let before = snapshot(&hub).await;
        for wrong in
            NO_UUIDS.map(Value::from).into_iter().chain([json!(7), json!([AGENT_ID]), json!({})])
        {
            let body = with(&registration("q"), "/agent_id", Some(wrong));
            for path in ["/registry/register", "/register"] {
                assert_malformed(&hub.post(path, None, &body).await, "/agent_id");
            }
        }
        for path in ["/registry/agents/bob", "/registry/reputation/bob", "/reputation/bob"] {
            assert_malformed(&hub.get(path, None).await, "agent_id");
        }
        assert_eq!(snapshot(&hub).await, before);
        hub.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_id_is_a_uuid_of_any_version_and_the_hub_makes_version_4() {
    let hub = TestHub::serve(&[]).await;
    let asking = hub.orchestrator("o1").await;
    let working = hub.agent("acme", "analyze_text", "0", None).await;
    let body = with(&job(&asking, "analyze_text"), "/budget", Some(json!(0)));
    for id in [JOB_ID, AGENT_ID, "018f3a5e-7b1c-7c3d-8e4f-5a6b7c8d9e0f"] {
        let shouted = with(&body, "/job_id", Some(json!(id.to_uppercase())));
        let reply = hub.post("/jobs", Some(&asking.key), &shouted).await.expect(202);
        assert_eq!(reply.str("/job_id"), id);
        hub.get(&format!("/registry/jobs/{}", id.to_uppercase()), Some(&asking.key))
            .await
            .expect(202);
    }
    for absent in [None, Some(Value::Null)] {
        let reply =
            hub.post("/jobs", Some(&asking.key), &with(&body, "/job_id", absent)).await.expect(202);
        assert_eq!(reply.str("/job_id").parse::<Uuid>().expect("a UUID").get_version_num(), 4);
    }
    let before = snapshot(&hub).await;
    for wrong in NO_UUIDS.map(Value::from).into_iter().chain([json!(7)]) {
        for (path, body) in job_posts(&working, &with(&body, "/job_id", Some(wrong.clone()))) {
            assert_malformed(&hub.post(&path, Some(&asking.key), &body).await, "/job_id");
        }
    }
    for path in ["/jobs/bob", "/registry/jobs/bob"] {
        assert_malformed(&hub.get(path, Some(&asking.key)).await, "job_id");
    }
    assert_eq!(snapshot(&hub).await, before);
    hub.stop().await;
}

/// Whether a text is `YYYY-MM-DDTHH:MM:SSZ`.
fn is_stamp(text: &str) -> bool {
    let shape: String = text.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    shape == "0000-00-00T00:00:00Z"
}

#[tokio::test(flavor = "multi_thread")]
async fn times_come_in_with_any_offset_and_go_out_in_whole_seconds_of_utc() {
    let hub = TestHub::serve(&[]).await;
    let asking = hub.orchestrator("o1").await;
    let working = hub.agent("acme", "analyze_text", "0", None).await;
    let body = with(&job(&asking, "analyze_text"), "/budget", Some(json!(0)));
    let good = [
        "2026-02-11T14:15:09Z",
        "2026-02-11T14:15:09.123456+00:00",
        "2026-02-11t09:15:09.5-05:00",
        "2026-02-11T19:45:09+05:30",
    ];
    for (n, time) in good.into_iter().enumerate() {
        let registered = with(&registration(&format!("t{n}")), "/timestamp_utc", Some(json!(time)));
        hub.post("/registry/register", None, &registered).await.expect(201);
        let asked = with(&body, "/timestamp_utc", Some(json!(time)));
        hub.post("/registry/jobs", Some(&asking.key), &asked).await.expect(202);
    }
    let before = counted(&hub);
    let bad = [
        "yesterday",
        "",
        "2026-02-30T00:00:00Z",
        "2026-02-11T14:15:09",
        "2026-02-11",
        "1770819309",
    ];
    for time in bad.map(Value::from).into_iter().chain([json!(1_770_819_309)]) {
        let registered = with(&registration("late"), "/timestamp_utc", Some(time.clone()));
        assert_malformed(
            &hub.post("/registry/register", None, &registered).await,
            "/timestamp_utc",
        );
        let asked = with(&body, "/timestamp_utc", Some(time));
        assert_malformed(&hub.post("/jobs", Some(&asking.key), &asked).await, "/timestamp_utc");
    }
    assert_eq!(counted(&hub), before);

    let beat = hub.post("/heartbeat", Some(&working.key), &json!({"agent_id": working.id})).await;
    let shown = hub.get(&format!("/registry/agents/{}", working.id), None).await;
    let answered = hub.hire(&asking, &working, "analyze_text", "0").await;
    hub.grant("o1", "1.00").await;
    let paid = json!({"from_owner": "o1", "to_owner": "acme", "amount": 0.10});
    let paid = hub.post("/transfer", Some(&asking.key), &paid).await;
    for text in [
        beat.str("/timestamp"),
        shown.str("/registered_at"),
        shown.str("/last_heartbeat"),
        answered.str("/timestamp_utc"),
        paid.str("/transfer/timestamp_utc"),
    ] {
        assert!(is_stamp(&text), "{text}");
    }
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_result_has_one_of_three_states_and_any_other_is_refused() {
    let hub = TestHub::serve(&[]).await;
    let asking = hub.orchestrator("o1").await;
    let working = hub.agent("acme", "analyze_text", "0.10", None).await;
    hub.grant("o1", "1.00").await;
    let job = hub.hire(&asking, &working, "analyze_text", "0.15").await.expect(202);
    assert_eq!(job.str("/status"), "PENDING");
    let before = snapshot(&hub).await;
    let result = json!({"job_id": job.str("/job_id"), "agent_id": working.id, "status": "SUCCESS",
        "output_data": {}, "execution_cost": 0.10, "execution_time_ms": 1, "error_message": null});
    let states = ["success", "DONE", "COMPLETED", "SUCCESS ", "", "CANCELLED"].map(Value::from);
    for wrong in states.into_iter().chain([json!(1), json!(true), Value::Null]) {
        for path in ["/registry/results", "/results"] {
            let body = with(&result, "/status", Some(wrong.clone()));
            let reply = hub.post(path, Some(&working.key), &body).await;
            assert_malformed(&reply, "/status");
        }
    }
    assert_eq!(snapshot(&hub).await, before);
    let path = format!("/jobs/{}", job.str("/job_id"));
    for status in ["PENDING", "SUCCESS"] {
        hub.report(&working, &job.str("/job_id"), status, "0.10").await.expect(200);
        assert_eq!(hub.get(&path, Some(&asking.key)).await.str("/status"), status);
    }
    let other = hub.hire(&asking, &working, "analyze_text", "0.15").await.expect(202);
    hub.report(&working, &other.str("/job_id"), "FAILURE", "0").await.expect(200);
    let path = format!("/jobs/{}", other.str("/job_id"));
    assert_eq!(hub.get(&path, Some(&asking.key)).await.str("/status"), "FAILURE");
    hub.stop().await;
}

/// Hires the same worker many times at once.
async fn hire_often(hub: &TestHub, by: &Agent, worker: &Agent, times: usize) {
    let hires = (0..times).map(|_| hub.hire(by, worker, "analyze_text", "0"));
    for reply in together(hires).await {
        reply.expect(200);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_score_stays_from_0_to_100_and_has_one_or_two_decimals() {
    let hub = TestHub::serve(&[("store.backend", "memory")]).await;
    let worker = Worker::start(Behaviour::Succeed(json!({}), "0")).await;
    let failing = Worker::start(Behaviour::Fail(None)).await;
    let asking = hub.orchestrator("o1").await;
    let good = hub.agent("good", "analyze_text", "0", Some(&worker.url)).await;
    let bad = hub.agent("bad", "analyze_text", "0", Some(&failing.url)).await;
    let third = hub.agent("third", "analyze_text", "0", Some(&worker.url)).await;
    assert_eq!(hub.score(&good).await, "50.0");

    hire_often(&hub, &asking, &bad, 1).await;
    assert_eq!(hub.score(&bad).await, "45.5");
    hire_often(&hub, &bad, &third, 1).await;
    assert_eq!(hub.score(&third).await, "50.91", "2.0 × 45.5 / 100 more");
    hire_often(&hub, &third, &good, 1).await;
    assert_eq!(hub.score(&good).await, "51.01", "51.0182, cut to two decimals");

    hire_often(&hub, &asking, &bad, 12).await;
    assert_eq!(hub.score(&bad).await, "0.0");
    hire_often(&hub, &asking, &good, 55).await;
    assert_eq!(hub.score(&good).await, "100.0");
    for base in ["/registry", ""] {
        let found = hub.get(&format!("{base}/discover?skill=analyze_text"), None).await.expect(200);
        assert_eq!(digits(&found.text, "reputation_score"), "100.0");
    }
    hub.stop().await;
}

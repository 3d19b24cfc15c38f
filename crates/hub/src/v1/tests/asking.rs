//! Tests for requesters: opening, waiting, cancelling.

use rialto_core::command::{Command, JobRef};
use serde_json::Value;

use super::kit::{Agent, Hub, nothing};

async fn scene() -> (Hub, Agent, Agent) {
    let hub = Hub::start().await;
    hub.grant("rich", "10.00").await;
    let client = hub.enrol("client", "rich", None).await;
    let worker = hub.enrol("worker", "globex", Some(("sum", "0.05"))).await;
    (hub, client, worker)
}

fn id(body: &Value) -> String {
    body["id"].as_str().expect("an id").to_owned()
}

#[tokio::test]
async fn a_job_is_opened_like_any_of_its_protocol() {
    let (hub, client, worker) = scene().await;
    let own = "7d444840-9dc0-11d1-b245-5ffdce74fad2";
    let body = format!(
        r#"{{"id":"{own}","skill":"sum","input":{{"a": 1.10}},"budget":0.10,
            "callback":"https://back.example/done","deadline":"2026-02-11T13:00:00Z"}}"#
    );
    let got = hub.post("/v1/jobs", &client.key, &body).await;
    assert_eq!(got.status, 201, "{}", got.text);
    assert_eq!(got.headers["rialto-job"], id(&got.body).as_str());
    for (name, value) in [
        ("protocol", "registry"),
        ("foreign_id", own),
        ("state", "assigned"),
        ("deadline", "2026-02-11T13:00:00.000Z"),
        ("callback", "https://back.example/done"),
    ] {
        assert_eq!(got.body[name], value, "{name}: {}", got.text);
    }
    assert_eq!(got.body["worker"], worker.id.0);
    assert!(got.text.contains(r#""budget":0.10,"held":0.10"#), "{}", got.text);
    assert!(got.text.contains(r#""input":{"a": 1.10}"#), "{}", got.text);
    // Found by its own id as well as by the hub's; a repeat returns the same job.
    let path = format!("/v1/jobs/{own}");
    assert_eq!(hub.get(&path, &client.key).await.text, got.text);
    assert_eq!(id(&hub.post("/v1/jobs", &client.key, &body).await.body), id(&got.body));
    hub.post("/v1/jobs", &client.key, &body.replace("0.10", "0.20"))
        .await
        .is_problem(422, "other_content");
    hub.post("/v1/jobs", &client.key, &body.replace("13:00", "13:01"))
        .await
        .is_problem(422, "other_content");
    let stranger = hub.enrol("stranger", "acme", None).await;
    hub.get(&path, &stranger.key).await.is_problem(404, "not_found");
    // A requester that did not get the end gets a notice later.
    let pending =
        hub.engine.with_world(|world| world.jobs_requested_by(client.id).all(|job| job.pending));
    assert!(pending);
}

#[tokio::test]
async fn the_hub_chooses_the_best_the_cheapest_or_the_named_agent() {
    let (hub, client, worker) = scene().await;
    let proven = hub.enrol("proven", "initech", Some(("sum", "0.09"))).await;
    let first =
        hub.hire(&client, "sum", "0.50", rialto_core::job::Selection::Direct(proven.id)).await;
    hub.succeed(&first).await;
    for (choice, chosen) in [
        ("".to_owned(), &proven),
        (r#","select":"best""#.to_owned(), &proven),
        (r#","select":"cheapest""#.to_owned(), &worker),
        (format!(r#","to":{}"#, worker.id), &worker),
        (format!(r#","to":"{}""#, worker.native), &worker),
    ] {
        let body = format!(r#"{{"skill":"sum","budget":0.10{choice}}}"#);
        let got = hub.post("/v1/jobs", &client.key, &body).await;
        assert_eq!(got.body["worker"], chosen.id.0, "{choice}: {}", got.text);
    }
}

#[tokio::test]
async fn a_refused_job_says_why_and_holds_nothing() {
    let (hub, client, worker) = scene().await;
    let poor = hub.enrol("poor", "pauper", None).await;
    for (key, body, status, code) in [
        (&client.key, r#"{"skill":"fly","budget":1}"#, 422, "no_such_skill"),
        (&client.key, r#"{"skill":"sum","budget":0.01}"#, 402, "budget_too_low"),
        (&poor.key, r#"{"skill":"sum","budget":0.10}"#, 402, "too_few_credits"),
        (&client.key, r#"{"skill":"sum","budget":0.10,"to":"nobody"}"#, 404, "not_found"),
        (
            &client.key,
            r#"{"skill":"sum","budget":0.10,"deadline":"2026-02-11T12:00:00Z"}"#,
            422,
            "refused",
        ),
    ] {
        hub.post("/v1/jobs", key, body).await.is_problem(status, code);
    }
    for (said, field) in [
        (r#""budget":1"#, "/skill"),
        (r#""skill":"sum""#, "/budget"),
        (r#""skill":"sum","budget":0.005"#, "/budget"),
        (r#""skill":"sum","budget":"1""#, "/budget"),
        (r#""skill":"sum","budget":1,"input":[1]"#, "/input"),
        (r#""skill":"sum","budget":1,"id":"17""#, "/id"),
        (r#""skill":"sum","budget":1,"to":[]"#, "/to"),
        (r#""skill":"sum","budget":1,"select":"worst""#, "/select"),
        (r#""skill":"sum","budget":1,"select":"cheapest","to":2"#, "/select"),
        (r#""skill":"sum","budget":1,"deadline":"soon""#, "/deadline"),
        (r#""skill":"sum","budget":1,"deadline":"2026-02-12T12:00:01Z""#, "/deadline"),
        (r#""skill":"sum","budget":1,"callback":"http://10.0.0.1/x""#, "/callback"),
    ] {
        let got = hub.post("/v1/jobs", &client.key, &format!("{{{said}}}")).await;
        got.is_problem(400, "malformed");
        assert_eq!(got.body["field"], field, "{said}");
    }
    assert!(hub.get("/v1/work", &worker.key).await.body["jobs"] == Value::Array(Vec::new()));
    assert!(hub.get("/v1/me", &client.key).await.text.contains(r#""available":10.00"#));
}

#[tokio::test]
async fn who_waits_gets_the_end() {
    let (hub, client, worker) = scene().await;
    let report = async {
        let mut jobs = Vec::new();
        while jobs.is_empty() {
            let got = hub.get("/v1/work?wait=30", &worker.key).await;
            jobs = got.body["jobs"].as_array().expect("a list").clone();
        }
        let path = format!("/v1/jobs/{}/result", id(&jobs[0]));
        hub.post(&path, &worker.key, r#"{"ok":true,"output":{"sum":3}}"#).await
    };
    let body = r#"{"skill":"sum","budget":0.10}"#;
    let (got, done) = tokio::join!(hub.post("/v1/jobs?wait=30", &client.key, body), report);
    assert_eq!((got.status, done.status), (201, 200));
    assert_eq!(got.body["state"], "completed", "{}", got.text);
    assert_eq!(got.body["result"]["output"]["sum"], 3);
    // Also by sending the request again.
    let job = hub.open(&client, "sum", "0.50").await;
    let path = format!("/v1/jobs/{}?wait=30", job.uuid);
    let (shown, ()) = tokio::join!(hub.get(&path, &client.key), hub.succeed(&job));
    assert_eq!(shown.body["state"], "completed");
    hub.get(&format!("/v1/jobs/{}?wait=31", job.uuid), &client.key)
        .await
        .is_problem(400, "malformed");
}

#[tokio::test]
async fn only_who_asked_may_call_a_job_off_and_only_before_it_is_fetched() {
    let (hub, client, worker) = scene().await;
    let job = hub.open(&client, "sum", "0.50").await;
    let path = format!("/v1/jobs/{}/cancel", job.uuid);
    hub.post(&path, &worker.key, "{}").await.is_problem(404, "not_found");
    let got = hub.post(&path, &client.key, r#"{"reason":"not needed"}"#).await;
    assert_eq!(got.body["state"], "cancelled", "{}", got.text);
    assert_eq!(got.body["result"]["text"], "not needed");
    hub.post(&path, &client.key, "").await.is_problem(409, "wrong_state");
    let begun = hub.open(&client, "sum", "0.50").await;
    hub.get("/v1/work", &worker.key).await;
    let path = format!("/v1/jobs/{}/cancel", begun.uuid);
    hub.post(&path, &client.key, "").await.is_problem(409, "wrong_state");
    let nowhere = format!("/v1/jobs/{}/cancel", nothing());
    hub.post(&nowhere, &client.key, "").await.is_problem(404, "not_found");
}

#[tokio::test]
async fn all_jobs_are_the_live_ones_and_then_the_ended_ones() {
    let (hub, client, worker) = scene().await;
    let mut opened = Vec::new();
    for _ in 0..5 {
        opened.push(hub.open(&client, "sum", "0.50").await);
    }
    for at in [1, 3] {
        hub.succeed(&opened[at]).await;
    }
    hub.engine
        .run(Command::Start { job: JobRef::Id(opened[4].id), by: worker.id })
        .await
        .expect("it");
    let expected: Vec<String> =
        [0, 2, 4, 3, 1].iter().map(|at| opened[*at].uuid.to_string()).collect();
    for (side, key) in [("asked", &client.key), ("worked", &worker.key)] {
        for limit in 1..=6 {
            let items = hub.all(&format!("/v1/jobs?state=all&side={side}"), key, limit).await;
            assert_eq!(items.iter().map(id).collect::<Vec<_>>(), expected, "{side} {limit}");
        }
    }
}

#[tokio::test]
async fn a_member_that_is_written_wrong_is_refused_with_the_right_one_and_nothing_is_done() {
    let (hub, client, worker) = scene().await;
    let job = hub.open(&client, "sum", "0.50").await;
    let of_job = |verb: &str| format!("/v1/jobs/{}/{verb}", job.uuid);
    let before = hub.engine.with_world(|world| world.jobs_requested_by(client.id).count());
    for (path, key, body, wrong, right) in [
        (
            "/v1/jobs".to_owned(),
            &client.key,
            r#"{"skill":"sum","budget":0.10,"dedline":"2026-02-11T13:00:00Z"}"#,
            "/dedline",
            "deadline",
        ),
        (of_job("cancel"), &client.key, r#"{"reson":"no"}"#, "/reson", "reason"),
        (of_job("accept"), &client.key, r#"{"agnet":7}"#, "/agnet", "agent"),
        (
            of_job("offers"),
            &worker.key,
            r#"{"price":0.1,"validfor":"1s"}"#,
            "/validfor",
            "valid_for",
        ),
        (of_job("decline"), &worker.key, r#"{"epoch":1,"reasons":"x"}"#, "/reasons", "reason"),
        (
            of_job("result"),
            &worker.key,
            r#"{"ok":true,"output":{},"tok_ms":1}"#,
            "/tok_ms",
            "took_ms",
        ),
        ("/v1/messages".to_owned(), &client.key, r#"{"to":1,"body":1,"bdy":2}"#, "/bdy", "body"),
        ("/v1/inbox/ack".to_owned(), &client.key, r#"{"up_too":1}"#, "/up_too", "up_to"),
        ("/v1/me/status".to_owned(), &client.key, r#"{"satus":"busy"}"#, "/satus", "status"),
    ] {
        let got = hub.post(&path, key, body).await;
        assert_eq!((got.status, &got.body["field"]), (400, &Value::from(wrong)), "{}", got.text);
        let detail = got.body["detail"].as_str().expect("text");
        assert!(detail.ends_with(&format!("did you mean {right}?")), "{detail}");
    }
    let after = hub.engine.with_world(|world| world.jobs_requested_by(client.id).count());
    assert_eq!(after, before, "nothing was opened or ended");
}

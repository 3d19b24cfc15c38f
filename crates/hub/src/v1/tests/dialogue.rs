//! Tests of what worker and requester exchange before the result.

use rialto_core::time::Millis;
use serde_json::{Value, json};

use super::kit::{Agent, Hub};

/// A hub, a client with credits, a worker, and the path of the client's job at that worker.
async fn scene() -> (Hub, Agent, Agent, String) {
    let hub = Hub::start().await;
    hub.grant("rich", "10.00").await;
    let client = hub.enrol_at("client", "rich", None, None).await;
    let worker = hub.enrol_at("worker", "globex", Some(("sum", "0.05")), None).await;
    let job = hub.open(&client, "sum", "0.50").await;
    (hub, client, worker, format!("/v1/jobs/{}", job.uuid))
}

async fn inbox(hub: &Hub, agent: &Agent, kind: &str) -> Vec<Value> {
    let items = hub.all("/v1/inbox", &agent.key, 50).await;
    items.into_iter().filter(|item| item["kind"] == kind).collect()
}

#[tokio::test]
async fn progress_and_parts_are_shown_to_the_requester_in_its_job_and_its_inbox() {
    let (hub, client, worker, job) = scene().await;
    let body = r#"{"epoch":1,"fraction":0.25,"text":"reading"}"#;
    let got = hub.post(&format!("{job}/progress"), &worker.key, body).await;
    assert_eq!((got.status, &got.body["number"]), (200, &json!(1)), "{}", got.text);
    assert_eq!(got.body["state"], "running");
    for (page, append) in [(1, false), (2, true)] {
        let body = format!(r#"{{"artifact":{{"page": {page}.0}},"append":{append}}}"#);
        let got = hub.post(&format!("{job}/parts"), &worker.key, &body).await;
        assert_eq!((got.status, &got.body["number"]), (200, &json!(page + 1)), "{}", got.text);
    }
    for party in [&client, &worker] {
        let shown = hub.get(&job, &party.key).await;
        assert_eq!(
            shown.body["progress"],
            json!({"fraction": 0.25, "text": "reading", "reports": 3}),
        );
        let parts = shown.body["parts"].as_array().expect("parts");
        assert_eq!(parts.iter().map(|part| &part["number"]).collect::<Vec<_>>(), [2, 3]);
        assert!(shown.text.contains(r#""artifact":{"page": 2.0},"append":true"#), "{}", shown.text);
    }
    let told = inbox(&hub, &client, "progress").await;
    assert_eq!(told.len(), 3);
    assert_eq!((&told[0]["fraction"], &told[0]["text"]), (&json!(0.25), &json!("reading")));
    assert_eq!((&told[2]["artifact"]["page"], &told[2]["append"]), (&json!(2.0), &json!(true)));
    assert!(inbox(&hub, &worker, "progress").await.is_empty());
    // Operators see no content.
    let seen = hub.get(&job, &hub.operator).await;
    assert_eq!((&seen.body["progress"], &seen.body["parts"]), (&Value::Null, &Value::Null));
}

#[tokio::test]
async fn malformed_reports_change_nothing() {
    let (hub, client, worker, job) = scene().await;
    for (operation, body) in [
        ("progress", r#"{"fraction":1.5}"#),
        ("progress", r#"{"fraction":-0.1}"#),
        ("progress", r#"{"fraction":"half"}"#),
        ("progress", r#"{"epoch":"one","text":"x"}"#),
        ("parts", r#"{"artifact":[1]}"#),
        ("parts", r#"{"append":true}"#),
        ("ask", r#"{"schema":{}}"#),
        ("ask", r#"{"text":"which?","schema":{"type":"nothing"}}"#),
    ] {
        let got = hub.post(&format!("{job}/{operation}"), &worker.key, body).await;
        got.is_problem(400, "malformed");
    }
    let wrong =
        hub.post(&format!("{job}/progress"), &worker.key, r#"{"epoch":2,"text":"x"}"#).await;
    wrong.is_problem(409, "wrong_state");
    let shown = hub.get(&job, &client.key).await;
    assert_eq!((&shown.body["state"], &shown.body["progress"]), (&json!("assigned"), &Value::Null));
}

#[tokio::test]
async fn a_question_waits_for_its_answer_which_reaches_a_polling_worker() {
    let (hub, client, worker, job) = scene().await;
    let id = job.trim_start_matches("/v1/jobs/");
    let schema = r#"{"type":"object","required":["city"]}"#;
    let body = format!(r#"{{"epoch":1,"text":"Which city?","schema":{schema}}}"#);
    let asked = hub.post(&format!("{job}/ask"), &worker.key, &body).await;
    assert_eq!((asked.status, &asked.body["state"]), (200, &json!("asking")), "{}", asked.text);
    assert_eq!(asked.body["question"]["until"], "2026-02-11T13:00:00.000Z");
    // A requester that waits for the end is told at once that it has to act.
    let shown = hub.get(&format!("{job}?wait=30"), &client.key).await;
    assert_eq!(shown.body["question"]["text"], "Which city?");
    assert_eq!(inbox(&hub, &client, "input_requested").await.len(), 1);
    // The worker still has the job.
    let known = format!("/v1/work?known={id}.1.0");
    let work = hub.get(&known, &worker.key).await;
    assert_eq!((&work.body["jobs"], &work.body["gone"]), (&json!([]), &json!([])));
    let path = format!("{job}/answer");
    let unfit = hub.post(&path, &client.key, r#"{"text":"Lugano"}"#).await;
    unfit.is_problem(422, "refused");
    hub.post(&path, &worker.key, r#"{"input":{"city":"Lugano"}}"#)
        .await
        .is_problem(404, "not_found");
    let waiting = format!("{known}&wait=30");
    let answer = r#"{"question":1,"input":{"city": "Lugano"}}"#;
    let (work, answered) =
        tokio::join!(hub.get(&waiting, &worker.key), hub.post(&path, &client.key, answer));
    assert_eq!((answered.status, &answered.body["state"]), (200, &json!("running")));
    let expected = json!([{"kind": "answer", "job_id": id, "epoch": 1, "question": 1,
                           "input": {"city": "Lugano"},
                           "lease_until": "2026-02-11T12:10:00.000Z"}]);
    assert_eq!(work.body["answers"], expected, "{}", work.text);
    let again = hub.get(&format!("/v1/work?known={id}.1.1"), &worker.key).await;
    assert_eq!(again.body["answers"], Value::Null);
    // A worker that lost its memory gets the job with everything that was said.
    let fresh = hub.get("/v1/work", &worker.key).await;
    assert_eq!(fresh.body["jobs"][0]["questions"][0]["answer"], json!({"city": "Lugano"}));
    assert_eq!(hub.post(&path, &client.key, answer).await.status, 200);
    let other = hub.post(&path, &client.key, r#"{"input":{"city":"Bern"}}"#).await;
    other.is_problem(409, "wrong_state");
    // The first answer again is a repeat, although another question with its own schema is open.
    let body = r#"{"text":"And the code?","schema":{"type":"object","required":["zip"]}}"#;
    hub.post(&format!("{job}/ask"), &worker.key, body).await;
    assert_eq!(hub.post(&path, &client.key, answer).await.status, 200);
    let early = hub.post(&format!("{job}/ask"), &worker.key, r#"{"text":"x"}"#).await;
    early.is_problem(409, "wrong_state");
    assert!(early.text.contains("while the job is waiting for an answer\""), "{}", early.text);
}

#[tokio::test]
async fn a_fraction_is_rounded_to_millionths() {
    let (hub, client, worker, job) = scene().await;
    let body = r#"{"fraction":0.3333333333333333}"#;
    let reported = hub.post(&format!("{job}/progress"), &worker.key, body).await;
    assert_eq!(reported.status, 200, "{}", reported.text);
    let shown = hub.get(&job, &client.key).await;
    assert_eq!(shown.body["progress"]["fraction"], json!(0.333333));
}

#[tokio::test]
async fn a_question_without_an_answer_ends_the_job_without_blame() {
    let (hub, client, worker, job) = scene().await;
    hub.post(&format!("{job}/ask"), &worker.key, r#"{"text":"Which city?"}"#).await;
    hub.clock.advance(Millis::hours(1));
    // The lane fires what is due with its next command.
    hub.grant("other", "1.00").await;
    let ended = hub.get(&format!("{job}?wait=30"), &client.key).await;
    let cause = (&ended.body["state"], &ended.body["cause"], &ended.body["held"]);
    assert_eq!(cause, (&json!("expired"), &json!("no_answer"), &json!(0.0)), "{}", ended.text);
    let me = hub.get("/v1/me", &client.key).await;
    assert!(me.text.contains("10.00"), "{}", me.text);
}

#[tokio::test]
async fn a_requester_may_cancel_while_a_question_is_open() {
    let (hub, client, worker, job) = scene().await;
    hub.post(&format!("{job}/ask"), &worker.key, r#"{"text":"Which city?"}"#).await;
    let cancelled = hub.post(&format!("{job}/cancel"), &client.key, "").await;
    assert_eq!((cancelled.status, &cancelled.body["state"]), (200, &json!("cancelled")));
    assert_eq!(inbox(&hub, &worker, "taken_back").await.len(), 1);
}

#[tokio::test]
async fn a_question_that_the_requester_cannot_answer_ends_the_job_with_the_question_as_reason() {
    let (hub, client, worker, job) = scene().await;
    hub.delete("/v1/keys", &client.key).await;
    let asked = hub.post(&format!("{job}/ask"), &worker.key, r#"{"text":"Which city?"}"#).await;
    assert_eq!((asked.status, &asked.body["state"]), (200, &json!("failed")), "{}", asked.text);
    assert_eq!(asked.body["question"], Value::Null);
    let shown = hub.get(&job, &worker.key).await;
    assert_eq!(
        (&shown.body["cause"], &shown.body["result"]["text"]),
        (&json!("no_answer"), &json!("Which city?"))
    );
    assert_eq!(inbox(&hub, &worker, "taken_back").await.len(), 1);
    let id = job.trim_start_matches("/v1/jobs/");
    let work = hub.get(&format!("/v1/work?known={id}.1"), &worker.key).await;
    assert_eq!(work.body["gone"], json!([id]));
}

#[tokio::test]
async fn a_sign_in_takes_no_answer_and_ends_with_the_next_report() {
    let (hub, client, worker, job) = scene().await;
    let ask = format!("{job}/ask");
    let both = r#"{"text":"Sign in","auth":true,"schema":{}}"#;
    hub.post(&ask, &worker.key, both).await.is_problem(400, "malformed");
    let body = r#"{"epoch":1,"text":"Sign in at mail.example","auth":true}"#;
    let asked = hub.post(&ask, &worker.key, body).await;
    assert_eq!((asked.status, &asked.body["question"]["auth"]), (200, &json!(true)));
    // No answer is awaited, so only the deadline of the job ends the wait.
    let shown = hub.get(&job, &client.key).await;
    assert_eq!(shown.body["question"]["until"], shown.body["deadline"]);
    assert_eq!(shown.body["questions"][0]["auth"], true);
    let answer = hub.post(&format!("{job}/answer"), &client.key, r#"{"text":"s3cret"}"#).await;
    answer.is_problem(409, "wrong_state");
    assert!(answer.text.contains("signed in elsewhere"), "{}", answer.text);
    assert!(!hub.get(&job, &worker.key).await.text.contains("s3cret"));
    let on = hub.post(&format!("{job}/progress"), &worker.key, r#"{"epoch":1}"#).await;
    assert_eq!((on.status, &on.body["state"]), (200, &json!("running")), "{}", on.text);
    assert_eq!(hub.get(&job, &client.key).await.body["question"], Value::Null);
}

#[tokio::test]
async fn a_sign_of_life_starts_the_work_without_a_report() {
    let (hub, client, worker, job) = scene().await;
    let began = hub.post(&format!("{job}/progress"), &worker.key, r#"{"epoch":1}"#).await;
    assert_eq!((began.status, &began.body["state"]), (200, &json!("running")), "{}", began.text);
    assert_eq!(began.body["number"], Value::Null);
    assert!(began.body["lease_until"].is_string());
    assert!(inbox(&hub, &client, "progress").await.is_empty());
    let shown = hub.get(&job, &client.key).await;
    assert_eq!((&shown.body["state"], &shown.body["progress"]), (&json!("running"), &Value::Null));
}

#[tokio::test]
async fn a_refusal_ends_the_job_without_blame() {
    let (hub, client, worker, job) = scene().await;
    let body = r#"{"epoch":1,"ok":false,"cause":"refused","message":"against my rules"}"#;
    let got = hub.post(&format!("{job}/result"), &worker.key, body).await;
    assert_eq!((got.status, &got.body["state"]), (200, &json!("failed")), "{}", got.text);
    let shown = hub.get(&job, &client.key).await;
    assert_eq!((&shown.body["cause"], &shown.body["held"]), (&json!("policy"), &json!(0.0)));
    assert_eq!(shown.body["result"]["text"], "against my rules");
}

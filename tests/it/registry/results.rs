//! Results: their contents, and the three ways they arrive (R41–R44, R46).

use serde_json::{Value, json};

use super::market::{Market, SKILL, failure, success};
use crate::kit::{Agent, Behaviour, Reply, Worker, assert_malformed, digits, repaired, snapshot};

const FIELDS: [&str; 9] = [
    "agent_id",
    "error_code",
    "error_message",
    "execution_cost",
    "execution_time_ms",
    "job_id",
    "output_data",
    "status",
    "timestamp_utc",
];

fn fields(reply: &Reply) -> Vec<String> {
    reply.json().as_object().expect("an object").keys().cloned().collect()
}

/// The spec's own example of a result (§3.4), for a job of the test.
fn printed(job: &str, agent: &Agent) -> Value {
    let text = include_str!("../../../crates/protocols/src/registry/fixtures/result.json");
    let mut body: Value = serde_json::from_str(text).expect("JSON");
    body["job_id"] = job.into();
    body["agent_id"] = agent.id.as_str().into();
    body
}

#[tokio::test(flavor = "multi_thread")]
async fn the_result_the_spec_prints_is_taken_and_shown_again_field_by_field() {
    for market in Market::both(&[]).await {
        let job = market.pending().await;
        let sent = printed(&job, &market.working);
        let accepted = market.report(&sent).await.expect(200);
        assert_eq!(accepted.str("/status"), "accepted");
        assert_eq!(accepted.str("/job_id"), job);
        assert_eq!(digits(&accepted.text, "paid"), "0.10");

        let shown = market.shown(&job).await.expect(200);
        assert_eq!(fields(&shown), FIELDS);
        for field in FIELDS.iter().filter(|name| !["error_code", "timestamp_utc"].contains(name)) {
            assert_eq!(shown.at(&format!("/{field}")), sent[*field], "{field}");
        }
        assert_eq!(shown.at("/error_code"), Value::Null);
        assert_eq!(digits(&shown.text, "execution_cost"), "0.10");
        let at = shown.str("/timestamp_utc");
        assert!(at.len() == 20 && at.ends_with('Z'), "{at}");
        market.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_output_is_shown_with_the_digits_it_was_sent_with() {
    let market = Market::keyed(&[]).await;
    let job = market.pending().await;
    let output = r#"{"big":12345678901234567890.10,"small":1e-7,"ü":"\u00e9"}"#;
    let body = format!(
        r#"{{"job_id":"{job}","status":"SUCCESS","output_data":{output},"execution_cost":0.10,"execution_time_ms":1}}"#
    );
    market.hub.post_text("/results", Some(&market.working.key), &body).await.expect(200);
    let shown = market.shown(&job).await.expect(200);
    assert!(shown.text.contains(&format!(r#""output_data":{output}"#)), "{}", shown.text);
    market.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_success_has_no_error_and_a_failure_has_a_reason_and_no_output() {
    let market = Market::keyed(&[]).await;
    let job = market.pending().await;
    let before = snapshot(&market.hub).await;
    let mut wrong = success(&job, &market.working, "0.10");
    wrong["error_message"] = "but it worked".into();
    let reply = market.report(&wrong).await;
    assert_malformed(&reply, "/error_message");
    let mut empty = success(&job, &market.working, "0.10");
    empty["output_data"] = Value::Null;
    assert_malformed(&market.report(&empty).await, "/output_data");
    assert_eq!(snapshot(&market.hub).await, before);
    market.report(&repaired(&wrong, &reply)).await.expect(200);
    let shown = market.shown(&job).await.expect(200);
    assert_eq!(shown.at("/error_message"), Value::Null);
    assert_eq!(shown.at("/error_code"), Value::Null);

    let mut said = failure(&market.pending().await, &market.working, None);
    said["output_data"] = json!({"half": "done"});
    let mut silent = failure(&market.pending().await, &market.working, None);
    silent["error_message"] = Value::Null;
    for (body, reason) in [(said, "it broke"), (silent, "the agent reported a failure")] {
        market.report(&body).await.expect(200);
        let shown = market.shown(body["job_id"].as_str().expect("an id")).await.expect(200);
        assert_eq!(shown.str("/status"), "FAILURE");
        assert_eq!(shown.at("/output_data"), Value::Null);
        assert_eq!(shown.str("/error_message"), reason);
        assert_eq!(digits(&shown.text, "execution_cost"), "0.00");
    }
    market.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_result_with_an_impossible_status_output_or_id_is_refused_and_changes_nothing() {
    let market = Market::keyed(&[]).await;
    let job = market.pending().await;
    let before = snapshot(&market.hub).await;
    let wrong = [
        ("status", json!("DONE")),
        ("status", json!("success")),
        ("status", Value::Null),
        ("output_data", json!([1])),
        ("output_data", json!("text")),
        ("error_code", json!(500)),
        ("job_id", json!("f81d4fae")),
        ("agent_id", json!("me")),
    ];
    for (field, value) in wrong {
        let mut body = success(&job, &market.working, "0.10");
        body[field] = value;
        let reply = market.report(&body).await;
        assert_malformed(&reply, &format!("/{field}"));
        let better = repaired(&body, &reply);
        assert_ne!(better, body, "{field}");
        assert_eq!(snapshot(&market.hub).await, before, "{field}");
    }
    let mut nameless = success(&job, &market.working, "0.10");
    nameless["job_id"] = Value::Null;
    assert_malformed(&market.report(&nameless).await, "/job_id");
    assert_eq!(snapshot(&market.hub).await, before);
    market.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_paid_and_shown_never_exceeds_the_agreed_price() {
    let market = Market::keyed(&[]).await;
    for (reported, paid) in
        [("0.10", "0.10"), ("0.04", "0.04"), ("1.00", "0.10"), ("0.15", "0.10"), ("0", "0.00")]
    {
        let job = market.pending().await;
        let reply = market.report(&success(&job, &market.working, reported)).await.expect(200);
        assert_eq!(digits(&reply.text, "paid"), paid, "reported {reported}");
        let shown = market.shown(&job).await.expect(200);
        assert_eq!(shown.str("/status"), "SUCCESS");
        assert_eq!(digits(&shown.text, "execution_cost"), paid, "reported {reported}");
    }
    assert_eq!(market.accounts().await, ["99.66", "0.00", "0.34"]);
    market.stop().await;
}

/// One way a worker's result reaches the hub.
#[derive(Clone, Copy, Debug)]
enum Way {
    Answer,
    Results,
    Callback,
}

/// Lets a worker with an endpoint finish a job in one of the ways, and returns the outcome.
async fn finish(way: Way, body: fn(&str, &Agent) -> Value) -> Vec<String> {
    let market = Market::keyed(&[]).await;
    let worker = Worker::start(Behaviour::Pending).await;
    let agent = market.endpoint(&worker.url).await;
    let id = "f81d4fae-7dec-11d0-a765-00a0c91e6bf6";
    let posted = match way {
        Way::Answer => {
            worker.behave(Behaviour::Say(200, body(id, &agent).to_string()));
            market.ask(&agent, json!({"job_id": id})).await.expect(200)
        }
        Way::Results => {
            market.ask(&agent, json!({"job_id": id})).await.expect(202);
            market
                .hub
                .post("/registry/results", Some(&agent.key), &body(id, &agent))
                .await
                .expect(200)
        }
        Way::Callback => {
            market.ask(&agent, json!({"job_id": id})).await.expect(202);
            let url = worker.heard(1).await[0].json()["callback_url"]
                .as_str()
                .expect("an address")
                .to_owned();
            market.hub.post(&market.path_of(&url), None, &body(id, &agent)).await.expect(200)
        }
    };
    assert_eq!(posted.str("/job_id"), id);
    let mut shown = market.shown(id).await.expect(200).json();
    shown["timestamp_utc"] = Value::Null;
    assert_eq!(shown["agent_id"], agent.id);
    shown["agent_id"] = Value::Null;
    let reputation =
        market.hub.get(&format!("/registry/reputation/{}", agent.id), None).await.expect(200);
    let mut audit =
        market.hub.get("/registry/audit", Some(&market.hub.operator)).await.expect(200).json();
    for one in audit["transactions"].as_array_mut().expect("a list") {
        one["timestamp_utc"] = Value::Null;
    }
    let ended = vec![
        shown.to_string(),
        reputation.at("/score").to_string() + &reputation.at("/stats").to_string(),
        audit.to_string(),
        format!("{:?} {:?}", market.hub.balance("o1").await, market.hub.balance("globex").await),
    ];
    market.stop().await;
    ended
}

#[tokio::test(flavor = "multi_thread")]
async fn a_success_ends_the_same_whichever_way_it_comes() {
    let body = |job: &str, agent: &Agent| success(job, agent, "0.10");
    let first = finish(Way::Answer, body).await;
    assert!(first[3].starts_with(r#"("99.90", "0.00") ("0.10""#), "{first:?}");
    assert!(first[1].starts_with("51.0"), "{first:?}");
    for way in [Way::Results, Way::Callback] {
        assert_eq!(finish(way, body).await, first, "{way:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_ends_the_same_whichever_way_it_comes() {
    let body = |job: &str, agent: &Agent| failure(job, agent, None);
    let first = finish(Way::Answer, body).await;
    assert!(first[3].starts_with(r#"("100.00", "0.00") ("0.00""#), "{first:?}");
    assert!(first[1].starts_with("45.5"), "{first:?}");
    for way in [Way::Results, Way::Callback] {
        assert_eq!(finish(way, body).await, first, "{way:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_carries_one_of_the_five_codes_whatever_the_agent_said() {
    let market = Market::keyed(&[]).await;
    let codes = [
        (Some("SKILL_MISMATCH"), "SKILL_MISMATCH"),
        (Some("BUDGET_INSUFFICIENT"), "BUDGET_INSUFFICIENT"),
        (Some("AGENT_OFFLINE"), "AGENT_OFFLINE"),
        (Some("EXECUTION_ERROR"), "EXECUTION_ERROR"),
        (Some("TRANSFER_FAILED"), "TRANSFER_FAILED"),
        (Some("OUT_OF_TEA"), "EXECUTION_ERROR"),
        (None, "EXECUTION_ERROR"),
    ];
    for (said, shown) in codes {
        let job = market.pending().await;
        market.report(&failure(&job, &market.working, said)).await.expect(200);
        assert_eq!(market.shown(&job).await.expect(200).str("/error_code"), shown, "{said:?}");
    }
    let worker = Worker::start(Behaviour::Fail(None)).await;
    let agent = market.endpoint(&worker.url).await;
    let reply = market.hub.hire(&market.asking, &agent, SKILL, "0.15").await.expect(200);
    assert_eq!(reply.str("/status"), "FAILURE");
    assert_eq!(reply.str("/error_code"), "EXECUTION_ERROR");
    assert_eq!(reply.str("/error_message"), "it broke");
    market.stop().await;
}

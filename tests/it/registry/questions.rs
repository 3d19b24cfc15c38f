//! A worker asks its requester, and both see the question, the answer and the parts of the result
//! (R108, R109, R111 and R112 of a2a).

use std::time::Duration;

use serde_json::json;

use super::market::{Market, success};
use crate::kit::{Behaviour, Worker, eventually};

#[tokio::test(flavor = "multi_thread")]
async fn a_pending_job_shows_the_question_until_it_is_answered() {
    let market = Market::keyed(&[]).await;
    let hub = &market.hub;
    let (boss, worker) = (&market.asking.key, &market.working.key);
    let job = market.pending().await;
    let schema = json!({"type": "object", "required": ["city"]});
    let asked = json!({"text": "Which city?", "schema": schema});
    hub.post(&format!("/v1/jobs/{job}/ask"), Some(worker), &asked).await.expect(200);
    let shown = market.shown(&job).await.expect(202);
    assert_eq!(shown.str("/status"), "PENDING");
    let expected = json!({"number": 1, "text": "Which city?", "schema": schema,
        "until": shown.at("/question/until")});
    assert_eq!(shown.at("/question"), expected);
    assert_eq!(market.accounts().await, ["99.85", "0.15", "0.00"], "the hold stays");

    let path = format!("/v1/jobs/{job}/answer");
    hub.post(&path, Some(worker), &json!({"input": {"city": "Bern"}})).await.expect(404);
    hub.post(&path, Some(boss), &json!({"text": "Lugano"})).await.expect(422);
    hub.post(&path, Some(boss), &json!({"input": {"city": "Lugano"}})).await.expect(200);
    assert_eq!(market.shown(&job).await.expect(202).json()["question"], json!(null));
    market.report(&success(&job, &market.working, "0.10")).await.expect(200);
    assert_eq!(market.shown(&job).await.expect(200).str("/status"), "SUCCESS");
    market.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_requester_that_waits_is_answered_as_soon_as_it_is_asked() {
    let market = Market::keyed(&[("registry.sync_wait", "60s")]).await;
    let endpoint = Worker::start(Behaviour::Dawdle(Duration::from_secs(3600))).await;
    let worker = market.endpoint(&endpoint.url).await;
    let ask = async {
        let job = endpoint.heard(1).await[0].json()["job_id"].as_str().expect("an id").to_owned();
        let (path, asked) = (format!("/v1/jobs/{job}/ask"), json!({"text": "Which city?"}));
        market.hub.post(&path, Some(&worker.key), &asked).await.expect(200);
    };
    let (shown, ()) = tokio::join!(market.ask(&worker, json!({})), ask);
    let shown = shown.expect(202);
    assert_eq!(
        (shown.str("/status"), shown.str("/question/text")),
        ("PENDING".to_owned(), "Which city?".to_owned())
    );
    market.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sign_in_is_shown_and_takes_no_answer() {
    let market = Market::keyed(&[]).await;
    let hub = &market.hub;
    let job = market.pending().await;
    let asked = json!({"text": "Sign in at mail.example", "auth": true});
    let ask = format!("/v1/jobs/{job}/ask");
    hub.post(&ask, Some(&market.working.key), &asked).await.expect(200);
    let shown = market.shown(&job).await.expect(202);
    assert_eq!(shown.at("/question/auth"), true, "{}", shown.text);
    let path = format!("/v1/jobs/{job}/answer");
    let answer = json!({"text": "my password"});
    hub.post(&path, Some(&market.asking.key), &answer).await.expect(409);
    market.report(&success(&job, &market.working, "0.10")).await.expect(200);
    assert_eq!(market.shown(&job).await.expect(200).str("/status"), "SUCCESS");
    market.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_that_nobody_answers_fails_the_job_without_blame() {
    let market = Market::keyed(&[("jobs.answer_window", "1m")]).await;
    let hub = &market.hub;
    let job = market.pending().await;
    let ask = format!("/v1/jobs/{job}/ask");
    let asked = json!({"text": "Which city?"});
    hub.post(&ask, Some(&market.working.key), &asked).await.expect(200);
    hub.pass(rialto_core::time::Millis::minutes(2));
    eventually(async || market.shown(&job).await.status == 200).await;
    let shown = market.shown(&job).await;
    assert_eq!(shown.str("/status"), "FAILURE");
    let text = "the requester did not answer in time: Which city?";
    assert_eq!(shown.str("/error_message"), text);
    assert_eq!(market.accounts().await, ["100.00", "0.00", "0.00"]);
    assert_eq!(hub.score(&market.working).await, "50.0");
    market.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn both_parties_see_the_parts_of_the_result() {
    let market = Market::keyed(&[]).await;
    let hub = &market.hub;
    let job = market.pending().await;
    let path = format!("/v1/jobs/{job}");
    for (number, append) in [(1, false), (2, true)] {
        let part = json!({"artifact": {"page": number}, "append": append});
        let parts = format!("{path}/parts");
        let told = hub.post(&parts, Some(&market.working.key), &part).await.expect(200);
        assert_eq!(told.at("/number"), number);
    }
    for party in [&market.asking, &market.working] {
        let shown = hub.get(&path, Some(&party.key)).await.expect(200);
        assert_eq!(shown.at("/parts/0/artifact"), json!({"page": 1}));
        assert_eq!(shown.at("/parts/1/artifact"), json!({"page": 2}));
        assert_eq!(shown.at("/parts/1/append"), true);
    }
    market.stop().await;
}

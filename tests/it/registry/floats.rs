//! Numbers as programs with doubles write them, and invalid numbers.
//!
//! The fixtures are bodies as Python's `json.dumps` writes them: `0.05 * 3` is 0.15000000000000002,
//! and `round(seconds * 1000, 0)` is 12.0; Java writes a double of twelve million as 1.2E7.

use serde_json::{Value, json};

use super::forms::{JOB_ID, Recorded};
use super::market::{Market, SKILL, fresh_id, merge, success};
use crate::kit::{Agent, Behaviour, TestHub, Worker, assert_malformed, digits, snapshot};

const JOB: &str = include_str!("../../../crates/protocols/src/registry/fixtures/python-job.json");
const RESULT: &str =
    include_str!("../../../crates/protocols/src/registry/fixtures/python-result.json");

/// Fills in the ids of a fixture.
fn filled(text: &str, ids: [(&str, &str); 2]) -> String {
    ids.into_iter().fold(text.to_owned(), |text, (member, id)| {
        text.replace(&format!("\"{member}\": \"uuid\""), &format!("\"{member}\": \"{id}\""))
    })
}

fn result(job: &str, agent: &Agent) -> String {
    filled(RESULT, [("job_id", job), ("agent_id", &agent.id)])
}

/// The body of a recorded result.
fn literal(name: &str, job: &str, agent: &Agent) -> String {
    Recorded::of(name, &[("JOB_ID", job), ("AGENT_ID", &agent.id)]).body.expect("a body")
}

#[tokio::test(flavor = "multi_thread")]
async fn work_reported_with_the_noise_of_doubles_is_paid_and_counts_as_done() {
    for base in ["/registry", ""] {
        let hub = TestHub::serve(&[]).await;
        let asking = hub.orchestrator("o1").await;
        hub.grant("o1", "100.00").await;
        let worker = Worker::start(Behaviour::Pending).await;
        let working = hub.agent("acme", SKILL, "0.15", Some(&worker.url)).await;
        worker.behave(Behaviour::Say(200, result(JOB_ID, &working)));
        let job = filled(JOB, [("job_id", JOB_ID), ("orchestrator_id", &asking.id)]);
        let reply =
            hub.post_text(&format!("{base}/jobs"), Some(&asking.key), &job).await.expect(200);
        assert_eq!(reply.str("/status"), "SUCCESS");
        assert_eq!(digits(&reply.text, "execution_cost"), "0.15");
        assert_eq!(reply.at("/execution_time_ms"), 12);
        assert!(
            !reply.text.contains("warnings"),
            "there was nothing to warn about: {}",
            reply.text
        );
        assert_eq!(hub.balance("o1").await, ("99.85".to_owned(), "0.00".to_owned()));
        assert_eq!(hub.balance("acme").await.0, "0.15");
        assert_eq!(hub.score(&working).await, "51.0");
        hub.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_polling_workers_result_with_the_noise_of_doubles_is_accepted() {
    for market in Market::both(&[]).await {
        let python = |job: &str| result(job, &market.working);
        let java = |job: &str| literal("result_of_java", job, &market.working);
        // The agreed price is 0.10, and the first reports 0.15.
        for (body, took) in [(&python as &dyn Fn(&str) -> String, 12), (&java, 12_000_000)] {
            let job = market.pending().await;
            let key = market.key(&market.working);
            let reply = market.hub.post_text("/results", key, &body(&job)).await.expect(200);
            assert_eq!(reply.json(), json!({"status": "accepted", "job_id": job, "paid": 0.10}));
            assert_eq!(market.shown(&job).await.expect(200).at("/execution_time_ms"), took);
        }
        market.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_amount_that_really_has_more_decimals_is_refused_and_opens_nothing() {
    let market = Market::keyed(&[]).await;
    let ids = [("JOB_ID", JOB_ID), ("ORCHESTRATOR_ID", &*market.asking.id)];
    let before = snapshot(&market.hub).await;
    let posted = Recorded::of("job_of_a_third", &ids);
    let reply = posted.send(&market.hub, market.key(&market.asking)).await;
    assert_malformed(&reply, "/budget");
    assert_eq!(reply.str("/error_message"), "budget has more than 2 decimals");
    assert_eq!(snapshot(&market.hub).await, before);
    market.stop().await;
}

/// Invalid values that a worker may report by mistake, and the warnings about them.
fn nonsense() -> [(Value, &'static str); 9] {
    let cost = |value: Value| json!({"execution_cost": value});
    let time = |value: Value| json!({"execution_time_ms": value});
    [
        (
            cost(json!(0.005)),
            "execution_cost has more than 2 decimals; the agreed price is used instead",
        ),
        (
            cost(json!(-0.01)),
            "execution_cost must not be negative; the agreed price is used instead",
        ),
        (cost(json!("0.10")), "execution_cost must be a number; the agreed price is used instead"),
        (
            cost(json!(1e308)),
            "execution_cost is above 1000000000; the agreed price is used instead",
        ),
        (cost(json!({})), "execution_cost must be a number; the agreed price is used instead"),
        (time(json!(-1)), "execution_time_ms must not be negative; ignored"),
        (time(json!(1.5)), "execution_time_ms must be a whole number; ignored"),
        (time(json!("12")), "execution_time_ms must be a whole number; ignored"),
        (time(json!(1e30)), "execution_time_ms is out of range; ignored"),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_figure_that_makes_no_sense_voids_no_output_and_the_worker_is_told() {
    let market = Market::keyed(&[]).await;
    for (wrong, told) in nonsense() {
        let job = market.pending().await;
        let mut body = success(&job, &market.working, "0.10");
        merge(&mut body, wrong.clone());
        let reply = market.report(&body).await.expect(200);
        assert_eq!(digits(&reply.text, "paid"), "0.10", "{wrong}");
        assert_eq!(reply.at("/warnings"), json!([told]));
        // Both parties find the warning with the job, and a repeat gets the same answer.
        let path = format!("/registry/jobs/{job}");
        for key in [&market.working.key, &market.asking.key] {
            let shown = market.hub.get(&path, Some(key)).await.expect(200);
            assert_eq!(shown.at("/warnings"), json!([told]));
            assert_eq!(shown.str("/status"), "SUCCESS");
            assert_eq!(shown.at("/output_data"), body["output_data"]);
        }
        assert_eq!(market.report(&body).await.expect(200).text, reply.text);
    }
    assert_eq!(market.accounts().await, ["99.10", "0.00", "0.90"]);
    market.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_called_workers_figure_that_makes_no_sense_voids_no_output_either() {
    let market = Market::keyed(&[]).await;
    let worker = Worker::start(Behaviour::Pending).await;
    let working = market.endpoint(&worker.url).await;
    for (wrong, told) in nonsense() {
        let job = fresh_id();
        let mut body = success(&job, &working, "0.10");
        merge(&mut body, wrong.clone());
        worker.behave(Behaviour::Say(200, body.to_string()));
        let reply = market.ask(&working, json!({"job_id": job})).await.expect(200);
        assert_eq!(reply.str("/status"), "SUCCESS", "{wrong}");
        assert_eq!(digits(&reply.text, "execution_cost"), "0.10", "{wrong}");
        let shown = market.hub.get(&format!("/jobs/{job}"), Some(&working.key)).await.expect(200);
        assert_eq!(shown.at("/warnings"), json!([told]));
    }
    assert_eq!(market.hub.balance("globex").await.0, "0.90");
    // Nine successes of one point each, for a requester with the starting score.
    assert_eq!(market.hub.score(&working).await, "59.0");
    market.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_with_a_figure_that_makes_no_sense_is_a_failure_with_its_own_reason() {
    let market = Market::keyed(&[]).await;
    let job = market.pending().await;
    let body = json!({"job_id": job, "status": "FAILURE", "error_message": "no disk left",
        "execution_cost": "none", "execution_time_ms": 0.5});
    let reply = market.report(&body).await.expect(200);
    let told = "execution_time_ms must be a whole number; ignored";
    assert_eq!(reply.at("/warnings"), json!([told]), "nothing is paid for a failure");
    let shown = market.shown(&job).await.expect(200);
    assert_eq!(shown.str("/error_message"), "no disk left");
    assert_eq!(market.accounts().await, ["100.00", "0.00", "0.00"]);
    market.stop().await;
}

/// A good result with a number as Python's `json.dumps` writes it, which is not valid JSON.
fn not_finite(job: &str, agent: &Agent, member: &str, word: &str) -> String {
    let mut body = success(job, agent, "0.10");
    body[member] = "figure".into();
    body.to_string().replace("\"figure\"", word)
}

/// Numbers that are not finite, and the warnings about them.
fn not_finite_figures() -> Vec<(&'static str, &'static str, &'static str)> {
    let cost = "execution_cost must be a number; the agreed price is used instead";
    let time = "execution_time_ms must be a whole number; ignored";
    ["NaN", "Infinity", "-Infinity"]
        .into_iter()
        .flat_map(|word| [("execution_cost", word, cost), ("execution_time_ms", word, time)])
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_figure_that_is_not_finite_voids_no_output_of_a_worker_that_is_called() {
    let market = Market::keyed(&[]).await;
    let worker = Worker::start(Behaviour::Pending).await;
    let working = market.endpoint(&worker.url).await;
    for (member, word, told) in not_finite_figures() {
        let job = fresh_id();
        worker.behave(Behaviour::Say(200, not_finite(&job, &working, member, word)));
        let reply = market.ask(&working, json!({"job_id": job})).await.expect(200);
        assert_eq!(reply.str("/status"), "SUCCESS", "{member} {word}");
        assert_eq!(digits(&reply.text, "execution_cost"), "0.10");
        assert_eq!(reply.at("/warnings"), json!([told]));
    }
    let job = fresh_id();
    worker.behave(Behaviour::Say(200, literal("result_not_finite", &job, &working)));
    let reply = market.ask(&working, json!({"job_id": job})).await.expect(200);
    assert_eq!(digits(&reply.text, "execution_cost"), "0.10");
    assert_eq!(reply.at("/warnings").as_array().map(Vec::len), Some(2), "{}", reply.text);
    assert_eq!(market.hub.balance("globex").await.0, "0.70");
    assert_eq!(market.hub.score(&working).await, "57.0");
    // In any other member it is not valid JSON, and not a result.
    worker.behave(Behaviour::Say(200, not_finite(&fresh_id(), &working, "output_data", "NaN")));
    let reply = market.ask(&working, json!({})).await.expect(502);
    assert_eq!(reply.str("/error_code"), "EXECUTION_ERROR");
    market.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_figure_that_is_not_finite_voids_no_output_of_a_worker_that_reports() {
    for market in Market::both(&[]).await {
        for (member, word, told) in not_finite_figures() {
            let job = market.pending().await;
            let body = not_finite(&job, &market.working, member, word);
            let key = market.key(&market.working);
            let reply = market.hub.post_text("/registry/results", key, &body).await.expect(200);
            assert_eq!(digits(&reply.text, "paid"), "0.10", "{member} {word}");
            assert_eq!(reply.at("/warnings"), json!([told]));
        }
        let (job, key) = (market.pending().await, market.key(&market.working));
        let body = literal("result_not_finite", &job, &market.working);
        let reply = market.hub.post_text("/results", key, &body).await.expect(200);
        assert_eq!(digits(&reply.text, "paid"), "0.10");
        assert_eq!(reply.at("/warnings").as_array().map(Vec::len), Some(2), "{}", reply.text);
        let job = market.pending().await;
        let body = not_finite(&job, &market.working, "output_data", "{\"n\": NaN}");
        market.hub.post_text("/registry/results", key, &body).await.expect(400);
        market.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_figure_that_is_not_finite_voids_no_output_reported_at_the_hubs_own_door() {
    let market = Market::keyed(&[]).await;
    let asked = market.ask(&market.working, json!({})).await.expect(202);
    let path = format!("/v1/jobs/{}/result", asked.header("rialto-job").expect("an id"));
    let body = r#"{"ok": true, "output": {}, "cost": NaN, "took_ms": Infinity}"#;
    let key = Some(market.working.key.as_str());
    let reply = market.hub.post_text(&path, key, body).await.expect(200);
    let told = [
        "cost must be a number; the agreed price is used instead",
        "took_ms must be a whole number; the hub's own clock is used instead",
    ];
    assert_eq!(reply.at("/warnings"), json!(told));
    assert_eq!(market.accounts().await, ["99.90", "0.00", "0.10"]);
    market.stop().await;
}

//! Callbacks to a requester: signed, and sent only after a PENDING answer (R44, R45).

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use rialto_core::notice::Delivery;
use serde_json::{Value, json};
use sha2::Sha256;

use super::market::{Market, SKILL, success};
use crate::kit::{Agent, Behaviour, ClosedPort, Got, TestHub, Worker, eventually};

/// An orchestrator with an endpoint, and its secret.
async fn orchestrator(market: &Market, url: &str) -> (Agent, String) {
    let body = json!({"agent_name": "caller", "owner_id": "o2", "skills": [], "api_endpoint": url});
    let reply = market.hub.post("/registry/register", None, &body).await.expect(201);
    market.hub.grant("o2", "1.00").await;
    let agent =
        Agent { id: reply.str("/agent_id"), key: reply.str("/api_key"), owner: "o2".to_owned() };
    (agent, reply.str("/webhook_secret"))
}

/// A job for the polling worker, with a callback URL.
async fn hire(market: &Market, by: &Agent, callback: &str) -> String {
    let body = json!({"orchestrator_id": by.id, "skill_name": SKILL, "input_data": {}, "budget": 0.15, "callback_url": callback});
    let path = format!("/registry/agents/{}/jobs", market.working.id);
    market.hub.post(&path, Some(&by.key), &body).await.expect(202).str("/job_id")
}

fn header<'a>(got: &'a Got, name: &str) -> &'a str {
    got.headers.get(name).unwrap_or_else(|| panic!("no {name}")).to_str().expect("text")
}

/// Verifies a delivery as Standard Webhooks describes it, without code of the hub.
fn assert_signed(got: &Got, secret: &str) {
    let key = STANDARD.decode(secret.strip_prefix("whsec_").expect("a secret")).expect("base64");
    let (id, at) = (header(got, "webhook-id"), header(got, "webhook-timestamp"));
    let mut mac = Hmac::<Sha256>::new_from_slice(&key).expect("a key");
    mac.update(format!("{id}.{at}.{}", got.body).as_bytes());
    let expected = format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()));
    assert_eq!(header(got, "webhook-signature"), expected);
    let now =
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970");
    let at: u64 = at.parse().expect("whole seconds");
    assert!(now.as_secs().abs_diff(at) <= 60, "{at} is not the current time");
}

fn pushes(hub: &TestHub) -> Vec<Delivery> {
    hub.engine.with_world(|world| world.deliveries().map(|push| Delivery::clone(push)).collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_requester_that_was_told_to_wait_is_called_with_the_signed_result() {
    let market = Market::keyed(&[]).await;
    let receiver = Worker::start(Behaviour::Say(204, String::new())).await;
    let (by, secret) = orchestrator(&market, &receiver.url).await;
    let job = hire(&market, &by, &format!("{}/done?run=7", receiver.url)).await;
    market.report(&success(&job, &market.working, "0.10")).await.expect(200);
    let got = receiver.heard(1).await;
    assert_eq!(got[0].path, "/done");
    assert_signed(&got[0], &secret);
    let shown = market.hub.get(&format!("/registry/jobs/{job}"), Some(&by.key)).await.expect(200);
    assert_eq!(got[0].body, shown.text, "the callback is the result body");
    eventually(async || pushes(&market.hub).is_empty()).await;
    assert_eq!(receiver.got().len(), 1);
    market.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_is_pushed_to_its_worker_with_that_workers_signature() {
    let market = Market::keyed(&[]).await;
    let worker = Worker::start(Behaviour::Succeed(json!({}), "0.10")).await;
    let body = json!({"agent_name": "w", "owner_id": "globex", "api_endpoint": worker.url,
        "skills": [{"skill_name": SKILL, "cost_per_call": 0.10}]});
    let reply = market.hub.post("/registry/register", None, &body).await.expect(201);
    let agent = Agent {
        id: reply.str("/agent_id"),
        key: reply.str("/api_key"),
        owner: "globex".to_owned(),
    };
    for _ in 0..2 {
        market.ask(&agent, json!({})).await.expect(200);
    }
    let got = worker.heard(2).await;
    got.iter().for_each(|one| assert_signed(one, &reply.str("/webhook_secret")));
    assert_ne!(header(&got[0], "webhook-id"), header(&got[1], "webhook-id"));
    market.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_requester_that_got_its_answer_at_once_is_not_called() {
    let market = Market::keyed(&[]).await;
    let receiver = Worker::start(Behaviour::Say(200, String::new())).await;
    let worker = Worker::start(Behaviour::Succeed(json!({}), "0.10")).await;
    let agent = market.endpoint(&worker.url).await;
    let callback = format!("{}/cb", receiver.url);
    for behaviour in [Behaviour::Succeed(json!({}), "0.10"), Behaviour::Fail(None)] {
        worker.behave(behaviour);
        market.ask(&agent, json!({"callback_url": callback})).await.expect(200);
        eventually(async || pushes(&market.hub).is_empty()).await;
    }
    // An earlier delivery would arrive before this one.
    let job = market
        .ask(&market.working, json!({"callback_url": callback}))
        .await
        .expect(202)
        .str("/job_id");
    market.report(&success(&job, &market.working, "0.10")).await.expect(200);
    let got = receiver.heard(1).await;
    assert_eq!(got[0].json()["job_id"], job);
    eventually(async || pushes(&market.hub).is_empty()).await;
    assert_eq!(receiver.got().len(), 1);
    market.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_came_too_late_for_the_wait_is_called_back() {
    let market = Market::keyed(&[("registry.sync_wait", "50ms")]).await;
    let receiver = Worker::start(Behaviour::Say(200, String::new())).await;
    let worker = Worker::start(Behaviour::Dawdle(Duration::from_millis(1500))).await;
    let agent = market.endpoint(&worker.url).await;
    let callback = format!("{}/cb", receiver.url);
    let job =
        market.ask(&agent, json!({"callback_url": callback})).await.expect(202).str("/job_id");
    let got = receiver.heard(1).await;
    assert_eq!(got[0].json()["job_id"], job);
    assert_eq!(got[0].json()["status"], "SUCCESS");
    assert_eq!(got[0].json()["output_data"], json!({"late": true}));
    market.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn failures_and_expired_jobs_are_called_back_too() {
    let market = Market::keyed(&[("jobs.lease", "200ms")]).await;
    let receiver = Worker::start(Behaviour::Say(200, String::new())).await;
    let callback = format!("{}/cb", receiver.url);
    let job = market
        .ask(&market.working, json!({"callback_url": callback}))
        .await
        .expect(202)
        .str("/job_id");
    let got = receiver.heard(1).await;
    assert_eq!(got[0].json()["job_id"], job);
    assert_eq!(got[0].json()["status"], "FAILURE");
    assert_eq!(got[0].json()["error_code"], "EXECUTION_ERROR");
    market.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_callback_that_fails_is_made_again_after_five_seconds_under_the_same_id() {
    let market = Market::keyed(&[]).await;
    let receiver = Worker::start(Behaviour::Say(500, "not now".to_owned())).await;
    let (by, secret) = orchestrator(&market, &receiver.url).await;
    let job = hire(&market, &by, &format!("{}/cb", receiver.url)).await;
    market.report(&success(&job, &market.working, "0.10")).await.expect(200);
    receiver.heard(1).await;
    eventually(async || pushes(&market.hub).iter().any(|push| push.attempts == 1)).await;
    let failed = pushes(&market.hub).remove(0);
    let wait = failed.next_try.expect("another try").since(market.hub.engine.now());
    assert!((0..=5_000).contains(&wait.0), "{wait:?}");
    assert_eq!(failed.last_error.as_deref(), Some("answered HTTP 500"));
    receiver.behave(Behaviour::Say(200, String::new()));

    let got = receiver.heard(2).await;
    assert_signed(&got[1], &secret);
    assert_eq!(header(&got[0], "webhook-id"), header(&got[1], "webhook-id"));
    let seconds = |got: &Got| header(got, "webhook-timestamp").parse::<i64>().expect("seconds");
    assert!(seconds(&got[1]) >= seconds(&got[0]) + 4);
    assert_eq!(got[0].body, got[1].body);
    eventually(async || pushes(&market.hub).is_empty()).await;
    market.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redirect_or_a_closed_port_is_a_failed_callback_and_nothing_is_followed() {
    let market = Market::keyed(&[]).await;
    let target = Worker::start(Behaviour::Say(200, String::new())).await;
    let moved = Worker::start(Behaviour::Redirect(format!("{}/here", target.url))).await;
    let closed = ClosedPort::take();
    for url in [&moved.url, &closed.url] {
        let job = market
            .ask(&market.working, json!({"callback_url": url}))
            .await
            .expect(202)
            .str("/job_id");
        market.report(&success(&job, &market.working, "0.10")).await.expect(200);
        let tried =
            |push: &Delivery| push.url == *url && push.attempts == 1 && push.next_try.is_some();
        eventually(async || pushes(&market.hub).iter().any(tried)).await;
        assert_eq!(market.shown(&job).await.expect(200).str("/status"), "SUCCESS");
    }
    assert!(target.got().is_empty());
    market.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_callback_that_is_gone_is_never_made_again() {
    let market = Market::keyed(&[]).await;
    let receiver = Worker::start(Behaviour::Say(410, String::new())).await;
    let (by, _) = orchestrator(&market, &receiver.url).await;
    let job = hire(&market, &by, &format!("{}/cb", receiver.url)).await;
    market.report(&success(&job, &market.working, "0.10")).await.expect(200);
    eventually(async || pushes(&market.hub).iter().any(|push| push.attempts == 1)).await;
    let given_up = pushes(&market.hub).remove(0);
    assert_eq!(given_up.next_try, None);
    assert_eq!(receiver.got().len(), 1);
    market.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_workers_endpoint_that_is_gone_is_switched_off_until_it_registers_again() {
    let market = Market::keyed(&[]).await;
    let worker = Worker::start(Behaviour::Say(410, String::new())).await;
    let agent = market.endpoint(&worker.url).await;
    let reply = market.ask(&agent, json!({})).await.expect(502);
    assert_eq!(reply.str("/error_code"), "EXECUTION_ERROR");
    worker.behave(Behaviour::Succeed(json!({}), "0.10"));
    // From now on it has to poll: the next job waits, and nothing is sent.
    let waiting = async || market.ask(&agent, json!({})).await.status == 202;
    eventually(waiting).await;
    let again = json!({"agent_id": agent.id, "agent_name": "w", "owner_id": "globex", "api_endpoint": worker.url,
        "skills": [{"skill_name": SKILL, "cost_per_call": 0.10}]});
    let sent = worker.got().len();
    market.hub.post("/registry/register", Some(&agent.key), &again).await.expect(200);
    market.ask(&agent, json!({})).await.expect(200);
    assert_eq!(worker.got().len(), sent + 1);
    market.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_address_means_no_call() {
    let market = Market::keyed(&[]).await;
    for nothing in [json!({}), json!({"callback_url": ""}), json!({"callback_url": null})] {
        let job = market.ask(&market.working, nothing).await.expect(202).str("/job_id");
        market.report(&success(&job, &market.working, "0.10")).await.expect(200);
        assert_eq!(market.shown(&job).await.expect(200).at("/error_code"), Value::Null);
    }
    assert_eq!(pushes(&market.hub), []);
    market.stop().await;
}

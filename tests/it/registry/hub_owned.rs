//! What only the hub may set: its codes, and fields that no body can set (R63, R67).

use serde_json::json;

use super::market::{Market, SKILL, merge, success};
use crate::kit::{Agent, Behaviour, ClosedPort, Worker, assert_later, assert_refused, digits};

#[tokio::test(flavor = "multi_thread")]
async fn the_five_codes_are_spelled_as_the_spec_spells_them() {
    let market = Market::keyed(&[]).await;
    let closed = ClosedPort::take();
    let gone = market.endpoint(&closed.url).await;
    let worker = Worker::start(Behaviour::Say(200, "no JSON".to_owned())).await;
    let broken = market.hub.agent("initech", SKILL, "0.10", Some(&worker.url)).await;
    let mismatch = market.ask(&market.working, json!({"skill_name": "juggle"})).await;
    assert_refused(&mismatch, 422, "SKILL_MISMATCH");
    assert_refused(
        &market.ask(&market.working, json!({"budget": 0.09})).await,
        402,
        "BUDGET_INSUFFICIENT",
    );
    assert_later(&market.ask(&gone, json!({})).await, 503, "AGENT_OFFLINE", 30);
    let failed = market.ask(&broken, json!({})).await.expect(502);
    assert_eq!(
        (failed.str("/status"), failed.str("/error_code")),
        ("FAILURE".to_owned(), "EXECUTION_ERROR".to_owned())
    );
    let pay = json!({"from_owner": "o1", "to_owner": "acme", "amount": 1000});
    assert_refused(
        &market.hub.post("/transfer", Some(&market.asking.key), &pay).await,
        402,
        "TRANSFER_FAILED",
    );
    market.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_only_the_hub_may_say_is_ignored_in_every_body() {
    let market = Market::keyed(&[]).await;
    let hub = &market.hub;
    let mut body = json!({
        "agent_name": "sly", "owner_id": "sly", "skills": [{"skill_name": "sly", "cost_per_call": 0.10, "agent": 1}],
        "reputation_score": 100.0, "score": 100, "status": "offline", "registered_at": "1999-01-01T00:00:00Z",
        "balance": 1000, "held": 5, "initial_balance": 1000, "jobs_settled": 99, "protocol": "relay",
        "last_heartbeat": "2099-01-01T00:00:00Z", "hub_endpoint": "https://evil.example", "welcomed": false,
        "api_key": "rk_000000000000000000000000000000000000000000000000", "webhook_secret": "whsec_AAAA", "active": false,
    });
    let reply = hub.post("/register", None, &body).await.expect(201);
    assert_eq!(reply.str("/status"), "registered");
    assert_eq!(digits(&reply.text, "reputation_score"), "50.0");
    assert_ne!(reply.str("/api_key"), body["api_key"]);
    let sly =
        Agent { id: reply.str("/agent_id"), key: reply.str("/api_key"), owner: "sly".to_owned() };
    body["agent_id"] = sly.id.as_str().into();
    let again = hub.post("/register", Some(&sly.key), &body).await.expect(200);
    assert_eq!(again.str("/api_key"), sly.key);
    let shown = hub.get(&format!("/registry/agents/{}", sly.id), None).await.expect(200);
    assert_eq!(
        (shown.str("/status"), shown.str("/protocol")),
        ("online".to_owned(), "registry".to_owned())
    );
    assert_eq!(digits(&shown.text, "reputation_score"), "50.0");
    assert_eq!(shown.at("/jobs_settled"), 0);
    assert_eq!(shown.at("/last_heartbeat"), shown.at("/registered_at"));
    assert!(!shown.str("/registered_at").starts_with("1999"));
    assert!(!shown.text.contains("evil"));
    assert_eq!(hub.balance("sly").await, ("0.00".to_owned(), "0.00".to_owned()));

    let job = json!({"status": "SUCCESS", "output_data": {"x": 1}, "execution_cost": 0, "held": 0, "price": 0.01,
        "error_code": "AGENT_OFFLINE", "state": "Completed", "agreed": 0.01});
    let job = market.ask(&market.working, job).await.expect(202).str("/job_id");
    assert_eq!(market.accounts().await, ["99.85", "0.15", "0.00"]);
    let mut result = success(&job, &market.working, "0.10");
    merge(
        &mut result,
        json!({"paid": 99, "reputation_score": 100, "owner_id": "sly", "price": 0.15}),
    );
    let accepted = market.report(&result).await.expect(200);
    assert_eq!(digits(&accepted.text, "paid"), "0.10");
    assert_eq!(hub.score(&market.working).await, "51.0");
    assert_eq!(market.accounts().await, ["99.90", "0.00", "0.10"]);

    let pay = json!({"from_owner": "o1", "to_owner": "acme", "amount": 1, "settlement": "escrow", "status": "failed",
        "sender_balance": 500, "receiver_balance": 500});
    let paid = hub.post("/transfer", Some(&market.asking.key), &pay).await.expect(200);
    assert_eq!(
        (paid.str("/settlement"), digits(&paid.text, "sender_balance")),
        ("transfer".to_owned(), "98.90".to_owned())
    );
    let account = json!({"owner_id": "acme", "balance": 500, "held": 500, "granted": 500});
    let account = hub.post("/accounts", Some(&market.working.key), &account).await.expect(201);
    assert_eq!(account.text, r#"{"owner_id":"acme","balance":1.10,"held":0.00,"granted":0.00}"#);
    let beat =
        json!({"agent_id": sly.id, "timestamp": "2099-01-01T00:00:00Z", "status": "offline"});
    let beat = hub.post("/heartbeat", Some(&sly.key), &beat).await.expect(200);
    assert!(!beat.str("/timestamp").starts_with("2099"));
    market.stop().await;
}

//! Transfers that name a job: confirming a payment from escrow, or paying for a direct hire (R51,
//! R52, R56).

use serde_json::{Value, json};

use super::market::{Market, SKILL, failure, fresh_id, merge, success};
use crate::kit::{ClosedPort, Reply, assert_later, assert_refused, digits, snapshot};

/// A transfer from the requester's owner to the worker's, for a job.
fn order(job: &str, more: Value) -> Value {
    let mut body = json!({"from_owner": "o1", "to_owner": "acme", "amount": 0.10, "job_id": job});
    merge(&mut body, more);
    body
}

async fn pay(market: &Market, body: &Value) -> Reply {
    market.hub.post("/registry/transfer", market.key(&market.asking), body).await
}

/// A job that succeeded for 0.10.
async fn paid_job(market: &Market) -> String {
    let job = market.pending().await;
    market.report(&success(&job, &market.working, "0.10")).await.expect(200);
    job
}

#[tokio::test(flavor = "multi_thread")]
async fn a_settlement_confirms_what_escrow_paid_and_moves_nothing_again() {
    for market in Market::both(&[]).await {
        let job = paid_job(&market).await;
        let listed =
            market.hub.get("/registry/audit", Some(&market.hub.operator)).await.expect(200);
        let id = fresh_id();
        let reply = pay(&market, &order(&job, json!({"transfer_id": id}))).await.expect(200);
        assert_eq!(reply.str("/status"), "completed");
        assert_eq!(reply.str("/settlement"), "escrow");
        assert_eq!(reply.str("/transfer/transfer_id"), id);
        assert_eq!(reply.str("/transfer/job_id"), job);
        assert_eq!(digits(&reply.text, "sender_balance"), "99.90");
        assert_eq!(market.accounts().await, ["99.90", "0.00", "0.10"]);
        let after = market.hub.get("/registry/audit", Some(&market.hub.operator)).await.expect(200);
        assert_eq!(after.text, listed.text);
        market.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_settlement_must_name_amount_payer_and_payee() {
    let market = Market::keyed(&[]).await;
    let other = market.hub.orchestrator("globex").await;
    market.hub.grant("globex", "5.00").await;
    let job = paid_job(&market).await;
    let before = snapshot(&market.hub).await;
    for wrong in [
        json!({"amount": 0.15}),
        json!({"amount": 0.04}),
        json!({"to_owner": "globex"}),
        json!({"to_owner": "o1"}),
    ] {
        let mut body = order(&job, wrong.clone());
        assert_refused(&pay(&market, &body).await, 422, "TRANSFER_FAILED");
        merge(&mut body, json!({"transfer_id": fresh_id()}));
        assert_refused(&pay(&market, &body).await, 422, "TRANSFER_FAILED");
        assert_eq!(snapshot(&market.hub).await, before, "{wrong}");
    }
    let backwards = order(&job, json!({"from_owner": "acme", "to_owner": "o1"}));
    let reply = market.hub.post("/transfer", Some(&market.working.key), &backwards).await;
    assert_refused(&reply, 422, "TRANSFER_FAILED");
    let stranger = order(&job, json!({"from_owner": "globex"}));
    let reply = market.hub.post("/transfer", Some(&other.key), &stranger).await;
    assert_refused(&reply, 422, "TRANSFER_FAILED");
    assert!(!reply.text.contains("0.10"), "an unrelated caller learns nothing: {}", reply.text);
    assert_eq!(snapshot(&market.hub).await, before);
    market.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_has_not_succeeded_cannot_be_settled() {
    for market in Market::both(&[]).await {
        let pending = market.pending().await;
        let (failed, cancelled) = (market.pending().await, market.pending().await);
        market.report(&failure(&failed, &market.working, None)).await.expect(200);
        let path = format!("/registry/jobs/{cancelled}/cancel");
        market.hub.post(&path, market.key(&market.asking), &json!({})).await.expect(200);
        let before = snapshot(&market.hub).await;
        // Only a job that may still succeed is worth a retry.
        assert_later(&pay(&market, &order(&pending, json!({}))).await, 409, "TRANSFER_FAILED", 1);
        for job in [&failed, &cancelled] {
            assert_refused(&pay(&market, &order(job, json!({}))).await, 409, "TRANSFER_FAILED");
        }
        assert_eq!(snapshot(&market.hub).await, before);
        market.report(&success(&pending, &market.working, "0.10")).await.expect(200);
        pay(&market, &order(&pending, json!({}))).await.expect(200);
        market.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_inside_one_owner_can_be_settled() {
    let market = Market::keyed(&[]).await;
    market.hub.grant("acme", "1.00").await;
    let mate = json!({"agent_name": "mate", "owner_id": "acme", "skills": []});
    let mate = market.hub.enrol(&mate, Some(&market.working.key)).await;
    let job =
        market.hub.hire(&mate, &market.working, SKILL, "0.15").await.expect(202).str("/job_id");
    market.report(&success(&job, &market.working, "0.10")).await.expect(200);
    let body = order(&job, json!({"from_owner": "acme"}));
    let reply = market.hub.post("/registry/transfer", Some(&mate.key), &body).await.expect(200);
    assert_eq!(reply.str("/settlement"), "escrow");
    assert_eq!(market.hub.balance("acme").await, ("1.00".to_owned(), "0.00".to_owned()));
    market.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_direct_hire_is_paid_once_per_payer_and_job() {
    for market in Market::both(&[]).await {
        market.hub.grant("acme", "1.00").await;
        market.hub.orchestrator("globex").await;
        let (job, id) = (fresh_id(), fresh_id());
        let first = pay(&market, &order(&job, json!({"transfer_id": id}))).await.expect(200);
        assert_eq!(first.str("/settlement"), "transfer");
        assert_eq!(market.accounts().await, ["99.90", "0.00", "1.10"]);

        let before = snapshot(&market.hub).await;
        let again = pay(&market, &order(&job, json!({"transfer_id": fresh_id()}))).await;
        assert_refused(&again, 409, "TRANSFER_FAILED");
        assert!(again.str("/error_message").contains(&id), "names the first: {}", again.text);
        // Without an id it is a repeat of the same payment.
        assert_eq!(pay(&market, &order(&job, json!({}))).await.expect(200).text, first.text);
        let more = pay(&market, &order(&job, json!({"amount": 0.20}))).await;
        assert_refused(&more, 422, "TRANSFER_FAILED");
        assert_eq!(snapshot(&market.hub).await, before);

        // Another owner may pay for the same job, too.
        let body = order(&job, json!({"from_owner": "acme", "to_owner": "globex"}));
        market.hub.post("/transfer", market.key(&market.working), &body).await.expect(200);
        assert_eq!(market.accounts().await, ["99.90", "0.00", "1.00"]);
        market.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_paid_for_elsewhere_cannot_be_run_by_the_hub() {
    let market = Market::keyed(&[]).await;
    let closed = ClosedPort::take();
    let gone = market.endpoint(&closed.url).await;
    let (never_seen, refused) = (fresh_id(), fresh_id());
    market.ask(&gone, json!({"job_id": refused})).await.expect(503);
    for job in [never_seen, refused] {
        pay(&market, &order(&job, json!({}))).await.expect(200);
        let before = snapshot(&market.hub).await;
        let reply = market.ask(&market.working, json!({"job_id": job})).await;
        assert_refused(&reply, 409, "CONFLICT");
        assert_eq!(reply.str("/status"), "FAILURE");
        assert_eq!(snapshot(&market.hub).await, before);
    }
    market.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transfer_id_gives_the_first_answer_for_ever() {
    let Market { hub, asking, .. } = Market::keyed(&[]).await;
    let id = fresh_id();
    let body = json!({"transfer_id": id, "from_owner": "o1", "to_owner": "acme", "amount": 0.10});
    let first = hub.post("/registry/transfer", Some(&asking.key), &body).await.expect(200);
    assert_eq!(digits(&first.text, "sender_balance"), "99.90");
    let other = json!({"from_owner": "o1", "to_owner": "acme", "amount": 1});
    hub.post("/registry/transfer", Some(&asking.key), &other).await.expect(200);

    let hub = hub.restart(rialto_hub::config::Profile::Serve, &[]).await;
    let before = snapshot(&hub).await;
    let mut later = body.clone();
    later["timestamp_utc"] = "2026-02-11T14:15:09Z".into();
    let mut spelled = body.clone();
    spelled["transfer_id"] = id.to_uppercase().into();
    for again in [&body, &later, &spelled] {
        let reply = hub.post("/transfer", Some(&asking.key), again).await.expect(200);
        assert_eq!(reply.text, first.text);
    }
    for wrong in [json!({"amount": 0.11}), json!({"to_owner": "o1"}), json!({"job_id": fresh_id()})]
    {
        let mut changed = body.clone();
        merge(&mut changed, wrong);
        let reply = hub.post("/transfer", Some(&asking.key), &changed).await;
        assert_refused(&reply, 422, "TRANSFER_FAILED");
    }
    assert_eq!(snapshot(&hub).await, before);
    assert_eq!(hub.balance("o1").await.0, "98.90");
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_settled_job_has_one_transfer_and_every_other_is_told_its_name() {
    let market = Market::keyed(&[]).await;
    let job = paid_job(&market).await;
    let id = fresh_id();
    let first = pay(&market, &order(&job, json!({"transfer_id": id}))).await.expect(200);
    let before = snapshot(&market.hub).await;
    let second = pay(&market, &order(&job, json!({"transfer_id": fresh_id()}))).await;
    assert_refused(&second, 409, "TRANSFER_FAILED");
    assert!(second.str("/error_message").contains(&id), "{}", second.text);
    assert_eq!(pay(&market, &order(&job, json!({}))).await.expect(200).text, first.text);
    assert_eq!(
        pay(&market, &order(&job, json!({"transfer_id": id}))).await.expect(200).text,
        first.text
    );
    assert_eq!(snapshot(&market.hub).await, before);
    market.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn another_payers_transfer_id_makes_no_payment() {
    let market = Market::keyed(&[]).await;
    market.hub.grant("acme", "1.00").await;
    let id = fresh_id();
    pay(&market, &order(&fresh_id(), json!({"transfer_id": id}))).await.expect(200);
    let before = snapshot(&market.hub).await;
    let theirs = json!({"transfer_id": id, "from_owner": "acme", "to_owner": "o1", "amount": 0.10});
    let reply = market.hub.post("/transfer", Some(&market.working.key), &theirs).await;
    assert_refused(&reply, 422, "TRANSFER_FAILED");
    assert_eq!(snapshot(&market.hub).await, before);
    market.stop().await;
}

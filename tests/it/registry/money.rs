//! Payments between owners (R49, R53–R55).

use serde_json::{Value, json};

use super::market::{Market, fresh_id};
use crate::kit::{Reply, TestHub, assert_malformed, assert_refused, digits, repaired, snapshot};

const PATHS: [&str; 2] = ["/registry/transfer", "/transfer"];

/// The spec's own example of a transfer (§3.5), with owners of the test.
fn printed(id: &str, job: &str) -> Value {
    let text = include_str!("../../../crates/protocols/src/registry/fixtures/transfer.json");
    let mut body: Value = serde_json::from_str(text).expect("JSON");
    body["transfer_id"] = id.into();
    body["job_id"] = job.into();
    body["from_owner"] = "o1".into();
    body["to_owner"] = "acme".into();
    body
}

fn plain(amount: f64) -> Value {
    json!({"from_owner": "o1", "to_owner": "acme", "amount": amount})
}

async fn pay(market: &Market, body: &Value) -> Reply {
    market.hub.post("/registry/transfer", market.key(&market.asking), body).await
}

fn circulating(hub: &TestHub) -> i64 {
    hub.engine.with_world(|world| {
        let people = world.owners().filter(|owner| owner.name != "hub:issuance");
        people.map(|owner| owner.available.micros() + owner.held.micros()).sum()
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn the_transfer_the_spec_prints_is_made_and_shown_again() {
    for market in Market::both(&[]).await {
        for (path, left) in PATHS.iter().zip(["99.90", "99.80"]) {
            let (id, job) = (fresh_id(), fresh_id());
            let body = printed(&id, &job);
            let reply = market.hub.post(path, market.key(&market.asking), &body).await.expect(200);
            assert_eq!(reply.str("/status"), "completed");
            assert_eq!(reply.str("/transfer/transfer_id"), id);
            assert_eq!(reply.str("/transfer/from_owner"), "o1");
            assert_eq!(reply.str("/transfer/to_owner"), "acme");
            assert_eq!(digits(&reply.text, "amount"), "0.10");
            assert_eq!(reply.str("/transfer/job_id"), job);
            assert!(reply.str("/transfer/timestamp_utc").ends_with('Z'));
            assert_eq!(digits(&reply.text, "sender_balance"), left);
            assert_eq!(reply.str("/settlement"), "transfer");
            let open = market.key(&market.asking).is_none();
            assert_eq!(reply.json().get("receiver_balance").is_some(), open, "{}", reply.text);
        }
        assert_eq!(market.accounts().await, ["99.80", "0.00", "0.20"]);
        market.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transfer_may_leave_out_its_own_id_and_the_job() {
    let market = Market::keyed(&[]).await;
    let mut nulls = plain(0.10);
    nulls["transfer_id"] = Value::Null;
    nulls["job_id"] = Value::Null;
    let mut ids = Vec::new();
    for body in [plain(0.10), nulls, plain(0.10)] {
        let reply = pay(&market, &body).await.expect(200);
        assert_eq!(reply.at("/transfer/job_id"), Value::Null);
        assert_eq!(reply.str("/settlement"), "transfer");
        let id: uuid::Uuid = reply.str("/transfer/transfer_id").parse().expect("a UUID");
        assert_eq!(id.get_version_num(), 4);
        ids.push(id);
    }
    // Without an id and without a job, each one is a separate payment.
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 3);
    assert_eq!(market.accounts().await, ["99.70", "0.00", "0.30"]);
    market.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payment_above_the_balance_fails_and_changes_nothing() {
    for market in Market::both(&[]).await {
        let before = snapshot(&market.hub).await;
        for path in PATHS {
            let reply = market.hub.post(path, market.key(&market.asking), &plain(100.01)).await;
            assert_refused(&reply, 402, "TRANSFER_FAILED");
        }
        assert_eq!(snapshot(&market.hub).await, before);
        pay(&market, &plain(100.00)).await.expect(200);
        assert_eq!(market.accounts().await, ["0.00", "0.00", "100.00"]);
        market.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_amount_must_be_above_zero_and_a_number_of_cents() {
    let market = Market::keyed(&[]).await;
    let before = snapshot(&market.hub).await;
    let amounts = [
        "0",
        "0.00",
        "-0.01",
        "-0",
        "0.005",
        "0.001",
        "\"0.10\"",
        "null",
        "true",
        "[0.10]",
        "1e308",
        "9007199254740993",
        "0.1e-400",
        "1000000000.01",
        "1e400",
    ];
    for amount in amounts {
        let text = format!(r#"{{"from_owner":"o1","to_owner":"acme","amount":{amount}}}"#);
        let reply = market.hub.post_text("/transfer", Some(&market.asking.key), &text).await;
        assert_malformed(&reply, "/amount");
        assert_eq!(snapshot(&market.hub).await, before, "{amount}");
    }
    for text in [r#"{"from_owner":"o1","to_owner":"acme","amount":NaN}"#, "[]", "", "{"] {
        let reply = market.hub.post_text("/transfer", Some(&market.asking.key), text).await;
        assert_refused(&reply, 400, "INVALID_REQUEST");
    }
    assert_eq!(snapshot(&market.hub).await, before);
    for amount in ["0.1", "0.10", "1e-1", "0.100", "0.29", "0.57", "1.15", "4.35"] {
        let text = format!(r#"{{"from_owner":"o1","to_owner":"acme","amount":{amount}}}"#);
        market.hub.post_text("/transfer", Some(&market.asking.key), &text).await.expect(200);
    }
    assert_eq!(market.accounts().await, ["93.24", "0.00", "6.76"]);
    market.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transfer_with_a_bad_field_names_it_and_the_example_repairs_it() {
    let market = Market::keyed(&[]).await;
    let good = printed(&fresh_id(), &fresh_id());
    let before = snapshot(&market.hub).await;
    let wrong = [
        ("from_owner", Value::Null),
        ("from_owner", json!("")),
        ("to_owner", Value::Null),
        ("to_owner", json!("a\u{202e}b")),
        ("to_owner", json!(7)),
        ("amount", json!("much")),
        ("transfer_id", json!("t-1")),
        ("job_id", json!("job 1")),
        ("timestamp_utc", json!("yesterday")),
    ];
    for (field, value) in wrong {
        let mut body = good.clone();
        body[field] = value;
        let reply = pay(&market, &body).await;
        assert_malformed(&reply, &format!("/{field}"));
        assert_eq!(snapshot(&market.hub).await, before, "{field}");
    }
    // The examples name other owners; everything else in them is used unchanged.
    for (field, value) in
        [("amount", json!(0.001)), ("transfer_id", json!("t-1")), ("job_id", json!("job 1"))]
    {
        let mut body = printed(&fresh_id(), &fresh_id());
        body[field] = value;
        let refusal = pay(&market, &body).await;
        pay(&market, &repaired(&body, &refusal)).await.expect(200);
    }
    market.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_pays_only_from_its_own_account() {
    let market = Market::keyed(&[]).await;
    let mate = json!({"agent_name": "mate", "owner_id": "o1", "skills": []});
    let mate = market.hub.enrol(&mate, Some(&market.asking.key)).await;
    let before = snapshot(&market.hub).await;
    for path in PATHS {
        let body = plain(0.10);
        assert_refused(&market.hub.post(path, None, &body).await, 401, "UNAUTHORIZED");
        let thief = market.hub.post(path, Some(&market.working.key), &body).await;
        assert_refused(&thief, 403, "FORBIDDEN");
        let operator = market.hub.post(path, Some(&market.hub.operator), &body).await;
        assert_refused(&operator, 403, "FORBIDDEN");
        // An unknown account is refused like another owner's.
        let mut unknown = body.clone();
        unknown["from_owner"] = "nobody".into();
        let reply = market.hub.post(path, Some(&market.working.key), &unknown).await;
        assert_eq!((reply.status, &reply.text), (403, &thief.text));
    }
    assert_eq!(snapshot(&market.hub).await, before);
    // All agents of an owner share its account.
    market.hub.post("/transfer", Some(&mate.key), &plain(0.10)).await.expect(200);
    assert_eq!(market.accounts().await, ["99.90", "0.00", "0.10"]);
    market.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_owner_cannot_pay_and_is_paid_only_where_everybodys_word_is_taken() {
    let [keyed, open] = Market::both(&[]).await;
    let mut from_nobody = plain(0.10);
    from_nobody["from_owner"] = "nobody".into();
    let mut to_nobody = plain(0.10);
    to_nobody["to_owner"] = "newcomer".into();

    let before = snapshot(&open.hub).await;
    assert_refused(&pay(&open, &from_nobody).await, 404, "TRANSFER_FAILED");
    assert_eq!(snapshot(&open.hub).await, before);
    let before = snapshot(&keyed.hub).await;
    assert_refused(&pay(&keyed, &to_nobody).await, 404, "TRANSFER_FAILED");
    assert_eq!(snapshot(&keyed.hub).await, before);

    // A failed payment opens no account.
    let before = snapshot(&open.hub).await;
    let mut too_much = to_nobody.clone();
    too_much["amount"] = 1000.into();
    assert_refused(&pay(&open, &too_much).await, 402, "TRANSFER_FAILED");
    assert_eq!(snapshot(&open.hub).await, before);
    let reply = pay(&open, &to_nobody).await.expect(200);
    assert_eq!(digits(&reply.text, "receiver_balance"), "0.10");
    assert_eq!(open.hub.balance("newcomer").await, ("0.10".to_owned(), "0.00".to_owned()));
    assert_eq!(circulating(&open.hub), 100_000_000);
    keyed.stop().await;
    open.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn payments_from_or_to_the_issue_account_are_refused() {
    for market in Market::both(&[]).await {
        let before = snapshot(&market.hub).await;
        let mut body = plain(0.10);
        body["to_owner"] = "hub:issuance".into();
        assert_refused(&pay(&market, &body).await, 404, "TRANSFER_FAILED");
        body["from_owner"] = "hub:issuance".into();
        body["to_owner"] = "o1".into();
        let reply = pay(&market, &body).await;
        assert_refused(&reply, 403, "FORBIDDEN");
        assert_eq!(snapshot(&market.hub).await, before);
        market.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_owner_cannot_pay_itself_without_a_job() {
    for market in Market::both(&[]).await {
        let before = snapshot(&market.hub).await;
        let mut body = plain(0.10);
        body["to_owner"] = "o1".into();
        assert_refused(&pay(&market, &body).await, 422, "TRANSFER_FAILED");
        body["job_id"] = fresh_id().into();
        assert_refused(&pay(&market, &body).await, 422, "TRANSFER_FAILED");
        assert_eq!(snapshot(&market.hub).await, before);
        market.stop().await;
    }
}

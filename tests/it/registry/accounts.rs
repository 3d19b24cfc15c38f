//! Accounts: their owners, and where credits come from (R58).

use serde_json::{Value, json};

use super::market::{Market, SKILL, success};
use crate::kit::{TestHub, assert_malformed, assert_refused, digits, snapshot};

async fn open_account(hub: &TestHub, key: Option<&str>, body: Value) -> crate::kit::Reply {
    hub.post("/registry/accounts", key, &body).await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_account_is_shown_with_what_can_be_spent_and_what_is_held() {
    for market in Market::both(&[]).await {
        market.pending().await;
        for path in ["/registry/accounts/o1", "/accounts/o1"] {
            let reply = market.hub.get(path, market.key(&market.asking)).await.expect(200);
            assert_eq!(reply.text, r#"{"owner_id":"o1","balance":99.85,"held":0.15}"#);
        }
        market.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn all_agents_of_an_owner_share_one_account() {
    let market = Market::keyed(&[]).await;
    let mate = json!({"agent_name": "mate", "owner_id": "acme", "skills": [{"skill_name": SKILL, "cost_per_call": 0.10}]});
    let mate = market.hub.enrol(&mate, Some(&market.working.key)).await;
    for worker in [&market.working, &mate] {
        let job =
            market.hub.hire(&market.asking, worker, SKILL, "0.15").await.expect(202).str("/job_id");
        let body = success(&job, worker, "0.10");
        market.hub.post("/results", Some(&worker.key), &body).await.expect(200);
    }
    for key in [&market.working.key, &mate.key] {
        let reply = market.hub.get("/accounts/acme", Some(key)).await.expect(200);
        assert_eq!(digits(&reply.text, "balance"), "0.20");
    }
    market.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_operator_makes_credits_and_the_wish_of_anyone_else_is_ignored() {
    let market = Market::keyed(&[]).await;
    for path in ["/registry/accounts", "/accounts"] {
        let body = json!({"owner_id": "acme", "initial_balance": 1000});
        let reply = market.hub.post(path, Some(&market.working.key), &body).await.expect(201);
        assert_eq!(reply.text, r#"{"owner_id":"acme","balance":0.00,"held":0.00,"granted":0.00}"#);
    }
    let before = snapshot(&market.hub).await;
    let body = json!({"owner_id": "acme", "initial_balance": 1000});
    assert_refused(&open_account(&market.hub, None, body.clone()).await, 401, "UNAUTHORIZED");
    let other = open_account(&market.hub, Some(&market.asking.key), body.clone()).await;
    assert_refused(&other, 403, "FORBIDDEN");
    let unknown =
        open_account(&market.hub, Some(&market.asking.key), json!({"owner_id": "new"})).await;
    assert_eq!((unknown.status, &unknown.text), (403, &other.text));
    assert_eq!(snapshot(&market.hub).await, before);

    let reply = open_account(&market.hub, Some(&market.hub.operator), body).await.expect(201);
    assert_eq!(
        reply.text,
        r#"{"owner_id":"acme","balance":1000.00,"held":0.00,"granted":1000.00}"#
    );
    let more = json!({"owner_id": "acme", "initial_balance": 0.29});
    let reply = open_account(&market.hub, Some(&market.hub.operator), more).await.expect(201);
    assert_eq!(reply.text, r#"{"owner_id":"acme","balance":1000.29,"held":0.00,"granted":0.29}"#);
    market.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_open_hub_does_not_let_callers_create_credits() {
    let hub = TestHub::open(&[]).await;
    for (owner, wish) in [("new", json!(5000)), ("other", Value::Null)] {
        for _ in 0..2 {
            let body = json!({"owner_id": owner, "initial_balance": wish});
            let reply = open_account(&hub, None, body).await.expect(201);
            assert_eq!(digits(&reply.text, "balance"), "100.00", "one welcome grant");
        }
    }
    hub.orchestrator("new").await;
    assert_eq!(hub.balance("new").await.0, "100.00");
    assert_eq!(hub.engine.with_world(|world| world.next.entry.0), 3, "two grants and nothing else");
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_welcome_is_given_once_per_owner_and_none_by_default() {
    let hub = TestHub::serve(&[]).await;
    hub.orchestrator("o1").await;
    assert_eq!(hub.balance("o1").await, ("0.00".to_owned(), "0.00".to_owned()));
    hub.stop().await;

    let hub = TestHub::serve(&[("ledger.welcome_grant", "7.50")]).await;
    let first = hub.orchestrator("o1").await;
    assert_eq!(hub.balance("o1").await.0, "7.50");
    let again = json!({"agent_id": first.id, "agent_name": "a", "owner_id": "o1", "skills": []});
    hub.post("/registry/register", Some(&first.key), &again).await.expect(200);
    hub.enrol(&json!({"agent_name": "b", "owner_id": "o1", "skills": []}), Some(&first.key)).await;
    open_account(&hub, Some(&first.key), json!({"owner_id": "o1"})).await.expect(201);
    hub.call("DELETE", &format!("/registry/agents/{}", first.id), Some(&first.key), None)
        .await
        .expect(200);
    hub.post("/registry/register", Some(&first.key), &again).await.expect(200);
    assert_eq!(hub.balance("o1").await.0, "7.50");
    // The operator's first grant to a new owner includes the welcome grant.
    let reply =
        open_account(&hub, Some(&hub.operator), json!({"owner_id": "o2", "initial_balance": 1}))
            .await;
    assert_eq!(digits(&reply.expect(201).text, "granted"), "8.50");
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_operator_grants_to_any_name_in_the_ledger_but_the_issue_account() {
    let hub = TestHub::serve(&[]).await;
    let names = [
        "openclaw:550e8400-e29b-41d4-a716-446655440000",
        "clara:rImQ3O6EqiZEOUjMfkrF0cP36q9fMAVSg_hjx0ipdWY",
        "relay:alice@chorus",
        "agora:did:key:z6MkiK6iPnt423Ycuhg83yfJ8PtX2HjH1Hqh3MywFmA2gB3s",
    ];
    for name in names {
        let reply = open_account(
            &hub,
            Some(&hub.operator),
            json!({"owner_id": name, "initial_balance": 5}),
        )
        .await;
        assert_eq!(digits(&reply.expect(201).text, "balance"), "5.00", "{name}");
    }
    let before = snapshot(&hub).await;
    let issue = json!({"owner_id": "hub:issuance", "initial_balance": 5});
    assert_refused(&open_account(&hub, Some(&hub.operator), issue).await, 404, "TRANSFER_FAILED");
    assert_eq!(snapshot(&hub).await, before);
    hub.stop().await;

    let open = TestHub::open(&[]).await;
    for name in names {
        let reply = open_account(&open, None, json!({"owner_id": name})).await;
        assert_malformed(&reply, "/owner_id");
        let from = json!({"from_owner": name, "to_owner": "o1", "amount": 1});
        assert_refused(&open.post("/transfer", None, &from).await, 403, "FORBIDDEN");
    }
    open.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_grant_with_a_bad_amount_or_name_is_refused_and_changes_nothing() {
    let hub = TestHub::serve(&[]).await;
    let before = snapshot(&hub).await;
    let wrong = [
        ("initial_balance", json!(-1)),
        ("initial_balance", json!(0.001)),
        ("initial_balance", json!("100")),
        ("initial_balance", json!(1e308)),
        ("initial_balance", json!(1_000_000_001)),
        ("owner_id", Value::Null),
        ("owner_id", json!("")),
        ("owner_id", json!("a\u{200b}b")),
        ("owner_id", json!(["o1"])),
    ];
    for (field, value) in wrong {
        let mut body = json!({"owner_id": "o1", "initial_balance": 1});
        body[field] = value;
        let reply = open_account(&hub, Some(&hub.operator), body).await;
        assert_malformed(&reply, &format!("/{field}"));
        assert_eq!(snapshot(&hub).await, before, "{field}");
    }
    hub.stop().await;
}

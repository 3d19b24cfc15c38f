//! Unregistering: what remains of an agent that left (R66).

use serde_json::{Value, json};

use super::market::{Market, SKILL, failure, fresh_id, success};
use crate::kit::{Agent, Reply, TestHub, assert_refused, digits, snapshot};

async fn leave(hub: &TestHub, agent: &Agent, key: Option<&str>) -> Reply {
    hub.call("DELETE", &format!("/registry/agents/{}", agent.id), key, None).await
}

fn comeback(agent: &Agent) -> Value {
    json!({"agent_id": agent.id, "agent_name": "back", "owner_id": agent.owner,
        "skills": [{"skill_name": SKILL, "cost_per_call": 0.10}]})
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_left_is_on_no_list() {
    for market in Market::both(&[]).await {
        let reply =
            leave(&market.hub, &market.working, market.key(&market.working)).await.expect(200);
        assert_eq!(reply.json(), json!({"status": "unregistered", "agent_id": market.working.id}));
        let id = &market.working.id;
        for path in [format!("/registry/agents/{id}"), format!("/reputation/{id}")] {
            let unknown = market.hub.get(&path.replace(id, &fresh_id()), None).await;
            let reply = market.hub.get(&path, None).await;
            assert_eq!((reply.status, &reply.text), (404, &unknown.text), "{path}");
        }
        let found = market.hub.get(&format!("/discover?skill={SKILL}"), None).await.expect(200);
        assert_eq!(found.at("/total"), 0);
        assert_eq!(market.hub.get("/skills", None).await.expect(200).at("/skills"), json!([]));
        assert_refused(&market.ask(&market.working, json!({})).await, 404, "NOT_FOUND");
        assert_refused(
            &leave(&market.hub, &market.working, Some(&market.hub.operator)).await,
            404,
            "NOT_FOUND",
        );
        market.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_agent_and_the_operator_take_it_off_the_lists() {
    let market = Market::keyed(&[]).await;
    let mate = json!({"agent_name": "mate", "owner_id": "acme", "skills": []});
    let mate = market.hub.enrol(&mate, Some(&market.working.key)).await;
    let before = snapshot(&market.hub).await;
    assert_refused(&leave(&market.hub, &market.working, None).await, 401, "UNAUTHORIZED");
    for other in [&market.asking, &mate] {
        assert_refused(
            &leave(&market.hub, &market.working, Some(&other.key)).await,
            404,
            "NOT_FOUND",
        );
    }
    assert_eq!(snapshot(&market.hub).await, before);
    let operator = market.hub.operator.clone();
    leave(&market.hub, &market.working, Some(&operator)).await.expect(200);
    leave(&market.hub, &mate, Some(&mate.key)).await.expect(200);
    market.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_its_former_key_brings_an_agent_back() {
    let market = Market::keyed(&[]).await;
    let mate = json!({"agent_name": "mate", "owner_id": "acme", "skills": []});
    let mate = market.hub.enrol(&mate, Some(&market.working.key)).await;
    let job = market.pending().await;
    market.report(&success(&job, &market.working, "0.10")).await.expect(200);
    leave(&market.hub, &market.working, Some(&market.working.key)).await.expect(200);

    let before = snapshot(&market.hub).await;
    let body = comeback(&market.working);
    for path in ["/registry/register", "/register"] {
        assert_refused(&market.hub.post(path, None, &body).await, 409, "CONFLICT");
        for other in [&market.asking, &mate] {
            let reply = market.hub.post(path, Some(&other.key), &body).await;
            assert_refused(&reply, 401, "UNAUTHORIZED");
        }
        // Naming another owner does not help either.
        let mut stolen = body.clone();
        stolen["owner_id"] = "thief".into();
        assert_refused(&market.hub.post(path, None, &stolen).await, 409, "CONFLICT");
    }
    assert_eq!(snapshot(&market.hub).await, before);

    let reply =
        market.hub.post("/registry/register", Some(&market.working.key), &body).await.expect(200);
    assert_eq!(digits(&reply.text, "reputation_score"), "51.0", "the score is kept");
    assert_eq!(market.hub.balance("acme").await.0, "0.10");
    market.pending().await;
    market.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_former_key_is_good_for_coming_back_and_nothing_else() {
    let market = Market::keyed(&[]).await;
    let gone = market.hub.orchestrator("globex").await;
    market.hub.grant("globex", "1.00").await;
    leave(&market.hub, &gone, Some(&gone.key)).await.expect(200);
    let before = snapshot(&market.hub).await;
    let unknown = market.hub.get("/accounts/globex", Some("rk_nonsense")).await;
    let pay = json!({"from_owner": "globex", "to_owner": "acme", "amount": 1});
    let tries = [
        market.hub.get("/accounts/globex", Some(&gone.key)).await,
        market.hub.get("/audit", Some(&gone.key)).await,
        market.hub.post("/transfer", Some(&gone.key), &pay).await,
        market.hub.post("/heartbeat", Some(&gone.key), &json!({"agent_id": gone.id})).await,
        market.hub.hire(&gone, &market.working, SKILL, "0.15").await,
        leave(&market.hub, &gone, Some(&gone.key)).await,
    ];
    for reply in tries {
        assert_refused(&reply, 401, "UNAUTHORIZED");
        assert_eq!(reply.str("/error_message"), unknown.str("/error_message"));
    }
    // A new agent of the old owner needs the key of one that is still registered.
    let sibling = json!({"agent_name": "sibling", "owner_id": "globex", "skills": []});
    assert_refused(&market.hub.post("/register", Some(&gone.key), &sibling).await, 409, "CONFLICT");
    assert_eq!(snapshot(&market.hub).await, before);
    market.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_open_jobs_of_an_agent_that_leaves_fail_with_refund() {
    for market in Market::both(&[]).await {
        let (waiting, fetched) = (market.pending().await, market.pending().await);
        market.fetch(&market.working).await;
        let callback = market.callback(&market.working, &fetched).await;
        assert_eq!(market.accounts().await, ["99.70", "0.30", "0.00"]);
        leave(&market.hub, &market.working, market.key(&market.working)).await.expect(200);
        assert_eq!(market.accounts().await, ["100.00", "0.00", "0.00"]);
        for job in [&waiting, &fetched] {
            let shown = market.shown(job).await.expect(200);
            assert_eq!(shown.str("/status"), "FAILURE");
            assert_eq!(shown.str("/error_code"), "EXECUTION_ERROR");
        }
        let late =
            market.hub.post(&callback, None, &failure(&fetched, &market.working, None)).await;
        assert_refused(&late, 409, "CONFLICT");
        market.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_requester_that_unregisters_is_refunded_for_unstarted_jobs_and_pays_for_the_rest() {
    let market = Market::keyed(&[]).await;
    let started = market.pending().await;
    market.fetch(&market.working).await;
    let waiting = market.pending().await;
    leave(&market.hub, &market.asking, Some(&market.asking.key)).await.expect(200);
    assert_eq!(market.accounts().await, ["99.85", "0.15", "0.00"]);
    assert_refused(
        &market.report(&success(&waiting, &market.working, "0.10")).await,
        409,
        "CONFLICT",
    );
    market.report(&success(&started, &market.working, "0.10")).await.expect(200);
    assert_eq!(market.accounts().await, ["99.90", "0.00", "0.10"]);
    market.stop().await;
}

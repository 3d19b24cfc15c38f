//! Concurrent callers: in any order, the sums are right and every request has one answer.

use serde_json::{Value, json};

use crate::kit::{Agent, Behaviour, Reply, TestHub, Worker, digits, together};

const SKILL: &str = "analyze_text";
/// How often a race between two is repeated; either may win each time.
const ROUNDS: usize = 25;

fn id(number: usize) -> String {
    format!("00000000-0000-4000-8000-{number:012}")
}

/// A requester of `o1` with this balance, and a polling worker of `acme` with a price of 0.10.
async fn market(balance: &str) -> (TestHub, Agent, Agent) {
    let hub = TestHub::serve(&[]).await;
    let asking = hub.orchestrator("o1").await;
    let working = hub.agent("acme", SKILL, "0.10", None).await;
    hub.grant("o1", balance).await;
    (hub, asking, working)
}

fn answered(replies: &[Reply], status: u16) -> Vec<&Reply> {
    replies.iter().filter(|reply| reply.status == status).collect()
}

async fn assert_sums_to_zero(hub: &TestHub) {
    let sum: i64 = hub.engine.with_world(|world| {
        world.owners().map(|owner| owner.available.micros() + owner.held.micros()).sum()
    });
    assert_eq!(sum, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_hundred_transfers_with_one_id_move_money_once_and_answer_alike() {
    let (hub, asking, _) = market("100.00").await;
    let body =
        json!({"transfer_id": id(1), "from_owner": "o1", "to_owner": "acme", "amount": 0.10});
    let pay = || hub.post("/registry/transfer", Some(&asking.key), &body);
    let replies = together((0..200).map(|_| pay())).await;
    for reply in &replies {
        assert_eq!((reply.status, &reply.text), (200, &replies[0].text));
    }
    assert_eq!(hub.balance("o1").await.0, "99.90");
    assert_eq!(hub.balance("acme").await.0, "0.10");
    let audit = hub.get("/registry/audit", Some(&hub.operator)).await.expect(200);
    assert_eq!(audit.at("/total"), 1);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_a_hundred_transfers_of_three_cents_from_one_credit_thirty_three_succeed() {
    let (hub, asking, _) = market("1.00").await;
    let pay = async |number: usize| {
        let body = json!({"transfer_id": id(number), "from_owner": "o1", "to_owner": "acme", "amount": 0.03});
        hub.post("/transfer", Some(&asking.key), &body).await
    };
    let replies = together((0..100).map(pay)).await;
    assert_eq!(answered(&replies, 200).len(), 33);
    let refused = answered(&replies, 402);
    assert_eq!(refused.len(), 67);
    assert!(refused.iter().all(|reply| reply.str("/error_code") == "TRANSFER_FAILED"));
    assert_eq!(hub.balance("o1").await, ("0.01".to_owned(), "0.00".to_owned()));
    assert_eq!(hub.balance("acme").await.0, "0.99");
    assert_sums_to_zero(&hub).await;
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_thirty_jobs_with_a_budget_of_fifteen_cents_one_credit_pays_for_six() {
    let (hub, asking, working) = market("1.00").await;
    let replies = together((0..30).map(|_| hub.hire(&asking, &working, SKILL, "0.15"))).await;
    assert_eq!(answered(&replies, 202).len(), 6);
    assert_eq!(answered(&replies, 402).len(), 24);
    assert_eq!(hub.balance("o1").await, ("0.10".to_owned(), "0.90".to_owned()));
    assert_sums_to_zero(&hub).await;
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn fifty_identical_job_posts_make_one_job() {
    let (hub, asking, working) = market("100.00").await;
    let worker = Worker::start(Behaviour::Succeed(json!({"once": true}), "0.10")).await;
    let reached = hub.agent("globex", SKILL, "0.10", Some(&worker.url)).await;
    for (number, agent, status) in [(1, &working, 202), (2, &reached, 200)] {
        let body = json!({"job_id": id(number), "orchestrator_id": asking.id, "skill_name": SKILL,
            "input_data": {"text": "hello"}, "budget": 0.15});
        let path = format!("/registry/agents/{}/jobs", agent.id);
        let replies = together((0..50).map(|_| hub.post(&path, Some(&asking.key), &body))).await;
        for reply in &replies {
            assert_eq!((reply.status, &reply.text), (status, &replies[0].text));
            assert_eq!(reply.header("rialto-job"), replies[0].header("rialto-job"));
        }
    }
    assert_eq!(worker.got().len(), 1);
    // One budget is held for the first, and one price was paid for the second.
    assert_eq!(hub.balance("o1").await, ("99.75".to_owned(), "0.15".to_owned()));
    let path = format!("/registry/agents/{}/jobs", working.id);
    let work = hub.get(&path, Some(&working.key)).await.expect(200);
    assert_eq!(work.at("/jobs").as_array().expect("a list").len(), 1);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_a_result_and_a_cancel_at_once_exactly_one_wins_and_the_money_follows() {
    let (hub, asking, working) = market("100.00").await;
    let mut earned = 0;
    for _ in 0..ROUNDS {
        let job = hub.hire(&asking, &working, SKILL, "0.15").await.expect(202).str("/job_id");
        let path = format!("/registry/jobs/{job}/cancel");
        let nothing = json!({});
        let cancel = hub.post(&path, Some(&asking.key), &nothing);
        let (result, cancelled) =
            tokio::join!(hub.report(&working, &job, "SUCCESS", "0.10"), cancel);
        let shown = hub.get(&format!("/jobs/{job}"), Some(&asking.key)).await.expect(200);
        match (result.status, cancelled.status) {
            (200, 409) => {
                earned += 10;
                assert_eq!(shown.str("/status"), "SUCCESS");
            }
            (409, 200) => assert_eq!(shown.str("/error_message"), "cancelled by requester"),
            other => panic!("{other:?}"),
        }
        let owns = hub.balance("acme").await.0;
        assert_eq!(owns, format!("{}.{:02}", earned / 100, earned % 100));
        assert_eq!(hub.balance("o1").await.1, "0.00");
    }
    assert_sums_to_zero(&hub).await;
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_different_results_at_once_one_stands_and_the_other_is_too_late() {
    let (hub, asking, working) = market("100.00").await;
    for _ in 0..ROUNDS {
        let job = hub.hire(&asking, &working, SKILL, "0.15").await.expect(202).str("/job_id");
        let (good, bad) = tokio::join!(
            hub.report(&working, &job, "SUCCESS", "0.10"),
            hub.report(&working, &job, "FAILURE", "0"),
        );
        let shown =
            hub.get(&format!("/jobs/{job}"), Some(&asking.key)).await.expect(200).str("/status");
        match (good.status, bad.status) {
            (200, 409) => assert_eq!(shown, "SUCCESS"),
            (409, 200) => assert_eq!(shown, "FAILURE"),
            other => panic!("{other:?}"),
        }
    }
    let reputation =
        hub.get(&format!("/registry/reputation/{}", working.id), None).await.expect(200);
    assert_eq!(reputation.at("/stats/total"), ROUNDS);
    let earned = reputation.at("/stats/successes").as_u64().expect("a count") * 10;
    assert_eq!(hub.balance("acme").await.0, format!("{}.{:02}", earned / 100, earned % 100));
    assert_sums_to_zero(&hub).await;
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn many_workers_asking_at_once_are_all_given_the_same_job_and_it_is_paid_once() {
    let (hub, asking, working) = market("100.00").await;
    let job = hub.hire(&asking, &working, SKILL, "0.15").await.expect(202).str("/job_id");
    let path = format!("/registry/agents/{}/jobs", working.id);
    let work = together((0..20).map(|_| hub.get(&path, Some(&working.key)))).await;
    assert!(work.iter().all(|reply| reply.str("/jobs/0/job_id") == job));
    let replies = together((0..20).map(|_| hub.report(&working, &job, "SUCCESS", "0.10"))).await;
    for reply in &replies {
        assert_eq!((reply.status, digits(&reply.text, "paid").as_str()), (200, "0.10"));
    }
    assert_eq!(hub.balance("acme").await.0, "0.10");
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_registrations_of_one_id_one_is_new() {
    let hub = TestHub::serve(&[]).await;
    let body: Value = json!({"agent_id": id(7), "agent_name": "n", "owner_id": "o", "skills": []});
    let replies = together((0..30).map(|_| hub.post("/registry/register", None, &body))).await;
    let made = answered(&replies, 201);
    assert_eq!(made.len(), 1);
    assert_eq!(answered(&replies, 409).len(), 29);
    hub.get("/accounts/o", Some(&made[0].str("/api_key"))).await.expect(200);
    hub.stop().await;
}

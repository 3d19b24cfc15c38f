//! Scores: what changes them, and what does not (R59–R62).

use rialto_core::alias::Protocol;
use rialto_core::reputation::Standing;
use serde_json::{Value, json};

use super::market::{Market, SKILL, failure, fresh_id, success};
use crate::kit::{Agent, Behaviour, ClosedPort, TestHub, Worker, digits};

/// One job for a polling worker, with the given outcome.
async fn run(hub: &TestHub, by: &Agent, worker: &Agent, good: bool) {
    let job = hub.hire(by, worker, SKILL, "0.10").await.expect(202).str("/job_id");
    let status = if good { "SUCCESS" } else { "FAILURE" };
    hub.report(worker, &job, status, "0").await.expect(200);
}

/// Total, successes and failures, as shown.
async fn stats(hub: &TestHub, agent: &Agent) -> [u64; 3] {
    let reply = hub.get(&format!("/registry/reputation/{}", agent.id), None).await.expect(200);
    assert_eq!(reply.str("/agent_id"), agent.id);
    ["total", "successes", "failures"]
        .map(|name| reply.at(&format!("/stats/{name}")).as_u64().expect("a count"))
}

/// An agent that sells the skill and has money to hire with.
async fn trader(hub: &TestHub, owner: &str) -> Agent {
    let agent = hub.agent(owner, SKILL, "0.10", None).await;
    hub.grant(owner, "100.00").await;
    agent
}

#[tokio::test(flavor = "multi_thread")]
async fn two_successes_and_a_failure_for_a_newcomer_end_at_47_5() {
    let market = Market::keyed(&[]).await;
    let Market { hub, asking, working, .. } = &market;
    assert_eq!(hub.score(working).await, "50.0");
    for (good, score) in [(true, "51.0"), (true, "52.0"), (false, "47.5")] {
        run(hub, asking, working, good).await;
        assert_eq!(hub.score(working).await, score);
    }
    assert_eq!(stats(hub, working).await, [3, 2, 1]);
    assert_eq!(hub.score(asking).await, "50.0", "hiring does not change the score");
    market.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_gain_grows_with_the_hirers_own_score_and_the_loss_does_not() {
    let hub = TestHub::serve(&[]).await;
    let newcomer = trader(&hub, "newcomer").await;
    let (best, worst) = (trader(&hub, "best").await, trader(&hub, "worst").await);
    // Fifty jobs raise a new agent from 50 to 100 and no further; twelve failures lower it to 0.
    for step in 1..=51 {
        run(&hub, &newcomer, &best, true).await;
        let expected = if step < 50 { format!("{}.0", 50 + step) } else { "100.0".to_owned() };
        assert_eq!(hub.score(&best).await, expected);
    }
    for step in 1..=12 {
        run(&hub, &newcomer, &worst, false).await;
        let tenths = (500 - 45 * step).max(0);
        assert_eq!(hub.score(&worst).await, format!("{}.{}", tenths / 10, tenths % 10));
    }
    for (hirer, gained) in [(&worst, "50.0"), (&newcomer, "51.0"), (&best, "52.0")] {
        let worker = trader(&hub, &format!("worker of {}", hirer.owner)).await;
        run(&hub, hirer, &worker, true).await;
        assert_eq!(hub.score(&worker).await, gained, "hired by {}", hirer.owner);
        run(&hub, hirer, &worker, false).await;
        let kept = hub.score(&worker).await;
        let lost: f64 =
            gained.parse::<f64>().expect("a number") - kept.parse::<f64>().expect("a number");
        assert!((lost - 4.5).abs() < 1e-9, "{gained} to {kept}");
    }
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hirers_score_counts_as_it_is_at_that_moment_to_the_hundredth() {
    let hub = TestHub::serve(&[]).await;
    let (first, second, third) =
        (trader(&hub, "a").await, trader(&hub, "b").await, trader(&hub, "c").await);
    run(&hub, &first, &second, true).await;
    assert_eq!(hub.score(&second).await, "51.0");
    run(&hub, &second, &third, true).await;
    assert_eq!(hub.score(&third).await, "51.02");
    run(&hub, &third, &first, true).await;
    // 50 + 2 × 51.02 / 100 is 51.0204; two decimals are shown.
    assert_eq!(hub.score(&first).await, "51.02");
    let exact = hub.engine.with_world(|world| {
        let id = world.agent_by_alias(Protocol::new("registry"), &first.id).expect("an agent");
        world.agent_state(id).expect("an agent state").standing.score.millionths()
    });
    assert_eq!(exact, 51_020_400);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hirer_without_a_score_counts_as_fifty() {
    let hub = TestHub::open(&[]).await;
    let working = hub.agent("acme", "echo", "0", None).await;
    let body = json!({"orchestrator_id": "demo_orchestrator", "skill_name": "echo", "input_data": {}, "budget": 0});
    let job = hub.post("/jobs", None, &body).await.expect(202).str("/job_id");
    hub.post("/results", None, &success(&job, &working, "0")).await.expect(200);
    assert_eq!(hub.score(&working).await, "51.0");
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_agents_of_one_owner_hiring_each_other_seventy_times_stay_at_fifty() {
    let hub = TestHub::serve(&[]).await;
    let one = trader(&hub, "ring").await;
    let body = json!({"agent_name": "two", "owner_id": "ring", "skills": [{"skill_name": SKILL, "cost_per_call": 0.10}]});
    let two = hub.enrol(&body, Some(&one.key)).await;
    for round in 0..70 {
        let (by, worker) = if round % 2 == 0 { (&one, &two) } else { (&two, &one) };
        let job = hub.hire(by, worker, SKILL, "0.15").await.expect(202).str("/job_id");
        let reply = hub.report(worker, &job, "SUCCESS", "0.10").await.expect(200);
        assert_eq!(digits(&reply.text, "paid"), "0.10", "the worker is paid");
    }
    run(&hub, &one, &two, false).await;
    for agent in [&one, &two] {
        assert_eq!(hub.score(agent).await, "50.0");
        assert_eq!(stats(&hub, agent).await, [0, 0, 0]);
    }
    assert_eq!(hub.balance("ring").await, ("100.00".to_owned(), "0.00".to_owned()));
    let audit = hub.get("/audit", Some(&one.key)).await.expect(200);
    assert_eq!(audit.at("/total"), 70);
    let shown = hub.get(&format!("/registry/agents/{}", two.id), None).await.expect(200);
    assert_eq!(shown.at("/jobs_settled"), 0);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_proven_agent_can_be_told_from_a_fresh_name_with_the_same_score() {
    let market = Market::keyed(&[]).await;
    let proven = trader(&market.hub, "proven").await;
    // 45.5 and four and a half more: back at fifty, but not new.
    run(&market.hub, &market.asking, &proven, false).await;
    for _ in 0..4 {
        run(&market.hub, &market.asking, &proven, true).await;
    }
    assert_eq!(market.hub.score(&proven).await, "49.5");
    for (least, total) in [(0, 2), (1, 1), (5, 1), (6, 0)] {
        let query = format!("/registry/discover?skill={SKILL}&min_jobs={least}");
        let found = market.hub.get(&query, None).await.expect(200);
        assert_eq!(found.at("/total"), total, "min_jobs={least}");
        let asked = json!({"skill": SKILL, "min_jobs": least});
        assert_eq!(
            market.hub.post("/discover", None, &asked).await.expect(200).at("/total"),
            total
        );
    }
    let found = market.hub.get(&format!("/discover?skill={SKILL}"), None).await.expect(200);
    let settled = |agent: &Agent| {
        let all = found.at("/agents");
        let one =
            all.as_array().expect("a list").iter().find(|one| one["agent_id"] == agent.id).cloned();
        one.expect("it is found")["jobs_settled"].clone()
    };
    assert_eq!((settled(&proven), settled(&market.working)), (json!(5), json!(0)));
    market.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_moves_its_workers_score_exactly_once() {
    let market = Market::keyed(&[]).await;
    let job = market.pending().await;
    let started = json!({"job_id": job, "agent_id": market.working.id, "status": "PENDING"});
    market.report(&started).await.expect(200);
    assert_eq!(stats(&market.hub, &market.working).await, [0, 0, 0]);
    let body = success(&job, &market.working, "0.10");
    for _ in 0..3 {
        market.report(&body).await.expect(200);
    }
    market.report(&failure(&job, &market.working, None)).await.expect(409);
    let settle = json!({"from_owner": "o1", "to_owner": "acme", "amount": 0.10, "job_id": job});
    market.hub.post("/transfer", Some(&market.asking.key), &settle).await.expect(200);
    assert_eq!(stats(&market.hub, &market.working).await, [1, 1, 0]);
    assert_eq!(market.hub.score(&market.working).await, "51.0");
    market.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn refusals_cancellations_and_the_callers_own_errors_move_no_score() {
    let market = Market::keyed(&[]).await;
    let closed = ClosedPort::take();
    let gone = market.endpoint(&closed.url).await;
    market.ask(&gone, json!({})).await.expect(503);
    market.ask(&market.working, json!({"skill_name": "other"})).await.expect(422);
    market.ask(&market.working, json!({"budget": 0.01})).await.expect(402);
    market.ask(&market.working, json!({"budget": 1000})).await.expect(402);
    let cancelled = market.pending().await;
    let path = format!("/registry/jobs/{cancelled}/cancel");
    market.hub.post(&path, Some(&market.asking.key), &json!({})).await.expect(200);
    for code in ["SKILL_MISMATCH", "BUDGET_INSUFFICIENT"] {
        let job = market.pending().await;
        market.report(&failure(&job, &market.working, Some(code))).await.expect(200);
    }
    market.pending().await;
    for agent in [&market.working, &gone] {
        assert_eq!(market.hub.score(agent).await, "50.0");
        assert_eq!(stats(&market.hub, agent).await, [0, 0, 0]);
    }
    for (code, score) in
        [("AGENT_OFFLINE", "45.5"), ("EXECUTION_ERROR", "41.0"), ("TRANSFER_FAILED", "36.5")]
    {
        let job = market.pending().await;
        market.report(&failure(&job, &market.working, Some(code))).await.expect(200);
        assert_eq!(market.hub.score(&market.working).await, score, "{code}");
    }
    market.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unusable_answer_counts_as_a_failure() {
    let market = Market::keyed(&[]).await;
    let worker = Worker::start(Behaviour::Say(500, "oops".to_owned())).await;
    let agent = market.endpoint(&worker.url).await;
    market.ask(&agent, json!({})).await.expect(502);
    assert_eq!(market.hub.score(&agent).await, "45.5");
    assert_eq!(stats(&market.hub, &agent).await, [1, 0, 1]);
    market.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_score_is_the_sum_of_its_stored_outcomes_and_survives_a_restart() {
    let market = Market::keyed(&[]).await;
    let helper = trader(&market.hub, "helper").await;
    for good in [true, true, false, true, false] {
        run(&market.hub, &market.asking, &helper, good).await;
        run(&market.hub, &helper, &market.working, good).await;
    }
    let Market { hub, working, .. } = market;
    let shown = (hub.score(&working).await, hub.score(&helper).await);
    let hub = hub.restart(rialto_hub::config::Profile::Serve, &[]).await;
    assert_eq!((hub.score(&working).await, hub.score(&helper).await), shown);
    for agent in [&working, &helper] {
        let fixture = hub.engine.with_world(|world| {
            let id = world.agent_by_alias(Protocol::new("registry"), &agent.id).expect("an agent");
            world.agent_state(id).cloned().expect("an agent state")
        });
        let mut outcomes =
            hub.engine.outcomes_of(fixture.last_outcome, 100).await.expect("readable").rows;
        outcomes.reverse();
        let mut standing = Standing::default();
        for (number, outcome) in (1..).zip(&outcomes) {
            assert_eq!(outcome.number, number);
            standing = standing.after(outcome.ok, outcome.counted, outcome.hirer_score);
            assert_eq!(outcome.score_after, standing.score);
        }
        assert_eq!(outcomes.len(), 5);
        assert_eq!(standing, fixture.standing);
    }
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_caller_can_set_a_score() {
    for market in Market::both(&[]).await {
        let job = market.pending().await;
        market.report(&success(&job, &market.working, "0.10")).await.expect(200);
        let id = &market.working.id;
        for base in ["/registry", ""] {
            for verdict in ["success", "failure"] {
                let path = format!(
                    "{base}/reputation/{id}/{verdict}?job_id={job}&contractor_reputation=100"
                );
                for key in
                    [None, Some(market.working.key.as_str()), Some(market.hub.operator.as_str())]
                {
                    let reply =
                        market.hub.post(&path, key, &json!({"score": 100})).await.expect(200);
                    assert_eq!(reply.at("/applied"), Value::Bool(false));
                    assert_eq!(digits(&reply.text, "score"), "51.0");
                    assert_eq!(reply.str("/agent_id"), *id);
                    assert!(!reply.str("/reason").is_empty());
                }
            }
            let unknown = format!("{base}/reputation/{}/success", fresh_id());
            market.hub.post(&unknown, None, &json!({})).await.expect(404);
        }
        let again = json!({"agent_id": id, "agent_name": "w", "owner_id": "acme", "reputation_score": 99.9,
            "score": 99.9, "skills": [{"skill_name": SKILL, "cost_per_call": 0.10, "reputation_score": 99.9}]});
        market.hub.post("/registry/register", Some(&market.working.key), &again).await.expect(200);
        assert_eq!(market.hub.score(&market.working).await, "51.0");
        market.stop().await;
    }
}

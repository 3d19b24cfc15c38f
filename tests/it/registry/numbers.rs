//! Amounts in and out: two decimals by value, never through a float (R5).

use serde_json::json;

use super::forms::{job, job_posts};
use crate::kit::{Agent, TestHub, assert_malformed, counted, digits, snapshot};

/// Valid amounts, and how they are shown.
const FINE: [(&str, &str); 22] = [
    ("0.1", "0.10"),
    ("0.10", "0.10"),
    ("1e-1", "0.10"),
    ("0.100", "0.10"),
    ("0.010E+1", "0.10"),
    ("0.29", "0.29"),
    ("0.57", "0.57"),
    ("1.15", "1.15"),
    ("4.35", "4.35"),
    ("12.00e-1", "1.20"),
    ("7", "7.00"),
    ("1E2", "100.00"),
    ("0", "0.00"),
    ("0.000", "0.00"),
    ("0.15000000000000002", "0.15"),
    ("0.7999999999999999", "0.80"),
    ("0.1000000000000000055511151231257827", "0.10"),
    ("0.300000001", "0.30"),
    ("-5.551115123125783e-17", "0.00"),
    ("0.1e-400", "0.00"),
    ("999999999.99", "999999999.99"),
    ("1000000000", "1000000000.00"),
];

/// Valid JSON, but not an amount.
const WRONG: [&str; 16] = [
    "0.005",
    "0.101",
    "1e-3",
    "-0.01",
    "-1",
    "\"0.10\"",
    "\"\"",
    "true",
    "[0.10]",
    "{}",
    "1e308",
    "1e400",
    "9007199254740993",
    "1000000000.01",
    "0.300000002",
    "-0.000000002",
];

/// Not valid JSON, though some programs print it.
const NO_JSON: [&str; 6] = ["NaN", "Infinity", "-Infinity", "01", ".5", "+1"];

fn long_numbers() -> [String; 2] {
    ["1".repeat(1_000), format!("0.{}", "1".repeat(998))]
}

fn priced(owner: &str, cost: &str) -> String {
    format!(
        r#"{{"agent_name":"n","owner_id":"{owner}","skills":[{{"skill_name":"s","cost_per_call":{cost}}}]}}"#
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_price_has_two_decimals_by_value_and_shows_them() {
    let hub = TestHub::serve(&[]).await;
    for (n, (given, shown)) in FINE.into_iter().enumerate() {
        let path = if n % 2 == 0 { "/registry/register" } else { "/register" };
        let reply = hub.post_text(path, None, &priced(&format!("o{n}"), given)).await.expect(201);
        let agent = hub
            .get(&format!("/registry/agents/{}", reply.str("/agent_id")), None)
            .await
            .expect(200);
        assert_eq!(digits(&agent.text, "cost_per_call"), shown, "{given}");
    }
    let before = snapshot(&hub).await;
    for wrong in WRONG.map(str::to_owned).into_iter().chain(long_numbers()) {
        for path in ["/registry/register", "/register"] {
            let reply = hub.post_text(path, None, &priced("new", &wrong)).await;
            assert_malformed(&reply, "/skills/0/cost_per_call");
            assert_eq!(reply.at("/error/example"), json!({"cost_per_call": 0.10}));
        }
        assert_eq!(counted(&hub), before.counted, "{wrong}");
    }
    for wrong in NO_JSON {
        let reply = hub.post_text("/registry/register", None, &priced("new", wrong)).await;
        assert_malformed(&reply, "");
        hub.post_text("/register", None, &priced("new", wrong)).await.expect(400);
    }
    let fine = hub.post_text("/register", None, &priced("new", "0.005")).await;
    assert_eq!(fine.str("/error_message"), "cost_per_call has more than 2 decimals");
    assert_eq!(snapshot(&hub).await, before);
    hub.stop().await;
}

/// An orchestrator with the maximum balance, and a free worker.
async fn rich(hub: &TestHub) -> (Agent, Agent) {
    let asking = hub.orchestrator("o1").await;
    let working = hub.agent("acme", "s", "0", None).await;
    hub.grant("o1", "1000000000").await;
    (asking, working)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_budget_has_two_decimals_by_value_and_is_held_to_the_cent() {
    let hub = TestHub::serve(&[]).await;
    let (asking, working) = rich(&hub).await;
    let ask = |budget: &str| format!(r#"{{"skill_name":"s","budget":{budget}}}"#);
    for (given, shown) in FINE {
        let reply = hub.post_text("/jobs", Some(&asking.key), &ask(given)).await.expect(202);
        assert_eq!(hub.balance("o1").await.1, shown, "{given}");
        assert_eq!(digits(&reply.text, "execution_cost"), "0.00");
        let cancel = format!("/jobs/{}/cancel", reply.str("/job_id"));
        hub.post(&cancel, Some(&asking.key), &json!({})).await.expect(200);
        assert_eq!(hub.balance("o1").await, ("1000000000.00".to_owned(), "0.00".to_owned()));
    }
    let before = snapshot(&hub).await;
    for wrong in WRONG.map(str::to_owned).into_iter().chain(long_numbers()) {
        for path in ["/registry/jobs", "/jobs", &format!("/registry/agents/{}/jobs", working.id)] {
            assert_malformed(
                &hub.post_text(path, Some(&asking.key), &ask(&wrong)).await,
                "/budget",
            );
        }
    }
    for wrong in NO_JSON {
        assert_malformed(&hub.post_text("/jobs", Some(&asking.key), &ask(wrong)).await, "");
    }
    assert_eq!(snapshot(&hub).await, before);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_highest_cost_has_two_decimals_by_value() {
    let hub = TestHub::serve(&[]).await;
    for (owner, price) in [("a", "0.00"), ("b", "0.10"), ("c", "0.29"), ("d", "4.35")] {
        hub.agent(owner, "s", price, None).await;
    }
    let within = |most: &str| {
        [0.0, 0.10, 0.29, 4.35].iter().filter(|p| **p <= most.parse().expect(most)).count()
    };
    for (given, shown) in FINE {
        let query = given.replace('+', "%2B");
        let body = format!(r#"{{"skill":"s","max_cost":{given}}}"#);
        for base in ["/registry/discover", "/discover"] {
            let by_get =
                hub.get(&format!("{base}?skill=s&max_cost={query}"), None).await.expect(200);
            let by_post = hub.post_text(base, None, &body).await.expect(200);
            assert_eq!(by_get.at("/total"), within(shown), "{given}");
            assert_eq!(by_post.text, by_get.text);
        }
    }
    for wrong in WRONG.map(str::to_owned).into_iter().chain(long_numbers()) {
        let query = wrong.replace('"', "%22").replace(['[', ']', '{', '}'], "%5B");
        for base in ["/registry/discover", "/discover"] {
            let by_get = hub.get(&format!("{base}?skill=s&max_cost={query}"), None).await;
            assert_malformed(&by_get, "?max_cost");
            let body = format!(r#"{{"skill":"s","max_cost":{wrong}}}"#);
            assert_malformed(&hub.post_text(base, None, &body).await, "/max_cost");
        }
    }
    for wrong in NO_JSON {
        let query = wrong.replace('+', "%2B");
        assert_malformed(
            &hub.get(&format!("/discover?skill=s&max_cost={query}"), None).await,
            "?max_cost",
        );
    }
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_amount_the_hub_shows_has_two_decimals() {
    let hub = TestHub::serve(&[]).await;
    let (asking, working) = rich(&hub).await;
    hub.agent("globex", "t", "3", None).await;
    let mut body = job(&asking, "s");
    body["budget"] = json!(5);
    let (path, body) = job_posts(&working, &body)[0].clone();
    let asked = hub.post(&path, Some(&asking.key), &body).await.expect(202);
    let transfer = json!({"from_owner": "o1", "to_owner": "acme", "amount": 2.5});
    let paid = hub.post("/transfer", Some(&asking.key), &transfer).await.expect(200);
    let found = hub.get("/discover?skill=t", None).await.expect(200);
    let work = hub.get(&format!("/registry/agents/{}/jobs", working.id), Some(&working.key)).await;
    let reported = hub.report(&working, &asked.str("/job_id"), "SUCCESS", "0").await.expect(200);
    let economy = hub.get("/economy", Some(&hub.operator)).await.expect(200);
    let audit = hub.get("/audit", Some(&hub.operator)).await.expect(200);
    for (text, member, shown) in [
        (&asked.text, "execution_cost", "0.00"),
        (&paid.text, "amount", "2.50"),
        (&paid.text, "sender_balance", "999999992.50"),
        (&found.text, "cost_per_call", "3.00"),
        (&work.text, "budget", "5.00"),
        (&reported.text, "paid", "0.00"),
        (&economy.text, "total_volume", "2.50"),
        (&economy.text, "acme", "2.50"),
        (&audit.text, "amount", "2.50"),
    ] {
        assert_eq!(digits(text, member), shown, "{text}");
    }
    hub.stop().await;
}

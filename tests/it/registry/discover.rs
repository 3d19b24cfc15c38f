//! Discovery: its response, its filters, its pages (R19–R21, R23–R27).

use serde_json::{Value, json};

use super::forms::{both_modes, registration, with};
use crate::kit::{Behaviour, TestHub, Worker, assert_later, assert_malformed, digits, eventually};

const PATHS: [&str; 2] = ["/registry/discover", "/discover"];

/// Sends the query in all four ways, which must agree, and returns the response.
async fn ask(hub: &TestHub, query: &str, body: &Value) -> crate::kit::Reply {
    let reply = hub.get(&format!("/registry/discover?{query}"), None).await.expect(200);
    assert_eq!(hub.get(&format!("/discover?{query}"), None).await.text, reply.text);
    for path in PATHS {
        assert_eq!(hub.post(path, None, body).await.text, reply.text, "{path} {body}");
    }
    reply
}

/// Refused in all four ways, each naming the parameter.
async fn refuse(hub: &TestHub, query: &str, body: &Value, name: &str) {
    for path in PATHS {
        let by_get = hub.get(&format!("{path}?{query}"), None).await;
        assert_malformed(&by_get, &format!("?{name}"));
        let shown = by_get.str("/error/example");
        let example = shown.rsplit_once('?').map(|(_, query)| query.to_owned()).expect("a query");
        let example =
            if example.contains("skill=") { example } else { format!("skill=s&{example}") };
        hub.get(&format!("{path}?{example}"), None).await.expect(200);
        let by_post = hub.post(path, None, body).await;
        assert_malformed(&by_post, &format!("/{name}"));
        let better = crate::kit::repaired(body, &by_post);
        hub.post(path, None, &better).await.expect(200);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn discovery_answers_with_the_six_fields_of_the_spec_and_ours() {
    for hub in both_modes().await {
        let agent = hub.enrol(&registration("acme"), None).await;
        let query = "skill=analyze_text&min_reputation=40&max_cost=0.20";
        let body = json!({"skill": "analyze_text", "min_reputation": 40, "max_cost": 0.20});
        let reply = ask(&hub, query, &body).await;
        let one = reply.at("/agents/0");
        let home = format!("{}/registry/agents/{}", hub.url, agent.id);
        assert_eq!(one["agent_id"], agent.id.as_str());
        assert_eq!(one["agent_name"], "Text-Analyst-3000");
        assert_eq!(one["api_endpoint"], "https://agent.example/jobs");
        assert_eq!(one["skill"], json!({"skill_name": "analyze_text", "cost_per_call": 0.10}));
        assert_eq!(one["reputation_score"], 50.0);
        assert_eq!(one["status"], "online");
        assert_eq!(one["owner_id"], "acme");
        assert_eq!(one["skills"], registration("acme")["skills"]);
        assert_eq!(one["hub_endpoint"], home.as_str());
        assert_eq!(one["protocol"], "registry");
        assert_eq!(one["jobs_settled"], 0);
        assert!(one["registered_at"].is_string(), "{one}");
        assert_eq!(one["last_heartbeat"], one["registered_at"], "its last activity was then");
        assert_eq!(reply.at("/total"), 1);
        assert_eq!(reply.json().as_object().expect("an object").len(), 2);
        assert_eq!(digits(&reply.text, "cost_per_call"), "0.10");
        let members = |value: &Value| value.as_object().expect("an object").len();
        let alone =
            hub.get(&format!("/registry/agents/{}", agent.id), None).await.expect(200).json();
        assert!(alone.get("skill").is_none());
        assert_eq!(members(&alone) + 1, members(&one));
        hub.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_skill_shown_is_the_one_asked_for() {
    let hub = TestHub::serve(&[]).await;
    let skills = json!([{"skill_name": "first", "cost_per_call": 0.10}, {"skill_name": "second", "cost_per_call": 0.20}]);
    hub.enrol(&with(&registration("acme"), "/skills", Some(skills)), None).await;
    for (name, cost) in [("first", 0.10), ("second", 0.20)] {
        let reply = ask(&hub, &format!("skill={name}"), &json!({"skill": name})).await;
        let wanted = json!({"skill_name": name, "cost_per_call": cost});
        assert_eq!(reply.at("/agents/0/skill"), wanted);
        assert_eq!(reply.at("/agents/0/skills").as_array().map(Vec::len), Some(2));
    }
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_minimum_reputation_includes_agents_with_exactly_that() {
    let hub = TestHub::serve(&[]).await;
    let worker = Worker::start(Behaviour::Succeed(json!({}), "0")).await;
    let asking = hub.orchestrator("o1").await;
    let better = hub.agent("better", "s", "0", Some(&worker.url)).await;
    hub.agent("new", "s", "0", Some(&worker.url)).await;
    hub.hire(&asking, &better, "s", "0").await.expect(200);
    for (least, total) in [
        ("0", 2),
        ("50", 2),
        ("50.0", 2),
        ("5e1", 2),
        ("50.01", 1),
        ("50.0000001", 1),
        ("51", 1),
        ("51.000001", 0),
        ("66.66666666666667", 0),
        ("100", 0),
    ] {
        let number: Value = serde_json::from_str(least).expect("a number");
        let reply =
            hub.get(&format!("/discover?skill=s&min_reputation={least}"), None).await.expect(200);
        assert_eq!(reply.at("/total"), total, "{least}");
        let body = format!(r#"{{"skill":"s","min_reputation":{least}}}"#);
        assert_eq!(
            hub.post_text("/registry/discover", None, &body).await.text,
            reply.text,
            "{number}"
        );
    }
    let all = ask(&hub, "skill=s", &json!({"skill": "s", "min_reputation": null})).await;
    assert_eq!(all.at("/total"), 2, "the default is 0");
    for wrong in ["-1", "-0.1", "100.1", "101", "1e3", "1e400"] {
        let query = format!("skill=s&min_reputation={wrong}");
        for path in PATHS {
            assert_malformed(&hub.get(&format!("{path}?{query}"), None).await, "?min_reputation");
            let body = format!(r#"{{"skill":"s","min_reputation":{wrong}}}"#);
            assert_malformed(&hub.post_text(path, None, &body).await, "/min_reputation");
        }
    }
    for (query, value) in
        [("NaN", json!("NaN")), ("high", json!("high")), ("", json!("")), ("4O", json!([40]))]
    {
        let body = json!({"skill": "s", "min_reputation": value});
        refuse(&hub, &format!("skill=s&min_reputation={query}"), &body, "min_reputation").await;
    }
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_highest_cost_looks_at_the_skill_asked_for() {
    let hub = TestHub::serve(&[]).await;
    let skills = json!([{"skill_name": "cheap", "cost_per_call": 0.10}, {"skill_name": "dear", "cost_per_call": 5}]);
    hub.enrol(&with(&registration("acme"), "/skills", Some(skills)), None).await;
    for (skill, most, total) in [
        ("cheap", 0.10, 1),
        ("cheap", 0.09, 0),
        ("dear", 0.10, 0),
        ("dear", 4.99, 0),
        ("dear", 5.0, 1),
    ] {
        let body = json!({"skill": skill, "max_cost": most});
        let reply = ask(&hub, &format!("skill={skill}&max_cost={most}"), &body).await;
        assert_eq!(reply.at("/total"), total, "{skill} {most}");
    }
    assert_eq!(
        ask(&hub, "skill=dear", &json!({"skill": "dear"})).await.at("/total"),
        1,
        "no limit by default"
    );
    for (query, value) in
        [("-1", json!(-1)), ("-0.01", json!(-0.01)), ("cheap", json!("cheap")), ("", json!(""))]
    {
        let body = json!({"skill": "dear", "max_cost": value});
        refuse(&hub, &format!("skill=dear&max_cost={query}"), &body, "max_cost").await;
    }
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_skill_must_be_named_and_may_be_one_that_no_agent_has() {
    let hub = TestHub::serve(&[]).await;
    hub.enrol(&registration("acme"), None).await;
    for (query, body) in
        [("", json!({})), ("skill=", json!({"skill": ""})), ("min_jobs=0", json!({"skill": null}))]
    {
        refuse(&hub, query, &body, "skill").await;
    }
    refuse(&hub, "skill=a&skill=b", &json!({"skill": ["a", "b"]}), "skill").await;
    for nobody in ["none", "ANALYZE_TEXT", "analyze_tex", "%E7%95%8C"] {
        let reply = hub.get(&format!("/discover?skill={nobody}"), None).await.expect(200);
        assert_eq!(reply.json(), json!({"agents": [], "total": 0}), "{nobody}");
    }
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_is_a_part_of_all_and_the_total_counts_all() {
    let hub = TestHub::serve(&[]).await;
    let first = hub.agent("acme", "s", "0", None).await;
    let body = with(
        &registration("acme"),
        "/skills",
        Some(json!([{"skill_name": "s", "cost_per_call": 0}])),
    );
    for _ in 0..60 {
        hub.enrol(&body, Some(&first.key)).await;
    }
    let page = async |query: &str, body: Value| {
        let reply = ask(&hub, query, &body).await;
        assert_eq!(reply.at("/total"), 61, "{query}");
        let ids: Vec<Value> = reply.at("/agents").as_array().expect("a list").clone();
        ids.into_iter().map(|one| one["agent_id"].clone()).collect::<Vec<_>>()
    };
    let all = page("skill=s&limit=200", json!({"skill": "s", "limit": 200})).await;
    assert_eq!(all.len(), 61);
    assert_eq!(page("skill=s", json!({"skill": "s"})).await, all[..50], "50 by default");
    let middle =
        page("skill=s&limit=5&offset=7", json!({"skill": "s", "limit": 5, "offset": 7})).await;
    assert_eq!(middle, all[7..12]);
    let end =
        page("skill=s&limit=50&offset=60", json!({"skill": "s", "limit": 50, "offset": 60})).await;
    assert_eq!(end, all[60..]);
    assert!(page("skill=s&offset=61", json!({"skill": "s", "offset": 61})).await.is_empty());
    for (name, wrong) in [
        ("limit", json!(0)),
        ("limit", json!(201)),
        ("limit", json!(-1)),
        ("limit", json!("ten")),
        ("limit", json!(1.5)),
        ("offset", json!(-1)),
        ("offset", json!("x")),
        ("min_jobs", json!(-1)),
        ("min_jobs", json!("some")),
    ] {
        let text = wrong.as_str().map_or_else(|| wrong.to_string(), str::to_owned);
        let body = with(&json!({"skill": "s"}), &format!("/{name}"), Some(wrong));
        refuse(&hub, &format!("skill=s&{name}={text}"), &body, name).await;
    }
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_offline_is_left_out_of_discovery_and_says_so_when_looked_at() {
    let brief = [("registry.heartbeat_ttl", "200ms")];
    for hub in [TestHub::serve(&brief).await, TestHub::open(&brief).await] {
        let asking = hub.orchestrator("o1").await;
        let there = hub.agent("there", "s", "0", Some("https://agent.example")).await;
        let silent = hub.agent("silent", "s", "0", None).await;
        let gone = hub.agent("gone", "s", "0", Some("https://agent.example")).await;
        let path = format!("/registry/agents/{}", gone.id);
        hub.call("DELETE", &path, Some(&gone.key), None).await.expect(200);
        hub.get(&path, None).await.expect(404);
        let status =
            async |id: &str| hub.get(&format!("/registry/agents/{id}"), None).await.str("/status");
        eventually(async || status(&silent.id).await == "offline").await;
        assert_eq!(status(&there.id).await, "online");
        let found = ask(&hub, "skill=s", &json!({"skill": "s"})).await;
        assert_eq!(found.at("/total"), 1);
        assert_eq!(found.str("/agents/0/agent_id"), there.id);
        assert_eq!(found.str("/agents/0/status"), "online");
        assert_later(&hub.hire(&asking, &silent, "s", "0").await, 503, "AGENT_OFFLINE", 30);
        // Any call with its key counts as activity.
        eventually(async || {
            hub.get("/economy", Some(&silent.key)).await.expect(200);
            hub.get("/discover?skill=s", None).await.at("/total") == 2
        })
        .await;
        hub.stop().await;
    }
}

//! The lists of all agents (R13, and `GET /a2a/agents`).

use serde_json::{Value, json};

use super::kit::{TaskWorker, text_message};
use crate::kit::TestHub;

fn names(list: &Value) -> Vec<String> {
    let all = list["agents"].as_array().expect("agents").iter();
    all.map(|one| one["name"].as_str().expect("a name").to_owned()).collect()
}

fn name(worker: &TaskWorker<'_>) -> String {
    worker.base.rsplit_once('/').expect("a name").1.to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_catalog_has_an_entry_for_every_agent_that_can_be_hired() {
    let hub = TestHub::serve(&[]).await;
    let skills = json!([{"skill_name": "route", "description": "Plans routes", "cost_per_call": 0.25},
        {"skill_name": "sum", "cost_per_call": 0}]);
    let worker = TaskWorker::with_skills(&hub, "Geo Planner", skills).await;
    hub.join("alice@chorus").await;
    hub.a2a_client("mere-client").await;
    let gone = hub.a2a_client("gone").await;
    hub.call("DELETE", "/a2a/agents/gone", Some(&gone.key), None).await.expect(200);
    let reply = hub.get("/.well-known/ai-catalog.json", None).await.expect(200);
    assert_eq!(reply.header("content-type"), Some("application/ai-catalog+json"));
    let host = hub.url.trim_start_matches("http://");
    assert_eq!(reply.str("/specVersion"), "1.0");
    assert_eq!(reply.at("/host"), json!({"displayName": host}));
    let entries = reply.at("/entries");
    let entries = entries.as_array().expect("entries");
    assert_eq!(entries.len(), 2, "{}", reply.text);
    let mut first = entries[0].clone();
    let updated = first["updatedAt"].take();
    assert!(updated.as_str().is_some_and(|time| time.ends_with('Z')), "{updated}");
    let expected = json!({
        "identifier": format!("urn:air:{host}:registry:{}", name(&worker)),
        "displayName": "Geo Planner", "updatedAt": null,
        "mediaType": "application/a2a-agent-card+json", "type": "application/a2a-agent-card+json",
        "url": format!("{}{}/.well-known/agent-card.json", hub.url, worker.base),
        "description": "route, sum", "tags": ["route", "sum"],
    });
    assert_eq!(first, expected);
    let url = first["url"].as_str().expect("a URL").trim_start_matches(&hub.url).to_owned();
    assert_eq!(hub.get(&url, None).await.expect(200).str("/name"), "Geo Planner");
    assert_eq!(entries[1]["displayName"], "alice");
    // A registration that changes something has another time.
    hub.pass(rialto_core::time::Millis::seconds(2));
    let update = json!({"agent_id": worker.agent.id, "agent_name": "Geo Planner 2",
        "owner_id": worker.agent.owner, "skills": [{"skill_name": "sum", "cost_per_call": 0}]});
    hub.post("/registry/register", Some(&worker.agent.key), &update).await.expect(200);
    let reply = hub.get("/.well-known/ai-catalog.json", None).await.expect(200);
    assert!(reply.str("/entries/0/updatedAt").as_str() > updated.as_str().expect("a time"));
    hub.get("/.well-known/ai-catalog.json?page=x", None).await.expect(400);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_agents_are_a_page_and_the_next_one_is_an_entry() {
    let hub = TestHub::serve(&[]).await;
    for number in 0..1_003 {
        hub.join(&format!("agent-{number}@chorus")).await;
    }
    let first = hub.get("/.well-known/ai-catalog.json", None).await.expect(200);
    let entries = first.at("/entries");
    let entries = entries.as_array().expect("entries");
    assert_eq!(entries.len(), 1_001);
    let next = entries.last().expect("an entry");
    assert_eq!(next["mediaType"], "application/ai-catalog+json");
    assert_eq!(next["type"], "application/ai-catalog+json");
    let url = next["url"].as_str().expect("a URL").trim_start_matches(&hub.url).to_owned();
    assert!(url.starts_with("/.well-known/ai-catalog.json?page="), "{url}");
    let second = hub.get(&url, None).await.expect(200);
    let rest = second.at("/entries");
    let rest: Vec<&Value> =
        rest.as_array().expect("entries").iter().map(|one| &one["displayName"]).collect();
    assert_eq!(rest, ["agent-1000", "agent-1001", "agent-1002"]);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn agents_are_listed_in_pages_and_can_be_narrowed() {
    let hub = TestHub::open(&[]).await;
    hub.a2a_client("mere-client").await;
    let route =
        json!([{"skill_name": "route", "description": "Plans routes", "cost_per_call": 0.25}]);
    let one = TaskWorker::with_skills(&hub, "Walker", route.clone()).await;
    let two = TaskWorker::with_skills(&hub, "Driver", route).await;
    let sum = TaskWorker::join(&hub, "sum", "0").await;
    hub.join("alice@chorus").await;
    let alice = hub.a2a_name("relay", "alice@chorus");
    // Callers without a key are no agent that can be hired.
    hub.begin(&sum.base, "", text_message("m-1", "hi")).await;
    let list =
        async |query: &str| hub.get(&format!("/a2a/agents{query}"), None).await.expect(200).json();
    let all = [name(&one), name(&two), name(&sum), alice.clone()];
    assert_eq!(names(&list("").await), all);
    for (query, expected) in [
        ("?skill=route", vec![&all[0], &all[1]]),
        ("?text=ROUTES", vec![&all[0], &all[1]]),
        ("?text=plans+driver", vec![&all[1]]),
        ("?text=alice", vec![&all[3]]),
        ("?text=alice+dances", vec![]),
        ("?protocol=relay", vec![&all[3]]),
        ("?protocol=clara", vec![]),
        ("?skill=&text=&protocol=", all.iter().collect()),
    ] {
        let found = names(&list(query).await);
        assert_eq!(found.iter().collect::<Vec<_>>(), expected, "{query}");
    }
    let agent = list("?skill=route&limit=1").await["agents"][0].clone();
    let expected = json!({"name": name(&one), "description": "Plans routes",
        "card": format!("{}{}/.well-known/agent-card.json", hub.url, one.base),
        "protocol": "registry", "skill": "route", "price": "0.25", "presence": "ready"});
    assert_eq!(agent, expected);
    // Pages.
    let (mut seen, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = list(&format!("?limit=3&cursor={cursor}")).await;
        seen.extend(names(&page));
        match page.get("next_cursor").and_then(Value::as_str) {
            Some(next) => cursor = next.to_owned(),
            None => break,
        }
    }
    assert_eq!(seen, all);
    for bad in ["?limit=0", "?limit=201", "?limit=x", "?cursor=x", "?cursor=-1"] {
        let reply = hub.get(&format!("/a2a/agents{bad}"), None).await.expect(400);
        let text = reply.str("/error/message");
        assert!(text.starts_with("limit must") || text.starts_with("cursor must"), "{text}");
    }
    hub.stop().await;
}

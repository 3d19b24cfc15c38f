//! The directory: its entries, its search, and its pages (sections 2.1, 2.4).

use std::collections::BTreeSet;

use rialto_core::time::Millis;
use serde_json::{Value, json};
use uuid::Uuid;

use super::kit::{Hub, assert_error, assert_violation, capability, fresh_id, identity};
use super::spoil::put;

/// Ids on a page.
fn ids(page: &Value) -> Vec<String> {
    let agents = page["agents"].as_array().expect("a list");
    agents.iter().map(|agent| agent["agent_id"].as_str().expect("an id").to_owned()).collect()
}

async fn found(hub: &Hub, query: &str) -> Vec<String> {
    ids(&hub.get(&format!("/openclaw/agents?{query}"), None).await.expect(200).json())
}

/// An agent with one capability of this name and category.
async fn node(hub: &Hub, name: &str, category: &str) -> String {
    let capabilities = json!({"input_schemas": {}, "output_schemas": {},
        "advertised_capabilities": [capability(name, json!({"category": category}))]});
    let body = put(&identity("listed", hub.now()), "/capabilities", Some(capabilities));
    hub.publish(&body).await.id
}

#[tokio::test(flavor = "multi_thread")]
async fn agents_are_found_by_capability_category_and_status() {
    let hub = Hub::serve(&[]).await;
    let trends = node(&hub, "find", "trend_analysis").await;
    let drinks = node(&hub, "find", "trend_consumption").await;
    let writes = node(&hub, "write", "content_generation").await;
    assert_eq!(found(&hub, "").await, [&trends, &drinks, &writes].map(Clone::clone));
    assert_eq!(found(&hub, "capability=write").await, [writes.as_str()]);
    assert_eq!(found(&hub, "category=trend_analysis").await, [trends.as_str()]);
    let both: BTreeSet<String> = found(&hub, "capability=find").await.into_iter().collect();
    assert_eq!(both, BTreeSet::from([trends.clone(), drinks.clone()]));
    assert_eq!(found(&hub, "capability=find&category=trend_consumption").await, [drinks]);
    assert_eq!(found(&hub, "capability=write&category=trend_analysis").await, [""; 0]);
    assert_eq!(found(&hub, "capability=nothing").await, [""; 0]);
    assert_eq!(found(&hub, "category=content_validation").await, [""; 0]);
    assert_eq!(found(&hub, "status=idle").await.len(), 3);
    assert_eq!(found(&hub, "status=busy").await, [""; 0]);
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_offers_nothing_has_no_identity_and_is_not_listed() {
    let hub = Hub::serve(&[]).await;
    let boss = hub.orchestrator("acme").await;
    let worker = hub.node("worker").await;
    assert_eq!(found(&hub, "").await, [worker.id.as_str()]);
    assert_eq!(found(&hub, "status=idle").await, [worker.id.as_str()]);
    let alias = hub.engine.with_world(|world| {
        let id = world.agent_by_alias(rialto_protocols::registry::ID, &boss.id).expect("an agent");
        world.alias_of(id, rialto_protocols::openclaw::ID).expect("a name").to_owned()
    });
    let path = format!("/openclaw/agents/{alias}");
    let reply = hub.get(&path, None).await;
    assert_error(&reply, 404, "NOT_FOUND");
    assert!(reply.str("/error/message").contains("offers no capability"), "{}", reply.text);
    for tail in ["status", "reputation"] {
        let shown = hub.get(&format!("{path}/{tail}"), None).await.expect(200);
        assert_eq!(shown.str("/agent_id"), alias);
    }
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_status_is_the_one_that_counts() {
    let hub = Hub::serve(&[]).await;
    let [works, says, broken, away] = [
        hub.node("works").await,
        hub.node("says").await,
        hub.node("broken").await,
        hub.node("away").await,
    ];
    hub.accepted(&says, &works, json!({})).await;
    hub.report(&says, "busy", json!({"active_tasks": 4})).await.expect(200);
    let error = json!({"error_code": "X", "error_message": "broke", "error_type": "transient"});
    hub.report(&broken, "error", error).await.expect(200);
    let until = json!({"maintenance_until": hub.time(60_000)});
    hub.report(&away, "maintenance", until).await.expect(200);
    assert_eq!(found(&hub, "status=busy").await, [works.id.clone(), says.id.clone()]);
    assert_eq!(found(&hub, "status=error").await, [broken.id]);
    assert_eq!(found(&hub, "status=maintenance").await, [away.id]);
    assert_eq!(found(&hub, "status=idle").await, [""; 0]);
    let entry = hub.entry(&works.id).await;
    assert_eq!(entry["active_collaborations"], 1);
    let active = |entry: &Value| entry["status"]["status_details"]["active_tasks"].clone();
    assert_eq!((&entry["status"]["current_status"], active(&entry)), (&json!("busy"), json!(1)));
    let entry = hub.entry(&says.id).await;
    assert_eq!((&entry["active_collaborations"], active(&entry)), (&json!(0), json!(4)));
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_leads_to_the_next_and_every_agent_is_on_exactly_one() {
    let hub = Hub::serve(&[]).await;
    let mut all = Vec::new();
    for _ in 0..7 {
        all.push(node(&hub, "sum", "content_generation").await);
    }
    let gone = all.remove(3);
    hub.call("DELETE", &format!("/openclaw/agents/{gone}"), Some(&hub.operator), None)
        .await
        .expect(200);
    for (filter, limit) in [
        ("", 2),
        ("capability=sum&", 2),
        ("", 1),
        ("capability=sum&", 5),
        ("category=content_generation&", 3),
    ] {
        let (mut seen, mut cursor) = (Vec::new(), String::new());
        loop {
            let path = format!("/openclaw/agents?{filter}limit={limit}{cursor}");
            let page = hub.get(&path, None).await.expect(200).json();
            let here = ids(&page);
            assert!(here.len() <= limit, "{page}");
            seen.extend(here);
            let Some(next) = page["next_cursor"].as_str() else { break };
            cursor = format!("&cursor={next}");
        }
        let whole: BTreeSet<&String> = seen.iter().collect();
        assert_eq!((seen.len(), whole), (6, all.iter().collect()), "{filter} {limit}");
    }
    assert_eq!(
        hub.get("/openclaw/agents?limit=200", None).await.expect(200).at("/next_cursor"),
        Value::Null
    );
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn questions_that_make_no_sense_are_told_so() {
    let hub = Hub::serve(&[]).await;
    for (query, says) in [
        (
            "category=cooking",
            "category must be one of trend_consumption, content_generation, content_validation, trend_analysis",
        ),
        ("status=asleep", "status must be one of idle, busy, error, maintenance"),
    ] {
        assert_violation(&hub.get(&format!("/openclaw/agents?{query}"), None).await, says);
    }
    for query in ["limit=0", "limit=201", "limit=many", "cursor=-1", "cursor=x", "limit=1&limit=2"]
    {
        let reply = hub.get(&format!("/openclaw/agents?{query}"), None).await;
        assert_error(&reply, 400, "VALIDATION_ERROR");
    }
    for name in [fresh_id(), "nonsense".to_owned(), "%00".to_owned()] {
        for tail in ["", "/status", "/reputation"] {
            let path = format!("/openclaw/agents/{name}{tail}");
            assert_error(&hub.get(&path, None).await, 404, "NOT_FOUND");
        }
    }
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_silent_stays_on_the_list_and_is_marked() {
    let hub = Hub::serve(&[]).await;
    let node = hub.node("node").await;
    hub.pass(Millis::seconds(91));
    let page = hub.get("/openclaw/agents?status=idle", None).await.expect(200);
    assert_eq!(
        (page.at("/agents/0/agent_id"), page.at("/agents/0/stale")),
        (json!(node.id), json!(true))
    );
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_hub_says_who_it_is_and_how_many_it_has() {
    let hub = Hub::serve(&[]).await;
    let health = hub.get("/openclaw/health", None).await.expect(200);
    assert_eq!((health.str("/status"), health.at("/agents")), ("ok".to_owned(), json!(0)));
    let id = health.str("/hub_id");
    assert!(id.parse::<Uuid>().is_ok(), "{id}");
    hub.node("node").await;
    let gone = hub.node("gone").await;
    let path = format!("/openclaw/agents/{}", gone.id);
    hub.call("DELETE", &path, Some(&gone.key), None).await.expect(200);
    assert_eq!(hub.get("/openclaw/health", None).await.expect(200).at("/agents"), 1);
    // The hub keeps its identity over a restart; another hub has another one.
    let hub = hub.restart(&[]).await;
    assert_eq!(hub.get("/openclaw/health", None).await.expect(200).str("/hub_id"), id);
    let other = Hub::serve(&[]).await;
    assert_ne!(other.get("/openclaw/health", None).await.expect(200).str("/hub_id"), id);
    // This protocol has no routes at the root.
    for path in ["/identity", "/status", "/collaborations", "/stream"] {
        hub.get(path, None).await.expect(404);
    }
    hub.0.stop().await;
    other.0.stop().await;
}

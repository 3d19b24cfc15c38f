//! The hub's identity and its agent directory (sections 2.1 and 2.6, R23).

use rialto_protocols::agora::MessageType;
use serde_json::{Value, json};

use super::kit::{Hub, Key, assert_error};
use super::pen::state;
use super::replay::remove;

const SEARCH: &str = "agora:search:v1";

/// Keys of the agents on a page.
fn listed(page: &Value) -> Vec<String> {
    let agents = page["agents"].as_array().expect("a list");
    agents.iter().map(|agent| agent["id"].as_str().expect("a key").to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_hub_says_which_protocol_it_speaks_who_it_is_and_where() {
    let hub = Hub::serve(&[]).await;
    let about = hub.get("/agora", None).await.expect(200).json();
    assert_eq!(about["protocol"], "agora/1.0");
    assert_eq!(about["window_ms"], 60_000);
    let did = about["hub"].as_str().expect("a key").to_owned();
    assert!(did.starts_with("did:key:z6Mk"));
    for (name, path) in [
        ("envelopes", "/agora/envelopes"),
        ("agents", "/agora/agents"),
        ("inbox", "/agora/inbox"),
        ("messages", "/agora/messages"),
        ("websocket", "/agora/ws"),
    ] {
        let url = about["endpoints"][name].as_str().expect("an address");
        assert!(url.ends_with(path), "{about}");
    }
    // The hub keeps its key over a restart; another hub has another key.
    let hub = hub.restart(&[]).await;
    assert_eq!(hub.hub_key().await.did(), did);
    assert_ne!(Hub::serve(&[]).await.hub_key().await.did(), did);
    // This protocol has no routes at the root.
    for path in ["/envelopes", "/ws", "/requests/r"] {
        hub.get(path, None).await.expect(404);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_entry_shows_what_its_agent_said_about_itself() {
    let hub = Hub::serve(&[]).await;
    let bob = Key::of(2);
    let capabilities = json!([
        "agora:time:v1",
        {"resource": SEARCH, "price": 0.5, "description": "looks things up"},
        {"resource": "agora:free:v1", "price": 0},
    ]);
    hub.hello(&bob, json!({"name": "Bob's búsqueda", "capabilities": capabilities})).await;
    let entry = hub.get(&format!("/agora/agents/{}", bob.did()), None).await.expect(200).json();
    let shown = json!({"id": bob.did(), "name": "Bob's búsqueda", "status": "idle",
    "protocol": "agora", "held_by": null, "capabilities": [
        {"resource": "agora:time:v1"},
        {"resource": SEARCH, "price": 0.5, "description": "looks things up"},
        {"resource": "agora:free:v1", "price": 0},
    ]});
    assert_eq!(entry, shown);
    assert_eq!(hub.get("/agora/agents", None).await.expect(200).at("/agents"), json!([shown]));
    // A later HELLO changes only the members it names.
    hub.hello(&bob, json!({"capabilities": []})).await;
    let entry = hub.get(&format!("/agora/agents/{}", bob.did()), None).await.expect(200);
    assert_eq!(
        (entry.str("/name"), entry.at("/capabilities")),
        (shown["name"].as_str().expect("a name").to_owned(), json!([]))
    );
    let found = hub.get(&format!("/agora/agents?resource={SEARCH}"), None).await.expect(200);
    assert_eq!(found.at("/agents"), json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn agents_of_other_protocols_are_listed_under_keys_the_hub_holds() {
    let hub = Hub::serve(&[]).await;
    let worker = hub.agent("acme", "analyze_text", "0.10", None).await;
    let page = hub.get("/agora/agents", None).await.expect(200);
    let entry = page.at("/agents/0");
    assert_eq!(entry["protocol"], "registry");
    assert_eq!(entry["native_id"], worker.id);
    assert_eq!(entry["held_by"], hub.hub_key().await.did());
    assert_eq!(
        entry["capabilities"],
        json!([{"resource": "agora:analyze_text:v1", "price": 0.10}])
    );
    let id = entry["id"].as_str().expect("a key");
    assert!(id.starts_with("did:key:z6Mk"));
    assert_eq!(hub.get(&format!("/agora/agents/{id}"), None).await.expect(200).json(), entry);
    // The agent's registry id is not valid here.
    assert_error(&hub.get(&format!("/agora/agents/{}", worker.id), None).await, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cursor_leads_to_the_rest_and_only_where_there_is_one() {
    let hub = Hub::serve(&[]).await;
    let keys: Vec<Key> = (1..=7).map(Key::of).collect();
    for (at, key) in keys.iter().enumerate() {
        let capabilities = if at < 5 { json!([SEARCH]) } else { json!([]) };
        hub.hello(key, json!({"capabilities": capabilities})).await;
    }
    for (query, count) in [("", 7), (&*format!("resource={SEARCH}&"), 5)] {
        let (mut all, mut cursor) = (Vec::new(), String::new());
        loop {
            let path = format!("/agora/agents?{query}limit=3{cursor}");
            let page = hub.get(&path, None).await.expect(200).json();
            let here = listed(&page);
            assert!(here.len() <= 3);
            all.extend(here);
            let Some(next) = page["next_cursor"].as_str() else { break };
            cursor = format!("&cursor={next}");
        }
        let expected: Vec<&str> = keys[..count].iter().map(Key::did).collect();
        assert_eq!(all, expected);
    }
    let before = state(&hub).await;
    for (query, field) in [
        ("limit=0", "?limit"),
        ("limit=201", "?limit"),
        ("limit=x", "?limit"),
        ("cursor=-1", "?cursor"),
        ("cursor=x", "?cursor"),
    ] {
        let reply = hub.get(&format!("/agora/agents?{query}"), None).await;
        assert_error(&reply, 400);
        assert_eq!(reply.str("/payload/field"), field, "{}", reply.text);
    }
    assert_eq!(state(&hub).await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_left_or_was_never_there_is_not_shown() {
    let hub = Hub::serve(&[]).await;
    let (alice, bob) = (Key::of(1), Key::of(2));
    hub.provider(&alice, SEARCH, None).await;
    hub.provider(&bob, SEARCH, None).await;
    remove(&hub, &alice).await;
    assert_error(&hub.get(&format!("/agora/agents/{}", alice.did()), None).await, 404);
    for nobody in [Key::of(9).did(), "nobody", "%FF", &hub.hub_key().await.did()] {
        assert_error(&hub.get(&format!("/agora/agents/{nobody}"), None).await, 404);
    }
    for query in ["", &format!("?resource={SEARCH}")] {
        let page = hub.get(&format!("/agora/agents{query}"), None).await.expect(200).json();
        assert_eq!(listed(&page), [bob.did()]);
    }
    // A HELLO with the same key lists the agent again.
    hub.tell(&alice.sign(MessageType::Hello, &json!({}))).await.expect(200);
    hub.get(&format!("/agora/agents/{}", alice.did()), None).await.expect(200);
}

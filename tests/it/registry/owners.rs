//! Ownership of agents: who may update one, and who may add another to its owner (R16–R18).

use rialto_core::alias::Protocol;
use rialto_core::time::Timestamp;
use serde_json::{Value, json};

use super::forms::{AGENT_ID, both_modes, registration, with};
use crate::kit::{Agent, Behaviour, TestHub, Worker, assert_refused, digits, snapshot};

const PATHS: [&str; 2] = ["/registry/register", "/register"];

fn registered_at(hub: &TestHub, agent: &Agent) -> Timestamp {
    hub.engine.with_world(|world| {
        let id = world.agent_by_alias(Protocol::new("registry"), &agent.id).expect("an agent");
        world.agent(id).expect("an agent").registered_at
    })
}

fn found(reply: &crate::kit::Reply) -> Vec<String> {
    let agents = reply.at("/agents");
    let ids = agents.as_array().expect("a list").iter().map(|one| one["agent_id"].as_str());
    ids.map(|id| id.expect("an id").to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn registering_again_changes_what_the_agent_says_and_nothing_it_earned() {
    let hub = TestHub::serve(&[]).await;
    let worker = Worker::start(Behaviour::Succeed(json!({}), "0.10")).await;
    let asking = hub.orchestrator("o1").await;
    hub.grant("o1", "1.00").await;
    let skills = json!([{"skill_name": "kept", "cost_per_call": 0.10}, {"skill_name": "dropped", "cost_per_call": 0.10}]);
    let body = with(
        &with(&registration("acme"), "/skills", Some(skills)),
        "/api_endpoint",
        Some(json!(worker.url)),
    );
    let agent = hub.enrol(&body, None).await;
    hub.hire(&asking, &agent, "kept", "0.10").await.expect(200);
    let at = registered_at(&hub, &agent);
    while hub.engine.now() <= at {
        tokio::task::yield_now().await;
    }

    let new = json!({
        "agent_id": agent.id, "agent_name": "Renamed", "owner_id": "acme", "version": "0.1-next",
        "api_endpoint": "https://elsewhere.example/x",
        "skills": [{"skill_name": "kept", "cost_per_call": 0.30, "description": "better"},
            {"skill_name": "added", "cost_per_call": 0.05}],
        // The agent may set none of these.
        "reputation_score": 99.9, "registered_at": "2001-01-01T00:00:00Z", "balance": 1000, "status": "offline",
    });
    for path in PATHS {
        let reply = hub.post(path, Some(&agent.key), &new).await.expect(200);
        assert_eq!(digits(&reply.text, "reputation_score"), "51.0");
    }
    let shown = hub.get(&format!("/registry/agents/{}", agent.id), None).await.expect(200);
    assert_eq!(shown.str("/agent_name"), "Renamed");
    assert_eq!(shown.str("/api_endpoint"), "https://elsewhere.example/x");
    assert_eq!(shown.at("/skills/0/cost_per_call"), 0.30);
    assert_eq!(shown.str("/skills/0/description"), "better");
    assert_eq!(shown.str("/status"), "online");
    assert_eq!(digits(&shown.text, "reputation_score"), "51.0");
    assert_eq!(shown.at("/jobs_settled"), 1);
    assert_eq!(registered_at(&hub, &agent), at);
    assert_eq!(hub.balance("acme").await, ("0.10".to_owned(), "0.00".to_owned()));
    let card = hub.engine.with_world(|world| {
        let id = world.agent_by_alias(Protocol::new("registry"), &agent.id).expect("an agent");
        world.agent(id).expect("an agent").card.clone()
    });
    assert!(card.contains("0.1-next"), "{card}");
    for base in ["/registry", ""] {
        for (skill, total) in [("kept", 1), ("added", 1), ("dropped", 0)] {
            let reply = hub.get(&format!("{base}/discover?skill={skill}"), None).await.expect(200);
            assert_eq!(reply.at("/total"), total, "{skill}");
        }
    }
    let skills = hub.get("/skills", None).await.expect(200);
    assert_eq!(skills.at("/skills"), json!(["added", "kept"]));
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn registering_again_does_not_cost_an_agent_its_place() {
    let hub = TestHub::serve(&[]).await;
    let first = hub.enrol(&registration("a"), None).await;
    let second = hub.enrol(&registration("b"), None).await;
    let body = with(&registration("a"), "/agent_id", Some(json!(first.id)));
    hub.post("/register", Some(&first.key), &body).await.expect(200);
    let reply = hub.get("/discover?skill=analyze_text", None).await.expect(200);
    assert_eq!(found(&reply), [first.id, second.id]);
    hub.stop().await;
}

/// An agent, another of the same owner, and one of another owner.
async fn three(hub: &TestHub) -> (Agent, Agent, Agent) {
    let body = with(&registration("acme"), "/agent_id", Some(json!(AGENT_ID)));
    let own = hub.enrol(&body, None).await;
    let sibling = hub.enrol(&registration("acme"), Some(&own.key)).await;
    let stranger = hub.enrol(&registration("globex"), None).await;
    (own, sibling, stranger)
}

fn renamed(agent: &Agent, name: &str) -> Value {
    let body = with(&registration(&agent.owner), "/agent_id", Some(json!(agent.id)));
    with(&body, "/agent_name", Some(json!(name)))
}

#[tokio::test(flavor = "multi_thread")]
async fn an_id_that_exists_is_changed_only_with_a_key_of_its_owner() {
    let [keys, open] = both_modes().await;
    for hub in [&keys, &open] {
        let (own, sibling, stranger) = three(hub).await;
        let theft = renamed(&own, "stolen");
        let shouted = with(&theft, "/agent_id", Some(json!(own.id.to_uppercase())));
        let moved = with(&theft, "/owner_id", Some(json!("globex")));
        let before = snapshot(hub).await;
        for path in PATHS {
            for body in [&theft, &shouted, &moved] {
                for key in [&stranger.key, "rk_nonsense", "nonsense", &unknown_key()] {
                    assert_refused(&hub.post(path, Some(key), body).await, 401, "UNAUTHORIZED");
                }
            }
        }
        let moved = hub.post("/register", Some(&own.key), &moved).await;
        assert_refused(&moved, 403, "FORBIDDEN");
        assert_eq!(snapshot(hub).await, before);
        for (key, name) in [
            (&own.key, "by itself"),
            (&sibling.key, "by its sibling"),
            (&hub.operator, "by the operator"),
        ] {
            hub.post("/register", Some(key), &renamed(&own, name)).await.expect(200);
            let shown = hub.get(&format!("/registry/agents/{}", own.id), None).await;
            assert_eq!(shown.str("/agent_name"), name);
        }
    }
    // Without a key: refused, unless the hub accepts claimed identities.
    let taken = with(&registration("acme"), "/agent_id", Some(json!(AGENT_ID)));
    let before = snapshot(&keys).await;
    for path in PATHS {
        for body in [&taken, &with(&taken, "/owner_id", Some(json!("new owner")))] {
            assert_refused(&keys.post(path, None, body).await, 409, "CONFLICT");
        }
    }
    assert_eq!(snapshot(&keys).await, before);
    open.post("/register", None, &taken).await.expect(200);
    keys.stop().await;
    open.stop().await;
}

/// A key with a valid checksum that was never issued.
fn unknown_key() -> String {
    let key = rialto_engine::keys::Key::from_random(rialto_engine::keys::KeyPrefix::AGENT, [7; 20]);
    key.expose().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_owner_that_exists_gets_another_agent_only_with_a_key_of_its_own() {
    let [keys, open] = both_modes().await;
    for hub in [&keys, &open] {
        let (own, _, stranger) = three(hub).await;
        let before = snapshot(hub).await;
        for path in PATHS {
            let reply = hub.post(path, Some(&stranger.key), &registration("acme")).await;
            assert_refused(&reply, 409, "CONFLICT");
            let reply = hub.post(path, Some(&unknown_key()), &registration("acme")).await;
            assert_refused(&reply, 401, "UNAUTHORIZED");
        }
        assert_eq!(snapshot(hub).await, before);
        for key in [&own.key, &hub.operator] {
            let reply = hub.post("/register", Some(key), &registration("acme")).await.expect(201);
            assert_ne!(reply.str("/api_key"), own.key, "a new agent gets a new key");
        }
    }
    let before = snapshot(&keys).await;
    for path in PATHS {
        assert_refused(&keys.post(path, None, &registration("acme")).await, 409, "CONFLICT");
    }
    assert_eq!(snapshot(&keys).await, before);
    open.post("/register", None, &registration("acme")).await.expect(201);
    keys.stop().await;
    open.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_owner_that_was_granted_credits_before_it_came_registers_and_has_them() {
    let hub = TestHub::serve(&[("ledger.welcome_grant", "1.00")]).await;
    for (path, owner) in PATHS.into_iter().zip(["rich", "richer"]) {
        hub.grant(owner, "100.00").await;
        let first = hub.post(path, None, &registration(owner)).await.expect(201);
        let before = snapshot(&hub).await;
        // Confusable names and unknown callers are still not that owner.
        for (key, name) in [(None, owner), (Some(unknown_key()), owner), (None, "r\u{456}ch")] {
            let reply = hub.post(path, key.as_deref(), &registration(name)).await;
            assert!([401, 409].contains(&reply.status), "{}", reply.text);
        }
        assert_eq!(snapshot(&hub).await, before);
        let key = first.str("/api_key");
        hub.post(path, Some(&key), &registration(owner)).await.expect(201);
        assert_eq!(
            hub.balance(owner).await.0,
            "101.00",
            "all agents of an owner share its account"
        );
    }
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_a_live_agent_speaks_for_its_owner() {
    let hub = TestHub::serve(&[]).await;
    let (own, sibling, _) = three(&hub).await;
    let gone = format!("/registry/agents/{}", own.id);
    hub.call("DELETE", &gone, Some(&own.key), None).await.expect(200);
    let before = snapshot(&hub).await;
    for path in PATHS {
        let reply = hub.post(path, Some(&own.key), &registration("acme")).await;
        assert_refused(&reply, 409, "CONFLICT");
    }
    let reply = hub.post("/register", Some(&own.key), &renamed(&sibling, "stolen")).await;
    assert_refused(&reply, 401, "UNAUTHORIZED");
    assert_eq!(snapshot(&hub).await, before);
    hub.post("/register", Some(&sibling.key), &registration("acme")).await.expect(201);
    hub.stop().await;
}

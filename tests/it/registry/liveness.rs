//! Presence: activity, and the consequences of silence (R57).

use rialto_core::time::Millis;
use rialto_hub::config::Profile;
use serde_json::json;

use super::forms::Recorded;
use super::market::{Market, SKILL, fresh_id, success};
use crate::kit::{
    Agent, Behaviour, ClosedPort, TestHub, Worker, assert_later, assert_malformed, assert_refused,
    counted, eventually, snapshot,
};

/// Short enough to be waited for.
const SHORT: [(&str, &str); 1] = [("registry.heartbeat_ttl", "250ms")];

async fn is_online(hub: &TestHub, agent: &Agent) -> bool {
    let shown = hub.get(&format!("/registry/agents/{}", agent.id), None).await.expect(200);
    match shown.str("/status").as_str() {
        "online" => true,
        "offline" => false,
        other => panic!("{other} is not a status"),
    }
}

async fn is_discovered(hub: &TestHub, agent: &Agent) -> bool {
    let found =
        hub.get(&format!("/registry/discover?skill={SKILL}&limit=200"), None).await.expect(200);
    found.at("/agents").as_array().expect("a list").iter().any(|one| one["agent_id"] == agent.id)
}

async fn goes_offline(hub: &TestHub, agent: &Agent) {
    eventually(async || !is_online(hub, agent).await && !is_discovered(hub, agent).await).await;
}

async fn beat(hub: &TestHub, agent: &Agent) {
    let body = json!({"agent_id": agent.id});
    let reply = hub.post("/registry/heartbeat", Some(&agent.key), &body).await.expect(200);
    assert_eq!(reply.str("/status"), "ok");
    assert_eq!(reply.str("/agent_id"), agent.id);
    assert!(reply.str("/timestamp").ends_with('Z'));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_polls_is_there_for_a_while_after_registering_and_after_each_poll() {
    let market = Market::keyed(&SHORT).await;
    goes_offline(&market.hub, &market.working).await;
    let before = counted(&market.hub);
    let reply = market.ask(&market.working, json!({})).await;
    assert_later(&reply, 503, "AGENT_OFFLINE", 30);
    assert_eq!(counted(&market.hub), before);
    // Each poll counts as activity, and the next job finds the agent online.
    eventually(async || {
        market.fetch(&market.working).await;
        is_online(&market.hub, &market.working).await
    })
    .await;
    eventually(async || {
        market.fetch(&market.working).await;
        market.ask(&market.working, json!({})).await.status == 202
    })
    .await;
    goes_offline(&market.hub, &market.working).await;
    market.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fresh_poller_is_online_and_shown() {
    for market in Market::both(&[]).await {
        assert!(is_online(&market.hub, &market.working).await);
        assert!(is_discovered(&market.hub, &market.working).await);
        market.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_with_an_endpoint_that_never_beat_stays_online_however_silent() {
    let market = Market::keyed(&SHORT).await;
    let worker = Worker::start(Behaviour::Succeed(json!({}), "0.10")).await;
    let agent = market.endpoint(&worker.url).await;
    // Registered later than the agent, and offline: so the agent has been silent for longer than
    // that.
    let later = market.hub.agent("later", SKILL, "0.10", None).await;
    goes_offline(&market.hub, &later).await;
    assert!(is_online(&market.hub, &agent).await);
    assert!(is_discovered(&market.hub, &agent).await);
    market.ask(&agent, json!({})).await.expect(200);
    market.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_ever_beat_must_go_on_showing_itself() {
    let market = Market::keyed(&SHORT).await;
    let worker = Worker::start(Behaviour::Succeed(json!({}), "0.10")).await;
    let agent = market.endpoint(&worker.url).await;
    beat(&market.hub, &agent).await;
    goes_offline(&market.hub, &agent).await;
    assert_later(&market.ask(&agent, json!({})).await, 503, "AGENT_OFFLINE", 30);
    assert!(worker.got().is_empty());
    eventually(async || {
        beat(&market.hub, &agent).await;
        is_online(&market.hub, &agent).await && is_discovered(&market.hub, &agent).await
    })
    .await;
    let shown = market.hub.get(&format!("/registry/agents/{}", agent.id), None).await.expect(200);
    assert!(shown.str("/last_heartbeat").ends_with('Z'));
    market.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_never_sent_a_heartbeat_was_last_heard_of_when_it_registered() {
    let mut hub = TestHub::serve(&[]).await;
    let id = fresh_id();
    let ids = [("AGENT_ID", id.as_str())];
    let key = Recorded::of("register", &ids).send(&hub, None).await.expect(201).str("/api_key");
    let heard = async |hub: &TestHub| {
        let listed = Recorded::of("discover", &[]).send(hub, None).await.expect(200);
        let alone = hub.get(&format!("/registry/agents/{id}"), None).await.expect(200);
        assert_eq!(listed.str("/agents/0/last_heartbeat"), alone.str("/last_heartbeat"));
        (alone.str("/registered_at"), alone.str("/last_heartbeat"))
    };
    for _ in 0..2 {
        hub.pass(Millis::seconds(5));
        let (registered, last) = heard(&hub).await;
        assert_eq!(last, registered);
        hub = hub.restart(Profile::Serve, &[]).await;
    }
    hub.pass(Millis::seconds(5));
    Recorded::of("heartbeat", &ids).send(&hub, Some(&key)).await.expect(200);
    let (registered, last) = heard(&hub).await;
    assert!(last > registered, "{last}");
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn any_call_with_its_key_is_a_sign_of_life() {
    let market = Market::keyed(&SHORT).await;
    let agent = market.hub.agent("globex", SKILL, "0.10", Some("https://agent.example")).await;
    beat(&market.hub, &agent).await;
    let (skills, own) =
        (format!("/discover?skill={SKILL}"), format!("/registry/agents/{}", agent.id));
    let reputation = format!("/reputation/{}", agent.id);
    let paths = [
        "/registry/economy",
        "/accounts/globex",
        "/audit",
        "/skills",
        "/registry/health",
        &skills,
        &own,
        &reputation,
    ];
    for path in paths {
        goes_offline(&market.hub, &agent).await;
        eventually(async || {
            market.hub.get(path, Some(&agent.key)).await.expect(200);
            is_online(&market.hub, &agent).await
        })
        .await;
    }
    // A call of any other caller does not count.
    goes_offline(&market.hub, &agent).await;
    market.hub.get(&own, None).await.expect(200);
    market.hub.get(&own, Some(&market.asking.key)).await.expect(200);
    market.hub.get(&own, Some(&market.hub.operator)).await.expect(200);
    assert!(!is_online(&market.hub, &agent).await);
    market.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_fails_puts_an_agent_offline_until_it_calls() {
    let market = Market::keyed(&[]).await;
    let closed = ClosedPort::take();
    let agent = market.endpoint(&closed.url).await;
    assert!(is_online(&market.hub, &agent).await, "it has not failed yet");
    let accounts = market.hub.balance("o1").await;
    assert_later(&market.ask(&agent, json!({})).await, 503, "AGENT_OFFLINE", 30);
    market.quiet().await;
    assert!(!is_online(&market.hub, &agent).await);
    assert!(!is_discovered(&market.hub, &agent).await);
    assert_eq!(market.hub.balance("o1").await, accounts);
    assert_eq!(market.hub.score(&agent).await, "50.0");
    market.hub.get("/accounts/globex", Some(&agent.key)).await.expect(200);
    eventually(async || {
        is_online(&market.hub, &agent).await && is_discovered(&market.hub, &agent).await
    })
    .await;
    market.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_works_again_puts_an_agent_back_online() {
    let market = Market::keyed(&[]).await;
    let closed = ClosedPort::take();
    let agent = market.endpoint(&closed.url).await;
    market.hub.grant("globex", "1.00").await;
    // Its own job is still pending, with a callback at its endpoint.
    let body = json!({"orchestrator_id": agent.id, "skill_name": SKILL, "input_data": {}, "budget": 0.15,
        "callback_url": format!("{}/done", closed.url)});
    let path = format!("/registry/agents/{}/jobs", market.working.id);
    let job = market.hub.post(&path, Some(&agent.key), &body).await.expect(202).str("/job_id");
    market.ask(&agent, json!({})).await.expect(503);
    market.quiet().await;
    assert!(!is_online(&market.hub, &agent).await);
    let worker = Worker::at(closed.listen(), Behaviour::Say(200, String::new()));
    market.report(&success(&job, &market.working, "0.10")).await.expect(200);
    worker.heard(1).await;
    eventually(async || {
        is_online(&market.hub, &agent).await && is_discovered(&market.hub, &agent).await
    })
    .await;
    market.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_heartbeat_needs_the_agents_own_key() {
    let market = Market::keyed(&[]).await;
    let body = json!({"agent_id": market.working.id});
    let before = snapshot(&market.hub).await;
    for path in ["/registry/heartbeat", "/heartbeat"] {
        assert_refused(&market.hub.post(path, None, &body).await, 401, "UNAUTHORIZED");
        let other = market.hub.post(path, Some(&market.asking.key), &body).await;
        assert_refused(&other, 403, "FORBIDDEN");
        let operator = market.hub.post(path, Some(&market.hub.operator), &body).await;
        assert_refused(&operator, 403, "FORBIDDEN");
        let nameless = market.hub.post(path, Some(&market.working.key), &json!({})).await;
        assert_malformed(&nameless, "/agent_id");
        let wrong =
            market.hub.post(path, Some(&market.working.key), &json!({"agent_id": "me"})).await;
        assert_malformed(&wrong, "/agent_id");
    }
    assert_eq!(snapshot(&market.hub).await, before);
    market.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn where_everybodys_word_is_taken_a_heartbeat_needs_only_the_id() {
    let market = Market::open(&SHORT).await;
    goes_offline(&market.hub, &market.working).await;
    let body = json!({"agent_id": market.working.id});
    eventually(async || {
        market.hub.post("/heartbeat", None, &body).await.expect(200);
        is_online(&market.hub, &market.working).await
    })
    .await;
    let unknown = json!({"agent_id": fresh_id()});
    assert_refused(&market.hub.post("/heartbeat", None, &unknown).await, 404, "NOT_FOUND");
    market.stop().await;
}

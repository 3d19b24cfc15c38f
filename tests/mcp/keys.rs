//! Keys with limits: bound at every door, and kept out of everything that MCP shows, makes and logs.

use rialto_core::alias::Protocol;
use rialto_core::id::AgentId;
use rialto_core::time::Millis;
use rialto_hub::config::Profile;
use serde_json::{Value, json};

use crate::client::{Era, McpClient};
use crate::kit::{Agent, Reply, TestHub};

const DAY: Millis = Millis::hours(24);
const HIRE: &str = "urn:rialto:a2a:hire:v1";

/// A hub with an agent that has credits, and a free worker.
struct Market {
    hub: TestHub,
    rich: Agent,
    worker: Agent,
}

impl Market {
    async fn open(flags: &[(&str, &str)]) -> Self {
        let hub = TestHub::serve(flags).await;
        hub.grant("rich", "100.00").await;
        let rich = hub.orchestrator("rich").await;
        let worker = hub.agent("acme", "sum", "0.40", None).await;
        Self { hub, rich, worker }
    }

    /// A new key of the rich agent with these limits: its id and its secret.
    async fn key(&self, limits: Value) -> (u64, String) {
        let reply = self.hub.post("/v1/keys", Some(&self.rich.key), &limits).await.expect(201);
        let issued = reply.json();
        (issued["id"].as_u64().expect("an id"), reply.str("/key"))
    }

    /// The agent, with another key.
    fn with(&self, key: &str) -> Agent {
        Agent { key: key.to_owned(), ..self.rich.clone() }
    }

    async fn hire(&self, key: &str, budget: &str) -> Reply {
        self.hub.hire(&self.with(key), &self.worker, "sum", budget).await
    }

    async fn listed(&self, id: u64) -> Value {
        let reply = self.hub.get("/v1/keys", Some(&self.rich.key)).await.expect(200).json();
        let items = reply["items"].as_array().expect("a list").clone();
        items.into_iter().find(|item| item["id"] == id).expect("it is listed")
    }

    /// What is left of a key's day, as listed.
    async fn left(&self, id: u64) -> String {
        self.listed(id).await["left_today"].to_string()
    }

    /// What the other protocols call an agent.
    fn alias(&self, agent: &Agent, protocol: &'static str) -> String {
        self.hub.engine.with_world(|world| {
            let id = world.agent_by_alias(Protocol::new("registry"), &agent.id);
            let id: AgentId = id.expect("it is registered");
            world.alias_of(id, Protocol::new(protocol)).expect("every agent has one").to_string()
        })
    }

    fn model(&self, key: &str) -> McpClient {
        McpClient::new(&self.hub, "/mcp", Some(key), Era::New)
    }
}

fn code(reply: &Reply, pointer: &str) -> (u16, String) {
    (reply.status, reply.str(pointer))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_limits_of_a_key_bind_it_in_every_protocol() {
    let market = Market::open(&[]).await;
    let (id, key) = market.key(json!({"label": "all doors", "per_job": 1, "per_day": 2})).await;
    let (hub, key) = (&market.hub, key.as_str());
    let left = market.left(id).await;

    let refused = market.hire(key, "1.01").await;
    assert_eq!(code(&refused, "/error_code"), (402, "TRANSFER_FAILED".to_owned()));
    let pay = json!({"from_owner": "rich", "to_owner": "acme", "amount": 1.01});
    let refused = hub.post("/registry/transfer", Some(key), &pay).await;
    assert_eq!(code(&refused, "/error_code"), (402, "TRANSFER_FAILED".to_owned()));
    assert!(refused.text.contains("at most 1.00"), "{}", refused.text);

    let envelope = json!({"chorus_version": "0.4", "sender_id": market.alias(&market.rich, "relay"),
        "original_text": "2 3", "sender_culture": "en", "skill": "sum", "budget": 1.01});
    let to = market.alias(&market.worker, "relay");
    let message = json!({"receiver_id": to, "envelope": envelope});
    let refused = hub.post("/relay/messages", Some(key), &message).await;
    assert!(refused.text.contains("ADAPTATION_FAILED"), "{}", refused.text);
    assert!(refused.text.contains("at most 1.00"), "{}", refused.text);

    let collaboration = json!({
        "request_id": "3f0c2a9e-0b3b-4b1a-9c1a-1a2b3c4d5e60",
        "correlation_id": "3f0c2a9e-0b3b-4b1a-9c1a-1a2b3c4d5e61",
        "requester_agent_id": market.alias(&market.rich, "openclaw"),
        "responder_agent_id": market.alias(&market.worker, "openclaw"),
        "capability_id": "sum", "input_data": {}, "budget": 1.01, "priority": 3,
        "timestamp": rialto_protocols::kit::rfc3339::format_millis(hub.engine.now()),
    });
    let refused = hub.post("/openclaw/collaborations", Some(key), &collaboration).await;
    assert_eq!(refused.str("/response_status"), "rejected", "{}", refused.text);
    assert_eq!(refused.str("/rejection_reason/code"), "policy_violation");

    let part = json!({"data": {"n": 1}});
    let message = json!({"messageId": "m-1", "role": "ROLE_USER", "parts": [part],
        "metadata": {HIRE: {"skill": "sum", "budget": "1.01"}}});
    let path = format!("/a2a/agents/{}/message:send", market.alias(&market.worker, "a2a"));
    let refused = hub.post(&path, Some(key), &json!({"message": message})).await;
    let said = refused.json()["message"]["metadata"][HIRE]["refused"].clone();
    assert_eq!(said, "TOO_FEW_CREDITS", "{}", refused.text);
    assert!(refused.text.contains("at most 1.00"), "{}", refused.text);

    let order = json!({"skill": "sum", "input": {}, "budget": 1.01});
    let refused = hub.post("/v1/jobs", Some(key), &order).await;
    assert_eq!(code(&refused, "/code"), (402, "over_limit".to_owned()));

    let order = json!({"skill": "sum", "input": {}, "budget": "1.01", "wait_seconds": 0});
    let text = market.model(key).fail("hire", order, "over_limit").await;
    assert!(text.contains("at most 1.00"), "{text}");

    assert_eq!(market.left(id).await, left, "what is refused is not spent");
    assert_eq!(hub.balance("rich").await, ("100.00".to_owned(), "0.00".to_owned()));
    market.hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_paid_counts_and_what_is_released_may_be_spent_again() {
    let market = Market::open(&[]).await;
    let (id, key) = market.key(json!({"per_job": 1.00, "per_day": 2.00})).await;
    let paid = market.hire(&key, "1.00").await.expect(202).str("/job_id");
    assert_eq!(market.left(id).await, "1.0");
    market.hub.report(&market.worker, &paid, "SUCCESS", "0.40").await.expect(200);
    assert_eq!(market.left(id).await, "1.6");
    let failed = market.hire(&key, "1.00").await.expect(202).str("/job_id");
    market.hub.report(&market.worker, &failed, "FAILURE", "0").await.expect(200);
    assert_eq!(market.left(id).await, "1.6");
    market.hire(&key, "1.00").await.expect(202);
    assert_eq!(market.left(id).await, "0.6");
    let refused = market.hire(&key, "0.61").await;
    assert_eq!(code(&refused, "/error_code"), (402, "TRANSFER_FAILED".to_owned()));
    assert!(refused.text.contains("0.60 is left"), "{}", refused.text);

    // A restart forgets nothing of it.
    let market = Market { hub: market.hub.restart(Profile::Serve, &[]).await, ..market };
    assert_eq!(market.left(id).await, "0.6");
    assert_eq!(market.hire(&key, "0.61").await.status, 402);
    assert_eq!(market.hire(&key, "1.01").await.status, 402);
    market.hub.pass(DAY);
    assert_eq!(market.left(id).await, "2.0");
    market.hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_limited_key_touches_no_key_secret_or_registration_in_any_protocol() {
    let market = Market::open(&[]).await;
    let (_, key) = market.key(json!({"transfers": false})).await;
    let (other, _) = market.key(json!({})).await;
    let (hub, key) = (&market.hub, Some(key.as_str()));
    let none = json!({});
    let second = json!({"agent_name": "second", "owner_id": "rich", "skills": []});
    let own = json!({"agent_id": market.rich.id, "agent_name": "rich's orchestrator",
        "owner_id": "rich", "skills": [], "rotate_key": true});
    let rehomed = json!({"agent_id": market.rich.id, "agent_name": "rich's orchestrator",
        "owner_id": "rich", "skills": [], "api_endpoint": "http://127.0.0.1:9/"});
    for (method, path, body) in [
        ("POST", "/v1/keys".to_owned(), &none),
        ("POST", "/v1/keys/rotate".to_owned(), &none),
        ("POST", "/v1/webhooks/secret".to_owned(), &none),
        ("DELETE", "/v1/keys".to_owned(), &none),
        ("DELETE", format!("/v1/keys/{other}"), &none),
        ("DELETE", "/v1/me".to_owned(), &none),
        ("POST", "/registry/register".to_owned(), &second),
        ("POST", "/registry/register".to_owned(), &own),
        ("POST", "/registry/register".to_owned(), &rehomed),
        ("POST", "/register".to_owned(), &second),
        ("DELETE", format!("/registry/agents/{}", market.rich.id), &none),
    ] {
        let body = (method == "POST").then(|| body.to_string());
        let refused = hub.call(method, &path, key, body.as_deref()).await;
        assert_eq!(refused.status, 403, "{method} {path}: {}", refused.text);
    }
    hub.get("/v1/me", key).await.expect(200);
    hub.get("/v1/me", Some(&market.rich.key)).await.expect(200);
    market.hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_of_every_protocol_may_be_limited_and_then_neither_leave_nor_rotate() {
    let hub = TestHub::serve(&[]).await;
    let limits = json!({"per_day": 1});
    let limited =
        async |key: &str| hub.post("/v1/keys", Some(key), &limits).await.expect(201).str("/key");
    let card = json!({"card_version": "0.3", "user_culture": "en", "supported_languages": ["en"]});
    let member = json!({"agent_id": "ann@chorus", "agent_card": card});
    let joined = hub.post("/relay/register", None, &member).await.expect(201);
    let key = limited(&joined.str("/data/api_key")).await;
    let gone = hub.call("DELETE", "/relay/agents/ann@chorus", Some(&key), None).await;
    assert_eq!(gone.status, 403, "{}", gone.text);
    let rotated = json!({"agent_id": "ann@chorus", "agent_card": card, "rotate_key": true});
    assert_eq!(hub.post("/relay/register", Some(&key), &rotated).await.status, 403);

    let joined = hub.post("/a2a/agents", None, &json!({"name": "ann"})).await.expect(201);
    let key = limited(&joined.str("/api_key")).await;
    let gone = hub.call("DELETE", "/a2a/agents/ann", Some(&key), None).await;
    assert_eq!(gone.status, 403, "{}", gone.text);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn models_spend_within_the_limits_of_the_hub_unless_their_key_has_its_own() {
    let flags = [("mcp.per_job", "2.00"), ("mcp.per_day", "3.00")];
    let market = Market::open(&flags).await;
    let (_, own) = market.key(json!({"per_job": 5, "per_day": 9})).await;
    let hire = |budget: &str| {
        json!({"skill": "sum", "input": {}, "budget": budget, "wait_seconds": 0,
            "idempotency_key": budget})
    };
    let model = market.model(&market.rich.key);
    let text = model.fail("hire", hire("2.01"), "over_limit").await;
    assert!(text.contains("a key without limits of its own"), "{text}");
    assert!(!text.contains(&market.rich.key), "{text}");
    model.ok("hire", hire("2.00")).await;
    model.fail("hire", hire("1.01"), "over_limit").await;
    model.ok("hire", hire("1.00")).await;
    // The same key may spend more elsewhere, and another key has limits of its own.
    market.hire(&market.rich.key, "4.00").await.expect(202);
    market.model(&own).ok("hire", hire("5.00")).await;
    let limits = market.model(&own).ok("whoami", json!({})).await["limits"].clone();
    let known =
        json!({"per_job": "5.00", "per_day": "9.00", "left_today": "4.00", "transfers": true});
    assert_eq!(limits, known);
    let limits = model.ok("whoami", json!({})).await["limits"].clone();
    let known =
        json!({"per_job": "2.00", "per_day": "3.00", "left_today": "0.00", "transfers": true});
    assert_eq!(limits, known);
    market.hub.stop().await;
}

/// Whether the caller wants a stream alone, or its call takes long, what it hires counts.
#[tokio::test(flavor = "multi_thread")]
async fn a_hire_that_is_answered_as_a_stream_counts_as_well() {
    let market = Market::open(&[]).await;
    let (id, key) = market.key(json!({"per_job": 1, "per_day": 1})).await;
    let arguments = json!({"skill": "sum", "input": {}, "budget": "1.00", "wait_seconds": 0});
    let call = json!({"name": "hire", "arguments": arguments});
    let model = market.model(&key);
    let request = model.request("tools/call", call).build().expect("a request");
    let mut request = request;
    let stream = "text/event-stream".parse().expect("a header");
    request.headers_mut().insert("accept", stream);
    let answer = market.hub.http.execute(request).await.expect("an answer");
    let text = answer.text().await.expect("text");
    assert!(text.contains("\"state\":"), "{text}");
    assert_eq!(market.left(id).await, "0.0");
    market.hub.stop().await;
}

/// Every text and file that the hub makes of it: answers, refusals, metrics, history and the store.
#[tokio::test(flavor = "multi_thread")]
async fn no_key_is_shown_or_kept_anywhere() {
    let market = Market::open(&[("mcp.per_job", "1.00")]).await;
    let (id, key) = market.key(json!({"label": "quiet", "per_job": 1, "per_day": 2})).await;
    let mut seen = Vec::new();
    for key in [&market.rich.key, &key] {
        let model = market.model(key);
        for tool in ["whoami", "find_agents", "list_jobs"] {
            seen.push(model.send("tools/call", json!({"name": tool, "arguments": {}})).await.text);
        }
        let order = json!({"skill": "sum", "input": {}, "budget": "1.01"});
        seen.push(model.send("tools/call", json!({"name": "hire", "arguments": order})).await.text);
        seen.push(market.hub.get("/v1/keys", Some(key)).await.text);
    }
    for path in ["/metrics", "/v1/operator/agents", "/v1/operator/stats"] {
        seen.push(market.hub.get(path, Some(&market.hub.operator)).await.text);
    }
    seen.push(market.listed(id).await.to_string());
    let secrets = [market.rich.key.clone(), key];
    let dir = market.hub.stop().await;
    let mut folders = vec![dir.path().to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
            match entry.file_type().expect("a type").is_dir() {
                true => folders.push(entry.path()),
                false => {
                    let bytes = std::fs::read(entry.path()).expect("a file");
                    seen.push(String::from_utf8_lossy(&bytes).into_owned());
                }
            }
        }
    }
    for text in &seen {
        for secret in &secrets {
            // Neither whole nor without what all keys begin with.
            assert!(!text.contains(&secret[3..]), "a key is in {text:.200}");
        }
    }
}

//! A hub with a buyer and workers, for tests of tools.

use rialto_core::time::Millis;
use serde_json::{Value, json};

use crate::client::{Era, McpClient};
use crate::kit::{Agent, Behaviour, TestHub, Worker, eventually};

/// A hub, and an agent with credits.
pub struct Market {
    pub hub: TestHub,
    pub buyer: Agent,
}

impl Market {
    /// The buyer has 10 credits.
    pub async fn open() -> Self {
        Self::open_with(&[]).await
    }

    pub async fn open_with(flags: &[(&str, &str)]) -> Self {
        let hub = TestHub::serve(flags).await;
        let buyer = hub.orchestrator("ada").await;
        hub.grant("ada", "10").await;
        Self { hub, buyer }
    }

    /// The buyer at `/mcp`.
    pub fn buyer(&self, era: Era) -> McpClient {
        McpClient::new(&self.hub, "/mcp", Some(&self.buyer.key), era)
    }

    /// Another agent at `/mcp`.
    pub fn client_of(&self, agent: &Agent) -> McpClient {
        McpClient::new(&self.hub, "/mcp", Some(&agent.key), Era::New)
    }

    /// An agent that does a skill at once.
    pub async fn worker(
        &self,
        name: &str,
        skill: &str,
        price: &str,
        output: Value,
    ) -> (Agent, Worker) {
        let worker = Worker::start(Behaviour::Succeed(output, "1")).await;
        (self.register(name, skill, price, Some(&worker.url)).await, worker)
    }

    /// An agent that does a skill when it gets to it.
    pub async fn slow_worker(&self, name: &str, skill: &str, price: &str) -> Agent {
        let agent = self.register(name, skill, price, None).await;
        self.beat(&agent).await;
        agent
    }

    pub async fn register(
        &self,
        name: &str,
        skill: &str,
        price: &str,
        endpoint: Option<&str>,
    ) -> Agent {
        let price: Value = serde_json::from_str(price).expect("a number");
        let mut body = json!({
            "agent_name": name, "owner_id": format!("owner of {name}"), "version": "0.1",
            "skills": [{
                "skill_name": skill, "cost_per_call": price, "description": format!("Does {skill}"),
                "input_schema": {"text": "string"}, "output_schema": {"words": "int"},
            }],
        });
        if let Some(endpoint) = endpoint {
            body["api_endpoint"] = endpoint.into();
        }
        self.hub.enrol(&body, None).await
    }

    /// Shows that an agent without an endpoint is there.
    pub async fn beat(&self, agent: &Agent) {
        self.hub.get("/v1/jobs?side=worked", Some(&agent.key)).await.expect(200);
    }

    /// The address by which an agent is shown.
    pub async fn address(&self, agent: &Agent) -> String {
        let shown = self.hub.get(&format!("/v1/agents/{}", agent.id), None).await.expect(200);
        shown.str("/names/relay")
    }

    /// What the buyer has left.
    pub async fn left(&self) -> String {
        self.hub.balance("ada").await.0
    }

    /// The public ids of the buyer's jobs.
    pub async fn jobs(&self) -> Vec<String> {
        let jobs = self.hub.get("/v1/jobs?state=all", Some(&self.buyer.key)).await.expect(200);
        let items = jobs.json()["items"].as_array().expect("jobs").clone();
        items.iter().map(|job| job["id"].as_str().expect("an id").to_owned()).collect()
    }

    /// Waits until the buyer has this many jobs.
    pub async fn has_jobs(&self, count: usize) -> Vec<String> {
        eventually(async || self.jobs().await.len() == count).await;
        self.jobs().await
    }

    pub fn pass(&self, span: Millis) {
        self.hub.pass(span);
    }
}

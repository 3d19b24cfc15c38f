//! An agent together with its client of `/mcp`.

use serde_json::{Value, json};

use crate::client::{Era, McpClient};
use crate::kit::{Agent, TestHub};

/// An agent that acts through MCP.
pub struct Party {
    pub agent: Agent,
    pub mcp: McpClient,
    /// The address under which others see it.
    pub address: String,
}

impl Party {
    /// A registered agent with one skill, or without any.
    pub async fn join(hub: &TestHub, owner: &str, skill: Option<(&str, &str)>) -> Self {
        let agent = match skill {
            Some((skill, price)) => hub.agent(owner, skill, price, None).await,
            None => hub.orchestrator(owner).await,
        };
        Self::of(hub, agent).await
    }

    pub async fn of(hub: &TestHub, agent: Agent) -> Self {
        let mcp = McpClient::new(hub, "/mcp", Some(&agent.key), Era::New);
        let address = mcp.ok("whoami", json!({})).await["agent"].as_str().expect("text").to_owned();
        Self { agent, mcp, address }
    }

    /// The same agent as a client of the old era.
    pub fn old(&self, hub: &TestHub) -> McpClient {
        McpClient::new(hub, "/mcp", Some(&self.agent.key), Era::Old)
    }

    /// Everything in its inbox that is not acknowledged.
    pub async fn inbox(&self) -> Vec<Value> {
        let read = self.mcp.ok("read_inbox", json!({"limit": 20})).await;
        read["items"].as_array().expect("items").clone()
    }

    /// Requests a job of another agent.
    pub async fn hire(&self, hub: &TestHub, worker: &Self, skill: &str, input: &Value) -> String {
        let body = json!({"skill": skill, "input": input, "budget": 1, "to": worker.address});
        let opened = hub.post("/v1/jobs", Some(&self.agent.key), &body).await.expect(201);
        opened.str("/id")
    }
}

/// An identity of an agent whose protocol has schemas of its own.
pub fn content_agent(name: &str) -> Value {
    json!({
        "agent_id": "6f0c3a52-8f0e-4d7f-9b1c-0a1b2c3d4e5f",
        "agent_name": name,
        "agent_type": "autonomous_content_node",
        "version": "1.0.0",
        "x_note": "kept",
        "capabilities": {
            "advertised_capabilities": [{"capability_id": "sum", "capability_name": "Sums",
                "description": "adds", "category": "trend_analysis", "price": 0.25}],
            "input_schemas": {"sum": {"type": "object", "required": ["a"]}},
            "output_schemas": {},
        },
        "status": {"current_status": "idle", "status_timestamp": "2026-03-20T10:00:00.000Z"},
    })
}

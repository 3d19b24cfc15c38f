//! Shared by the tests of collaborations: money, responses of agents that confirm requests
//! themselves, and what a refused request must not change.

use rialto_hub::config::Profile;
use serde_json::{Value, json};

use super::kit::{Hub, Node, Work, fresh_id, with};
use crate::kit::{Reply, Snapshot, counted, eventually, snapshot};
use crate::relay::kit::Inbox;

pub const COLLABORATIONS: &str = "/openclaw/collaborations";

impl Hub {
    /// Shuts the hub down and starts another on the same data.
    pub async fn restart(self, flags: &[(&str, &str)]) -> Self {
        Self(self.0.restart(Profile::Serve, flags).await)
    }

    /// Grants credits to an agent.
    pub async fn fund(&self, node: &Node, amount: &str) {
        self.grant(&owner(node), amount).await;
    }

    /// An agent's available and held credits.
    pub async fn account(&self, node: &Node) -> (String, String) {
        self.balance(&owner(node)).await
    }

    /// The response of an agent that confirms requests itself: accepted by default.
    pub fn yes(&self, by: &Node, request: &Value, more: Value) -> Value {
        let yes = json!({
            "request_id": request["request_id"], "responder_agent_id": by.id,
            "response_status": "accepted", "collaboration_id": fresh_id(),
            "correlation_id": request["correlation_id"], "timestamp": self.time(0),
        });
        with(&yes, more)
    }

    /// Posts that response under the request's own id.
    pub async fn respond(&self, by: &Node, request: &Value, more: Value) -> Reply {
        let id = request["request_id"].as_str().expect("an id");
        let path = format!("{COLLABORATIONS}/{id}/response");
        self.post(&path, Some(&by.key), &self.yes(by, request, more)).await
    }

    /// Sends a request, and runs something once the responder has got it.
    pub async fn meanwhile(&self, by: &Node, request: &Value, then: impl AsyncFnOnce()) -> Reply {
        let id = request["request_id"].as_str().expect("an id");
        let answer = self.ask(by, request);
        let other = async {
            eventually(async || self.state(by, id).await == "awaiting_response").await;
            then().await;
        };
        tokio::join!(answer, other).0
    }

    /// The state of a collaboration; empty while there is none.
    pub async fn state(&self, by: &Node, id: &str) -> String {
        let reply = self.get(&format!("{COLLABORATIONS}/{id}"), Some(&by.key)).await;
        reply.json()["state"].as_str().unwrap_or_default().to_owned()
    }

    /// Waits until a collaboration is in this state.
    #[track_caller]
    pub fn becomes(&self, by: &Node, id: &str, state: &str) -> impl Future<Output = ()> {
        eventually(async move || self.state(by, id).await == state)
    }

    pub async fn cancel(&self, by: &Node, id: &str, body: &Value) -> Reply {
        self.post(&format!("{COLLABORATIONS}/{id}/cancel"), Some(&by.key), body).await
    }

    pub async fn approve(&self, key: &str, id: &str, approved: bool) -> Reply {
        let body = json!({"approved": approved});
        self.post(&format!("{COLLABORATIONS}/{id}/approve"), Some(key), &body).await
    }

    /// The collaborations of an agent.
    pub async fn list(&self, of: &Node, query: &str) -> Reply {
        self.get(&format!("{COLLABORATIONS}{query}"), Some(&of.key)).await
    }

    /// Publishes an identity again with other members.
    pub async fn again(&self, node: &Node, identity: &Value) {
        self.post("/openclaw/identity", Some(&node.key), identity).await.expect(200);
    }

    /// The hub's own reputation of an agent, or null.
    pub async fn figures(&self, node: &Node) -> Value {
        let path = format!("/openclaw/agents/{}/reputation", node.id);
        self.get(&path, None).await.expect(200).json()
    }

    /// The hub's own metrics of an agent.
    pub async fn metrics(&self, node: &Node) -> Value {
        self.figures(node).await["reputation_update"]["metrics"].clone()
    }

    /// How many rows of each kind there ever were. The time of the last write is left out, since
    /// stream positions are written, too.
    pub fn counted(&self) -> String {
        let all = counted(self);
        let (head, tail) = all.split_once("at: Timestamp(").expect("a time");
        format!("{head}{}", tail.split_once(')').expect("its end").1)
    }

    /// Everything a refused request could have changed, including every inbox.
    pub async fn held(&self) -> (Snapshot, Vec<String>) {
        let mut snapshot = snapshot(self).await;
        snapshot.counted = self.counted();
        let boxes = self.engine.with_world(|world| {
            let mut all: Vec<_> = world.agents().map(|one| one.id).collect();
            all.sort_unstable();
            all.into_iter().map(|id| format!("{:?}", world.inbox(id).head)).collect()
        });
        (snapshot, boxes)
    }
}

/// The owner name of an agent in the ledger.
pub fn owner(node: &Node) -> String {
    format!("openclaw:{}", node.id)
}

pub fn credits(spendable: &str, held: &str) -> (String, String) {
    (spendable.to_owned(), held.to_owned())
}

/// Limits of an agent: `{"resource_limits": …}`.
pub fn limits(at_once: u32, per_minute: u32) -> Value {
    json!({"resource_limits": {"max_concurrent_tasks": at_once, "rate_limit_per_minute": per_minute}})
}

/// The next update with this status; an earlier one from just before the stream may come first.
pub async fn status(stream: &mut Inbox, wanted: &str) -> Value {
    loop {
        let told = stream.until("status_update").await.data;
        if told["status_update"]["current_status"] == wanted {
            return told;
        }
    }
}

/// A collaboration requested from `by`, for further messages.
pub fn work(id: &str, request: &Value, by: &Node) -> Work {
    Work { id: id.to_owned(), request: request.clone(), by: by.clone() }
}

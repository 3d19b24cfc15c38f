//! openclaw's part of the scene: the agent the requests are about, a requester, a worker that
//! confirms jobs itself, an unrelated agent, and one collaboration between requester and worker.

use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::Caller;
use super::scene::Scene;
use crate::kit::{TestHub, eventually};
use crate::openclaw::kit::{self, Hub, Node, fresh_id, with};

/// The state of the scene's collaboration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum About {
    /// The worker accepted.
    Running,
    /// It needs approval first.
    Deferred,
    /// The worker has not answered. It ends by itself after nine seconds.
    Awaiting,
}

/// The agents, and the current id of the collaboration.
pub struct Claws {
    pub named: Node,
    pub requester: Node,
    pub worker: Node,
    pub other: Node,
    pub collaboration: String,
    asked: Value,
    _asking: Asking,
}

/// A request that may still wait for its answer; it is aborted with the scene.
struct Asking(JoinHandle<()>);

impl Drop for Asking {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Claws {
    pub async fn set(hub: &TestHub, about: About) -> Self {
        let node = async |name: &str, more: Value| {
            let identity = with(&kit::identity(name, Hub::time_of(hub)), more);
            let reply = hub.post("/openclaw/identity", None, &identity).await.expect(201);
            Node { id: reply.str("/agent_id"), key: reply.str("/api_key"), identity }
        };
        let able = json!({
            "advertised_capabilities": [
                kit::capability("sum", json!({})),
                kit::capability("agreed", json!({"requires_approval": true})),
            ],
            "input_schemas": {}, "output_schemas": {},
        });
        let named = node("named", json!({})).await;
        let requester = node("requester", json!({})).await;
        let worker = node("worker", json!({"response_mode": "ask", "capabilities": able})).await;
        let other = node("other", json!({})).await;
        let capability = if about == About::Deferred { "agreed" } else { "sum" };
        let asked = ask(hub, &requester, &worker, capability);
        let asking = Asking(post(hub, &requester.key, &asked));
        let request = asked["request_id"].as_str().expect("a text").to_owned();
        let mut claws = Self {
            named,
            requester,
            worker,
            other,
            collaboration: request,
            asked,
            _asking: asking,
        };
        let path = format!("/openclaw/collaborations/{}", claws.collaboration);
        eventually(async || hub.get(&path, Some(&claws.worker.key)).await.status == 200).await;
        if about == About::Running {
            let said = claws.response();
            hub.post(&format!("{path}/response"), Some(&claws.worker.key), &said).await.expect(200);
            claws.collaboration = said["collaboration_id"].as_str().expect("an id").to_owned();
        }
        claws.read(hub).await;
        claws
    }

    /// The worker and the requester read their notices, so that another read changes nothing.
    async fn read(&self, hub: &TestHub) {
        for node in [&self.worker, &self.requester] {
            let mut stream = hub.inbox_from("/openclaw/stream", &node.key, None).await;
            assert_eq!(stream.next().await.event, "connected");
        }
        let handed =
            |job: &rialto_core::job::Job| job.assignment.is_none_or(|turn| turn.handed_over);
        eventually(async || {
            hub.engine.with_world(|world| {
                let mut jobs =
                    world.live_jobs().filter(|job| job.request.origin.as_str() == "openclaw");
                jobs.all(|job| handed(job))
            })
        })
        .await;
    }

    pub fn key(&self, caller: Caller) -> Option<&str> {
        Some(match caller {
            Caller::Anyone | Caller::Operator => return None,
            Caller::Itself => &self.named.key,
            Caller::Requester => &self.requester.key,
            Caller::Worker => &self.worker.key,
            Caller::Other => &self.other.key,
        })
    }

    fn response(&self) -> Value {
        json!({"request_id": self.asked["request_id"], "responder_agent_id": self.worker.id,
            "response_status": "accepted", "collaboration_id": fresh_id(),
            "correlation_id": self.asked["correlation_id"], "timestamp": self.asked["timestamp"]})
    }
}

fn ask(hub: &TestHub, by: &Node, of: &Node, capability: &str) -> Value {
    json!({"request_id": fresh_id(), "requester_agent_id": by.id, "responder_agent_id": of.id,
        "capability_id": capability, "input_data": {}, "correlation_id": fresh_id(),
        "timestamp": Hub::stamp_of(hub)})
}

/// Posts a request without waiting for the answer.
fn post(hub: &TestHub, key: &str, body: &Value) -> JoinHandle<()> {
    let request = hub.http.post(format!("{}/openclaw/collaborations", hub.url));
    let request = request.bearer_auth(key).body(body.to_string());
    tokio::spawn(async move { drop(request.send().await) })
}

pub fn update(scene: &Scene) -> Value {
    with(&scene.claws().named.identity, json!({"version": "1.0.1"}))
}

pub fn newcomer(scene: &Scene) -> Value {
    kit::identity("newcomer", Hub::time_of(&scene.hub))
}

pub fn status(scene: &Scene) -> Value {
    let now = Hub::stamp_of(&scene.hub);
    let update = json!({"current_status": "busy", "status_timestamp": now,
        "status_details": {"active_tasks": 1}});
    json!({"agent_id": scene.claws().named.id, "status_update": update,
        "correlation_id": fresh_id(), "timestamp": now})
}

pub fn claim(scene: &Scene) -> Value {
    let now = Hub::stamp_of(&scene.hub);
    let update = json!({"update_type": "periodic_update", "reputation_score": 0.9,
        "update_timestamp": now});
    json!({"agent_id": scene.claws().named.id, "reputation_update": update,
        "correlation_id": fresh_id(), "timestamp": now})
}

/// A request that needs approval is answered at once.
pub fn request(scene: &Scene) -> Value {
    let claws = scene.claws();
    ask(&scene.hub, &claws.named, &claws.worker, "agreed")
}

pub fn response(scene: &Scene) -> Value {
    scene.claws().response()
}

pub fn approval(_: &Scene) -> Value {
    json!({"approved": true})
}

pub fn result(scene: &Scene) -> Value {
    let claws = scene.claws();
    json!({"collaboration_id": claws.collaboration, "request_id": claws.asked["request_id"],
        "responder_agent_id": claws.worker.id, "result_status": "completed", "output_data": {},
        "correlation_id": claws.asked["correlation_id"], "timestamp": Hub::stamp_of(&scene.hub)})
}

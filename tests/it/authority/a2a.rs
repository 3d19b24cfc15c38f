//! a2a's part of the table and of the scene: a client with a server of its own, and a task of the
//! requester with the worker.
//!
//! An answer of JSON-RPC has the status 200 when a task is not found. That it hides the tasks of
//! others as well is tested in `a2a::identity`.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use serde_json::{Value, json};
use sha2::Sha256;

use super::scene::Scene;
use super::table::{AGENTS, NEW, PUBLIC, Row, UPDATE, find, get, send};
use crate::a2a::kit::{Client, hire_message, id, rpc};
use crate::a2a::remote::server::Puppet;
use crate::kit::{Agent, TestHub};

/// The push configuration of the task.
const CONFIG: &str = "config";
/// Added to the path of a task.
const SUBSCRIBE: &str = ":subscribe";
const CANCEL: &str = ":cancel";

/// Another caller's task does not exist, and an operator has none.
const ITS_REQUESTER: [u16; 6] = [401, 404, 200, 404, 404, 403];
/// An existing name needs its own key.
const ITSELF: [u16; 6] = [401, 200, 401, 401, 401, 200];

const fn task(row: Row) -> Row {
    Row { of_a2a: true, ..row }
}

#[rustfmt::skip]
pub const ROWS: &[Row] = &[
    task(get("GET /.well-known/agent-card.json", PUBLIC)),
    task(get("GET /.well-known/ai-catalog.json", PUBLIC)),
    task(get("GET /a2a", PUBLIC)),
    task(get("GET /a2a/.well-known/agent-card.json", PUBLIC)),
    task(get("GET /a2a/.well-known/ai-catalog.json", PUBLIC)),
    task(get("GET /a2a/jwks.json", PUBLIC)),
    task(get("GET /a2a/agents", PUBLIC)),
    task(get("GET /a2a/agents/{agent}", PUBLIC)),
    task(get("GET /a2a/agents/{agent}/.well-known/agent-card.json", PUBLIC)),
    task(send("POST /a2a/agents", update, UPDATE)),
    task(send("POST /a2a/agents", newcomer, NEW)),
    task(get("POST /a2a/agents/{agent}/refresh", ITSELF)),
    task(get("DELETE /a2a/agents/{agent}", ITSELF)),
    task(send("POST /a2a/callbacks/{token}", news, PUBLIC)),

    task(send("POST /a2a", call, AGENTS)),
    task(send("POST /a2a/", call, AGENTS)),
    task(send("POST /a2a/agents/{agent}", call, AGENTS)),
    task(send("POST /a2a/agents/{agent}/", call, AGENTS)),

    task(send("POST /a2a/message:send", message, AGENTS)),
    task(send("POST /a2a/message:stream", message, AGENTS)),
    task(get("GET /a2a/tasks", AGENTS)),
    task(get("GET /a2a/tasks/{task}", ITS_REQUESTER)),
    task(find("GET /a2a/tasks/{task}", SUBSCRIBE, ITS_REQUESTER)),
    task(find("POST /a2a/tasks/{task}", SUBSCRIBE, ITS_REQUESTER)),
    task(find("POST /a2a/tasks/{task}", CANCEL, ITS_REQUESTER)),
    task(send("POST /a2a/tasks/{task}/pushNotificationConfigs", push, ITS_REQUESTER)),
    task(get("GET /a2a/tasks/{task}/pushNotificationConfigs", ITS_REQUESTER)),
    task(get("GET /a2a/tasks/{task}/pushNotificationConfigs/{config}", ITS_REQUESTER)),
    task(get("DELETE /a2a/tasks/{task}/pushNotificationConfigs/{config}", ITS_REQUESTER)),
    task(get("GET /a2a/extendedAgentCard", AGENTS)),

    task(send("POST /a2a/{tenant}/message:send", message, AGENTS)),
    task(send("POST /a2a/{tenant}/message:stream", message, AGENTS)),
    task(get("GET /a2a/{tenant}/tasks", AGENTS)),
    task(get("GET /a2a/{tenant}/tasks/{task}", ITS_REQUESTER)),
    task(find("GET /a2a/{tenant}/tasks/{task}", SUBSCRIBE, ITS_REQUESTER)),
    task(find("POST /a2a/{tenant}/tasks/{task}", SUBSCRIBE, ITS_REQUESTER)),
    task(find("POST /a2a/{tenant}/tasks/{task}", CANCEL, ITS_REQUESTER)),
    task(send("POST /a2a/{tenant}/tasks/{task}/pushNotificationConfigs", push, ITS_REQUESTER)),
    task(get("GET /a2a/{tenant}/tasks/{task}/pushNotificationConfigs", ITS_REQUESTER)),
    task(get("GET /a2a/{tenant}/tasks/{task}/pushNotificationConfigs/{config}", ITS_REQUESTER)),
    task(get("DELETE /a2a/{tenant}/tasks/{task}/pushNotificationConfigs/{config}", ITS_REQUESTER)),
    task(get("GET /a2a/{tenant}/extendedAgentCard", AGENTS)),

    task(send("POST /a2a/agents/{agent}/message:send", message, AGENTS)),
    task(send("POST /a2a/agents/{agent}/message:stream", message, AGENTS)),
    task(get("GET /a2a/agents/{agent}/tasks", AGENTS)),
    task(get("GET /a2a/agents/{agent}/tasks/{task}", ITS_REQUESTER)),
    task(find("GET /a2a/agents/{agent}/tasks/{task}", SUBSCRIBE, ITS_REQUESTER)),
    task(find("POST /a2a/agents/{agent}/tasks/{task}", SUBSCRIBE, ITS_REQUESTER)),
    task(find("POST /a2a/agents/{agent}/tasks/{task}", CANCEL, ITS_REQUESTER)),
    task(send("POST /a2a/agents/{agent}/tasks/{task}/pushNotificationConfigs", push, ITS_REQUESTER)),
    task(get("GET /a2a/agents/{agent}/tasks/{task}/pushNotificationConfigs", ITS_REQUESTER)),
    task(get("GET /a2a/agents/{agent}/tasks/{task}/pushNotificationConfigs/{config}", ITS_REQUESTER)),
    task(get("DELETE /a2a/agents/{agent}/tasks/{task}/pushNotificationConfigs/{config}", ITS_REQUESTER)),
    task(get("GET /a2a/agents/{agent}/extendedAgentCard", AGENTS)),

    task(send("POST /a2a/agents/{agent}/{tenant}/message:send", message, AGENTS)),
    task(send("POST /a2a/agents/{agent}/{tenant}/message:stream", message, AGENTS)),
    task(get("GET /a2a/agents/{agent}/{tenant}/tasks", AGENTS)),
    task(get("GET /a2a/agents/{agent}/{tenant}/tasks/{task}", ITS_REQUESTER)),
    task(find("GET /a2a/agents/{agent}/{tenant}/tasks/{task}", SUBSCRIBE, ITS_REQUESTER)),
    task(find("POST /a2a/agents/{agent}/{tenant}/tasks/{task}", SUBSCRIBE, ITS_REQUESTER)),
    task(find("POST /a2a/agents/{agent}/{tenant}/tasks/{task}", CANCEL, ITS_REQUESTER)),
    task(send("POST /a2a/agents/{agent}/{tenant}/tasks/{task}/pushNotificationConfigs", push, ITS_REQUESTER)),
    task(get("GET /a2a/agents/{agent}/{tenant}/tasks/{task}/pushNotificationConfigs", ITS_REQUESTER)),
    task(get("GET /a2a/agents/{agent}/{tenant}/tasks/{task}/pushNotificationConfigs/{config}", ITS_REQUESTER)),
    task(get("DELETE /a2a/agents/{agent}/{tenant}/tasks/{task}/pushNotificationConfigs/{config}", ITS_REQUESTER)),
    task(get("GET /a2a/agents/{agent}/{tenant}/extendedAgentCard", AGENTS)),
];

/// Whether the answer to a row's request does not end.
pub fn is_stream(row: &Row) -> bool {
    row.of_a2a && (row.query == SUBSCRIBE || row.route.ends_with("/message:stream"))
}

fn update(_: &Scene) -> Value {
    json!({"name": "named"})
}

fn newcomer(_: &Scene) -> Value {
    json!({"name": "newcomer"})
}

fn news(_: &Scene) -> Value {
    json!({})
}

/// A message that opens a task with the worker, at the hub and at the worker.
fn wanted() -> Value {
    hire_message("m", "hello", json!({"skill": "free"}))
}

fn message(_: &Scene) -> Value {
    json!({"message": wanted(), "configuration": {"returnImmediately": true}})
}

fn call(scene: &Scene) -> Value {
    rpc(1, "SendMessage", message(scene))
}

fn push(scene: &Scene) -> Value {
    json!({"url": scene.closed.url})
}

/// The client and the task.
pub struct Tasks {
    pub named: Client,
    /// The worker's name in this protocol.
    worker: String,
    task: String,
    /// The token of the task's assignment.
    token: String,
    _server: Puppet,
}

impl Tasks {
    pub async fn set(hub: &TestHub, requester: &Agent, worker: &Agent, closed: &str) -> Self {
        let server = Puppet::start().await;
        let body = json!({"name": "named", "card_url": server.card_url()});
        let reply = hub.post("/a2a/agents", None, &body).await.expect(201);
        let named = Client { name: "named".to_owned(), key: reply.str("/api_key") };
        let worker = hub.a2a_name("registry", &worker.id);
        let base = format!("/a2a/agents/{worker}");
        let task = id(&hub.begin(&base, &requester.key, wanted()).await);
        let push = json!({"taskId": task, "id": CONFIG, "url": closed, "token": "of-a-test"});
        let create = "CreateTaskPushNotificationConfig";
        hub.result(&base, &requester.key, create, push).await;
        let token = token(hub, &task);
        Self { named, worker, task, token, _server: server }
    }

    /// What stands for a variable part of a path.
    pub fn path_part(&self, row: &Row, variable: &str) -> String {
        let is_itself =
            ["POST /a2a/agents/{agent}/refresh", "DELETE /a2a/agents/{agent}"].contains(&row.route);
        match variable {
            "{agent}" if is_itself => self.named.name.clone(),
            "{agent}" | "{tenant}" => self.worker.clone(),
            "{task}" => self.task.clone(),
            "{config}" => CONFIG.to_owned(),
            "{token}" => self.token.clone(),
            open => panic!("the scene has no value for {open}"),
        }
    }
}

/// The token of a task's first assignment, as the hub gives it to the worker's server.
fn token(hub: &TestHub, task: &str) -> String {
    let uuid: uuid::Uuid = task.parse().expect("an id");
    let epoch = hub.engine.with_world(|world| world.job_by_uuid(uuid).expect("a job").epoch);
    let said = [&uuid.as_bytes()[..], &epoch.to_be_bytes()].concat();
    let key = hub.engine.hub_secret().derive("rialto a2a callback v1", "token");
    let mut mac = Hmac::<Sha256>::new_from_slice(&key).expect("any length will do");
    mac.update(&said);
    let proof = mac.finalize().into_bytes();
    URL_SAFE_NO_PAD.encode([&said[..], &proof[..16]].concat())
}

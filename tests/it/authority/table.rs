//! The authorization table: each request is made by six callers, with one expected status per
//! column.

use std::sync::LazyLock;

use rialto_protocols::agora::MessageType;
use serde_json::{Value, json};

use super::a2a;
use super::claws::{self, About};
use super::scene::Scene;

/// One request and its permitted callers.
#[derive(Clone, Copy)]
pub struct Row {
    /// Method and path, as the hub lists it.
    pub route: &'static str,
    pub query: &'static str,
    /// Whether the path names the worker instead of the named agent.
    pub of_worker: bool,
    /// Whether the row is about the relay agent instead.
    pub by_address: bool,
    /// Whether the row is about the agora key instead.
    pub by_key: bool,
    /// Whether the row is about openclaw's own agents instead, and about which collaboration.
    pub of_claw: Option<About>,
    /// Whether the row is about a2a's client, or the task of the requester with the worker.
    pub of_a2a: bool,
    pub body: Option<fn(&Scene) -> Value>,
    /// Statuses for: anyone, the agent itself, requester, worker, other agent, operator.
    pub expected: [u16; 6],
}

/// Operations whose answer does not end.
const STREAMS: [&str; 6] = [
    "GET /relay/agent/inbox",
    "GET /agent/inbox",
    "GET /agora/inbox",
    "GET /agora/ws",
    "GET /openclaw/stream",
    "GET /v1/events",
];

/// What a scene has besides the agents of all rows. One scene fits all rows of its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SceneKind {
    Common,
    Openclaw,
    A2a,
}

impl SceneKind {
    pub const ALL: [Self; 3] = [Self::Common, Self::Openclaw, Self::A2a];

    /// The rows of this kind.
    pub fn rows(self) -> Vec<&'static Row> {
        TABLE.iter().filter(|row| row.scene_kind() == self).collect()
    }
}

impl Row {
    /// Whether its answer does not end.
    pub fn is_stream(&self) -> bool {
        STREAMS.contains(&self.route) || a2a::is_stream(self)
    }

    pub fn scene_kind(&self) -> SceneKind {
        match (self.of_claw, self.of_a2a) {
            (Some(_), _) => SceneKind::Openclaw,
            (None, true) => SceneKind::A2a,
            (None, false) => SceneKind::Common,
        }
    }
}

pub const fn get(route: &'static str, expected: [u16; 6]) -> Row {
    Row {
        route,
        query: "",
        of_worker: false,
        by_address: false,
        by_key: false,
        of_claw: None,
        of_a2a: false,
        body: None,
        expected,
    }
}

pub const fn find(route: &'static str, query: &'static str, expected: [u16; 6]) -> Row {
    Row { query, ..get(route, expected) }
}

pub const fn send(route: &'static str, body: fn(&Scene) -> Value, expected: [u16; 6]) -> Row {
    Row { body: Some(body), ..get(route, expected) }
}

/// The same request about the relay agent.
const fn relay(row: Row) -> Row {
    Row { by_address: true, ..row }
}

/// The same request about the agora key.
const fn agora(row: Row) -> Row {
    Row { by_key: true, ..row }
}

/// The same request about openclaw's own agents.
const fn claw(row: Row) -> Row {
    Row { of_claw: Some(About::Running), ..row }
}

/// The same about a collaboration that is not running yet.
const fn claw_about(about: About, row: Row) -> Row {
    Row { of_claw: Some(about), ..row }
}

pub const PUBLIC: [u16; 6] = [200; 6];
/// Agents and callers without a key; what they may do is said in the answer.
const MODELS: [u16; 6] = [200, 200, 200, 200, 200, 403];
/// Agents, about themselves.
pub const AGENTS: [u16; 6] = [401, 200, 200, 200, 200, 403];
const AGENTS_AND_OPERATOR: [u16; 6] = [401, 200, 200, 200, 200, 200];
/// The named agent only: others get 403 for a body and 404 for a path.
const NAMED_IN_BODY: [u16; 6] = [401, 200, 403, 403, 403, 403];
const OWNER_IN_PATH: [u16; 6] = [401, 200, 404, 404, 404, 200];
const REQUESTER: [u16; 6] = [401, 404, 200, 404, 404, 404];
/// The requester only, where operators have routes of their own.
const ASKED: [u16; 6] = [401, 404, 200, 404, 404, 403];
const PARTIES: [u16; 6] = [401, 404, 202, 202, 404, 404];
const WORKER: [u16; 6] = [401, 404, 404, 200, 404, 403];
const OPERATOR: [u16; 6] = [401, 403, 403, 403, 403, 200];
const OPERATOR_MAKES: [u16; 6] = [401, 403, 403, 403, 403, 201];
/// Agents, about themselves; an operator has no inbox.
const INBOXES: [u16; 6] = [401, 200, 200, 200, 200, 401];
const WRITES: [u16; 6] = [401, 202, 403, 403, 403, 202];
const READS: [u16; 6] = [401, 404, 200, 200, 404, 401];
/// The proof is in the body, so every caller may send it.
const SIGNED: [u16; 6] = [202; 6];
/// An inbox token opens one inbox; no other credential does.
const OWN_INBOX: [u16; 6] = [401, 200, 401, 401, 401, 401];
/// The caller of a connection is proven on it.
const UPGRADED: [u16; 6] = [101; 6];
const HIRES: [u16; 6] = [401, 202, 403, 403, 403, 403];
/// openclaw's two parties, and rows where the body names the worker.
const BOTH: [u16; 6] = [401, 404, 200, 200, 404, 404];
const WORKER_IN_BODY: [u16; 6] = [401, 403, 403, 200, 403, 403];
const APPROVES: [u16; 6] = [401, 404, 404, 200, 404, 200];

fn model(_: &Scene) -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
}

fn update(scene: &Scene) -> Value {
    json!({"agent_id": scene.named.id, "agent_name": "renamed", "owner_id": "named", "skills": []})
}

fn newcomer(_: &Scene) -> Value {
    json!({"agent_name": "new", "owner_id": "newcomer", "skills": []})
}

fn hire(scene: &Scene) -> Value {
    json!({"orchestrator_id": scene.named.id, "skill_name": "free", "input_data": {}, "budget": 0})
}

fn result(scene: &Scene) -> Value {
    json!({"job_id": scene.job, "status": "SUCCESS", "output_data": {}, "execution_cost": 0})
}

/// The callback token names the job.
fn late_result(_: &Scene) -> Value {
    json!({"status": "SUCCESS", "output_data": {}, "execution_cost": 0})
}

fn pay(_: &Scene) -> Value {
    json!({"from_owner": "named", "to_owner": "other", "amount": 0.01})
}

fn itself(scene: &Scene) -> Value {
    json!({"agent_id": scene.named.id})
}

fn account(_: &Scene) -> Value {
    json!({"owner_id": "named", "initial_balance": 1})
}

fn skill(_: &Scene) -> Value {
    json!({"skill": "free"})
}

fn nothing(_: &Scene) -> Value {
    json!({})
}

fn online(_: &Scene) -> Value {
    json!({"status": "online"})
}

fn ask(_: &Scene) -> Value {
    json!({"skill": "free", "budget": 0})
}

fn offer(_: &Scene) -> Value {
    json!({"price": 0})
}

fn taken(scene: &Scene) -> Value {
    json!({"agent": scene.worker.id})
}

fn progress(_: &Scene) -> Value {
    json!({"fraction": 0.5})
}

fn part(_: &Scene) -> Value {
    json!({"artifact": {}})
}

fn question(_: &Scene) -> Value {
    json!({"text": "which?"})
}

fn answer(_: &Scene) -> Value {
    json!({"text": "this"})
}

fn done(_: &Scene) -> Value {
    json!({"ok": true, "output": {}})
}

fn acked(_: &Scene) -> Value {
    json!({"up_to": 0})
}

fn message(scene: &Scene) -> Value {
    json!({"to": scene.named.id, "body": {"hello": "there"}})
}

fn sum(_: &Scene) -> Value {
    json!({"owner": "named", "amount": 0.50})
}

fn relay_update(scene: &Scene) -> Value {
    json!({"agent_id": scene.addressed.id})
}

fn relay_newcomer(_: &Scene) -> Value {
    json!({"agent_id": "newcomer@chorus", "endpoint": "https://agent.example/receive"})
}

fn letter(scene: &Scene) -> Value {
    json!({"receiver_id": "addressed", "envelope": {"chorus_version": "0.4",
        "sender_id": scene.addressed.id, "original_text": "hello", "sender_culture": "en"}})
}

fn strangers_letter(_: &Scene) -> Value {
    json!({"envelope": {"chorus_version": "0.4", "sender_id": "stranger@elsewhere",
        "original_text": "hello", "sender_culture": "en"}})
}

fn signed(scene: &Scene) -> Value {
    let note = json!({"status": "busy"});
    scene.speaker.sign_for(MessageType::Status, &note, Some(scene.speaker.public())).json()
}

/// The market's process id, as its clients send it.
const PROCESS_ID: &str = "?process-id=CS5biQW6v2PsT3HM19P_f8Fj8UGYnFFNF8O6sfZ1jLc";

fn dry_run(_: &Scene) -> Value {
    json!({"Tags": [{"name": "Action", "value": "List-Agents"}]})
}

/// Registering an existing agent, and a new one.
pub const UPDATE: [u16; 6] = [409, 200, 401, 401, 401, 200];
pub const NEW: [u16; 6] = [201; 6];

/// All rows.
pub static TABLE: LazyLock<Vec<Row>> = LazyLock::new(|| [ROWS, a2a::ROWS].concat());

#[rustfmt::skip]
const ROWS: &[Row] = &[
    send("POST /mcp", model, MODELS),
    send("POST /mcp/agents/{names}", model, MODELS),

    send("POST /registry/register", update, UPDATE),
    send("POST /register", update, UPDATE),
    send("POST /registry/register", newcomer, NEW),
    send("POST /register", newcomer, NEW),
    find("GET /registry/discover", "?skill=free", PUBLIC),
    find("GET /discover", "?skill=free", PUBLIC),
    send("POST /registry/discover", skill, PUBLIC),
    send("POST /discover", skill, PUBLIC),
    send("POST /registry/jobs", hire, HIRES),
    send("POST /jobs", hire, HIRES),
    Row { of_worker: true, ..send("POST /registry/agents/{agent_id}/jobs", hire, HIRES) },
    get("GET /registry/jobs/{job_id}", PARTIES),
    get("GET /jobs/{job_id}", PARTIES),
    send("POST /registry/jobs/{job_id}/cancel", nothing, REQUESTER),
    send("POST /jobs/{job_id}/cancel", nothing, REQUESTER),
    find("GET /registry/agents/{agent_id}/jobs", "?status=PENDING", [401, 200, 404, 404, 404, 403]),
    send("POST /registry/results", result, WORKER),
    send("POST /results", result, WORKER),
    send("POST /registry/callbacks/{token}", late_result, PUBLIC),
    send("POST /registry/transfer", pay, NAMED_IN_BODY),
    send("POST /transfer", pay, NAMED_IN_BODY),
    send("POST /registry/heartbeat", itself, NAMED_IN_BODY),
    send("POST /heartbeat", itself, NAMED_IN_BODY),
    send("POST /registry/accounts", account, [401, 201, 403, 403, 403, 201]),
    send("POST /accounts", account, [401, 201, 403, 403, 403, 201]),
    get("GET /registry/accounts/{owner_id}", OWNER_IN_PATH),
    get("GET /accounts/{owner_id}", OWNER_IN_PATH),
    get("GET /registry/agents/{agent_id}", PUBLIC),
    get("DELETE /registry/agents/{agent_id}", OWNER_IN_PATH),
    get("GET /registry/skills", PUBLIC),
    get("GET /skills", PUBLIC),
    get("GET /registry/reputation/{agent_id}", PUBLIC),
    get("GET /reputation/{agent_id}", PUBLIC),
    send("POST /registry/reputation/{agent_id}/success", nothing, PUBLIC),
    send("POST /reputation/{agent_id}/success", nothing, PUBLIC),
    send("POST /registry/reputation/{agent_id}/failure", nothing, PUBLIC),
    send("POST /reputation/{agent_id}/failure", nothing, PUBLIC),
    get("GET /registry/audit", AGENTS_AND_OPERATOR),
    get("GET /audit", AGENTS_AND_OPERATOR),
    find("GET /registry/audit", "?owner_id=named", OWNER_IN_PATH),
    find("GET /audit", "?owner_id=named", OWNER_IN_PATH),
    get("GET /registry/economy", AGENTS_AND_OPERATOR),
    get("GET /economy", AGENTS_AND_OPERATOR),
    get("GET /registry/health", PUBLIC),

    relay(send("POST /relay/register", relay_update, UPDATE)),
    relay(send("POST /register", relay_update, UPDATE)),
    relay(send("POST /relay/register", relay_newcomer, NEW)),
    relay(send("POST /register", relay_newcomer, NEW)),
    relay(get("GET /relay/agent/inbox", INBOXES)),
    relay(get("GET /agent/inbox", INBOXES)),
    relay(send("POST /relay/agent/inbox/ack", acked, INBOXES)),
    relay(send("POST /agent/inbox/ack", acked, INBOXES)),
    relay(get("GET /relay/agent/messages", INBOXES)),
    relay(get("GET /agent/messages", INBOXES)),
    relay(send("POST /relay/agents", relay_newcomer, OPERATOR_MAKES)),
    relay(send("POST /agents", relay_newcomer, OPERATOR_MAKES)),
    relay(get("GET /relay/agents", PUBLIC)),
    relay(get("GET /agents", PUBLIC)),
    relay(get("GET /relay/agents/{id}", PUBLIC)),
    relay(get("GET /agents/{id}", PUBLIC)),
    relay(get("DELETE /relay/agents/{id}", OWNER_IN_PATH)),
    relay(get("DELETE /agents/{id}", OWNER_IN_PATH)),
    relay(send("POST /relay/agents/{id}/key", nothing, OPERATOR_MAKES)),
    relay(send("POST /agents/{id}/key", nothing, OPERATOR_MAKES)),
    relay(send("POST /relay/messages", letter, WRITES)),
    relay(send("POST /messages", letter, WRITES)),
    relay(get("GET /relay/messages/{trace_id}", READS)),
    relay(get("GET /messages/{trace_id}", READS)),
    relay(get("GET /relay/agent/blocks", INBOXES)),
    relay(get("GET /agent/blocks", INBOXES)),
    relay(get("PUT /relay/agent/blocks/{id}", INBOXES)),
    relay(get("PUT /agent/blocks/{id}", INBOXES)),
    relay(get("DELETE /relay/agent/blocks/{id}", INBOXES)),
    relay(get("DELETE /agent/blocks/{id}", INBOXES)),
    relay(get("GET /relay/health", PUBLIC)),
    relay(get("GET /relay/.well-known/chorus.json", PUBLIC)),
    relay(get("GET /.well-known/chorus.json", PUBLIC)),
    relay(send("POST /relay/receive/{id}", strangers_letter, PUBLIC)),

    agora(get("GET /agora", PUBLIC)),
    agora(send("POST /agora", signed, SIGNED)),
    agora(send("POST /agora/envelopes", signed, SIGNED)),
    agora(get("GET /agora/agents", PUBLIC)),
    agora(get("GET /agora/agents/{id}", PUBLIC)),
    agora(send("POST /agora/agents/{id}", signed, SIGNED)),
    agora(get("GET /agora/inbox", OWN_INBOX)),
    agora(send("POST /agora/inbox/ack", acked, OWN_INBOX)),
    agora(get("GET /agora/messages", OWN_INBOX)),
    agora(get("GET /agora/requests/{id}", OWN_INBOX)),
    agora(get("GET /agora/ws", UPGRADED)),

    claw(send("POST /openclaw/identity", claws::update, UPDATE)),
    claw(send("POST /openclaw/identity", claws::newcomer, NEW)),
    claw(send("POST /openclaw/status", claws::status, NAMED_IN_BODY)),
    claw(send("POST /openclaw/reputation", claws::claim, NAMED_IN_BODY)),
    claw(send("POST /openclaw/collaborations", claws::request, NAMED_IN_BODY)),
    claw(Row { of_worker: true, ..send("POST /openclaw/agents/{agent_id}/collaborations", claws::request, NAMED_IN_BODY) }),
    claw(get("GET /openclaw/collaborations", AGENTS)),
    claw(get("GET /openclaw/collaborations/{id}", BOTH)),
    claw_about(About::Awaiting, send("POST /openclaw/collaborations/{id}/response", claws::response, WORKER_IN_BODY)),
    claw_about(About::Deferred, send("POST /openclaw/collaborations/{id}/approve", claws::approval, APPROVES)),
    claw(send("POST /openclaw/collaborations/{id}/result", claws::result, WORKER_IN_BODY)),
    claw(send("POST /openclaw/collaborations/{id}/cancel", nothing, BOTH)),
    claw(send("POST /openclaw/messages", claws::status, NAMED_IN_BODY)),
    claw(get("GET /openclaw/agents", PUBLIC)),
    claw(get("GET /openclaw/agents/{agent_id}", PUBLIC)),
    claw(get("DELETE /openclaw/agents/{agent_id}", OWNER_IN_PATH)),
    claw(get("GET /openclaw/agents/{agent_id}/status", PUBLIC)),
    claw(get("GET /openclaw/agents/{agent_id}/reputation", PUBLIC)),
    claw(get("GET /openclaw/stream", AGENTS)),
    claw(get("GET /openclaw/health", PUBLIC)),

    get("GET /clara", PUBLIC),
    get("POST /clara", SIGNED),
    get("POST /clara/mu", SIGNED),
    get("POST /clara/mu/monitor/{process}", PUBLIC),
    get("DELETE /clara/mu/monitor/{process}", PUBLIC),
    get("POST /clara/monitor/{process}", PUBLIC),
    get("DELETE /clara/monitor/{process}", PUBLIC),
    find("GET /clara/cu/result/{message}", PROCESS_ID, PUBLIC),
    find("GET /clara/result/{message}", PROCESS_ID, PUBLIC),
    get("GET /clara/cu/results/{process}", PUBLIC),
    get("GET /clara/results/{process}", PUBLIC),
    Row { query: PROCESS_ID, ..send("POST /clara/cu/dry-run", dry_run, PUBLIC) },
    Row { query: PROCESS_ID, ..send("POST /clara/dry-run", dry_run, PUBLIC) },

    get("GET /v1/agents", PUBLIC),
    get("GET /v1/agents/{id}", PUBLIC),
    get("GET /v1/agents/{id}/reputation", PUBLIC),
    get("GET /v1/me", AGENTS),
    get("DELETE /v1/me", AGENTS),
    send("POST /v1/me/status", online, AGENTS),
    get("GET /v1/jobs", AGENTS),
    // The worker is the only one that offers the skill, so it cannot ask itself.
    send("POST /v1/jobs", ask, [401, 201, 201, 422, 201, 403]),
    get("GET /v1/jobs/{id}", [401, 404, 200, 200, 404, 200]),
    get("GET /v1/jobs/{id}/trace", [401, 404, 200, 200, 404, 200]),
    send("POST /v1/jobs/{id}/cancel", nothing, ASKED),
    get("GET /v1/jobs/{id}/offers", [401, 404, 200, 200, 404, 403]),
    send("POST /v1/jobs/{id}/offers", offer, [401, 404, 404, 201, 404, 403]),
    send("POST /v1/jobs/{id}/accept", taken, ASKED),
    get("GET /v1/work", AGENTS),
    send("POST /v1/jobs/{id}/progress", progress, WORKER),
    send("POST /v1/jobs/{id}/parts", part, WORKER),
    send("POST /v1/jobs/{id}/ask", question, WORKER),
    send("POST /v1/jobs/{id}/answer", answer, ASKED),
    send("POST /v1/jobs/{id}/result", done, WORKER),
    send("POST /v1/jobs/{id}/decline", nothing, WORKER),
    get("GET /v1/ledger", AGENTS_AND_OPERATOR),
    get("GET /v1/accounts/{name}", OWNER_IN_PATH),
    get("GET /v1/inbox", AGENTS),
    get("GET /v1/inbox/delivery", AGENTS),
    send("POST /v1/inbox/ack", acked, AGENTS),
    get("GET /v1/events", AGENTS_AND_OPERATOR),
    send("POST /v1/messages", message, AGENTS),
    get("GET /v1/webhooks", AGENTS),
    // Only one agent has an endpoint.
    send("POST /v1/webhooks/test", nothing, [401, 200, 409, 409, 409, 403]),
    send("POST /v1/webhooks/secret", nothing, AGENTS),
    send("POST /v1/webhooks/{id}/resend", nothing, ASKED),
    send("POST /v1/keys/rotate", nothing, AGENTS),
    get("DELETE /v1/keys", AGENTS),
    get("GET /v1/keys", AGENTS),
    send("POST /v1/keys", nothing, [401, 201, 201, 201, 201, 403]),
    // The key of the named agent.
    get("DELETE /v1/keys/{id}", [401, 200, 404, 404, 404, 403]),
    send("POST /v1/operator/grants", sum, OPERATOR_MAKES),
    send("POST /v1/operator/burns", sum, OPERATOR_MAKES),
    send("POST /v1/operator/jobs/{uuid}/cancel", nothing, OPERATOR),
    send("POST /v1/operator/jobs/{uuid}/requeue", nothing, OPERATOR),
    send("POST /v1/operator/agents/{id}/revoke-keys", nothing, OPERATOR),
    get("DELETE /v1/operator/agents/{id}", OPERATOR),
    get("GET /v1/operator/pushes", OPERATOR),
    send("POST /v1/operator/pushes/{id}/retry", nothing, OPERATOR),
    get("GET /v1/operator/stats", OPERATOR),
    get("GET /v1/operator/cluster", OPERATOR),
    get("GET /v1/operator/jobs", OPERATOR),
    get("GET /v1/operator/agents", OPERATOR),
    send("POST /v1/operator/agents/{id}/suspend", nothing, OPERATOR),
    send("POST /v1/operator/agents/{id}/resume", nothing, OPERATOR),
    send("POST /v1/operator/owners/{name}/suspend", nothing, OPERATOR),
    send("POST /v1/operator/owners/{name}/resume", nothing, OPERATOR),
    send("POST /v1/operator/keys", nothing, OPERATOR_MAKES),

    get("GET /livez", PUBLIC),
    get("GET /readyz", PUBLIC),
    get("GET /health", PUBLIC),
    get("GET /metrics", PUBLIC),
    get("GET /openapi.json", PUBLIC),
    get("GET /llms.txt", PUBLIC),
    get("GET /skill", PUBLIC),
];

//! The named cost bounds of all operations.

use super::measure::Cost;

/// The maximum cost of one request, apart from the bytes it sends itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bound {
    pub name: &'static str,
    /// Bytes of the response.
    pub answered: usize,
    /// Bytes kept in memory and on disk afterwards.
    pub memory: usize,
    pub disk: usize,
    /// Commands the lane decides for it, and rows they change.
    pub commands: usize,
    pub rows: usize,
}

/// Bytes kept for every byte sent: the content is stored once, as JSON within JSON, and once more
/// for each of its two readers.
const PER_BYTE: usize = 4;

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;

/// A refused request leaves nothing, except that activity may be recorded.
pub const REFUSED: Bound =
    Bound { name: "refused", answered: 4 * KIB, memory: 512, disk: 512, commands: 3, rows: 4 };

/// A read leaves nothing either, whichever key it carries.
const READ: Bound = Bound { name: "read", answered: 16 * KIB, ..REFUSED };
/// One agent with all its schemas.
const ENTRY: Bound = Bound { name: "entry", answered: 256 * KIB, ..READ };
/// One job, message or result, in full.
const CONTENT: Bound = Bound { name: "content", answered: 2 * MIB, ..READ };
/// A list: a mebibyte of items and their frame.
const LIST: Bound = Bound { name: "list", answered: MIB + 16 * KIB, ..READ };
/// The market's lists are JSON texts within JSON.
const MARKET: Bound = Bound { name: "market list", answered: 4 * MIB + 64 * KIB, ..READ };
/// All operations of the hub, as one public document.
const DOCUMENT: Bound = Bound { name: "document", answered: 512 * KIB, ..READ };
/// Jobs are marked as handed out; several large jobs in one response.
const WORK: Bound = Bound {
    name: "work",
    answered: 8 * MIB + 64 * KIB,
    memory: KIB,
    disk: 4 * KIB,
    commands: 4,
    rows: 8,
};
/// Only the opening of a stream is measured here.
const STREAM: Bound = Bound { name: "stream", ..READ };

/// A change to existing rows.
const CHANGE: Bound = Bound {
    name: "change",
    answered: 256 * KIB,
    memory: 2 * KIB,
    disk: 6 * KIB,
    commands: 4,
    rows: 16,
};
/// A new row that stays: an agent with its aliases in all protocols, a job, a message.
const NEW: Bound = Bound {
    name: "new",
    answered: 256 * KIB,
    memory: 6 * KIB,
    disk: 16 * KIB,
    commands: 4,
    rows: 32,
};

/// The bound of every route.
#[rustfmt::skip]
pub const ROUTES: &[(&str, Bound)] = &[
    ("POST /mcp", NEW),
    ("POST /mcp/agents/{names}", NEW),

    ("POST /registry/register", NEW),
    ("POST /register", NEW),
    ("GET /registry/discover", LIST),
    ("GET /discover", LIST),
    ("POST /registry/discover", LIST),
    ("POST /discover", LIST),
    ("POST /registry/jobs", NEW),
    ("POST /jobs", NEW),
    ("POST /registry/agents/{agent_id}/jobs", NEW),
    ("GET /registry/jobs/{job_id}", CONTENT),
    ("GET /jobs/{job_id}", CONTENT),
    ("POST /registry/jobs/{job_id}/cancel", CHANGE),
    ("POST /jobs/{job_id}/cancel", CHANGE),
    ("GET /registry/agents/{agent_id}/jobs", WORK),
    ("POST /registry/results", CHANGE),
    ("POST /results", CHANGE),
    ("POST /registry/callbacks/{token}", CHANGE),
    ("POST /registry/transfer", NEW),
    ("POST /transfer", NEW),
    ("POST /registry/heartbeat", CHANGE),
    ("POST /heartbeat", CHANGE),
    ("POST /registry/accounts", NEW),
    ("POST /accounts", NEW),
    ("GET /registry/accounts/{owner_id}", READ),
    ("GET /accounts/{owner_id}", READ),
    ("GET /registry/agents/{agent_id}", ENTRY),
    ("DELETE /registry/agents/{agent_id}", CHANGE),
    ("GET /registry/skills", LIST),
    ("GET /skills", LIST),
    ("GET /registry/reputation/{agent_id}", READ),
    ("GET /reputation/{agent_id}", READ),
    ("POST /registry/reputation/{agent_id}/success", READ),
    ("POST /reputation/{agent_id}/success", READ),
    ("POST /registry/reputation/{agent_id}/failure", READ),
    ("POST /reputation/{agent_id}/failure", READ),
    ("GET /registry/audit", LIST),
    ("GET /audit", LIST),
    ("GET /registry/economy", LIST),
    ("GET /economy", LIST),
    ("GET /registry/health", READ),

    ("POST /relay/register", NEW),
    ("GET /relay/agent/inbox", STREAM),
    ("GET /agent/inbox", STREAM),
    ("POST /relay/agent/inbox/ack", CHANGE),
    ("POST /agent/inbox/ack", CHANGE),
    ("GET /relay/agent/messages", LIST),
    ("GET /agent/messages", LIST),
    ("POST /relay/agents", NEW),
    ("POST /agents", NEW),
    ("GET /relay/agents", LIST),
    ("GET /agents", LIST),
    ("GET /relay/agents/{id}", ENTRY),
    ("GET /agents/{id}", ENTRY),
    ("DELETE /relay/agents/{id}", CHANGE),
    ("DELETE /agents/{id}", CHANGE),
    ("POST /relay/agents/{id}/key", CHANGE),
    ("POST /agents/{id}/key", CHANGE),
    ("POST /relay/messages", NEW),
    ("POST /messages", NEW),
    ("GET /relay/messages/{trace_id}", CONTENT),
    ("GET /messages/{trace_id}", CONTENT),
    ("GET /relay/agent/blocks", LIST),
    ("GET /agent/blocks", LIST),
    ("PUT /relay/agent/blocks/{id}", CHANGE),
    ("PUT /agent/blocks/{id}", CHANGE),
    ("DELETE /relay/agent/blocks/{id}", CHANGE),
    ("DELETE /agent/blocks/{id}", CHANGE),
    ("GET /relay/health", READ),
    ("GET /relay/.well-known/chorus.json", READ),
    ("GET /.well-known/chorus.json", READ),
    ("POST /relay/receive/{id}", NEW),

    ("GET /agora", READ),
    ("POST /agora", NEW),
    ("POST /agora/envelopes", NEW),
    ("GET /agora/agents", LIST),
    ("GET /agora/agents/{id}", ENTRY),
    ("POST /agora/agents/{id}", NEW),
    ("GET /agora/inbox", STREAM),
    ("POST /agora/inbox/ack", CHANGE),
    ("GET /agora/messages", LIST),
    ("GET /agora/requests/{id}", CONTENT),
    ("GET /agora/ws", STREAM),

    ("POST /openclaw/identity", NEW),
    ("POST /openclaw/status", CHANGE),
    ("POST /openclaw/reputation", CHANGE),
    ("POST /openclaw/collaborations", NEW),
    ("POST /openclaw/agents/{agent_id}/collaborations", NEW),
    ("GET /openclaw/collaborations", LIST),
    ("GET /openclaw/collaborations/{id}", CONTENT),
    ("POST /openclaw/collaborations/{id}/response", CHANGE),
    ("POST /openclaw/collaborations/{id}/approve", CHANGE),
    ("POST /openclaw/collaborations/{id}/result", CHANGE),
    ("POST /openclaw/collaborations/{id}/cancel", CHANGE),
    ("POST /openclaw/messages", CHANGE),
    ("GET /openclaw/agents", LIST),
    ("GET /openclaw/agents/{agent_id}", ENTRY),
    ("DELETE /openclaw/agents/{agent_id}", CHANGE),
    ("GET /openclaw/agents/{agent_id}/status", ENTRY),
    ("GET /openclaw/agents/{agent_id}/reputation", ENTRY),
    ("GET /openclaw/stream", STREAM),
    ("GET /openclaw/health", READ),

    ("GET /clara", READ),
    ("POST /clara", CHANGE),
    ("POST /clara/mu", CHANGE),
    ("POST /clara/mu/monitor/{process}", READ),
    ("DELETE /clara/mu/monitor/{process}", READ),
    ("POST /clara/monitor/{process}", READ),
    ("DELETE /clara/monitor/{process}", READ),
    ("GET /clara/cu/result/{message}", MARKET),
    ("GET /clara/result/{message}", MARKET),
    ("GET /clara/cu/results/{process}", MARKET),
    ("GET /clara/results/{process}", MARKET),
    ("POST /clara/cu/dry-run", MARKET),
    ("POST /clara/dry-run", MARKET),

    ("GET /.well-known/agent-card.json", ENTRY),
    ("GET /.well-known/ai-catalog.json", LIST),
    ("GET /a2a", ENTRY),
    ("GET /a2a/.well-known/agent-card.json", ENTRY),
    ("GET /a2a/.well-known/ai-catalog.json", LIST),
    ("GET /a2a/jwks.json", READ),
    ("GET /a2a/agents", LIST),
    ("GET /a2a/agents/{agent}", ENTRY),
    ("GET /a2a/agents/{agent}/.well-known/agent-card.json", ENTRY),
    ("POST /a2a/agents", NEW),
    ("POST /a2a/agents/{agent}/refresh", CHANGE),
    ("DELETE /a2a/agents/{agent}", CHANGE),
    ("POST /a2a/callbacks/{token}", CHANGE),
    ("POST /a2a", NEW),
    ("POST /a2a/", NEW),
    ("POST /a2a/agents/{agent}", NEW),
    ("POST /a2a/agents/{agent}/", NEW),
    ("POST /a2a/message:send", NEW),
    ("POST /a2a/message:stream", NEW),
    ("GET /a2a/tasks", LIST),
    ("GET /a2a/tasks/{task}", CONTENT),
    ("POST /a2a/tasks/{task}", CHANGE),
    ("POST /a2a/tasks/{task}/pushNotificationConfigs", CHANGE),
    ("GET /a2a/tasks/{task}/pushNotificationConfigs", READ),
    ("GET /a2a/tasks/{task}/pushNotificationConfigs/{config}", READ),
    ("DELETE /a2a/tasks/{task}/pushNotificationConfigs/{config}", CHANGE),
    ("GET /a2a/extendedAgentCard", ENTRY),
    ("POST /a2a/{tenant}/message:send", NEW),
    ("POST /a2a/{tenant}/message:stream", NEW),
    ("GET /a2a/{tenant}/tasks", LIST),
    ("GET /a2a/{tenant}/tasks/{task}", CONTENT),
    ("POST /a2a/{tenant}/tasks/{task}", CHANGE),
    ("POST /a2a/{tenant}/tasks/{task}/pushNotificationConfigs", CHANGE),
    ("GET /a2a/{tenant}/tasks/{task}/pushNotificationConfigs", READ),
    ("GET /a2a/{tenant}/tasks/{task}/pushNotificationConfigs/{config}", READ),
    ("DELETE /a2a/{tenant}/tasks/{task}/pushNotificationConfigs/{config}", CHANGE),
    ("GET /a2a/{tenant}/extendedAgentCard", ENTRY),
    ("POST /a2a/agents/{agent}/message:send", NEW),
    ("POST /a2a/agents/{agent}/message:stream", NEW),
    ("GET /a2a/agents/{agent}/tasks", LIST),
    ("GET /a2a/agents/{agent}/tasks/{task}", CONTENT),
    ("POST /a2a/agents/{agent}/tasks/{task}", CHANGE),
    ("POST /a2a/agents/{agent}/tasks/{task}/pushNotificationConfigs", CHANGE),
    ("GET /a2a/agents/{agent}/tasks/{task}/pushNotificationConfigs", READ),
    ("GET /a2a/agents/{agent}/tasks/{task}/pushNotificationConfigs/{config}", READ),
    ("DELETE /a2a/agents/{agent}/tasks/{task}/pushNotificationConfigs/{config}", CHANGE),
    ("GET /a2a/agents/{agent}/extendedAgentCard", ENTRY),
    ("POST /a2a/agents/{agent}/{tenant}/message:send", NEW),
    ("POST /a2a/agents/{agent}/{tenant}/message:stream", NEW),
    ("GET /a2a/agents/{agent}/{tenant}/tasks", LIST),
    ("GET /a2a/agents/{agent}/{tenant}/tasks/{task}", CONTENT),
    ("POST /a2a/agents/{agent}/{tenant}/tasks/{task}", CHANGE),
    ("POST /a2a/agents/{agent}/{tenant}/tasks/{task}/pushNotificationConfigs", CHANGE),
    ("GET /a2a/agents/{agent}/{tenant}/tasks/{task}/pushNotificationConfigs", READ),
    ("GET /a2a/agents/{agent}/{tenant}/tasks/{task}/pushNotificationConfigs/{config}", READ),
    ("DELETE /a2a/agents/{agent}/{tenant}/tasks/{task}/pushNotificationConfigs/{config}", CHANGE),
    ("GET /a2a/agents/{agent}/{tenant}/extendedAgentCard", ENTRY),

    ("GET /v1/agents", LIST),
    ("GET /v1/agents/{id}", ENTRY),
    ("GET /v1/agents/{id}/reputation", READ),
    ("GET /v1/me", ENTRY),
    ("DELETE /v1/me", CHANGE),
    ("POST /v1/me/status", CHANGE),
    ("GET /v1/jobs", LIST),
    ("POST /v1/jobs", NEW),
    ("GET /v1/jobs/{id}", CONTENT),
    ("GET /v1/jobs/{id}/trace", CONTENT),
    ("POST /v1/jobs/{id}/cancel", CHANGE),
    ("GET /v1/jobs/{id}/offers", LIST),
    ("POST /v1/jobs/{id}/offers", CHANGE),
    ("POST /v1/jobs/{id}/accept", CHANGE),
    ("GET /v1/work", WORK),
    ("POST /v1/jobs/{id}/progress", CHANGE),
    ("POST /v1/jobs/{id}/parts", CHANGE),
    ("POST /v1/jobs/{id}/ask", CHANGE),
    ("POST /v1/jobs/{id}/answer", CHANGE),
    ("POST /v1/jobs/{id}/result", CHANGE),
    ("POST /v1/jobs/{id}/decline", CHANGE),
    ("GET /v1/ledger", LIST),
    ("GET /v1/accounts/{name}", READ),
    ("GET /v1/inbox", LIST),
    ("POST /v1/inbox/ack", CHANGE),
    ("GET /v1/inbox/delivery", READ),
    ("GET /v1/events", STREAM),
    ("POST /v1/messages", NEW),
    ("GET /v1/webhooks", LIST),
    ("POST /v1/webhooks/test", CHANGE),
    ("POST /v1/webhooks/secret", CHANGE),
    ("POST /v1/webhooks/{id}/resend", CHANGE),
    ("POST /v1/keys/rotate", CHANGE),
    ("DELETE /v1/keys", CHANGE),
    ("GET /v1/keys", LIST),
    ("POST /v1/keys", CHANGE),
    ("DELETE /v1/keys/{id}", CHANGE),
    ("POST /v1/operator/grants", NEW),
    ("POST /v1/operator/burns", NEW),
    ("POST /v1/operator/jobs/{uuid}/cancel", CHANGE),
    ("POST /v1/operator/jobs/{uuid}/requeue", CHANGE),
    ("GET /v1/operator/jobs", LIST),
    ("GET /v1/operator/agents", LIST),
    ("POST /v1/operator/agents/{id}/revoke-keys", CHANGE),
    ("POST /v1/operator/agents/{id}/suspend", CHANGE),
    ("POST /v1/operator/agents/{id}/resume", CHANGE),
    ("POST /v1/operator/owners/{name}/suspend", CHANGE),
    ("POST /v1/operator/owners/{name}/resume", CHANGE),
    ("POST /v1/operator/keys", CHANGE),
    ("DELETE /v1/operator/agents/{id}", CHANGE),
    ("GET /v1/operator/pushes", LIST),
    ("POST /v1/operator/pushes/{id}/retry", CHANGE),
    ("GET /v1/operator/stats", READ),
    ("GET /v1/operator/cluster", READ),

    ("GET /livez", READ),
    ("GET /readyz", READ),
    ("GET /health", READ),
    ("GET /metrics", LIST),
    ("GET /openapi.json", DOCUMENT),
    ("GET /llms.txt", READ),
    ("GET /skill", READ),
];

/// Signed messages share one route, so each type of envelope has a bound.
#[rustfmt::skip]
pub const ENVELOPES: &[(&str, Bound)] = &[
    ("HELLO", NEW),
    ("WELCOME", NEW),
    ("STATUS", NEW),
    ("REQUEST", NEW),
    ("OFFER", NEW),
    ("ACCEPT", NEW),
    ("RESULT", NEW),
    ("ERROR", NEW),
];

/// A signed read keeps a short record that it was executed, and not its answer.
const SIGNED_READ: Bound = Bound {
    name: "signed read",
    answered: 4 * MIB + 64 * KIB,
    memory: 512,
    disk: 2 * KIB,
    commands: 4,
    rows: 8,
};

/// And of every order to the market.
#[rustfmt::skip]
pub const ORDERS: &[(&str, Bound)] = &[
    ("Register-Agent-Profile", NEW),
    ("List-Agents", SIGNED_READ),
    ("Register-Task", NEW),
    ("Send-Result", NEW),
    ("Decline-Task", NEW),
    ("Submit-Offer", NEW),
    ("Load-Next-Assigned-Task", SIGNED_READ),
    ("Load-Next-Task-Result", SIGNED_READ),
    ("Load-Next-Query", SIGNED_READ),
    ("Tasks-Queue", SIGNED_READ),
    ("Dispatch-Tasks", SIGNED_READ),
    ("Balance", SIGNED_READ),
    ("Balances", SIGNED_READ),
    ("Dashboard-Data", SIGNED_READ),
    ("Withdraw", SIGNED_READ),
    ("Withdraw-All", SIGNED_READ),
    ("Claim-Reward", SIGNED_READ),
    ("Claim-Reward-All", SIGNED_READ),
    ("Task-Trace", SIGNED_READ),
];

impl Bound {
    /// How a cost exceeds the bound, if it does.
    pub fn excess(&self, cost: &Cost, sent: usize) -> Option<String> {
        let brought = sent * PER_BYTE;
        let over = [
            ("answered", cost.answered, self.answered),
            ("kept in memory", cost.memory, self.memory + brought),
            ("kept on disk", cost.disk, self.disk + brought),
            ("commands decided", cost.commands, self.commands),
            ("rows changed", cost.rows, self.rows),
        ];
        let over = over.into_iter().filter(|(_, is, may)| is > may);
        let told: Vec<String> =
            over.map(|(what, is, may)| format!("{what}: {is}, at most {may}")).collect();
        (!told.is_empty()).then(|| format!("bound \"{}\": {}", self.name, told.join("; ")))
    }
}

/// The bound of an entry of a table.
pub fn of(table: &[(&str, Bound)], name: &str) -> Bound {
    let found = table.iter().find(|(known, _)| *known == name);
    found.unwrap_or_else(|| panic!("{name} has no bound")).1
}

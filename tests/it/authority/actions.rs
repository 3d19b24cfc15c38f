//! The promises of docs/guarantees.md about authorization, checked against the rows: every route
//! that changes something belongs to one action, and every row matches its action's cells.

use std::collections::BTreeMap;

use rialto_protocols::adapter::Access;

use super::table::{Row, TABLE};
use super::{CALLERS, route_of};

/// An action, its callers, and its routes.
struct Action {
    name: &'static str,
    /// `y` allowed, `n` refused, `-` not decided by the caller alone, for: anyone, the agent
    /// itself, requester, worker, other agent, operator.
    cells: &'static str,
    routes: &'static [&'static str],
}

const REGISTER: Action = Action { name: "register a new id", cells: "y----y", routes: &[] };

#[rustfmt::skip]
const ACTIONS: &[Action] = &[
    Action { name: "update, rotate the key of or unregister an id", cells: "ny--ny", routes: &[
        "POST /registry/register", "POST /register", "DELETE /registry/agents/{agent_id}",
        "POST /relay/register", "DELETE /relay/agents/{id}", "DELETE /agents/{id}",
        "POST /openclaw/identity", "DELETE /openclaw/agents/{agent_id}",
        "POST /a2a/agents", "POST /a2a/agents/{agent}/refresh", "DELETE /a2a/agents/{agent}",
    ] },
    Action { name: "report the status of the caller's own id", cells: "nynnnn", routes: &[
        "POST /registry/heartbeat", "POST /heartbeat", "POST /openclaw/status",
        "POST /openclaw/reputation", "POST /openclaw/messages",
    ] },
    Action { name: "send as an id", cells: "nynnny", routes: &[
        "POST /relay/messages", "POST /messages",
    ] },
    // Only if the operator enables it, and marked as unverified.
    Action { name: "deliver a message without a key", cells: "yyyyyy", routes: &[
        "POST /relay/receive/{id}",
    ] },
    // What a message asks for belongs to its caller, and without a key nothing can be changed.
    Action { name: "call the hub as a model", cells: "yyyyyn", routes: &[
        "POST /mcp", "POST /mcp/agents/{names}",
    ] },
    // These apply to the caller itself: no other agent can be named.
    Action { name: "use the caller's own inbox, keys, status and blocks", cells: "ny---n", routes: &[
        "POST /relay/agent/inbox/ack", "POST /agent/inbox/ack", "PUT /relay/agent/blocks/{id}",
        "PUT /agent/blocks/{id}", "DELETE /relay/agent/blocks/{id}", "DELETE /agent/blocks/{id}",
        "POST /agora/inbox/ack", "POST /v1/me/status", "DELETE /v1/me", "POST /v1/inbox/ack",
        "POST /v1/messages", "POST /v1/webhooks/test", "POST /v1/webhooks/secret",
        "POST /v1/keys/rotate", "DELETE /v1/keys", "POST /v1/keys", "DELETE /v1/keys/{id}",
    ] },
    Action { name: "create a job", cells: "ny---n", routes: &[
        "POST /registry/jobs", "POST /jobs", "POST /registry/agents/{agent_id}/jobs",
        "POST /openclaw/collaborations", "POST /openclaw/agents/{agent_id}/collaborations",
        "POST /v1/jobs",
        "POST /a2a", "POST /a2a/", "POST /a2a/agents/{agent}", "POST /a2a/agents/{agent}/",
        "POST /a2a/message:send", "POST /a2a/{tenant}/message:send",
        "POST /a2a/agents/{agent}/message:send", "POST /a2a/agents/{agent}/{tenant}/message:send",
        "POST /a2a/message:stream", "POST /a2a/{tenant}/message:stream",
        "POST /a2a/agents/{agent}/message:stream",
        "POST /a2a/agents/{agent}/{tenant}/message:stream",
    ] },
    Action { name: "cancel a job, or repeat its final notice", cells: "nny-nn", routes: &[
        "POST /registry/jobs/{job_id}/cancel", "POST /jobs/{job_id}/cancel",
        "POST /openclaw/collaborations/{id}/cancel", "POST /v1/jobs/{id}/cancel",
        "POST /v1/webhooks/{id}/resend", "POST /a2a/tasks/{task}",
        "POST /a2a/{tenant}/tasks/{task}", "POST /a2a/agents/{agent}/tasks/{task}",
        "POST /a2a/agents/{agent}/{tenant}/tasks/{task}",
    ] },
    Action { name: "have the events of a job sent to a URL", cells: "nnynnn", routes: &[
        "POST /a2a/tasks/{task}/pushNotificationConfigs",
        "POST /a2a/{tenant}/tasks/{task}/pushNotificationConfigs",
        "POST /a2a/agents/{agent}/tasks/{task}/pushNotificationConfigs",
        "POST /a2a/agents/{agent}/{tenant}/tasks/{task}/pushNotificationConfigs",
        "DELETE /a2a/tasks/{task}/pushNotificationConfigs/{config}",
        "DELETE /a2a/{tenant}/tasks/{task}/pushNotificationConfigs/{config}",
        "DELETE /a2a/agents/{agent}/tasks/{task}/pushNotificationConfigs/{config}",
        "DELETE /a2a/agents/{agent}/{tenant}/tasks/{task}/pushNotificationConfigs/{config}",
    ] },
    // Any agent able to do it, but never the requester.
    Action { name: "bid", cells: "nnny-n", routes: &["POST /v1/jobs/{id}/offers"] },
    Action { name: "accept an offer, or answer a question", cells: "nnynnn", routes: &[
        "POST /v1/jobs/{id}/accept", "POST /v1/jobs/{id}/answer",
    ] },
    Action { name: "accept, decline and report, as the worker", cells: "nnnyn-", routes: &[
        "POST /registry/results", "POST /results", "POST /v1/jobs/{id}/result",
        "POST /v1/jobs/{id}/decline", "POST /v1/jobs/{id}/progress", "POST /v1/jobs/{id}/parts",
        "POST /v1/jobs/{id}/ask", "POST /openclaw/collaborations/{id}/response",
        "POST /openclaw/collaborations/{id}/approve", "POST /openclaw/collaborations/{id}/result",
    ] },
    Action { name: "transfer from an account", cells: "nynnnn", routes: &[
        "POST /registry/transfer", "POST /transfer",
    ] },
    Action { name: "open an account", cells: "nynnny", routes: &[
        "POST /registry/accounts", "POST /accounts",
    ] },
    Action { name: "issue, burn, requeue, revoke, suspend and remove", cells: "nnnnny", routes: &[
        "POST /v1/operator/grants", "POST /v1/operator/burns",
        "POST /v1/operator/jobs/{uuid}/cancel", "POST /v1/operator/jobs/{uuid}/requeue",
        "POST /v1/operator/agents/{id}/revoke-keys", "DELETE /v1/operator/agents/{id}",
        "POST /v1/operator/agents/{id}/suspend", "POST /v1/operator/agents/{id}/resume",
        "POST /v1/operator/owners/{name}/suspend", "POST /v1/operator/owners/{name}/resume",
        "POST /v1/operator/keys",
        "POST /v1/operator/pushes/{id}/retry", "POST /relay/agents", "POST /agents",
        "POST /relay/agents/{id}/key", "POST /agents/{id}/key",
    ] },
];

/// The action of a row. New ids are registered at the route that changes known ones.
fn action_of(row: &Row) -> Option<&'static Action> {
    if row.expected == [201; 6] {
        return Some(&REGISTER);
    }
    ACTIONS.iter().find(|action| action.routes.contains(&row.route))
}

#[test]
fn whatever_changes_something_is_an_action_and_every_row_keeps_to_its_cells() {
    let mut rows: BTreeMap<&str, usize> = BTreeMap::new();
    for row in TABLE.iter() {
        let reach = route_of(row).access;
        // A public route changes nothing; a signature or token in the request is its own proof.
        let proves_itself = matches!(reach, Access::Public | Access::Token | Access::Signed);
        if row.route.starts_with("GET ") || proves_itself {
            continue;
        }
        let action = action_of(row).unwrap_or_else(|| panic!("{} belongs to no action", row.route));
        *rows.entry(action.name).or_default() += 1;
        let cells = action.cells.bytes().zip(CALLERS).zip(row.expected);
        for ((cell, caller), status) in cells {
            let fits = match cell {
                b'y' => status < 300,
                b'n' => status >= 400,
                _ => true,
            };
            assert!(fits, "{} ({}) by {caller:?}: {status}", row.route, action.name);
        }
    }
    for action in ACTIONS.iter().chain([&REGISTER]) {
        assert_eq!(action.cells.len(), CALLERS.len(), "{}", action.name);
        let count = rows.get(action.name).copied().unwrap_or_default();
        assert!(count >= action.routes.len().max(1), "{}: {count} rows", action.name);
    }
}

/// Scores follow from outcomes: the routes that once wrote them are public and have no effect,
/// which the rows of public routes show.
#[test]
fn no_caller_can_write_reputation() {
    let writes = |row: &&Row| row.route.starts_with("POST ") && row.route.contains("/reputation/");
    let rows: Vec<&Row> = TABLE.iter().filter(writes).collect();
    assert_eq!(rows.len(), 4);
    assert!(rows.iter().all(|row| route_of(row).access == Access::Public));
}

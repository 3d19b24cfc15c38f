//! Every route of this API, one row each.

use axum::routing::{MethodRouter, delete, get, post};
use rialto_protocols::face::Reach::{
    AnyAgent, AnyAgentOrOperator, Operator, OwnerOrOperator, Public,
};
use rialto_protocols::face::{Floor, Reach, Route};

use super::{
    accounts, agents, delivery, events, inbox, jobs, keys, ledger, me, messages, operator,
    presence, webhooks, work,
};

const fn row(
    method: &'static str,
    path: &'static str,
    reach: Reach,
    about: &'static str,
    handler: fn() -> MethodRouter<Floor>,
) -> Route<Floor> {
    Route { method, path, at_root: false, reach, about, handler }
}

/// The table. What has no row does not exist.
pub const TABLE: &[Route<Floor>] = &[
    row("GET", "/v1/agents", Public, "Find agents: by skill the best first, or list all", || {
        get(agents::list)
    }),
    row("GET", "/v1/agents/{id}", Public, "An agent, by our number or any of its names", || {
        get(agents::show)
    }),
    row(
        "GET",
        "/v1/agents/{id}/reputation",
        Public,
        "The agent's scores and the numbers they are computed from",
        || get(agents::reputation::show),
    ),
    row("GET", "/v1/me", AnyAgent, "The caller: agent, account, inbox, work", || get(me::show)),
    row("DELETE", "/v1/me", AnyAgent, "Unregister the caller; its id stays reserved", || {
        delete(presence::leave)
    }),
    row("POST", "/v1/me/status", AnyAgent, "Set the caller's availability", || {
        post(presence::stand)
    }),
    row("GET", "/v1/jobs", AnyAgent, "The caller's jobs, asked or worked, live or ended", || {
        get(jobs::list::list)
    }),
    row("POST", "/v1/jobs", AnyAgent, "Open a job; `?wait=` waits for its end", || {
        post(jobs::ask::open)
    }),
    // Operators see all but input, result and callback.
    row("GET", "/v1/jobs/{id}", AnyAgentOrOperator, "A job, for its two parties", || {
        get(jobs::show)
    }),
    row("GET", "/v1/jobs/{id}/trace", AnyAgentOrOperator, "A job as each side saw it", || {
        get(jobs::trace::show)
    }),
    row("POST", "/v1/jobs/{id}/cancel", AnyAgent, "Cancel a job, as its requester", || {
        post(jobs::cancel::cancel)
    }),
    row(
        "GET",
        "/v1/jobs/{id}/offers",
        AnyAgent,
        "List the offers for a job that the caller may see",
        || get(jobs::offers::list),
    ),
    row("POST", "/v1/jobs/{id}/offers", AnyAgent, "Make an offer for a job", || {
        post(jobs::offers::make)
    }),
    row(
        "POST",
        "/v1/jobs/{id}/accept",
        AnyAgent,
        "Take an offer by its id, or by agent and price, as the requester",
        || post(jobs::offers::accept),
    ),
    row(
        "GET",
        "/v1/work",
        AnyAgent,
        "List the caller's assigned jobs; `?wait=` waits for changes",
        || get(work::list),
    ),
    row("POST", "/v1/jobs/{id}/result", AnyAgent, "Report a job, as its worker", || {
        post(jobs::report::result)
    }),
    row("POST", "/v1/jobs/{id}/decline", AnyAgent, "Decline a job, as its worker", || {
        post(jobs::report::decline)
    }),
    row("GET", "/v1/ledger", AnyAgentOrOperator, "Movements of credits, newest first", || {
        get(ledger::list)
    }),
    row("GET", "/v1/accounts/{name}", OwnerOrOperator, "An account, open and held", || {
        get(accounts::show)
    }),
    row("GET", "/v1/inbox", AnyAgent, "Notices after a position", || get(inbox::list)),
    row("GET", "/v1/inbox/delivery", AnyAgent, "A notice as it is sent to an endpoint", || {
        get(delivery::show)
    }),
    row("POST", "/v1/inbox/ack", AnyAgent, "Acknowledge notices up to a position", || {
        post(inbox::ack)
    }),
    row("GET", "/v1/events", AnyAgentOrOperator, "Inbox or history as a resumable stream", || {
        get(events::open)
    }),
    row("POST", "/v1/messages", AnyAgent, "Send a message to an agent", || post(messages::send)),
    row(
        "GET",
        "/v1/webhooks",
        AnyAgent,
        "What is sent to the caller; ?state=delivered lists what arrived",
        || get(webhooks::list),
    ),
    row("POST", "/v1/webhooks/test", AnyAgent, "Call the caller's endpoint once, now", || {
        post(webhooks::test::send)
    }),
    row("POST", "/v1/webhooks/secret", AnyAgent, "A new secret; the old ones live a day", || {
        post(webhooks::secret::renew)
    }),
    row("POST", "/v1/webhooks/{id}/resend", AnyAgent, "Send again to the caller, now", || {
        post(webhooks::resend)
    }),
    row("POST", "/v1/keys/rotate", AnyAgent, "A new key; the old ones live 10 minutes", || {
        post(keys::rotate)
    }),
    row("DELETE", "/v1/keys", AnyAgent, "Revoke all keys of the caller", || delete(keys::revoke)),
    row("POST", "/v1/operator/grants", Operator, "Give credits to an owner", || {
        post(operator::grant)
    }),
    row("POST", "/v1/operator/burns", Operator, "Take credits out of circulation", || {
        post(operator::burn)
    }),
    row("POST", "/v1/operator/jobs/{uuid}/cancel", Operator, "Call a job off", || {
        post(operator::cancel)
    }),
    row("POST", "/v1/operator/jobs/{uuid}/requeue", Operator, "Requeue a job", || {
        post(operator::requeue)
    }),
    row("POST", "/v1/operator/agents/{id}/revoke-keys", Operator, "Revoke its keys", || {
        post(operator::revoke_keys)
    }),
    row("GET", "/v1/operator/jobs", Operator, "All jobs, live or ended, without content", || {
        get(operator::jobs::list)
    }),
    row(
        "GET",
        "/v1/operator/agents",
        Operator,
        "List all agents, unregistered ones included",
        || get(operator::people::list),
    ),
    row("POST", "/v1/operator/agents/{id}/suspend", Operator, "Suspend an agent", || {
        post(operator::people::suspend_agent)
    }),
    row("POST", "/v1/operator/agents/{id}/resume", Operator, "Resume an agent", || {
        post(operator::people::resume_agent)
    }),
    row(
        "POST",
        "/v1/operator/owners/{name}/suspend",
        Operator,
        "Suspend an owner and all its agents",
        || post(operator::people::suspend_owner),
    ),
    row("POST", "/v1/operator/owners/{name}/resume", Operator, "Resume an owner", || {
        post(operator::people::resume_owner)
    }),
    row(
        "POST",
        "/v1/operator/keys",
        Operator,
        "Issue an operator key, optionally retiring the others",
        || post(operator::keys::issue),
    ),
    row("DELETE", "/v1/operator/agents/{id}", Operator, "Unregister an agent", || {
        delete(operator::remove)
    }),
    row(
        "GET",
        "/v1/operator/pushes",
        Operator,
        "List deliveries that are waiting or given up",
        || get(operator::pushes::list),
    ),
    row("POST", "/v1/operator/pushes/{id}/retry", Operator, "Retry a delivery now", || {
        post(operator::pushes::retry)
    }),
    row("GET", "/v1/operator/stats", Operator, "Numbers about the hub", || {
        get(operator::stats::show)
    }),
];

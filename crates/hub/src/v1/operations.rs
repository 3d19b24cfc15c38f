//! Every operation of this API, one row each.

use axum::routing::{MethodRouter, delete, get, post};
use rialto_protocols::adapter::Reach::{
    AnyAgent, AnyAgentOrOperator, Operator, OwnerOrOperator, Public,
};
use rialto_protocols::adapter::{Floor, Reach, Route};

use super::{
    accounts, agents, delivery_preview, events, inbox, jobs, keys, ledger, me, messages, operator,
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

/// The operations. A path without a row does not exist.
pub const TABLE: &[Route<Floor>] = &[
    row("GET", "/v1/agents", Public, "List agents; with `?skill=`, best match first", || {
        get(agents::list)
    }),
    row("GET", "/v1/agents/{id}", Public, "Show an agent, by number or any of its names", || {
        get(agents::show)
    }),
    row(
        "GET",
        "/v1/agents/{id}/reputation",
        Public,
        "Show an agent's scores and the numbers they are computed from",
        || get(agents::reputation::show),
    ),
    row("GET", "/v1/me", AnyAgent, "The caller's agent, account, inbox, work", || get(me::show)),
    row("DELETE", "/v1/me", AnyAgent, "Unregister the caller; its id stays reserved", || {
        delete(presence::leave)
    }),
    row("POST", "/v1/me/status", AnyAgent, "Set the caller's availability", || {
        post(presence::stand)
    }),
    row("GET", "/v1/jobs", AnyAgent, "List the caller's jobs, as requester or worker", || {
        get(jobs::list::list)
    }),
    row("POST", "/v1/jobs", AnyAgent, "Open a job; `?wait=` waits for its end", || {
        post(jobs::open::open)
    }),
    // Operators see everything but input, result and callback.
    row("GET", "/v1/jobs/{id}", AnyAgentOrOperator, "Show a job that the caller may see", || {
        get(jobs::show)
    }),
    row("GET", "/v1/jobs/{id}/trace", AnyAgentOrOperator, "Show how a job was translated", || {
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
        "Accept an offer by its id, or by agent and price, as the requester",
        || post(jobs::offers::accept),
    ),
    row(
        "GET",
        "/v1/work",
        AnyAgent,
        "List the caller's assigned jobs; `?wait=` waits for changes",
        || get(work::list),
    ),
    row("POST", "/v1/jobs/{id}/result", AnyAgent, "Report a job's result, as its worker", || {
        post(jobs::result::result)
    }),
    row("POST", "/v1/jobs/{id}/decline", AnyAgent, "Decline a job, as its worker", || {
        post(jobs::result::decline)
    }),
    row("GET", "/v1/ledger", AnyAgentOrOperator, "List ledger entries, newest first", || {
        get(ledger::list)
    }),
    row("GET", "/v1/accounts/{name}", OwnerOrOperator, "Show available and held credits", || {
        get(accounts::show)
    }),
    row("GET", "/v1/inbox", AnyAgent, "List notices after a position", || get(inbox::list)),
    row("GET", "/v1/inbox/delivery", AnyAgent, "Preview the delivery of a notice", || {
        get(delivery_preview::show)
    }),
    row("POST", "/v1/inbox/ack", AnyAgent, "Acknowledge notices up to a position", || {
        post(inbox::ack)
    }),
    row("GET", "/v1/events", AnyAgentOrOperator, "Stream inbox or history, resumable", || {
        get(events::open)
    }),
    row("POST", "/v1/messages", AnyAgent, "Send a message to an agent", || post(messages::send)),
    row(
        "GET",
        "/v1/webhooks",
        AnyAgent,
        "List the caller's deliveries; `?state=delivered` lists completed ones",
        || get(webhooks::list),
    ),
    row("POST", "/v1/webhooks/test", AnyAgent, "Send a test call to the caller's endpoint", || {
        post(webhooks::test_call::send)
    }),
    row("POST", "/v1/webhooks/secret", AnyAgent, "New secret; old ones expire in a day", || {
        post(webhooks::secret::renew)
    }),
    row("POST", "/v1/webhooks/{id}/resend", AnyAgent, "Retry a delivery to the caller now", || {
        post(webhooks::resend)
    }),
    row("POST", "/v1/keys/rotate", AnyAgent, "New key; old ones expire in 10 minutes", || {
        post(keys::rotate)
    }),
    row("DELETE", "/v1/keys", AnyAgent, "Revoke all keys of the caller", || delete(keys::revoke)),
    row("POST", "/v1/operator/grants", Operator, "Grant credits to an owner", || {
        post(operator::grant)
    }),
    row("POST", "/v1/operator/burns", Operator, "Remove credits from an owner's account", || {
        post(operator::burn)
    }),
    row("POST", "/v1/operator/jobs/{uuid}/cancel", Operator, "Cancel a job", || {
        post(operator::cancel)
    }),
    row("POST", "/v1/operator/jobs/{uuid}/requeue", Operator, "Requeue a job", || {
        post(operator::requeue)
    }),
    row("POST", "/v1/operator/agents/{id}/revoke-keys", Operator, "Revoke an agent's keys", || {
        post(operator::revoke_keys)
    }),
    row("GET", "/v1/operator/jobs", Operator, "List all jobs, without their content", || {
        get(operator::jobs::list)
    }),
    row(
        "GET",
        "/v1/operator/agents",
        Operator,
        "List all agents, unregistered ones included",
        || get(operator::agents::list),
    ),
    row("POST", "/v1/operator/agents/{id}/suspend", Operator, "Suspend an agent", || {
        post(operator::agents::suspend_agent)
    }),
    row("POST", "/v1/operator/agents/{id}/resume", Operator, "Resume an agent", || {
        post(operator::agents::resume_agent)
    }),
    row(
        "POST",
        "/v1/operator/owners/{name}/suspend",
        Operator,
        "Suspend an owner and all its agents",
        || post(operator::agents::suspend_owner),
    ),
    row("POST", "/v1/operator/owners/{name}/resume", Operator, "Resume an owner", || {
        post(operator::agents::resume_owner)
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
        || get(operator::deliveries::list),
    ),
    row("POST", "/v1/operator/pushes/{id}/retry", Operator, "Retry a delivery now", || {
        post(operator::deliveries::retry)
    }),
    row("GET", "/v1/operator/stats", Operator, "Show statistics of the hub", || {
        get(operator::stats::show)
    }),
];

//! Every operation of this API, one row each.

use axum::routing::{MethodRouter, delete, get, post};
use rialto_protocols::adapter::Access::{
    AnyAgent, AnyAgentOrOperator, Operator, OwnerOrOperator, Public,
};
use rialto_protocols::adapter::{Access, HubContext, Operation};

use super::{
    accounts, agents, delivery_preview, events, inbox, jobs, keys, ledger, me, messages, operator,
    presence, webhooks, work,
};

const fn row(
    method: &'static str,
    path: &'static str,
    reach: Access,
    about: &'static str,
    handler: fn() -> MethodRouter<HubContext>,
) -> Operation<HubContext> {
    Operation { method, path, at_root: false, access: reach, summary: about, handler }
}

/// The operations. A path without a row does not exist.
pub const OPERATIONS: &[Operation<HubContext>] = &[
    row("GET", "/v1/agents", Public, "List agents; with `?skill=`, best match first", || {
        get(agents::list_agents)
    }),
    row("GET", "/v1/agents/{id}", Public, "Show an agent, by number or any of its names", || {
        get(agents::show_agent)
    }),
    row(
        "GET",
        "/v1/agents/{id}/reputation",
        Public,
        "Show an agent's scores and the numbers they are computed from",
        || get(agents::reputation::show_reputation),
    ),
    row("GET", "/v1/me", AnyAgent, "The caller's agent, account, inbox, work", || get(me::show_me)),
    row("DELETE", "/v1/me", AnyAgent, "Unregister the caller; its id stays reserved", || {
        delete(presence::unregister)
    }),
    row("POST", "/v1/me/status", AnyAgent, "Set the caller's availability", || {
        post(presence::set_status)
    }),
    row("GET", "/v1/jobs", AnyAgent, "List the caller's jobs, as requester or worker", || {
        get(jobs::list::list_jobs)
    }),
    row("POST", "/v1/jobs", AnyAgent, "Open a job; `?wait=` waits for its end", || {
        post(jobs::open::open_job)
    }),
    // Operators see everything but input, result and callback.
    row("GET", "/v1/jobs/{id}", AnyAgentOrOperator, "Show a job that the caller may see", || {
        get(jobs::show_job)
    }),
    row("GET", "/v1/jobs/{id}/trace", AnyAgentOrOperator, "Show how a job was translated", || {
        get(jobs::trace::show_trace)
    }),
    row("POST", "/v1/jobs/{id}/cancel", AnyAgent, "Cancel a job, as its requester", || {
        post(jobs::cancel::cancel_job)
    }),
    row(
        "GET",
        "/v1/jobs/{id}/offers",
        AnyAgent,
        "List the offers for a job that the caller may see",
        || get(jobs::offers::list_offers),
    ),
    row("POST", "/v1/jobs/{id}/offers", AnyAgent, "Make an offer for a job", || {
        post(jobs::offers::make_offer)
    }),
    row(
        "POST",
        "/v1/jobs/{id}/accept",
        AnyAgent,
        "Accept an offer by its id, or by agent and price, as the requester",
        || post(jobs::offers::accept_offer),
    ),
    row(
        "GET",
        "/v1/work",
        AnyAgent,
        "List the caller's assigned jobs; `?wait=` waits for changes",
        || get(work::list_work),
    ),
    row("POST", "/v1/jobs/{id}/progress", AnyAgent, "Report progress, as its worker", || {
        post(jobs::progress::report_progress)
    }),
    row("POST", "/v1/jobs/{id}/parts", AnyAgent, "Add a part of the result, as its worker", || {
        post(jobs::progress::add_part)
    }),
    row("POST", "/v1/jobs/{id}/ask", AnyAgent, "Ask the requester, as its worker", || {
        post(jobs::questions::ask_question)
    }),
    row("POST", "/v1/jobs/{id}/answer", AnyAgent, "Answer a question, as the requester", || {
        post(jobs::questions::answer_question)
    }),
    row("POST", "/v1/jobs/{id}/result", AnyAgent, "Report a job's result, as its worker", || {
        post(jobs::result::submit_result)
    }),
    row("POST", "/v1/jobs/{id}/decline", AnyAgent, "Decline a job, as its worker", || {
        post(jobs::result::decline_job)
    }),
    row("GET", "/v1/ledger", AnyAgentOrOperator, "List ledger entries, newest first", || {
        get(ledger::list_entries)
    }),
    row("GET", "/v1/accounts/{name}", OwnerOrOperator, "Show available and held credits", || {
        get(accounts::show_account)
    }),
    row("GET", "/v1/inbox", AnyAgent, "List notices after a position", || get(inbox::list_notices)),
    row("GET", "/v1/inbox/delivery", AnyAgent, "Preview the delivery of a notice", || {
        get(delivery_preview::show_delivery)
    }),
    row("POST", "/v1/inbox/ack", AnyAgent, "Acknowledge notices up to a position", || {
        post(inbox::ack_notices)
    }),
    row("GET", "/v1/events", AnyAgentOrOperator, "Stream inbox or history, resumable", || {
        get(events::stream_events)
    }),
    row("POST", "/v1/messages", AnyAgent, "Send a message to an agent", || {
        post(messages::send_message)
    }),
    row(
        "GET",
        "/v1/webhooks",
        AnyAgent,
        "List the caller's deliveries; `?state=delivered` lists completed ones",
        || get(webhooks::list_webhooks),
    ),
    row("POST", "/v1/webhooks/test", AnyAgent, "Send a test call to the caller's endpoint", || {
        post(webhooks::test_call::send_test)
    }),
    row("POST", "/v1/webhooks/secret", AnyAgent, "New secret; old ones expire in a day", || {
        post(webhooks::secret::renew_secret)
    }),
    row("POST", "/v1/webhooks/{id}/resend", AnyAgent, "Retry a delivery to the caller now", || {
        post(webhooks::resend_webhook)
    }),
    row("POST", "/v1/keys/rotate", AnyAgent, "New key; old ones expire in 10 minutes", || {
        post(keys::rotate_key)
    }),
    row("DELETE", "/v1/keys", AnyAgent, "Revoke all keys of the caller", || {
        delete(keys::revoke_keys)
    }),
    row("POST", "/v1/operator/grants", Operator, "Grant credits to an owner", || {
        post(operator::grant_credits)
    }),
    row("POST", "/v1/operator/burns", Operator, "Remove credits from an owner's account", || {
        post(operator::burn_credits)
    }),
    row("POST", "/v1/operator/jobs/{uuid}/cancel", Operator, "Cancel a job", || {
        post(operator::cancel_job)
    }),
    row("POST", "/v1/operator/jobs/{uuid}/requeue", Operator, "Requeue a job", || {
        post(operator::requeue_job)
    }),
    row("POST", "/v1/operator/agents/{id}/revoke-keys", Operator, "Revoke an agent's keys", || {
        post(operator::revoke_keys)
    }),
    row("GET", "/v1/operator/jobs", Operator, "List all jobs, without their content", || {
        get(operator::jobs::list_jobs)
    }),
    row(
        "GET",
        "/v1/operator/agents",
        Operator,
        "List all agents, unregistered ones included",
        || get(operator::agents::list_agents),
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
        || post(operator::keys::issue_key),
    ),
    row("DELETE", "/v1/operator/agents/{id}", Operator, "Unregister an agent", || {
        delete(operator::remove_agent)
    }),
    row(
        "GET",
        "/v1/operator/pushes",
        Operator,
        "List deliveries that are waiting or given up",
        || get(operator::deliveries::list_deliveries),
    ),
    row("POST", "/v1/operator/pushes/{id}/retry", Operator, "Retry a delivery now", || {
        post(operator::deliveries::retry_delivery)
    }),
    row("GET", "/v1/operator/stats", Operator, "Show statistics of the hub", || {
        get(operator::stats::show_stats)
    }),
];

//! Every operation of this API, one row each.

use rialto_protocols::adapter::Access::{
    AnyAgent, AnyAgentOrOperator, Operator, OwnerOrOperator, Public,
};
use rialto_protocols::adapter::operation::{delete, get, post};
use rialto_protocols::adapter::{HubContext, Operation};

use super::{
    accounts, agents, delivery_preview, events, inbox, jobs, keys, ledger, me, messages, operator,
    presence, webhooks, work,
};

/// The operations. A path without a row does not exist.
pub fn operations() -> Vec<Operation<HubContext>> {
    vec![
        get("/v1/agents", Public, agents::list_agents)
            .summary("List agents; with `?skill=`, best match first"),
        get("/v1/agents/{id}", Public, agents::show_agent)
            .summary("Show an agent, by number or any of its names"),
        get("/v1/agents/{id}/reputation", Public, agents::reputation::show_reputation)
            .summary("Show an agent's scores and the numbers they are computed from"),
        get("/v1/me", AnyAgent, me::show_me).summary("The caller's agent, account, inbox, work"),
        delete("/v1/me", AnyAgent, presence::unregister)
            .summary("Unregister the caller; its id stays reserved"),
        post("/v1/me/status", AnyAgent, presence::set_status)
            .summary("Set the caller's availability"),
        get("/v1/jobs", AnyAgent, jobs::list::list_jobs)
            .summary("List the caller's jobs, as requester or worker"),
        post("/v1/jobs", AnyAgent, jobs::open::open_job)
            .summary("Open a job; `?wait=` waits for its end"),
        // Operators see everything but input, result and callback.
        get("/v1/jobs/{id}", AnyAgentOrOperator, jobs::show_job)
            .summary("Show a job that the caller may see"),
        get(jobs::trace::PATH, AnyAgentOrOperator, jobs::trace::show_trace)
            .summary("Show how a job was translated"),
        post("/v1/jobs/{id}/cancel", AnyAgent, jobs::cancel::cancel_job)
            .summary("Cancel a job, as its requester"),
        get("/v1/jobs/{id}/offers", AnyAgent, jobs::offers::list_offers)
            .summary("List the offers for a job that the caller may see"),
        post("/v1/jobs/{id}/offers", AnyAgent, jobs::offers::make_offer)
            .summary("Make an offer for a job"),
        post("/v1/jobs/{id}/accept", AnyAgent, jobs::offers::accept_offer)
            .summary("Accept an offer by its id, or by agent and price, as the requester"),
        get("/v1/work", AnyAgent, work::list_work)
            .summary("List the caller's assigned jobs; `?wait=` waits for changes"),
        post("/v1/jobs/{id}/result", AnyAgent, jobs::result::submit_result)
            .summary("Report a job's result, as its worker"),
        post("/v1/jobs/{id}/decline", AnyAgent, jobs::result::decline_job)
            .summary("Decline a job, as its worker"),
        get("/v1/ledger", AnyAgentOrOperator, ledger::list_entries)
            .summary("List ledger entries, newest first"),
        get("/v1/accounts/{name}", OwnerOrOperator, accounts::show_account)
            .summary("Show available and held credits"),
        get("/v1/inbox", AnyAgent, inbox::list_notices).summary("List notices after a position"),
        get("/v1/inbox/delivery", AnyAgent, delivery_preview::show_delivery)
            .summary("Preview the delivery of a notice"),
        post("/v1/inbox/ack", AnyAgent, inbox::ack_notices)
            .summary("Acknowledge notices up to a position"),
        get("/v1/events", AnyAgentOrOperator, events::stream_events)
            .summary("Stream inbox or history, resumable"),
        post("/v1/messages", AnyAgent, messages::send_message)
            .summary("Send a message to an agent"),
        get("/v1/webhooks", AnyAgent, webhooks::list_webhooks)
            .summary("List the caller's deliveries; `?state=delivered` lists completed ones"),
        post("/v1/webhooks/test", AnyAgent, webhooks::test_call::send_test)
            .summary("Send a test call to the caller's endpoint"),
        post("/v1/webhooks/secret", AnyAgent, webhooks::secret::renew_secret)
            .summary("New secret; old ones expire in a day"),
        post("/v1/webhooks/{id}/resend", AnyAgent, webhooks::resend_webhook)
            .summary("Retry a delivery to the caller now"),
        post("/v1/keys/rotate", AnyAgent, keys::rotate_key)
            .summary("New key; old ones expire in 10 minutes"),
        delete("/v1/keys", AnyAgent, keys::revoke_keys).summary("Revoke all keys of the caller"),
        post("/v1/operator/grants", Operator, operator::grant_credits)
            .summary("Grant credits to an owner"),
        post("/v1/operator/burns", Operator, operator::burn_credits)
            .summary("Remove credits from an owner's account"),
        post("/v1/operator/jobs/{uuid}/cancel", Operator, operator::cancel_job)
            .summary("Cancel a job"),
        post("/v1/operator/jobs/{uuid}/requeue", Operator, operator::requeue_job)
            .summary("Requeue a job"),
        post("/v1/operator/agents/{id}/revoke-keys", Operator, operator::revoke_keys)
            .summary("Revoke an agent's keys"),
        get("/v1/operator/jobs", Operator, operator::jobs::list_jobs)
            .summary("List all jobs, without their content"),
        get("/v1/operator/agents", Operator, operator::agents::list_agents)
            .summary("List all agents, unregistered ones included"),
        post("/v1/operator/agents/{id}/suspend", Operator, operator::agents::suspend_agent)
            .summary("Suspend an agent"),
        post("/v1/operator/agents/{id}/resume", Operator, operator::agents::resume_agent)
            .summary("Resume an agent"),
        post("/v1/operator/owners/{name}/suspend", Operator, operator::agents::suspend_owner)
            .summary("Suspend an owner and all its agents"),
        post("/v1/operator/owners/{name}/resume", Operator, operator::agents::resume_owner)
            .summary("Resume an owner"),
        post("/v1/operator/keys", Operator, operator::keys::issue_key)
            .summary("Issue an operator key, optionally retiring the others"),
        delete("/v1/operator/agents/{id}", Operator, operator::remove_agent)
            .summary("Unregister an agent"),
        get("/v1/operator/pushes", Operator, operator::deliveries::list_deliveries)
            .summary("List deliveries that are waiting or given up"),
        post("/v1/operator/pushes/{id}/retry", Operator, operator::deliveries::retry_delivery)
            .summary("Retry a delivery now"),
        get("/v1/operator/stats", Operator, operator::stats::show_stats)
            .summary("Show statistics of the hub"),
    ]
}

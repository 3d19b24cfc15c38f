//! The table of operations. Handlers authenticate, translate, run and translate back.

mod agents;
mod audit;
mod discover;
mod jobs;
mod payments;
mod results;

use axum::response::Response;

use super::errors::Failure;
use crate::adapter::Access::{
    Agent, AgentOrOperator, AnyAgent, AnyAgentOrOperator, Owner, OwnerOrOperator, Party, Public,
    Register, Requester, Token, Worker,
};
use crate::adapter::Operation;
use crate::adapter::operation::{delete, get, post};
use crate::kit::fields::Malformed;
use crate::kit::query::Query;
use crate::registry::RegistryContext;

/// The result of every handler.
type HandlerResult = Result<Response, Failure>;

pub fn operations() -> Vec<Operation<RegistryContext>> {
    vec![
        post("/register", Register, agents::register)
            .summary("Register an agent, or update it with its key")
            .at_root(),
        get("/discover", Public, discover::discover_by_query)
            .summary("Find agents by skill, reputation and cost")
            .at_root(),
        post("/discover", Public, discover::discover_by_body)
            .summary("Find agents; the query is a JSON body")
            .at_root(),
        post("/jobs", AnyAgent, jobs::create_job)
            .summary("Request a job; the hub picks the worker unless the body names one")
            .at_root(),
        post("/agents/{agent_id}/jobs", AnyAgent, jobs::create_job_for_agent)
            .summary("Request a job from this agent"),
        get("/jobs/{job_id}", Party, jobs::show).summary("Get a job's status").at_root(),
        post("/jobs/{job_id}/cancel", Requester, jobs::cancel)
            .summary("Cancel a job before it is handed to its worker")
            .at_root(),
        get("/agents/{agent_id}/jobs", Agent, jobs::fetch_jobs)
            .summary("Fetch the jobs that wait for an agent"),
        post("/results", Worker, results::post_result)
            .summary("Report the result of a job")
            .at_root(),
        post("/callbacks/{token}", Token, results::post_callback)
            .summary("Report the result of the job that this callback URL belongs to"),
        post("/transfer", Owner, payments::transfer)
            .summary("Transfer credits, or confirm what a job's escrow has paid")
            .at_root(),
        post("/heartbeat", Agent, agents::heartbeat).summary("Send a heartbeat").at_root(),
        post("/accounts", OwnerOrOperator, payments::open_account)
            .summary("Open an account; with the operator key, grant credits")
            .at_root(),
        get("/accounts/{owner_id}", OwnerOrOperator, payments::account)
            .summary("Balance and escrow of an owner")
            .at_root(),
        get("/agents/{agent_id}", Public, agents::show).summary("Get an agent's public entry"),
        delete("/agents/{agent_id}", AgentOrOperator, agents::unregister)
            .summary("Unregister an agent"),
        get("/skills", Public, discover::skills).summary("All skills on offer").at_root(),
        get("/reputation/{agent_id}", Public, agents::reputation)
            .summary("An agent's score")
            .at_root(),
        post("/reputation/{agent_id}/success", Public, agents::claim_reputation)
            .summary("Accepted for compatibility; has no effect")
            .at_root(),
        post("/reputation/{agent_id}/failure", Public, agents::claim_reputation)
            .summary("Accepted for compatibility; has no effect")
            .at_root(),
        get("/audit", AnyAgentOrOperator, audit::audit).summary("Payments, newest first").at_root(),
        get("/economy", AnyAgentOrOperator, payments::economy)
            .summary("Totals of all accounts, and the balances visible to the caller")
            .at_root(),
        get("/health", Public, discover::health).summary("Health of the registry"),
    ]
}

fn read_query(raw: Option<String>) -> Result<Query, Malformed> {
    Query::read(raw.as_deref().unwrap_or_default())
}

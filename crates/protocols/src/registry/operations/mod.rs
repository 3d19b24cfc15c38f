//! The table of operations. Handlers authenticate, translate, run and translate back.

mod agents;
mod audit;
mod discover;
mod jobs;
mod payments;
mod results;

use axum::response::Response;
use axum::routing::{delete, get, post};

use super::errors::Failure;
use crate::adapter::{Access, Operation};
use crate::kit::fields::Malformed;
use crate::kit::query::Query;
use crate::registry::RegistryContext;

/// The result of every handler.
type HandlerResult = Result<Response, Failure>;

pub const OPERATIONS: &[Operation<RegistryContext>] = &[
    Operation {
        method: "POST",
        path: "/register",
        at_root: true,
        access: Access::Register,
        summary: "Register an agent, or update it with its key",
        handler: || post(agents::register),
    },
    Operation {
        method: "GET",
        path: "/discover",
        at_root: true,
        access: Access::Public,
        summary: "Find agents by skill, reputation and cost",
        handler: || get(discover::discover_by_query),
    },
    Operation {
        method: "POST",
        path: "/discover",
        at_root: true,
        access: Access::Public,
        summary: "Find agents; the query is a JSON body",
        handler: || post(discover::discover_by_body),
    },
    Operation {
        method: "POST",
        path: "/jobs",
        at_root: true,
        access: Access::AnyAgent,
        summary: "Request a job; the hub picks the worker unless the body names one",
        handler: || post(jobs::create_job),
    },
    Operation {
        method: "POST",
        path: "/agents/{agent_id}/jobs",
        at_root: false,
        access: Access::AnyAgent,
        summary: "Request a job from this agent",
        handler: || post(jobs::create_job_for_agent),
    },
    Operation {
        method: "GET",
        path: "/jobs/{job_id}",
        at_root: true,
        access: Access::Party,
        summary: "Get a job's status",
        handler: || get(jobs::show),
    },
    Operation {
        method: "POST",
        path: "/jobs/{job_id}/cancel",
        at_root: true,
        access: Access::Requester,
        summary: "Cancel a job before it is handed to its worker",
        handler: || post(jobs::cancel),
    },
    Operation {
        method: "GET",
        path: "/agents/{agent_id}/jobs",
        at_root: false,
        access: Access::Agent,
        summary: "Fetch the jobs that wait for an agent",
        handler: || get(jobs::fetch_jobs),
    },
    Operation {
        method: "POST",
        path: "/results",
        at_root: true,
        access: Access::Worker,
        summary: "Report the result of a job",
        handler: || post(results::post_result),
    },
    Operation {
        method: "POST",
        path: "/callbacks/{token}",
        at_root: false,
        access: Access::Token,
        summary: "Report the result of the job that this callback URL belongs to",
        handler: || post(results::post_callback),
    },
    Operation {
        method: "POST",
        path: "/transfer",
        at_root: true,
        access: Access::Owner,
        summary: "Transfer credits, or confirm what a job's escrow has paid",
        handler: || post(payments::transfer),
    },
    Operation {
        method: "POST",
        path: "/heartbeat",
        at_root: true,
        access: Access::Agent,
        summary: "Send a heartbeat",
        handler: || post(agents::heartbeat),
    },
    Operation {
        method: "POST",
        path: "/accounts",
        at_root: true,
        access: Access::OwnerOrOperator,
        summary: "Open an account; with the operator key, grant credits",
        handler: || post(payments::open_account),
    },
    Operation {
        method: "GET",
        path: "/accounts/{owner_id}",
        at_root: true,
        access: Access::OwnerOrOperator,
        summary: "Balance and escrow of an owner",
        handler: || get(payments::account),
    },
    Operation {
        method: "GET",
        path: "/agents/{agent_id}",
        at_root: false,
        access: Access::Public,
        summary: "Get an agent's public entry",
        handler: || get(agents::show),
    },
    Operation {
        method: "DELETE",
        path: "/agents/{agent_id}",
        at_root: false,
        access: Access::AgentOrOperator,
        summary: "Unregister an agent",
        handler: || delete(agents::unregister),
    },
    Operation {
        method: "GET",
        path: "/skills",
        at_root: true,
        access: Access::Public,
        summary: "All skills on offer",
        handler: || get(discover::skills),
    },
    Operation {
        method: "GET",
        path: "/reputation/{agent_id}",
        at_root: true,
        access: Access::Public,
        summary: "An agent's score",
        handler: || get(agents::reputation),
    },
    Operation {
        method: "POST",
        path: "/reputation/{agent_id}/success",
        at_root: true,
        access: Access::Public,
        summary: "Accepted for compatibility; has no effect",
        handler: || post(agents::claim_reputation),
    },
    Operation {
        method: "POST",
        path: "/reputation/{agent_id}/failure",
        at_root: true,
        access: Access::Public,
        summary: "Accepted for compatibility; has no effect",
        handler: || post(agents::claim_reputation),
    },
    Operation {
        method: "GET",
        path: "/audit",
        at_root: true,
        access: Access::AnyAgentOrOperator,
        summary: "Payments, newest first",
        handler: || get(audit::audit),
    },
    Operation {
        method: "GET",
        path: "/economy",
        at_root: true,
        access: Access::AnyAgentOrOperator,
        summary: "Totals of all accounts, and the balances visible to the caller",
        handler: || get(payments::economy),
    },
    Operation {
        method: "GET",
        path: "/health",
        at_root: false,
        access: Access::Public,
        summary: "Health of the registry",
        handler: || get(discover::health),
    },
];

fn read_query(raw: Option<String>) -> Result<Query, Malformed> {
    Query::read(raw.as_deref().unwrap_or_default())
}

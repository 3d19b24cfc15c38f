//! The table of operations, and this protocol's adapter.

mod agents;
mod discover;
mod jobs;
mod payments;
mod results;

use std::sync::Arc;

use axum::Router;
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, get, post};
use rialto_core::alias::Protocol;
use rialto_core::refusal::Refusal;
use rialto_engine::delivery::DeliveryEncoder;
use rialto_engine::secret::HubSecret;

use super::delivery::RegistryEncoder;
use super::errors::{self, Failure};
use super::fields::RegistryFieldMap;
use super::{ID, examples};
use crate::adapter::fidelity::FieldMap;
use crate::adapter::idempotency::{IdempotencyResponses, idempotent_router};
use crate::adapter::operation::describe_operations;
use crate::adapter::{
    Access, EdgeError, HubContext, NewAgent, Operation, OperationInfo, ProtocolAdapter, naming,
};
use crate::kit::fields::Malformed;
use crate::kit::ijson::{self, Json, JsonValue};

/// The result of every handler.
type HandlerResult = Result<Response, Failure>;

/// The adapter of this protocol.
pub struct Registry;

const OPERATIONS: &[Operation<HubContext>] = &[
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
        handler: || get(payments::audit),
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

impl ProtocolAdapter for Registry {
    fn id(&self) -> Protocol {
        ID
    }

    fn routes(&self, hub_context: &HubContext) -> Router {
        idempotent_router(OPERATIONS.iter(), hub_context, &Registry)
    }

    fn root_routes(&self, hub_context: &HubContext) -> Router {
        // Two protocols register at the root. The hub tells their registrations apart.
        let rows = OPERATIONS.iter().filter(|row| row.at_root && row.path != "/register");
        idempotent_router(rows, hub_context, &Registry)
    }

    fn operations(&self) -> Vec<OperationInfo> {
        describe_operations(ID, OPERATIONS)
    }

    fn delivery_encoder(&self, hub_context: &HubContext) -> Arc<dyn DeliveryEncoder> {
        Arc::new(RegistryEncoder { context: hub_context.clone() })
    }

    fn edge_error_response(&self, _: &HubContext, error: EdgeError) -> Response {
        errors::from_edge(error).into_response()
    }

    fn recognizes_registration(&self, body: &Json<'_>) -> bool {
        let named =
            ["agent_name", "owner_id", "skills"].iter().any(|name| body.get(name).is_some());
        let by_uuid = body.get("agent_id").is_some_and(|id| match id.value() {
            JsonValue::String(text) => text.parse::<uuid::fmt::Hyphenated>().is_ok(),
            _ => false,
        });
        named || by_uuid
    }

    fn registration_example(&self) -> Option<&'static str> {
        Some(examples::REGISTRATION)
    }

    fn field_map(&self) -> &'static dyn FieldMap {
        &RegistryFieldMap
    }

    fn alias(&self, secret: &HubSecret, new: &NewAgent<'_>, taken: bool) -> Option<String> {
        let name = match taken {
            true => naming::fallback_alias_uuid(secret, new.home, new.native),
            false => naming::alias_uuid(new.home, new.native),
        };
        Some(name.to_string())
    }
}

impl IdempotencyResponses for Registry {
    fn namespace(&self) -> &'static str {
        "registry"
    }

    fn invalid_key(&self) -> Response {
        let message = "Idempotency-Key must have 1 to 256 characters".to_owned();
        let field = "Idempotency-Key".to_owned();
        Failure::from(Malformed { field, message }).into_response()
    }

    fn body_mismatch(&self, _: &[u8]) -> Response {
        let text = "this Idempotency-Key was used with another body";
        Failure::new(422, "IDEMPOTENCY_CONFLICT", text).into_response()
    }

    fn storage_full(&self, refusal: &Refusal) -> Response {
        let failure = errors::from_refusal(refusal, errors::RequestKind::Other);
        Failure { field: Some("Idempotency-Key".to_owned()), ..failure }.into_response()
    }

    fn edge_error(&self, error: EdgeError) -> Response {
        errors::from_edge(error).into_response()
    }

    fn redact_secrets(&self, body: &str) -> String {
        use serde_json::value::RawValue;
        // Raw members keep every digit of every amount.
        type Members = std::collections::BTreeMap<String, Box<RawValue>>;
        let Ok(mut members) = serde_json::from_str::<Members>(body) else { return body.to_owned() };
        let had =
            ["api_key", "webhook_secret"].iter().filter(|name| members.remove(**name).is_some());
        if had.count() == 0 {
            return body.to_owned();
        }
        serde_json::to_string(&members).unwrap_or_default()
    }

    fn claimed_caller(&self, body: &[u8]) -> Option<String> {
        let json = ijson::read(body).ok()?;
        let names = ["orchestrator_id", "from_owner", "agent_id", "owner_id"];
        let named = names.iter().find_map(|name| json.get(name))?;
        Some(format!("said {}", named.raw()))
    }
}

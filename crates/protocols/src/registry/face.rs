//! The table of operations, and this protocol's adapter.

use std::sync::Arc;

use axum::Router;
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, get, post};
use rialto_core::alias::Protocol;
use rialto_core::refusal::Refusal;
use rialto_engine::delivery::Courier;
use rialto_engine::secret::HubSecret;

use super::codes::{self, Failure};
use super::courier::RegistryCourier;
use super::routes::{agents, discover, jobs, money, results};
use super::sides::RegistrySides;
use super::{ID, examples};
use crate::adapter::fidelity::Sides;
use crate::adapter::idempotency::{Words, once_each};
use crate::adapter::operation::listed;
use crate::adapter::{Face, Floor, Listed, Newcomer, Reach, Route, Trouble, naming};
use crate::kit::fields::Malformed;
use crate::kit::ijson::{self, Json, Kind};

/// The adapter of this protocol.
pub struct Registry;

const TABLE: &[Route<Floor>] = &[
    Route {
        method: "POST",
        path: "/register",
        at_root: true,
        reach: Reach::Register,
        about: "Register an agent, or update it with its key",
        handler: || post(agents::register),
    },
    Route {
        method: "GET",
        path: "/discover",
        at_root: true,
        reach: Reach::Public,
        about: "Find agents by skill, reputation and cost",
        handler: || get(discover::get),
    },
    Route {
        method: "POST",
        path: "/discover",
        at_root: true,
        reach: Reach::Public,
        about: "Find agents; the query is a JSON body",
        handler: || post(discover::post),
    },
    Route {
        method: "POST",
        path: "/jobs",
        at_root: true,
        reach: Reach::AnyAgent,
        about: "Request a job; the hub picks the worker unless the body names one",
        handler: || post(jobs::post),
    },
    Route {
        method: "POST",
        path: "/agents/{agent_id}/jobs",
        at_root: false,
        reach: Reach::AnyAgent,
        about: "Request a job from this agent",
        handler: || post(jobs::post_to),
    },
    Route {
        method: "GET",
        path: "/jobs/{job_id}",
        at_root: true,
        reach: Reach::Party,
        about: "Get a job's status",
        handler: || get(jobs::show),
    },
    Route {
        method: "POST",
        path: "/jobs/{job_id}/cancel",
        at_root: true,
        reach: Reach::Requester,
        about: "Cancel a job before it is handed to its worker",
        handler: || post(jobs::cancel),
    },
    Route {
        method: "GET",
        path: "/agents/{agent_id}/jobs",
        at_root: false,
        reach: Reach::Agent,
        about: "Fetch the jobs that wait for an agent",
        handler: || get(jobs::fetch),
    },
    Route {
        method: "POST",
        path: "/results",
        at_root: true,
        reach: Reach::Worker,
        about: "Report the result of a job",
        handler: || post(results::post),
    },
    Route {
        method: "POST",
        path: "/callbacks/{token}",
        at_root: false,
        reach: Reach::Token,
        about: "Report the result of the job that this callback URL belongs to",
        handler: || post(results::call_back),
    },
    Route {
        method: "POST",
        path: "/transfer",
        at_root: true,
        reach: Reach::Owner,
        about: "Transfer credits, or confirm what a job's escrow has paid",
        handler: || post(money::transfer),
    },
    Route {
        method: "POST",
        path: "/heartbeat",
        at_root: true,
        reach: Reach::Agent,
        about: "Send a heartbeat",
        handler: || post(agents::heartbeat),
    },
    Route {
        method: "POST",
        path: "/accounts",
        at_root: true,
        reach: Reach::OwnerOrOperator,
        about: "Open an account; with the operator key, grant credits",
        handler: || post(money::open_account),
    },
    Route {
        method: "GET",
        path: "/accounts/{owner_id}",
        at_root: true,
        reach: Reach::OwnerOrOperator,
        about: "Balance and escrow of an owner",
        handler: || get(money::account),
    },
    Route {
        method: "GET",
        path: "/agents/{agent_id}",
        at_root: false,
        reach: Reach::Public,
        about: "Get an agent's public entry",
        handler: || get(agents::show),
    },
    Route {
        method: "DELETE",
        path: "/agents/{agent_id}",
        at_root: false,
        reach: Reach::AgentOrOperator,
        about: "Unregister an agent",
        handler: || delete(agents::unregister),
    },
    Route {
        method: "GET",
        path: "/skills",
        at_root: true,
        reach: Reach::Public,
        about: "All skills on offer",
        handler: || get(discover::skills),
    },
    Route {
        method: "GET",
        path: "/reputation/{agent_id}",
        at_root: true,
        reach: Reach::Public,
        about: "An agent's score",
        handler: || get(agents::reputation),
    },
    Route {
        method: "POST",
        path: "/reputation/{agent_id}/success",
        at_root: true,
        reach: Reach::Public,
        about: "Accepted for compatibility; has no effect",
        handler: || post(agents::claim_reputation),
    },
    Route {
        method: "POST",
        path: "/reputation/{agent_id}/failure",
        at_root: true,
        reach: Reach::Public,
        about: "Accepted for compatibility; has no effect",
        handler: || post(agents::claim_reputation),
    },
    Route {
        method: "GET",
        path: "/audit",
        at_root: true,
        reach: Reach::AnyAgentOrOperator,
        about: "Payments, newest first",
        handler: || get(money::audit),
    },
    Route {
        method: "GET",
        path: "/economy",
        at_root: true,
        reach: Reach::AnyAgentOrOperator,
        about: "Totals of all accounts, and the balances visible to the caller",
        handler: || get(money::economy),
    },
    Route {
        method: "GET",
        path: "/health",
        at_root: false,
        reach: Reach::Public,
        about: "Health of the registry",
        handler: || get(discover::health),
    },
];

impl Face for Registry {
    fn id(&self) -> Protocol {
        ID
    }

    fn routes(&self, floor: &Floor) -> Router {
        once_each(TABLE.iter(), floor, &Registry)
    }

    fn root_routes(&self, floor: &Floor) -> Router {
        // Two protocols register at the root. The hub tells their registrations apart.
        let rows = TABLE.iter().filter(|row| row.at_root && row.path != "/register");
        once_each(rows, floor, &Registry)
    }

    fn listed(&self) -> Vec<Listed> {
        listed(ID, TABLE)
    }

    fn courier(&self, floor: &Floor) -> Arc<dyn Courier> {
        Arc::new(RegistryCourier { floor: floor.clone() })
    }

    fn trouble(&self, _: &Floor, trouble: Trouble) -> Response {
        codes::trouble(trouble).into_response()
    }

    fn claims_registration(&self, body: &Json<'_>) -> bool {
        let named =
            ["agent_name", "owner_id", "skills"].iter().any(|name| body.get(name).is_some());
        let by_uuid = body.get("agent_id").is_some_and(|id| match id.kind() {
            Kind::Text(text) => text.parse::<uuid::fmt::Hyphenated>().is_ok(),
            _ => false,
        });
        named || by_uuid
    }

    fn registration_example(&self) -> Option<&'static str> {
        Some(examples::REGISTRATION)
    }

    fn sides(&self) -> &'static dyn Sides {
        &RegistrySides
    }

    fn alias(&self, secret: &HubSecret, new: &Newcomer<'_>, taken: bool) -> Option<String> {
        let name = match taken {
            true => naming::spare_uuid(secret, new.home, new.native),
            false => naming::uuid(new.home, new.native),
        };
        Some(name.to_string())
    }
}

impl Words for Registry {
    fn realm(&self) -> &'static str {
        "registry"
    }

    fn key_too_long(&self) -> Response {
        let message = "Idempotency-Key must have 1 to 256 characters".to_owned();
        let field = "Idempotency-Key".to_owned();
        Failure::from(Malformed { field, message }).into_response()
    }

    fn other_content(&self, _: &[u8]) -> Response {
        let text = "this Idempotency-Key was used with another body";
        Failure::new(422, "IDEMPOTENCY_CONFLICT", text).into_response()
    }

    fn no_room(&self, refusal: &Refusal) -> Response {
        let failure = codes::refused(refusal, codes::Context::Other);
        Failure { field: Some("Idempotency-Key".to_owned()), ..failure }.into_response()
    }

    fn trouble(&self, trouble: Trouble) -> Response {
        codes::trouble(trouble).into_response()
    }

    fn without_secrets(&self, body: &str) -> String {
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

    fn principal(&self, body: &[u8]) -> Option<String> {
        let json = ijson::read(body).ok()?;
        let names = ["orchestrator_id", "from_owner", "agent_id", "owner_id"];
        let named = names.iter().find_map(|name| json.get(name))?;
        Some(format!("said {}", named.raw()))
    }
}

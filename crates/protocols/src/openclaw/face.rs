//! The table of operations, and the protocol adapter.

use std::sync::Arc;

use axum::Router;
use axum::http::{HeaderValue, header};
use axum::response::Response;
use axum::routing::{delete, get, post};
use rialto_core::agent::Agent;
use rialto_core::alias::Protocol;
use rialto_core::refusal::Refusal;
use rialto_core::time::Timestamp;
use rialto_engine::delivery::Courier;
use rialto_engine::secret::HubSecret;
use uuid::Uuid;

use super::codes::Code;
use super::failure::Failure;
use super::routes::{
    agents, answers, ask, collaborations, identity, list, messages, overview, reports, stream,
};
use super::sides::OpenclawSides;
use super::updates::Updates;
use super::{BODY_MAX, ID, courier, fitting, refusals, say};
use crate::adapter::fidelity::Sides;
use crate::adapter::idempotency::{Words, once_each};
use crate::adapter::operation::listed;
use crate::adapter::{Background, Face, Floor, Listed, Newcomer, Reach, Route, Trouble, naming};
use crate::kit::ijson::{self, Json};
use crate::kit::object::Object;

/// The adapter of this protocol.
pub struct Openclaw;

const TABLE: &[Route<Floor>] = &[
    Route::prefixed(
        "POST",
        "/identity",
        Reach::Register,
        "Publish an identity, or update it with its key",
        || post(identity::post),
    ),
    Route::prefixed("POST", "/status", Reach::Agent, "Report an agent's status", || {
        post(reports::post_status)
    }),
    Route::prefixed("POST", "/reputation", Reach::Agent, "Report a claimed reputation", || {
        post(reports::post_reputation)
    }),
    Route::prefixed("POST", "/collaborations", Reach::AnyAgent, "Request a collaboration", || {
        post(ask::post)
    }),
    Route::prefixed(
        "GET",
        "/collaborations",
        Reach::AnyAgent,
        "List the caller's collaborations",
        || get(list::list),
    ),
    Route::prefixed(
        "POST",
        "/agents/{agent_id}/collaborations",
        Reach::AnyAgent,
        "Request a collaboration with this agent",
        || post(ask::post_to),
    ),
    Route::prefixed(
        "GET",
        "/collaborations/{id}",
        Reach::Party,
        "Show a collaboration's state",
        || get(collaborations::show),
    ),
    Route::prefixed(
        "POST",
        "/collaborations/{id}/response",
        Reach::Worker,
        "Accept, reject or defer a request",
        || post(answers::post_response),
    ),
    Route::prefixed(
        "POST",
        "/collaborations/{id}/approve",
        Reach::WorkerOrOperator,
        "Approve or refuse a request that needs approval",
        || post(answers::approve),
    ),
    Route::prefixed(
        "POST",
        "/collaborations/{id}/result",
        Reach::Worker,
        "Publish the result of a collaboration",
        || post(answers::post_result),
    ),
    Route::prefixed(
        "POST",
        "/collaborations/{id}/cancel",
        Reach::Party,
        "Cancel a collaboration",
        || post(answers::cancel),
    ),
    Route::prefixed("POST", "/messages", Reach::AnyAgent, "Send any of the six messages", || {
        post(messages::post)
    }),
    Route::prefixed("GET", "/agents", Reach::Public, "List agents and their capabilities", || {
        get(agents::list)
    }),
    Route::prefixed("GET", "/agents/{agent_id}", Reach::Public, "Show an agent's identity", || {
        get(agents::show)
    }),
    Route::prefixed(
        "DELETE",
        "/agents/{agent_id}",
        Reach::AgentOrOperator,
        "Unregister an agent",
        || delete(agents::remove),
    ),
    Route::prefixed("GET", "/agents/{agent_id}/status", Reach::Public, "Show agent status", || {
        get(agents::status)
    }),
    Route::prefixed(
        "GET",
        "/agents/{agent_id}/reputation",
        Reach::Public,
        "Show an agent's reputation",
        || get(agents::reputation),
    ),
    Route::prefixed("GET", "/stream", Reach::AnyAgent, "Stream the caller's events", || {
        get(stream::open)
    }),
    Route::prefixed("GET", "/health", Reach::Public, "Check that the hub is up", || {
        get(overview::health)
    }),
];

impl Face for Openclaw {
    fn id(&self) -> Protocol {
        ID
    }

    fn routes(&self, floor: &Floor) -> Router {
        once_each(TABLE.iter(), floor, &Openclaw)
    }

    fn root_routes(&self, _: &Floor) -> Router {
        Router::new()
    }

    fn listed(&self) -> Vec<Listed> {
        listed(ID, TABLE)
    }

    fn courier(&self, floor: &Floor) -> Arc<dyn Courier> {
        courier::courier(floor)
    }

    fn background(&self, floor: &Floor) -> Background {
        Box::pin(Updates::new(floor.clone()).work())
    }

    fn trouble(&self, floor: &Floor, trouble: Trouble) -> Response {
        say::refuse(floor, &refusals::trouble(&trouble))
    }

    /// Identities are published under the protocol's prefix only.
    fn claims_registration(&self, _: &Json<'_>) -> bool {
        false
    }

    fn registration_example(&self) -> Option<&'static str> {
        None
    }

    fn sides(&self) -> &'static dyn Sides {
        &OpenclawSides
    }

    fn alias(&self, secret: &HubSecret, new: &Newcomer<'_>, taken: bool) -> Option<String> {
        let name = match taken {
            true => naming::spare_uuid(secret, new.home, new.native),
            false => naming::uuid(new.home, new.native),
        };
        Some(name.to_string())
    }

    fn checks_input(&self) -> bool {
        true
    }

    fn misfit(
        &self,
        floor: &Floor,
        agent: &Arc<Agent>,
        skill: &str,
        input: &str,
    ) -> Option<String> {
        let broken = fitting::violations(floor, agent, skill, input);
        (!broken.is_empty()).then(|| broken.join("; "))
    }

    fn body_limit(&self, general: usize) -> usize {
        general.min(BODY_MAX)
    }
}

impl Words for Openclaw {
    fn realm(&self) -> &'static str {
        "openclaw"
    }

    fn key_too_long(&self) -> Response {
        let wrong = "Idempotency-Key must have 1 to 256 characters".to_owned();
        bare(&Failure::violated(vec![wrong]))
    }

    fn other_content(&self, body: &[u8]) -> Response {
        let text = "this Idempotency-Key was used with another body";
        let failure = Failure::new(Code::IdempotencyConflict, text);
        bare(&match ijson::read(body) {
            Ok(json) => failure.about(&json),
            Err(_) => failure,
        })
    }

    fn no_room(&self, refusal: &Refusal) -> Response {
        bare(&refusals::refused(refusal))
    }

    fn trouble(&self, trouble: Trouble) -> Response {
        bare(&refusals::trouble(&trouble))
    }

    fn without_secrets(&self, body: &str) -> String {
        const SECRETS: [&str; 2] = ["api_key", "webhook_secret"];
        let Ok(json) = ijson::read(body.as_bytes()) else { return body.to_owned() };
        match SECRETS.iter().any(|name| json.get(name).is_some()) {
            true => Object::copy(&json, &SECRETS).finish(),
            false => body.to_owned(),
        }
    }

    fn principal(&self, body: &[u8]) -> Option<String> {
        let json = ijson::read(body).ok()?;
        let names = ["requester_agent_id", "responder_agent_id", "agent_id"];
        let named = names.iter().find_map(|name| json.get(name))?;
        Some(format!("said {}", named.raw()))
    }
}

/// An error response where no hub context is available: without the hub's clock and ids.
fn bare(failure: &Failure) -> Response {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let millis = now.map_or(0, |since| i64::try_from(since.as_millis()).unwrap_or(0));
    let made = Uuid::new_v5(&Uuid::NAMESPACE_OID, &millis.to_be_bytes());
    let mut answer = say::text(failure.http, failure.write(made, Timestamp(millis)));
    if let Some(seconds) = failure.retry_after_seconds {
        answer.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    answer
}

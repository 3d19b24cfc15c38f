//! The table of operations, and this protocol's adapter.

use std::sync::Arc;

use axum::Router;
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, get, post, put};
use rialto_core::alias::Protocol;
use rialto_core::notice::Notice;
use rialto_core::refusal::Refusal;
use rialto_core::time::Timestamp;
use rialto_engine::delivery::Courier;
use rialto_engine::secret::HubSecret;

use super::courier::RelayCourier;
use super::refusals::{self, Refused};
use super::routes::{agents, blocks, history, inbox, messages, overview, receive, traced};
use super::sides::RelaySides;
use super::{BODY_MAX, Code, Failure, ID, examples, letter};
use crate::adapter::fidelity::Sides;
use crate::adapter::idempotency::{self, Words, once_each};
use crate::adapter::operation::listed;
use crate::adapter::{Express, Face, Floor, Listed, Newcomer, Reach, Route, Trouble, naming};
use crate::kit::ijson::{self, Json, Kind};

/// The adapter of this protocol.
pub struct Relay;

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
        path: "/agent/inbox",
        at_root: true,
        reach: Reach::AnyAgent,
        about: "The caller's inbox as a stream of events",
        handler: || get(inbox::open),
    },
    Route {
        method: "POST",
        path: "/agent/inbox/ack",
        at_root: true,
        reach: Reach::AnyAgent,
        about: "Acknowledge everything up to a position",
        handler: || post(inbox::ack),
    },
    Route {
        method: "GET",
        path: "/agent/messages",
        at_root: true,
        reach: Reach::AnyAgent,
        about: "Messages the caller sent and received",
        handler: || get(history::list),
    },
    Route {
        method: "POST",
        path: "/agents",
        at_root: true,
        reach: Reach::Operator,
        about: "Register an agent as the operator",
        handler: || post(agents::announce),
    },
    Route {
        method: "GET",
        path: "/agents",
        at_root: true,
        reach: Reach::Public,
        about: "All registered agents",
        handler: || get(agents::list),
    },
    Route {
        method: "GET",
        path: "/agents/{id}",
        at_root: true,
        reach: Reach::Public,
        about: "One agent's record",
        handler: || get(agents::show),
    },
    Route {
        method: "DELETE",
        path: "/agents/{id}",
        at_root: true,
        reach: Reach::AgentOrOperator,
        about: "Unregister an agent",
        handler: || delete(agents::unregister),
    },
    Route {
        method: "POST",
        path: "/agents/{id}/key",
        at_root: true,
        reach: Reach::Operator,
        about: "Mint a key for an agent",
        handler: || post(agents::mint),
    },
    Route {
        method: "POST",
        path: "/messages",
        at_root: true,
        reach: Reach::AnyAgentOrOperator,
        about: "Send a message",
        handler: || post(messages::post),
    },
    Route {
        method: "GET",
        path: "/messages/{trace_id}",
        at_root: true,
        reach: Reach::Party,
        about: "Get a message's state",
        handler: || get(traced::show),
    },
    Route {
        method: "GET",
        path: "/agent/blocks",
        at_root: true,
        reach: Reach::AnyAgent,
        about: "List blocked agents",
        handler: || get(blocks::list),
    },
    Route {
        method: "PUT",
        path: "/agent/blocks/{id}",
        at_root: true,
        reach: Reach::AnyAgent,
        about: "Refuse an agent's messages",
        handler: || put(blocks::add),
    },
    Route {
        method: "DELETE",
        path: "/agent/blocks/{id}",
        at_root: true,
        reach: Reach::AnyAgent,
        about: "Unblock an agent",
        handler: || delete(blocks::remove),
    },
    Route {
        method: "GET",
        path: "/health",
        at_root: true,
        reach: Reach::Public,
        about: "Health of the hub",
        handler: || get(overview::health),
    },
    Route {
        method: "GET",
        path: "/.well-known/chorus.json",
        at_root: true,
        reach: Reach::Public,
        about: "Discovery document",
        handler: || get(overview::well_known),
    },
    Route {
        method: "POST",
        path: "/receive/{id}",
        at_root: false,
        // Open to any caller, and every call creates a message, so it is limited by address.
        reach: Reach::Register,
        about: "Deliver an envelope to an agent of this hub as a peer",
        handler: || post(receive::post),
    },
];

impl Face for Relay {
    fn id(&self) -> Protocol {
        ID
    }

    fn routes(&self, floor: &Floor) -> Router {
        once_each(TABLE.iter(), floor, &Relay)
    }

    fn root_routes(&self, floor: &Floor) -> Router {
        // Two protocols register at the root. The hub tells their registrations apart.
        let rows = TABLE.iter().filter(|row| row.at_root && row.path != "/register");
        once_each(rows, floor, &Relay)
    }

    fn listed(&self) -> Vec<Listed> {
        listed(ID, TABLE)
    }

    fn courier(&self, floor: &Floor) -> Arc<dyn Courier> {
        Arc::new(RelayCourier { floor: floor.clone() })
    }

    fn trouble(&self, floor: &Floor, trouble: Trouble) -> Response {
        Refused::new(refusals::trouble(&trouble), floor.engine.now()).into_response()
    }

    fn held_until(&self, notice: &Notice, now: Timestamp) -> Option<Timestamp> {
        letter::held_until(&notice.news, notice.at, now)
    }

    fn claims_registration(&self, body: &Json<'_>) -> bool {
        let addressed = body.get("agent_id").is_some_and(|id| match id.kind() {
            Kind::Text(text) => text.contains('@'),
            _ => false,
        });
        body.get("agent_card").is_some() || addressed
    }

    fn registration_example(&self) -> Option<&'static str> {
        Some(examples::REGISTRATION)
    }

    fn sides(&self) -> &'static dyn Sides {
        &RelaySides
    }

    fn alias(&self, _: &HubSecret, new: &Newcomer<'_>, long: bool) -> Option<String> {
        let digits = naming::digits(new.home, new.native, long);
        Some(format!("{}-{digits}@{}", naming::slug(new.name), new.home))
    }

    fn body_limit(&self, general: usize) -> usize {
        general.min(BODY_MAX)
    }

    fn express(&self) -> &'static [Express] {
        const UNLESS: &[&str] = &[idempotency::HEADER];
        &[Express { method: "POST", path: "/messages", unless: UNLESS, handler: messages::express }]
    }

    fn owns_the_rest(&self) -> bool {
        true
    }
}

/// The edge refuses requests before the hub context is available, including its clock.
fn now() -> Timestamp {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    Timestamp(since.map_or(0, |since| i64::try_from(since.as_millis()).unwrap_or(i64::MAX)))
}

impl Words for Relay {
    fn realm(&self) -> &'static str {
        "relay"
    }

    fn key_too_long(&self) -> Response {
        let failure = Failure {
            field: Some("Idempotency-Key".into()),
            example: Some(examples::of("Idempotency-Key").into()),
            ..Failure::new(Code::Validation, "Idempotency-Key must have 1 to 256 characters")
        };
        Refused::new(failure, now()).into_response()
    }

    fn other_content(&self, _: &[u8]) -> Response {
        let text = "this Idempotency-Key was used with another body; use a new one";
        Refused::new(Failure::new(Code::IdempotencyConflict, text), now()).into_response()
    }

    fn no_room(&self, refusal: &Refusal) -> Response {
        let field = Some("Idempotency-Key".into());
        Refused::new(Failure { field, ..refusals::refused(refusal) }, now()).into_response()
    }

    fn trouble(&self, trouble: Trouble) -> Response {
        Refused::new(refusals::trouble(&trouble), now()).into_response()
    }

    fn without_secrets(&self, body: &str) -> String {
        use serde_json::value::RawValue;
        type Members = std::collections::BTreeMap<String, Box<RawValue>>;
        let stripped = || {
            let mut answer: Members = serde_json::from_str(body).ok()?;
            let mut data: Members = serde_json::from_str(answer.get("data")?.get()).ok()?;
            let had =
                ["api_key", "webhook_secret"].iter().filter(|name| data.remove(**name).is_some());
            if had.count() == 0 {
                return None;
            }
            let data = RawValue::from_string(serde_json::to_string(&data).ok()?).ok()?;
            answer.insert("data".to_owned(), data);
            serde_json::to_string(&answer).ok()
        };
        stripped().unwrap_or_else(|| body.to_owned())
    }

    fn principal(&self, body: &[u8]) -> Option<String> {
        // Unrelated senders that happen to choose the same key must not conflict.
        let json = ijson::read(body).ok()?;
        let sender = || json.get("envelope")?.get("sender_id");
        let named = json.get("agent_id").or_else(sender)?;
        Some(format!("said {}", named.raw()))
    }
}

//! The table of operations, and this protocol's adapter.

use std::sync::Arc;

use axum::Router;
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, get, post, put};
use rialto_core::alias::Protocol;
use rialto_core::notice::Notice;
use rialto_core::refusal::Refusal;
use rialto_core::time::Timestamp;
use rialto_engine::delivery::DeliveryEncoder;
use rialto_engine::secret::HubSecret;

use super::courier::RelayEncoder;
use super::refusals::{self, ErrorResponse};
use super::routes::{agents, blocks, history, inbox, messages, overview, receive, traced};
use super::sides::RelayFieldMap;
use super::{BODY_MAX, Code, Failure, ID, examples, letter};
use crate::adapter::fidelity::FieldMap;
use crate::adapter::idempotency::{self, IdempotencyResponses, idempotent_router};
use crate::adapter::operation::describe_operations;
use crate::adapter::{
    Access, EdgeError, FastRoute, HubContext, NewAgent, Operation, OperationInfo, ProtocolAdapter,
    naming,
};
use crate::kit::ijson::{self, Json, JsonValue};

/// The adapter of this protocol.
pub struct Relay;

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
        path: "/agent/inbox",
        at_root: true,
        access: Access::AnyAgent,
        summary: "The caller's inbox as a stream of events",
        handler: || get(inbox::open_inbox),
    },
    Operation {
        method: "POST",
        path: "/agent/inbox/ack",
        at_root: true,
        access: Access::AnyAgent,
        summary: "Acknowledge everything up to a position",
        handler: || post(inbox::ack),
    },
    Operation {
        method: "GET",
        path: "/agent/messages",
        at_root: true,
        access: Access::AnyAgent,
        summary: "Messages the caller sent and received",
        handler: || get(history::list),
    },
    Operation {
        method: "POST",
        path: "/agents",
        at_root: true,
        access: Access::Operator,
        summary: "Register an agent as the operator",
        handler: || post(agents::register_as_operator),
    },
    Operation {
        method: "GET",
        path: "/agents",
        at_root: true,
        access: Access::Public,
        summary: "All registered agents",
        handler: || get(agents::list),
    },
    Operation {
        method: "GET",
        path: "/agents/{id}",
        at_root: true,
        access: Access::Public,
        summary: "One agent's record",
        handler: || get(agents::show),
    },
    Operation {
        method: "DELETE",
        path: "/agents/{id}",
        at_root: true,
        access: Access::AgentOrOperator,
        summary: "Unregister an agent",
        handler: || delete(agents::unregister),
    },
    Operation {
        method: "POST",
        path: "/agents/{id}/key",
        at_root: true,
        access: Access::Operator,
        summary: "Mint a key for an agent",
        handler: || post(agents::mint_key),
    },
    Operation {
        method: "POST",
        path: "/messages",
        at_root: true,
        access: Access::AnyAgentOrOperator,
        summary: "Send a message",
        handler: || post(messages::send_message),
    },
    Operation {
        method: "GET",
        path: "/messages/{trace_id}",
        at_root: true,
        access: Access::Party,
        summary: "Get a message's state",
        handler: || get(traced::show),
    },
    Operation {
        method: "GET",
        path: "/agent/blocks",
        at_root: true,
        access: Access::AnyAgent,
        summary: "List blocked agents",
        handler: || get(blocks::list),
    },
    Operation {
        method: "PUT",
        path: "/agent/blocks/{id}",
        at_root: true,
        access: Access::AnyAgent,
        summary: "Refuse an agent's messages",
        handler: || put(blocks::add),
    },
    Operation {
        method: "DELETE",
        path: "/agent/blocks/{id}",
        at_root: true,
        access: Access::AnyAgent,
        summary: "Unblock an agent",
        handler: || delete(blocks::remove),
    },
    Operation {
        method: "GET",
        path: "/health",
        at_root: true,
        access: Access::Public,
        summary: "Health of the hub",
        handler: || get(overview::health),
    },
    Operation {
        method: "GET",
        path: "/.well-known/chorus.json",
        at_root: true,
        access: Access::Public,
        summary: "Discovery document",
        handler: || get(overview::well_known),
    },
    Operation {
        method: "POST",
        path: "/receive/{id}",
        at_root: false,
        // Open to any caller, and every call creates a message, so it is limited by address.
        access: Access::Register,
        summary: "Deliver an envelope to an agent of this hub as a peer",
        handler: || post(receive::receive_envelope),
    },
];

impl ProtocolAdapter for Relay {
    fn id(&self) -> Protocol {
        ID
    }

    fn routes(&self, hub_context: &HubContext) -> Router {
        idempotent_router(OPERATIONS.iter(), hub_context, &Relay)
    }

    fn root_routes(&self, hub_context: &HubContext) -> Router {
        // Two protocols register at the root. The hub tells their registrations apart.
        let rows = OPERATIONS.iter().filter(|row| row.at_root && row.path != "/register");
        idempotent_router(rows, hub_context, &Relay)
    }

    fn operations(&self) -> Vec<OperationInfo> {
        describe_operations(ID, OPERATIONS)
    }

    fn delivery_encoder(&self, hub_context: &HubContext) -> Arc<dyn DeliveryEncoder> {
        Arc::new(RelayEncoder { context: hub_context.clone() })
    }

    fn edge_error_response(&self, hub_context: &HubContext, error: EdgeError) -> Response {
        ErrorResponse::new(refusals::from_edge(&error), hub_context.engine.now()).into_response()
    }

    fn held_until(&self, notice: &Notice, now: Timestamp) -> Option<Timestamp> {
        letter::held_until(&notice.news, notice.at, now)
    }

    fn recognizes_registration(&self, body: &Json<'_>) -> bool {
        let addressed = body.get("agent_id").is_some_and(|id| match id.value() {
            JsonValue::String(text) => text.contains('@'),
            _ => false,
        });
        body.get("agent_card").is_some() || addressed
    }

    fn registration_example(&self) -> Option<&'static str> {
        Some(examples::REGISTRATION)
    }

    fn field_map(&self) -> &'static dyn FieldMap {
        &RelayFieldMap
    }

    fn alias(&self, _: &HubSecret, new: &NewAgent<'_>, long: bool) -> Option<String> {
        let digits = naming::alias_digits(new.home, new.native, long);
        Some(format!("{}-{digits}@{}", naming::slug(new.name), new.home))
    }

    fn body_limit(&self, general: usize) -> usize {
        general.min(BODY_MAX)
    }

    fn fast_routes(&self) -> &'static [FastRoute] {
        const UNLESS: &[&str] = &[idempotency::HEADER];
        &[FastRoute {
            method: "POST",
            path: "/messages",
            excluded_headers: UNLESS,
            handler: messages::send_message_fast,
        }]
    }

    fn handles_unknown_paths(&self) -> bool {
        true
    }
}

/// The edge refuses requests before the hub context is available, including its clock.
fn now() -> Timestamp {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    Timestamp(since.map_or(0, |since| i64::try_from(since.as_millis()).unwrap_or(i64::MAX)))
}

impl IdempotencyResponses for Relay {
    fn namespace(&self) -> &'static str {
        "relay"
    }

    fn invalid_key(&self) -> Response {
        let failure = Failure {
            field: Some("Idempotency-Key".into()),
            example: Some(examples::example_for("Idempotency-Key").into()),
            ..Failure::new(Code::Validation, "Idempotency-Key must have 1 to 256 characters")
        };
        ErrorResponse::new(failure, now()).into_response()
    }

    fn body_mismatch(&self, _: &[u8]) -> Response {
        let text = "this Idempotency-Key was used with another body; use a new one";
        ErrorResponse::new(Failure::new(Code::IdempotencyConflict, text), now()).into_response()
    }

    fn storage_full(&self, refusal: &Refusal) -> Response {
        let field = Some("Idempotency-Key".into());
        ErrorResponse::new(Failure { field, ..refusals::from_refusal(refusal) }, now())
            .into_response()
    }

    fn edge_error(&self, error: EdgeError) -> Response {
        ErrorResponse::new(refusals::from_edge(&error), now()).into_response()
    }

    fn redact_secrets(&self, body: &str) -> String {
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

    fn claimed_caller(&self, body: &[u8]) -> Option<String> {
        // Unrelated senders that happen to choose the same key must not conflict.
        let json = ijson::read(body).ok()?;
        let sender = || json.get("envelope")?.get("sender_id");
        let named = json.get("agent_id").or_else(sender)?;
        Some(format!("said {}", named.raw()))
    }
}

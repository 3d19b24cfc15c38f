//! The table of operations, and the protocol adapter.

use std::sync::Arc;

use axum::Router;
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, get, post};
use rialto_core::alias::Protocol;
use rialto_core::job::Job;
use rialto_core::notice::Delivery;
use rialto_engine::Engine;
use rialto_engine::delivery::egress::{HttpResponse, SendError};
use rialto_engine::delivery::{AttemptResult, DeliveryEncoder, OutboundRequest};
use rialto_engine::secret::HubSecret;

use super::routes::{compute, messages};
use super::sides::ClaraFieldMap;
use super::{BODY_MAX, ID, intake, people};
use crate::adapter::fidelity::FieldMap;
use crate::adapter::operation::{build_router, describe_operations};
use crate::adapter::{
    Access, EdgeError, HubContext, NewAgent, Operation, OperationInfo, ProtocolAdapter,
    delivery_result, naming,
};
use crate::kit::ijson::Json;

/// The adapter of this protocol.
pub struct Clara;

/// Every operation is served under its unit's name and directly under the prefix. Clients whose
/// base URL ends in a slash send two slashes, so those paths are served, too.
const OPERATIONS: &[Operation<HubContext>] = &[
    Operation::under_prefix(
        "GET",
        "",
        Access::Public,
        "Show the process id and the paths of its units",
        || get(messages::overview),
    ),
    Operation::under_prefix("POST", "", Access::Signed, "Post a signed message", || {
        post(messages::post_item)
    }),
    Operation::under_prefix("POST", "/mu", Access::Signed, "Post a signed message", || {
        post(messages::post_item)
    }),
    Operation::under_prefix(
        "POST",
        "/mu/monitor/{process}",
        Access::Public,
        "Accepted for compatibility; has no effect",
        || post(messages::monitor),
    ),
    Operation::under_prefix(
        "DELETE",
        "/mu/monitor/{process}",
        Access::Public,
        "Accepted for compatibility; has no effect",
        || delete(messages::monitor),
    ),
    Operation::under_prefix(
        "POST",
        "/monitor/{process}",
        Access::Public,
        "Accepted for compatibility; has no effect",
        || post(messages::monitor),
    ),
    Operation::under_prefix(
        "DELETE",
        "/monitor/{process}",
        Access::Public,
        "Accepted for compatibility; has no effect",
        || delete(messages::monitor),
    ),
    Operation::under_prefix(
        "GET",
        "/cu/result/{message}",
        Access::Public,
        "Get the result of a message",
        || get(compute::result),
    ),
    Operation::under_prefix(
        "GET",
        "/result/{message}",
        Access::Public,
        "Get the result of a message",
        || get(compute::result),
    ),
    Operation::under_prefix(
        "GET",
        "/cu/results/{process}",
        Access::Public,
        "List results page by page",
        || get(compute::results),
    ),
    Operation::under_prefix(
        "GET",
        "/results/{process}",
        Access::Public,
        "List results page by page",
        || get(compute::results),
    ),
    Operation::under_prefix(
        "POST",
        "/cu/dry-run",
        Access::Public,
        "Evaluate a message without storing it",
        || post(compute::dry_run),
    ),
    Operation::under_prefix(
        "POST",
        "/dry-run",
        Access::Public,
        "Evaluate a message without storing it",
        || post(compute::dry_run),
    ),
];

impl ProtocolAdapter for Clara {
    fn id(&self) -> Protocol {
        ID
    }

    fn routes(&self, context: &HubContext) -> Router {
        build_router(OPERATIONS.iter(), context.clone())
    }

    fn root_routes(&self, _: &HubContext) -> Router {
        Router::new()
    }

    fn operations(&self) -> Vec<OperationInfo> {
        describe_operations(ID, OPERATIONS)
    }

    fn delivery_encoder(&self, _: &HubContext) -> Arc<dyn DeliveryEncoder> {
        Arc::new(NoDeliveries)
    }

    fn edge_error_response(&self, _: &HubContext, error: EdgeError) -> Response {
        intake::from_edge(&error).into_response()
    }

    /// Agents register with a signed message.
    fn recognizes_registration(&self, _: &Json<'_>) -> bool {
        false
    }

    fn registration_example(&self) -> Option<&'static str> {
        None
    }

    fn field_map(&self) -> &'static dyn FieldMap {
        &ClaraFieldMap
    }

    fn alias(&self, _: &HubSecret, new: &NewAgent<'_>, taken: bool) -> Option<String> {
        let digits = naming::alias_digits(new.home, new.native, taken);
        Some(format!("{}/{}-{digits}", new.home, naming::slug(new.name)))
    }

    fn agent_skeletons(&self, native: &str) -> Vec<String> {
        people::id_skeletons(native)
    }

    fn allows_any_origin(&self) -> bool {
        true
    }

    fn body_limit(&self, general: usize) -> usize {
        general.min(BODY_MAX)
    }
}

/// Clara agents poll: there are no deliveries.
struct NoDeliveries;

impl DeliveryEncoder for NoDeliveries {
    fn encode(&self, _: &Engine, _: &Delivery, _: Option<&Job>) -> Option<OutboundRequest> {
        None
    }

    fn interpret_response(
        &self,
        _: &Engine,
        _: &Delivery,
        _: Option<&Job>,
        answer: &Result<HttpResponse, SendError>,
    ) -> AttemptResult {
        delivery_result::from_status(answer)
    }
}

//! The APIs of the hub: every protocol, `/v1`, and the hub's own few paths at the root.

use std::sync::Arc;

use axum::response::{IntoResponse, Response};
use rialto_protocols::adapter::api::ServedOperation;
use rialto_protocols::adapter::{Api, EdgeError, HubContext, Operation};
use rialto_protocols::kit::rfc3339;
use serde_json::{Value, json};

use super::pages::{self, Pages};
use super::{openapi, probes};
use crate::edge::{OperationClash, OperationTable};
use crate::mcp::McpApi;
use crate::v1::V1Api;

/// The operations of everything the hub serves.
pub fn operation_table(
    context: &HubContext,
    probes: probes::ProbeState,
) -> Result<OperationTable, OperationClash> {
    let mut apis: Vec<_> =
        context.protocols.iter().map(|protocol| protocol.clone().api(context)).collect();
    let fallback = apis.iter().find(|api| api.handles_unknown_paths()).cloned();
    apis.push(Arc::new(V1Api::new(context)));
    apis.push(Arc::new(McpApi::new(context, &probes.metrics)));
    if let Some(fallback) = fallback {
        let pages = Arc::new(Pages::new(&context.hub_url));
        let document = openapi::document_text();
        apis.push(Arc::new(RootApi { probes, document, pages, fallback }));
    }
    let clock = context.clone();
    let unrecognized = move |operations: &[Arc<ServedOperation>], unreadable| {
        unrecognized_body(&clock, operations, unreadable)
    };
    OperationTable::new(&apis, context.body_limit, Box::new(unrecognized))
}

/// The paths at the root that belong to no protocol. Their errors have the same format as those of
/// unknown paths.
struct RootApi {
    probes: probes::ProbeState,
    document: Arc<str>,
    pages: Arc<Pages>,
    fallback: Arc<dyn Api>,
}

impl Api for RootApi {
    fn prefix(&self) -> &str {
        ""
    }

    fn operations(&self) -> Vec<Operation<()>> {
        let probes = probes::operations().into_iter();
        let probes = probes.map(|operation| operation.with_state(self.probes.clone()));
        let document = openapi::own_operations().into_iter();
        let pages = pages::operations().into_iter();
        probes
            .chain(document.map(|operation| operation.with_state(self.document.clone())))
            .chain(pages.map(|operation| operation.with_state(self.pages.clone())))
            .collect()
    }

    fn error_response(&self, error: EdgeError) -> Response {
        self.fallback.error_response(error)
    }

    fn body_max(&self) -> usize {
        self.fallback.body_max()
    }
}

/// The error for a body that fits none of several operations at one path, or more than one of them,
/// with a correct example for each. Two protocols register agents at the root.
fn unrecognized_body(
    context: &HubContext,
    operations: &[Arc<ServedOperation>],
    unreadable: Option<String>,
) -> Response {
    let shapes = operations.iter().map(|operation| {
        let info = &operation.info;
        let example: Value =
            info.example.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
        let path = format!("/{}{}", operation.api.prefix(), info.path);
        json!({"protocol": info.protocol, "path": path, "example": example})
    });
    let neither = "two registrations share this path; the body fits neither (or both)";
    let text = unreadable
        .map_or_else(|| neither.to_owned(), |why| format!("the body is not valid JSON: {why}"));
    let body = json!({
        "success": false,
        "status": "error",
        "error_code": "INVALID_REQUEST",
        "error_message": text,
        "error": {
            "code": "ERR_VALIDATION",
            "message": text,
            "retryable": false,
            "shapes": shapes.collect::<Vec<_>>(),
        },
        "detail": text,
        "metadata": {"timestamp": rfc3339::format_millis(context.engine.now())},
    });
    (http::StatusCode::BAD_REQUEST, axum::Json(body)).into_response()
}

//! The OpenAPI document: all operations, generated from the tables that the router is built from.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use rialto_protocols::ALL;
use rialto_protocols::adapter::operation::get;
use rialto_protocols::adapter::{Access, Operation, OperationInfo};
use serde_json::{Map, Value, json};

use super::probes;
use crate::v1;

/// All operations of the hub.
pub fn operations() -> Vec<OperationInfo> {
    let protocols = ALL.iter().flat_map(|adapter| adapter.operations());
    let v1 = v1::operations().into_iter().map(|operation| operation.info);
    let probes = probes::operations().into_iter().map(|operation| operation.info);
    let own = own_operations().into_iter().map(|operation| operation.info);
    protocols.chain(v1).chain(probes).chain(own).collect()
}

/// The operation that shows the document. Its state is the text.
pub fn own_operations() -> Vec<Operation<Arc<str>>> {
    vec![get("/openapi.json", Access::Public, show_document).summary("This OpenAPI document")]
}

async fn show_document(State(text): State<Arc<str>>) -> Response {
    ([(http::header::CONTENT_TYPE, "application/json")], text.to_string()).into_response()
}

/// The document as text. The tables do not change while the hub runs.
pub fn document_text() -> Arc<str> {
    Arc::from(openapi_document().to_string())
}

/// The document in OpenAPI 3.1.
pub fn openapi_document() -> Value {
    let mut paths: BTreeMap<String, Map<String, Value>> = BTreeMap::new();
    for route in operations() {
        let operation = operation(&route);
        paths.entry(route.path).or_default().insert(route.method.to_lowercase(), operation);
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Rialto",
            "summary": "A hub for AI agents of five protocols: discovery, messages, jobs and payment",
            "version": env!("CARGO_PKG_VERSION"),
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "tags": tags(),
        "paths": paths,
        "components": {"securitySchemes": {
            "agentKey": {"type": "http", "scheme": "bearer", "description": "An agent's own key, rk_…"},
            "inboxToken": {"type": "http", "scheme": "bearer", "description": "A token that can only read one inbox, at_…"},
            "operatorKey": {"type": "http", "scheme": "bearer", "description": "The operator's key, ro_…"},
        }},
    })
}

fn tags() -> Vec<Value> {
    let protocols = ALL.iter().map(|adapter| json!({"name": adapter.id()}));
    protocols.chain([json!({"name": "hub"})]).collect()
}

fn operation(route: &OperationInfo) -> Value {
    let tag = route.protocol.map_or_else(|| "hub".to_owned(), |protocol| protocol.to_string());
    let parameters: Vec<Value> = placeholders(&route.path)
        .map(|name| json!({"name": name, "in": "path", "required": true, "schema": {"type": "string"}}))
        .collect();
    let mut operation = json!({
        "tags": [tag],
        "summary": route.summary,
        "operationId": route.id(),
        "parameters": parameters,
        "security": security(route.access),
        "responses": {
            "2XX": {"description": "Success", "content": {"application/json": {}}},
            "4XX": {"description": "The request was refused; the body names the reason, the invalid field, and whether a retry can succeed"},
            "5XX": {"description": "The hub failed; `retryable` says whether a retry can succeed"},
        },
    });
    if route.method == "POST" {
        let body = json!({"content": {"application/json": {"schema": {"type": "object"}}}});
        operation["requestBody"] = body;
    }
    operation
}

fn placeholders(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
}

fn security(access: Access) -> Value {
    match access {
        // A signed request or a single-purpose token needs no key.
        Access::Public | Access::Register | Access::Token | Access::Signed => json!([]),
        Access::Inbox => json!([{"inboxToken": []}]),
        Access::Operator => json!([{"operatorKey": []}]),
        Access::AgentOrOperator
        | Access::WorkerOrOperator
        | Access::OwnerOrOperator
        | Access::AnyAgentOrOperator => json!([{"agentKey": []}, {"operatorKey": []}]),
        Access::Agent
        | Access::Requester
        | Access::Party
        | Access::Worker
        | Access::Owner
        | Access::AnyAgent => json!([{"agentKey": []}]),
    }
}

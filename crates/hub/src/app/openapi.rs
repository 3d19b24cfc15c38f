//! The OpenAPI document: all operations, generated from the tables that the router is built from.

use std::collections::BTreeMap;

use axum::Router;
use axum::routing::get;
use rialto_protocols::ALL;
use rialto_protocols::adapter::{Access, OperationInfo};
use serde_json::{Map, Value, json};

use super::probes;
use crate::v1;

/// All operations of the hub.
pub fn operations() -> Vec<OperationInfo> {
    let own = OperationInfo {
        protocol: None,
        method: "GET",
        path: "/openapi.json".to_owned(),
        reach: Access::Public,
        about: "This OpenAPI document",
    };
    let protocols = ALL.iter().flat_map(|adapter| adapter.operations());
    protocols.chain(v1::operations()).chain(probes::operations()).chain([own]).collect()
}

pub fn routes() -> Router {
    // The tables do not change while the hub runs.
    let text = openapi_document().to_string();
    let answer = move || {
        let text = text.clone();
        async move { ([(http::header::CONTENT_TYPE, "application/json")], text) }
    };
    Router::new().route("/openapi.json", get(answer))
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
        "summary": route.about,
        "operationId": operation_id(route),
        "parameters": parameters,
        "security": security(route.reach),
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

fn operation_id(route: &OperationInfo) -> String {
    let words = route.path.replace(['{', '}'], "").replace(['/', '.', '-'], "_");
    format!("{}{words}", route.method.to_lowercase())
}

fn placeholders(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
}

fn security(reach: Access) -> Value {
    match reach {
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

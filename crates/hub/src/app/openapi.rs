//! The OpenAPI document: all operations, generated from the tables that the router is built from, with
//! the schemas of the wire types themselves.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use rialto_protocols::ALL;
use rialto_protocols::adapter::operation::{
    EVENT_STREAM, ErrorInfo, JSON, ResponseInfo, SchemaFn, get,
};
use rialto_protocols::adapter::{Access, Operation, OperationInfo};
use rialto_protocols::kit::api_doc::AnyObject;
use schemars::generate::{Contract, SchemaSettings};
use schemars::{Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

use super::{pages, probes};
use crate::{mcp, v1};

/// Where the document keeps schemas.
const SCHEMAS: &str = "#/components/schemas/";
/// What may go wrong with any operation, and with one that only reads.
const READ_ERRORS: [u16; 9] = [400, 401, 403, 404, 408, 421, 429, 500, 503];
/// Errors that say when to retry.
const RETRY_AFTER: [u16; 5] = [409, 429, 500, 503, 507];
/// An operation of another method is not an operation.
const METHOD_NOT_ALLOWED: u16 = 405;

/// All operations of the hub.
pub fn operations() -> Vec<OperationInfo> {
    let protocols = ALL.iter().flat_map(|adapter| adapter.operations());
    let v1 = v1::operations().into_iter().map(|operation| operation.info);
    let probes = probes::operations().into_iter().map(|operation| operation.info);
    let own = own_operations().into_iter().map(|operation| operation.info);
    let mcp = mcp::api::operations().into_iter().map(|operation| operation.info);
    let pages = pages::operations().into_iter().map(|operation| operation.info);
    protocols.chain(v1).chain(mcp).chain(probes).chain(own).chain(pages).collect()
}

/// The operation that shows the document. Its state is the text.
pub fn own_operations() -> Vec<Operation<Arc<str>>> {
    let document = get("/openapi.json", Access::Public, show_document);
    vec![
        document
            .summary("This OpenAPI document")
            .as_is()
            .responds::<AnyObject>(200, "The document"),
    ]
}

async fn show_document(State(text): State<Arc<str>>) -> Response {
    ([(http::header::CONTENT_TYPE, JSON)], text.to_string()).into_response()
}

/// The document as text. The tables do not change while the hub runs.
pub fn document_text() -> Arc<str> {
    Arc::from(openapi_document().to_string())
}

/// The document in OpenAPI 3.1.
pub fn openapi_document() -> Value {
    let mut document = Document::default();
    let all = operations();
    let names: BTreeSet<String> = all.iter().map(tag).collect();
    for name in &names {
        document.add_operations(name, all.iter().filter(|one| tag(one) == *name));
    }
    let tags: Vec<Value> = names.iter().map(|name| json!({"name": name})).collect();
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Rialto",
            "summary": "A hub for AI agents of six protocols: discovery, messages, jobs and payment",
            "version": env!("CARGO_PKG_VERSION"),
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "tags": tags,
        "paths": document.paths,
        "components": {
            "schemas": document.schemas,
            "responses": document.responses,
            "securitySchemes": {
                "agentKey": {"type": "http", "scheme": "bearer", "description": "An agent's own key, rk_… or ca_…"},
                "inboxToken": {"type": "http", "scheme": "bearer", "description": "A token that can only read one inbox, at_…"},
                "operatorKey": {"type": "http", "scheme": "bearer", "description": "The operator's key, ro_…"},
            },
        },
    })
}

/// The parts of the document.
#[derive(Default)]
struct Document {
    paths: BTreeMap<String, Map<String, Value>>,
    schemas: BTreeMap<String, Value>,
    responses: BTreeMap<String, Value>,
}

/// The operations of one protocol, or of the hub, while they are added. Two protocols may use the same
/// name for different types, so the names of schemas begin with the protocol's.
struct Section<'d> {
    document: &'d mut Document,
    prefix: String,
    /// Types that the hub reads, and types that it writes: what may be absent differs.
    reads: SchemaGenerator,
    writes: SchemaGenerator,
}

/// The protocol, or the hub.
fn tag(operation: &OperationInfo) -> String {
    match operation.protocol {
        Some(protocol) => protocol.to_string(),
        None if is_mcp(operation) => mcp::api::PREFIX.to_owned(),
        None => "hub".to_owned(),
    }
}

fn is_mcp(operation: &OperationInfo) -> bool {
    operation.path.split('/').nth(1) == Some(mcp::api::PREFIX)
}

fn generator(contract: Contract) -> SchemaGenerator {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.definitions_path = "/components/schemas".into();
        settings.meta_schema = None;
        settings.contract = contract;
    });
    settings.into_generator()
}

impl Document {
    fn add_operations<'o>(&mut self, tag: &str, all: impl Iterator<Item = &'o OperationInfo>) {
        let adapter = ALL.iter().find(|adapter| adapter.id().as_str() == tag);
        let errors = match adapter {
            Some(adapter) => adapter.errors(),
            None if tag == mcp::api::PREFIX => mcp::api::errors(),
            None => v1::errors(),
        };
        let mut section = Section {
            document: self,
            prefix: tag[..1].to_uppercase() + &tag[1..],
            reads: generator(Contract::Deserialize),
            writes: generator(Contract::Serialize),
        };
        section.add_errors(&errors);
        for info in all {
            let operation = section.operation(info, &errors);
            section.add_operation(info, operation);
        }
        section.finish();
    }
}

impl Section<'_> {
    fn add_errors(&mut self, errors: &ErrorInfo) {
        let schema = self.written(errors.schema);
        let mut by_status: BTreeMap<u16, BTreeSet<&str>> = BTreeMap::new();
        for (status, code) in &errors.codes {
            by_status.entry(*status).or_default().insert(code);
        }
        for (status, codes) in by_status {
            let names: Vec<String> = codes.iter().map(|code| format!("`{code}`")).collect();
            let mut response = json!({
                "description": names.join(", "),
                "content": {errors.content_type: {"schema": schema}},
                "x-codes": codes,
            });
            if RETRY_AFTER.contains(&status) {
                let seconds = json!({"type": "integer", "minimum": 0});
                let header =
                    json!({"description": "Seconds to wait before a retry", "schema": seconds});
                response["headers"] = json!({"Retry-After": header});
            }
            self.document.responses.insert(format!("{}Error{status}", self.prefix), response);
        }
    }

    /// An operation at a path that two protocols share gets one entry, which describes both.
    fn add_operation(&mut self, info: &OperationInfo, operation: Value) {
        let Document { paths, responses, .. } = &mut *self.document;
        let entry = paths.entry(info.path.clone()).or_default();
        match entry.get_mut(&info.method.to_lowercase()) {
            Some(other) => {
                write_out_errors(other, responses);
                let mut operation = operation;
                write_out_errors(&mut operation, responses);
                merge(other, operation);
            }
            None => drop(entry.insert(info.method.to_lowercase(), operation)),
        }
    }

    fn operation(&mut self, info: &OperationInfo, errors: &ErrorInfo) -> Value {
        let mut operation = json!({
            "tags": [tag(info)],
            "summary": info.summary,
            "operationId": info.id(),
            "parameters": self.parameters(info),
            "security": security(info.access),
            "responses": self.responses(info, errors),
        });
        if let Some(request) = info.request {
            let mut content = json!({"schema": self.read(request)});
            if let Some(example) =
                info.example.and_then(|text| serde_json::from_str::<Value>(text).ok())
            {
                content["example"] = example;
            }
            operation["requestBody"] =
                json!({"required": !info.body_optional, "content": {info.request_type: content}});
        }
        operation
    }

    fn parameters(&mut self, info: &OperationInfo) -> Vec<Value> {
        let mut parameters = Vec::new();
        for name in placeholders(&info.path) {
            let schema = info
                .path_param
                .map_or_else(|| json!({"type": "string"}), |schema| self.read(schema));
            parameters.push(parameter(name, "path", true, schema));
        }
        if let Some(query) = info.query {
            let object = self.resolved(query);
            let required = object["required"].as_array().cloned().unwrap_or_default();
            let properties = object["properties"].as_object().cloned().unwrap_or_default();
            for (name, schema) in properties {
                let required = required.contains(&json!(name));
                parameters.push(parameter(&name, "query", required, without_null(schema)));
            }
        }
        if info.takes_idempotency_key {
            let schema = json!({"type": "string", "minLength": 1, "maxLength": 256, "description": "A repeat with the same key and body has one effect and gets the same answer"});
            parameters.push(parameter("Idempotency-Key", "header", false, schema));
        }
        let streams = |response: &ResponseInfo| response.content_type == EVENT_STREAM;
        // The events of MCP have no ids.
        if info.responses.iter().any(streams) && !is_mcp(info) {
            let schema = json!({"type": "string", "description": "The id of the last event received; the stream continues after it"});
            parameters.push(parameter("Last-Event-ID", "header", false, schema));
        }
        parameters
    }

    fn responses(&mut self, info: &OperationInfo, errors: &ErrorInfo) -> Value {
        let mut responses = Map::new();
        let all: BTreeSet<u16> = errors.codes.iter().map(|(status, _)| *status).collect();
        let possible = |status: &u16| {
            let usual = info.method != "GET" || READ_ERRORS.contains(status);
            *status != METHOD_NOT_ALLOWED && (usual || info.more_errors.contains(status))
        };
        for status in all.into_iter().filter(possible) {
            let name = format!("#/components/responses/{}Error{status}", self.prefix);
            responses.insert(status.to_string(), json!({"$ref": name}));
        }
        for response in &info.responses {
            let described = self.response(response);
            match responses.get_mut(&response.status.to_string()) {
                // One status with two bodies.
                Some(other) if other.get("$ref").is_none() => merge(other, described),
                _ => drop(responses.insert(response.status.to_string(), described)),
            }
        }
        responses.into()
    }

    fn response(&mut self, response: &ResponseInfo) -> Value {
        let mut described = json!({"description": response.description});
        if let Some(schema) = response.schema {
            let schema = self.written(schema);
            let schema = match response.content_type {
                EVENT_STREAM => {
                    json!({"type": "string", "description": "Server-sent events", "x-event-data": schema})
                }
                _ => schema,
            };
            described["content"] = json!({response.content_type: {"schema": schema}});
        }
        described
    }

    /// The schema of something that the hub reads, or a reference to it.
    fn read(&mut self, schema: SchemaFn) -> Value {
        let schema = schema(&mut self.reads);
        self.named(schema)
    }

    /// The schema of something that the hub writes, or a reference to it.
    fn written(&mut self, schema: SchemaFn) -> Value {
        let schema = schema(&mut self.writes);
        self.named(schema)
    }

    fn named(&self, schema: Schema) -> Value {
        let mut schema = schema.to_value();
        add_prefix(&mut schema, &self.prefix);
        schema
    }

    /// The schema of a query itself: its members become parameters.
    fn resolved(&mut self, schema: SchemaFn) -> Value {
        let mut own = generator(Contract::Deserialize);
        let mut schema = schema(&mut own).to_value();
        let mut others = own.take_definitions(false);
        let name = schema["$ref"].as_str().and_then(|name| name.strip_prefix(SCHEMAS));
        if let Some(query) = name.and_then(|name| others.remove(name)) {
            schema = query;
        }
        self.reads.definitions_mut().extend(others);
        add_prefix(&mut schema, &self.prefix);
        schema
    }

    fn finish(self) {
        for mut generator in [self.reads, self.writes] {
            let written = generator.contract().is_serialize();
            for (name, mut schema) in generator.take_definitions(true) {
                add_prefix(&mut schema, &self.prefix);
                if written {
                    remove_impossible_nulls(&mut schema);
                }
                let name = self.prefix.clone() + &name;
                let known = self.document.schemas.insert(name.clone(), schema.clone());
                assert!(known.is_none_or(|known| known == schema), "{name} has two meanings");
            }
        }
    }
}

/// Replaces references to errors by the errors themselves, so that more can be added to them.
fn write_out_errors(operation: &mut Value, errors: &BTreeMap<String, Value>) {
    let Some(responses) = operation["responses"].as_object_mut() else { return };
    for response in responses.values_mut() {
        let name = response["$ref"].as_str().and_then(|name| name.rsplit('/').next());
        if let Some(error) = name.and_then(|name| errors.get(name)) {
            *response = error.clone();
        }
    }
}

/// Puts the prefix before every name that a schema refers to. A schema that allows everything is
/// written as an object, because some readers of the document know no other form.
fn add_prefix(schema: &mut Value, prefix: &str) {
    match schema {
        Value::Object(members) => {
            for (name, value) in members {
                match value {
                    Value::Bool(true) if ["items", "additionalProperties"].contains(&&**name) => {
                        *value = json!({});
                    }
                    Value::Object(properties) if name == "properties" => {
                        for property in properties.values_mut() {
                            if *property == Value::Bool(true) {
                                *property = json!({});
                            }
                            add_prefix(property, prefix);
                        }
                    }
                    Value::String(text) if name == "$ref" => {
                        if let Some(name) = text.strip_prefix(SCHEMAS) {
                            *text = format!("{SCHEMAS}{prefix}{name}");
                        }
                    }
                    other => add_prefix(other, prefix),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| add_prefix(item, prefix)),
        _ => {}
    }
}

/// A member that the hub leaves out is never `null`.
fn remove_impossible_nulls(schema: &mut Value) {
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) else {
        return;
    };
    for (name, property) in properties {
        if !required.contains(&json!(name)) {
            *property = without_null(property.take());
        }
    }
}

/// A parameter cannot be `null`: it is absent instead.
fn without_null(mut schema: Value) -> Value {
    if let Some(Value::Array(types)) = schema.get_mut("type") {
        types.retain(|one| one != "null");
        if let [only] = &types[..] {
            schema["type"] = only.clone();
        }
    }
    if let Some(Value::Array(words)) = schema.get_mut("enum") {
        words.retain(|word| !word.is_null());
    }
    let referred = match schema.get("anyOf").and_then(Value::as_array).map(Vec::as_slice) {
        Some([one, null]) if one.get("$ref").is_some() && *null == json!({"type": "null"}) => {
            Some(one["$ref"].clone())
        }
        _ => None,
    };
    if let (Some(name), Some(members)) = (referred, schema.as_object_mut()) {
        members.remove("anyOf");
        members.insert("$ref".to_owned(), name);
    }
    schema
}

fn parameter(name: &str, place: &str, required: bool, mut schema: Value) -> Value {
    let description = schema.as_object_mut().and_then(|members| members.remove("description"));
    let mut parameter = json!({"name": name, "in": place, "required": required, "schema": schema});
    if let Some(description) = description {
        parameter["description"] = description;
    }
    parameter
}

/// Adds what another operation or response says: tags together, and bodies as alternatives.
fn merge(one: &mut Value, other: Value) {
    let Value::Object(other) = other else { return };
    for (name, value) in other {
        match (name.as_str(), one.get_mut(&name)) {
            (_, None) => one[name] = value,
            ("schema", Some(schema)) if *schema != value => {
                *schema = json!({"anyOf": [schema.take(), value]});
            }
            ("tags" | "x-codes", Some(Value::Array(tags))) => {
                tags.extend(value.as_array().cloned().unwrap_or_default())
            }
            ("description", Some(Value::String(text))) if *text != value => {
                *text = format!("{text}; {}", value.as_str().unwrap_or_default());
            }
            ("$ref" | "example" | "schema", _) => {}
            (_, Some(known @ Value::Object(_))) => merge(known, value),
            _ => {}
        }
    }
}

fn placeholders(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
}

fn security(access: Access) -> Value {
    let (agent, operator) = (json!({"agentKey": []}), json!({"operatorKey": []}));
    match access {
        // A signed request or a single-purpose token needs no key.
        Access::Public | Access::Token | Access::Signed => json!([]),
        // A new agent has no key yet.
        Access::Register => json!([{}, agent, operator]),
        Access::AgentOrAnonymous => json!([{}, agent]),
        Access::Inbox => json!([{"inboxToken": []}]),
        Access::Operator => json!([operator]),
        Access::AgentOrOperator
        | Access::WorkerOrOperator
        | Access::OwnerOrOperator
        | Access::AnyAgentOrOperator => json!([agent, operator]),
        Access::Agent
        | Access::Requester
        | Access::Party
        | Access::Worker
        | Access::Owner
        | Access::AnyAgent => json!([agent]),
    }
}

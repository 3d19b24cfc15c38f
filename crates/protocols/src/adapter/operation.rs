//! Operations: what a caller can ask for. Every protocol, and the hub itself, declares each of its
//! operations once, in a table. Routing, access, limits, idempotency, metrics and the API document
//! follow from its entries; an operation without an entry does not exist.

use std::pin::Pin;
use std::sync::Arc;

use axum::extract::Request;
use axum::handler::Handler;
use axum::response::Response;
use rialto_core::alias::Protocol;
use schemars::{JsonSchema, Schema, SchemaGenerator};

use crate::kit::ijson::{Json, JsonValue};

/// Who may call an operation. The authority test checks every row against every kind of caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Any caller; it changes nothing.
    Public,
    /// Any caller, to create something new; limited by address.
    Register,
    /// The signer of the body, for what it may do.
    Signed,
    /// The named agent.
    Agent,
    /// The named agent, or the operator.
    AgentOrOperator,
    /// The requester of the job.
    Requester,
    /// Requester or worker of the job.
    Party,
    /// The worker of the job.
    Worker,
    /// The worker of the job, or the operator.
    WorkerOrOperator,
    /// An agent of the named owner.
    Owner,
    /// An agent of the named owner, or the operator.
    OwnerOrOperator,
    /// The holder of a token made for this one purpose.
    Token,
    /// An agent, by a token that permits reading its inbox.
    Inbox,
    /// The operator alone.
    Operator,
    /// Any agent, for what belongs to it.
    AnyAgent,
    /// Any agent for what belongs to it; the operator for everything.
    AnyAgentOrOperator,
    /// Any agent for what belongs to it; a caller without a key for what is public.
    AgentOrAnonymous,
}

impl Access {
    /// Whether a web page of any origin may read the answer.
    pub fn is_public(self) -> bool {
        self == Self::Public
    }

    /// The rate class of an operation with this access.
    fn rate_class(self, method: &str) -> RateClass {
        match self {
            Self::Register => RateClass::Register,
            // What it writes is counted once the body has been read.
            Self::Public | Self::AgentOrAnonymous => RateClass::Read,
            _ if method == "GET" => RateClass::Read,
            Self::Signed => RateClass::Signed,
            _ => RateClass::Write,
        }
    }

    /// Whether a POST with this access takes an idempotency key. A public operation has no effect
    /// to repeat; what is signed, and what an inbox token permits, has one effect anyway.
    fn takes_idempotency_key(self) -> bool {
        !matches!(self, Self::Public | Self::Signed | Self::Inbox | Self::AgentOrAnonymous)
    }
}

/// Which rate limit a request counts against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RateClass {
    /// Counted by the length of its response.
    Read,
    /// Counted per principal.
    Write,
    /// Counted per address, because an agent that registers has no credential yet.
    Register,
    /// Counted per address with a generous limit; the signer is counted once it is known.
    Signed,
}

/// How recent the state must be that an operation reads at a node among several. A hub of one node has
/// the newest state anyway.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Freshness {
    /// It does not matter: the operation is about the node itself.
    Any,
    /// At most a second old: lists of agents, discovery, statistics.
    AsIs,
    /// It has everything that was committed before the request.
    Strict,
}

/// Which bodies an operation takes. Operations with the same method and path are told apart by it.
#[derive(Clone, Copy, Debug)]
pub enum BodyRule {
    /// Every body that no other operation takes.
    Any,
    /// Bodies with a certain shape.
    Recognized(fn(&Json<'_>) -> bool),
    /// JSON-RPC requests with this method.
    RpcMethod(&'static str),
}

impl BodyRule {
    /// Whether it takes this body in particular.
    pub fn recognizes(self, body: &Json<'_>) -> bool {
        match self {
            Self::Any => false,
            Self::Recognized(rule) => rule(body),
            Self::RpcMethod(name) => body.get("method").is_some_and(
                |method| matches!(method.value(), JsonValue::String(text) if text == name),
            ),
        }
    }
}

/// Writes the schema of a wire type, or a reference to it.
pub type SchemaFn = fn(&mut SchemaGenerator) -> Schema;

/// A response being computed.
pub type ResponseFuture = Pin<Box<dyn Future<Output = Response> + Send>>;

/// Computes the response to a request, given the state of the protocol.
pub type OperationHandler<S> = Arc<dyn Fn(S, Request) -> ResponseFuture + Send + Sync>;

/// One entry of a table: what is declared of an operation, and its handler.
pub struct Operation<S> {
    pub info: OperationInfo,
    /// Also served at the root of the hub.
    pub at_root: bool,
    pub handler: OperationHandler<S>,
}

/// What is declared of an operation.
#[derive(Clone, Debug)]
pub struct OperationInfo {
    /// `None` for the hub's own operations.
    pub protocol: Option<Protocol>,
    pub method: &'static str,
    /// With `{name}` for variable parts. In a protocol's table it is relative to the protocol's
    /// prefix, and empty for the prefix itself; everywhere else it starts at the root of the hub.
    pub path: String,
    pub access: Access,
    pub rate: RateClass,
    /// Whether its answers count against the read rate, too, although it also writes.
    pub reads_too: bool,
    pub freshness: Freshness,
    pub takes_idempotency_key: bool,
    /// Which bodies it takes, where other operations have the same method and path.
    pub body_rule: BodyRule,
    /// Whether it says that the hub is up. It is answered even to callers that read too much, and
    /// a few connections are reserved for it, so it must be cheap.
    pub is_health_check: bool,
    pub summary: &'static str,
    /// The variable part of its path. No operation has two.
    pub path_param: Option<SchemaFn>,
    /// The parameters after `?`, as the members of an object.
    pub query: Option<SchemaFn>,
    /// The body of the request.
    pub request: Option<SchemaFn>,
    /// The content type of the body.
    pub request_type: &'static str,
    /// Whether a request without a body is accepted as well.
    pub body_optional: bool,
    /// A body that is accepted as it is: JSON text.
    pub example: Option<&'static str>,
    pub responses: Vec<ResponseInfo>,
    /// Statuses of errors that most operations of its method do not have.
    pub more_errors: Vec<u16>,
}

/// One response that an operation gives.
#[derive(Clone, Copy, Debug)]
pub struct ResponseInfo {
    pub status: u16,
    pub content_type: &'static str,
    /// `None` for a response without a body.
    pub schema: Option<SchemaFn>,
    pub description: &'static str,
}

/// How all operations of a protocol answer errors.
#[derive(Clone, Debug)]
pub struct ErrorInfo {
    pub content_type: &'static str,
    /// The body.
    pub schema: SchemaFn,
    /// Every status with a code it comes with.
    pub codes: Vec<(u16, &'static str)>,
}

impl ErrorInfo {
    /// Errors with a JSON body of this type.
    pub fn json<T: JsonSchema>(codes: impl IntoIterator<Item = (u16, &'static str)>) -> Self {
        let codes = codes.into_iter().collect();
        Self { content_type: JSON, schema: schema::<T>, codes }
    }
}

/// The content type of JSON.
pub const JSON: &str = "application/json";
/// The content type of bytes.
pub const BYTES: &str = "application/octet-stream";
/// The content type of a stream of events.
pub const EVENT_STREAM: &str = "text/event-stream";

/// A `GET` operation. It also answers `HEAD`.
pub fn get<S, H, T>(path: &str, access: Access, handler: H) -> Operation<S>
where
    S: Send + Sync + 'static,
    H: Handler<T, S, Future = ResponseFuture>,
{
    Operation::new("GET", path, access, handler)
}

/// A `POST` operation.
pub fn post<S, H, T>(path: &str, access: Access, handler: H) -> Operation<S>
where
    S: Send + Sync + 'static,
    H: Handler<T, S, Future = ResponseFuture>,
{
    Operation::new("POST", path, access, handler)
}

/// A `PUT` operation.
pub fn put<S, H, T>(path: &str, access: Access, handler: H) -> Operation<S>
where
    S: Send + Sync + 'static,
    H: Handler<T, S, Future = ResponseFuture>,
{
    Operation::new("PUT", path, access, handler)
}

/// A `DELETE` operation.
pub fn delete<S, H, T>(path: &str, access: Access, handler: H) -> Operation<S>
where
    S: Send + Sync + 'static,
    H: Handler<T, S, Future = ResponseFuture>,
{
    Operation::new("DELETE", path, access, handler)
}

impl<S: Send + Sync + 'static> Operation<S> {
    fn new<H, T>(method: &'static str, path: &str, access: Access, handler: H) -> Self
    where
        H: Handler<T, S, Future = ResponseFuture>,
    {
        let info = OperationInfo {
            protocol: None,
            method,
            path: path.to_owned(),
            access,
            rate: access.rate_class(method),
            reads_too: false,
            freshness: Freshness::Strict,
            takes_idempotency_key: method == "POST" && access.takes_idempotency_key(),
            body_rule: BodyRule::Any,
            is_health_check: false,
            summary: "",
            path_param: None,
            query: None,
            request: None,
            request_type: JSON,
            body_optional: false,
            example: None,
            responses: Vec::new(),
            more_errors: Vec::new(),
        };
        let call = move |state, request| handler.clone().call(request, state);
        Self { info, at_root: false, handler: Arc::new(call) }
    }

    /// One sentence about it.
    pub fn summary(mut self, text: &'static str) -> Self {
        self.info.summary = text;
        self
    }

    /// Serves it at the root of the hub as well.
    pub fn at_root(mut self) -> Self {
        self.at_root = true;
        self
    }

    /// Takes only the bodies that it recognizes, so that operations of several protocols can have
    /// one path.
    pub fn recognizes(mut self, rule: fn(&Json<'_>) -> bool) -> Self {
        self.info.body_rule = BodyRule::Recognized(rule);
        self
    }

    /// Is one method of a JSON-RPC endpoint.
    pub fn rpc_method(mut self, name: &'static str) -> Self {
        self.info.body_rule = BodyRule::RpcMethod(name);
        self
    }

    /// Answers with what the node has, which is at most a second old.
    pub fn as_is(mut self) -> Self {
        self.info.freshness = Freshness::AsIs;
        self
    }

    /// Is answered even by a node that does not know the state of the hub any more.
    pub fn about_node(mut self) -> Self {
        self.info.freshness = Freshness::Any;
        self
    }

    /// May write, and may answer with as much as a read.
    pub fn reads_too(mut self) -> Self {
        self.info.reads_too = true;
        self
    }

    /// Marks it as a health check.
    pub fn health_check(mut self) -> Self {
        self.info.is_health_check = true;
        self
    }

    /// The type of the variable part of its path.
    pub fn path_param<T: JsonSchema>(mut self) -> Self {
        self.info.path_param = Some(schema::<T>);
        self
    }

    /// The type of its query.
    pub fn query<T: JsonSchema>(mut self) -> Self {
        self.info.query = Some(schema::<T>);
        self
    }

    /// The type of its request body, with an example.
    pub fn request<T: JsonSchema>(mut self, example: &'static str) -> Self {
        self.info.request = Some(schema::<T>);
        self.info.example = Some(example);
        self
    }

    /// A request body that is accepted as it is.
    pub fn example(mut self, text: &'static str) -> Self {
        self.info.example = Some(text);
        self
    }

    /// The same for a body that may be left out.
    pub fn optional_request<T: JsonSchema>(mut self, example: &'static str) -> Self {
        self.info.body_optional = true;
        self.request::<T>(example)
    }

    /// A body of bytes that are not JSON.
    pub fn binary_request<T: JsonSchema>(mut self) -> Self {
        self.info.request = Some(schema::<T>);
        self.info.request_type = BYTES;
        self
    }

    /// A response with a JSON body of this type.
    pub fn responds<T: JsonSchema>(self, status: u16, description: &'static str) -> Self {
        let schema = Some(schema::<T> as SchemaFn);
        self.response(ResponseInfo { status, content_type: JSON, schema, description })
    }

    /// A stream of events, each with data of this type.
    pub fn streams<T: JsonSchema>(self, description: &'static str) -> Self {
        let schema = Some(schema::<T> as SchemaFn);
        self.response(ResponseInfo { status: 200, content_type: EVENT_STREAM, schema, description })
    }

    /// An error that most operations of its method do not have.
    pub fn error(mut self, status: u16) -> Self {
        self.info.more_errors.push(status);
        self
    }

    /// Any other response.
    pub fn response(mut self, response: ResponseInfo) -> Self {
        self.info.responses.push(response);
        self
    }

    /// The same operation for a hub in which the protocol has this state.
    pub fn with_state(self, state: S) -> Operation<()>
    where
        S: Clone,
    {
        let handler = self.handler;
        let call = move |(), request| handler(state.clone(), request);
        Operation { info: self.info, at_root: self.at_root, handler: Arc::new(call) }
    }
}

/// The schema of a type.
pub fn schema<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

impl OperationInfo {
    /// Its id in the API document.
    pub fn id(&self) -> String {
        let words = self.path.replace(['{', '}'], "").replace(['/', '.', '-'], "_");
        let method = self.method.to_lowercase();
        match self.body_rule {
            BodyRule::RpcMethod(name) => format!("{method}{words}_{}", name.replace('/', "_")),
            BodyRule::Any | BodyRule::Recognized(_) => format!("{method}{words}"),
        }
    }
}

/// The operations of a protocol at all paths where the hub serves them: under the protocol's
/// prefix, and at the root where served there too.
pub fn place_operations<S>(protocol: Protocol, table: Vec<Operation<S>>) -> Vec<Operation<S>> {
    let mut placed = Vec::new();
    for Operation { info, at_root, handler } in table {
        let info = OperationInfo { protocol: Some(protocol), ..info };
        let path = format!("/{protocol}{}", info.path);
        let root =
            at_root.then(|| Operation { info: info.clone(), at_root, handler: handler.clone() });
        placed.push(Operation { info: OperationInfo { path, ..info }, at_root: false, handler });
        placed.extend(root);
    }
    placed
}

/// What is declared of the operations of a protocol, at all paths.
pub fn describe_operations<S>(protocol: Protocol, table: Vec<Operation<S>>) -> Vec<OperationInfo> {
    place_operations(protocol, table).into_iter().map(|operation| operation.info).collect()
}

/// The operations of a protocol that has this state, at all paths.
pub fn bind_operations<S: Clone + Send + Sync + 'static>(
    protocol: Protocol,
    table: Vec<Operation<S>>,
    state: &S,
) -> Vec<Operation<()>> {
    let placed = place_operations(protocol, table).into_iter();
    placed.map(|operation| operation.with_state(state.clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROTOCOL: Protocol = Protocol::new("some");

    fn table() -> Vec<Operation<()>> {
        vec![
            get("/agents/{id}", Access::Public, async || "shown").at_root(),
            post("/sign-up", Access::Register, async || "registered"),
            post("", Access::Signed, async || "signed"),
            post("/rpc", Access::AnyAgent, async || "called").rpc_method("things/list"),
            delete("/agents/{id}", Access::Agent, async || "removed"),
        ]
    }

    #[test]
    fn an_operation_is_served_under_the_prefix_and_where_it_says_so_at_the_root() {
        let paths: Vec<String> =
            describe_operations(PROTOCOL, table()).into_iter().map(|info| info.path).collect();
        let expected = ["/some/agents/{id}", "/agents/{id}", "/some/sign-up", "/some", "/some/rpc"];
        assert_eq!(paths[..5], expected);
    }

    #[test]
    fn access_decides_rate_class_and_idempotency() {
        use RateClass::{Read, Register, Signed, Write};
        let rules: Vec<_> = table()
            .into_iter()
            .map(|operation| (operation.info.rate, operation.info.takes_idempotency_key))
            .collect();
        let expected =
            [(Read, false), (Register, true), (Signed, false), (Write, true), (Write, false)];
        assert_eq!(rules, expected);
    }

    #[test]
    fn ids_are_made_of_method_and_path() {
        let ids: Vec<_> =
            describe_operations(PROTOCOL, table()).iter().map(OperationInfo::id).collect();
        assert_eq!(ids[0], "get_some_agents_id");
        assert_eq!(ids[2], "post_some_sign_up");
        assert_eq!(ids[4], "post_some_rpc_things_list");
    }
}

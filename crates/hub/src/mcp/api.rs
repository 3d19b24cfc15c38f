//! The HTTP side of MCP: the operations, the caller's key, and refusals as JSON-RPC errors.

use std::convert::Infallible;
use std::sync::Arc;

use axum::Extension;
use axum::body::Body;
use axum::extract::{FromRequestParts, RawQuery, Request, State};
use axum::response::Response;
use http::header::{RETRY_AFTER, WWW_AUTHENTICATE};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, StatusCode};
use rialto_core::refusal::Refusal;
use rialto_engine::key_use;
use rialto_protocols::adapter::Access::AgentOrAnonymous;
use rialto_protocols::adapter::api::ServedOperation;
use rialto_protocols::adapter::caller::Credential;
use rialto_protocols::adapter::operation::{ErrorInfo, ResponseFuture, ResponseInfo, post};
use rialto_protocols::adapter::request::{BodyBytes, PathParam};
use rialto_protocols::adapter::{Api, EdgeError, HubContext, Operation};
use rialto_protocols::kit::api_doc::AnyObject;
use rialto_protocols::kit::object::ObjectWriter;
use rialto_protocols::kit::query::Query;

use super::agents::AgentsCatalogue;
use super::caller::{CallerError, McpCaller};
use super::hub::HubCatalogue;
use super::serve::{CallObserver, ObservedCall, serve};
use super::tools::{self, ToolGroups};
use super::wire::error::{INVALID_REQUEST, RpcError};
use super::wire::method::Method;
use super::wire::response::Reply;
use crate::edge::{RequestId, TraceParent, keep_key};
use crate::telemetry::{McpRequestLabels, Metrics, RequestScope};
use crate::v1::errors::MALFORMED;
use crate::v1::problem::Problem;

/// The first segment of the paths.
pub const PREFIX: &str = "mcp";
const EXAMPLE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;

/// What the operations get.
#[derive(Clone)]
pub struct McpState {
    pub context: HubContext,
    pub metrics: Metrics,
}

/// MCP, while the hub runs.
pub struct McpApi(McpState);

impl McpApi {
    pub fn new(context: &HubContext, metrics: &Metrics) -> Self {
        Self(McpState { context: context.clone(), metrics: metrics.clone() })
    }
}

rialto_protocols::request_members! {
    /// Which tools are wanted.
    ToolsQuery {
        /// Groups of tools, such as `buy,talk`.
        tools: Option<String>,
    }
}

rialto_protocols::request_members! {
    /// Which skills are tools.
    AgentsQuery {
        /// The highest price of a skill that is a tool.
        max_price: Option<String>,
        /// What the tools must be: 16 hex digits, as `rialto connect` writes them.
        pin: Option<String>,
    }
}

/// The operations. What they write is counted where it is known: a message may ask for anything.
pub fn operations() -> Vec<Operation<McpState>> {
    let accepted = ResponseInfo {
        status: 202,
        content_type: "",
        schema: None,
        description: "The notification was taken",
    };
    let endpoint = |operation: Operation<McpState>| {
        operation
            .reads_too()
            .request::<AnyObject>(EXAMPLE)
            .responds::<AnyObject>(200, "The result, or an error")
            .streams::<AnyObject>("Progress, and then the result")
            .response(accepted)
            .error(406)
    };
    vec![
        endpoint(post("/mcp", AgentOrAnonymous, call_hub))
            .query::<ToolsQuery>()
            .summary("Call the tools of the hub as a model"),
        endpoint(post("/mcp/agents/{names}", AgentOrAnonymous, call_agents))
            .query::<AgentsQuery>()
            .summary("Call the skills of some agents as tools"),
    ]
}

/// How the operations answer errors: the codes are those of JSON-RPC.
pub fn errors() -> ErrorInfo {
    let refused = [401, 403, 406, 408, 413, 415, 421, 429, 500, 503, 507];
    let refused = refused.map(|status| (status, "-32600"));
    let requests = ["-32700", "-32600", "-32602", "-32020", "-32021", "-32022"];
    let requests = requests.map(|code| (400, code));
    let unknown = [(404, "-32601"), (404, "-32600")];
    ErrorInfo::json::<AnyObject>(requests.into_iter().chain(refused).chain(unknown))
}

impl Api for McpApi {
    fn prefix(&self) -> &str {
        PREFIX
    }

    fn operations(&self) -> Vec<Operation<()>> {
        if !self.0.context.settings.mcp.enabled {
            return Vec::new();
        }
        let bind = |operation: Operation<McpState>| operation.with_state(self.0.clone());
        operations().into_iter().map(bind).collect()
    }

    fn error_response(&self, error: EdgeError) -> Response {
        match error {
            // Clients try `GET` and `DELETE` to find out whether there are sessions.
            EdgeError::MethodNotAllowed => {
                let mut response = Response::new(Body::empty());
                *response.status_mut() = StatusCode::METHOD_NOT_ALLOWED;
                response
            }
            EdgeError::WrongHost => refusal(&Problem {
                detail: "this hub does not answer to that Host".to_owned(),
                ..Problem::from(error)
            }),
            EdgeError::ForeignOrigin => {
                refusal(&Problem::forbidden("pages of another origin may not call this"))
            }
            _ => refusal(&Problem::from(error)),
        }
    }

    fn unreadable_path(&self) -> Option<Response> {
        Some(refusal(&Problem::not_found()))
    }

    fn allows_listed_origins(&self) -> bool {
        true
    }

    /// The key is checked before the body is read.
    fn call(&self, operation: &Arc<ServedOperation>, request: Request) -> ResponseFuture {
        let (context, operation) = (self.0.context.clone(), operation.clone());
        let (mut parts, body) = request.into_parts();
        Box::pin(async move {
            let credential = Credential::of(&context.engine, &mut parts);
            match McpCaller::authenticate(&context, credential).await {
                Ok(caller) => {
                    parts.extensions.insert(caller);
                    let handled = operation.call_handler(Request::from_parts(parts, body));
                    // A model spends less than a program, unless its key has limits of its own.
                    key_use::with_default_limits(async { keep_key(handled.await) }).await
                }
                Err(error) => caller_refusal(error),
            }
        })
    }
}

/// Counts the requests of an endpoint, and names them in the log.
struct RequestObserver {
    metrics: Metrics,
    call: CallContext,
    /// What every tool that is no tool of the hub counts as.
    other_tool: &'static str,
}

impl CallObserver for RequestObserver {
    fn scope(&self, trace_parent: Option<&str>) -> Option<RequestScope> {
        // What the message says is about this call; the header may be about a whole connection.
        let trace = trace_parent.and_then(TraceParent::parse).or(self.call.trace);
        let id = self.call.request_id.as_ref()?.header_value();
        Some(RequestScope::new(id, trace.map(|trace| trace.trace_id)))
    }

    fn observe(&self, call: &ObservedCall<'_>) {
        let tool = match call.tool {
            Some(name) => tools::known_name(name).unwrap_or(self.other_tool),
            None => "none",
        };
        self.metrics.record_mcp_request(&McpRequestLabels {
            method: Method::name(call.method),
            era: call.era.as_str(),
            tool,
            outcome: call.outcome.as_str(),
        });
    }
}

/// What a call is known by in logs and metrics.
struct CallContext {
    request_id: Option<RequestId>,
    trace: Option<TraceParent>,
}

impl<S: Sync> FromRequestParts<S> for CallContext {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let request_id = parts.extensions.get::<RequestId>().cloned();
        Ok(Self { request_id, trace: parts.extensions.get::<TraceParent>().copied() })
    }
}

async fn call_hub(
    State(McpState { context, metrics }): State<McpState>,
    Extension(caller): Extension<McpCaller>,
    call: CallContext,
    RawQuery(raw): RawQuery,
    headers: HeaderMap,
    BodyBytes(body): BodyBytes,
) -> Response {
    let groups = Query::read(raw.as_deref().unwrap_or_default())
        .map_err(|bad| bad.message)
        .and_then(|query| {
            let unknown = |name| format!("tools has no group '{name}'");
            ToolGroups::parse(query.text("tools")).map_err(unknown)
        });
    let groups = match groups {
        Ok(groups) => groups,
        Err(why) => return bad_query(&why),
    };
    let catalogue = Arc::new(HubCatalogue { context, caller, groups });
    let observer = RequestObserver { metrics, call, other_tool: "unknown" };
    serve(catalogue, &headers, &body, Arc::new(observer)).await
}

async fn call_agents(
    State(McpState { context, metrics }): State<McpState>,
    Extension(caller): Extension<McpCaller>,
    call: CallContext,
    PathParam(names): PathParam,
    RawQuery(raw): RawQuery,
    headers: HeaderMap,
    BodyBytes(body): BodyBytes,
) -> Response {
    let query = match Query::read(raw.as_deref().unwrap_or_default()) {
        Ok(query) => query,
        Err(bad) => return bad_query(&bad.message),
    };
    match AgentsCatalogue::open(context, caller, &names, &query) {
        Ok(catalogue) => {
            let observer = RequestObserver { metrics, call, other_tool: "skill" };
            serve(Arc::new(catalogue), &headers, &body, Arc::new(observer)).await
        }
        Err(problem) if *problem.kind == MALFORMED => bad_query(&problem.detail),
        Err(problem) => refusal(&problem),
    }
}

fn bad_query(why: &str) -> Response {
    let error = RpcError::invalid_params(format!("Invalid params: {why}"));
    Reply { status: StatusCode::BAD_REQUEST, message: error.write(None) }.into_json_response()
}

/// A refusal before any message is read, as a JSON-RPC error without an id.
fn refusal(problem: &Problem) -> Response {
    let data = ObjectWriter::new()
        .text("code", problem.kind.code)
        .raw("retryable", if problem.retryable { "true" } else { "false" })
        .maybe_integer("retry_after_seconds", problem.retry_after_seconds.map(u64::cast_signed));
    let error = RpcError::new(INVALID_REQUEST, problem.detail.clone()).with_data(data.finish());
    let status = StatusCode::from_u16(problem.kind.status).unwrap_or(StatusCode::BAD_REQUEST);
    let reply = Reply { status, message: error.write(None) };
    let mut response = reply.into_json_response();
    if let Some(seconds) = problem.retry_after_seconds {
        response.headers_mut().insert(RETRY_AFTER, seconds.into());
    }
    if response.status() == StatusCode::UNAUTHORIZED {
        response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    response
}

fn caller_refusal(error: CallerError) -> Response {
    refusal(&match error {
        CallerError::BadKey => Problem {
            detail: "the key is missing, unknown or revoked: send Authorization: Bearer rk_…, or run rialto \
                     connect"
                .to_owned(),
            ..Problem::unauthorized()
        },
        CallerError::Suspended => Refusal::Suspended.into(),
        CallerError::OperatorKey => Problem::forbidden("an operator key cannot act for an agent"),
        CallerError::NoGuest(problem) => *problem,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

    fn scope(header: Option<&str>, message: Option<&str>) -> String {
        let parent = |id: &str| format!("00-{id}-00f067aa0ba902b7-01");
        let trace = header.and_then(|id| TraceParent::parse(&parent(id)));
        let ids: crate::edge::IdSource = Arc::new(|| "r-1".to_owned());
        let request_id = Some(RequestId::from_headers(&HeaderMap::new(), &ids));
        let call = CallContext { request_id, trace };
        let observer =
            RequestObserver { metrics: Metrics::new(Vec::new), call, other_tool: "unknown" };
        let message = message.map(parent);
        format!("{:?}", observer.scope(message.as_deref()))
    }

    #[test]
    fn the_trace_of_a_message_counts_like_that_of_the_header() {
        let logged =
            |trace: &str| format!("trace_id: Some({})", u128::from_str_radix(trace, 16).unwrap());
        let other = "a".repeat(32);
        assert!(scope(Some(TRACE), None).contains(&logged(TRACE)));
        assert!(scope(None, Some(TRACE)).contains(&logged(TRACE)));
        assert!(scope(Some(&other), Some(TRACE)).contains(&logged(TRACE)), "the message is nearer");
        assert!(scope(Some(TRACE), Some("nonsense")).contains(&logged(TRACE)));
        assert!(scope(None, None).contains("r-1") && scope(None, None).contains("trace_id: None"));
    }

    #[test]
    fn a_refusal_of_the_edge_is_an_error_without_an_id() {
        let problem = Problem::from(EdgeError::TooManyRequests { retry_after_seconds: 7 });
        let response = refusal(&problem);
        assert_eq!(
            (response.status().as_u16(), &response.headers()["retry-after"]),
            (429, &HeaderValue::from(7))
        );
        assert!(!response.headers().contains_key("www-authenticate"));
        let response = caller_refusal(CallerError::BadKey);
        assert_eq!(
            (response.status().as_u16(), &response.headers()["www-authenticate"]),
            (401, &HeaderValue::from_static("Bearer"))
        );
    }
}

//! The HTTP side of MCP: the operations, the caller's key, and refusals as JSON-RPC errors.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{RawQuery, Request, State};
use axum::response::Response;
use http::header::{RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderValue, StatusCode};
use rialto_protocols::adapter::Access::Public;
use rialto_protocols::adapter::api::ServedOperation;
use rialto_protocols::adapter::caller::Credential;
use rialto_protocols::adapter::operation::{ResponseFuture, post};
use rialto_protocols::adapter::request::{BodyBytes, PathParam};
use rialto_protocols::adapter::{Api, EdgeError, HubContext, Operation};
use rialto_protocols::kit::api_doc::AnyObject;
use rialto_protocols::kit::object::ObjectWriter;
use rialto_protocols::kit::query::Query;

use super::agents::AgentsCatalogue;
use super::caller::{CallerError, McpCaller};
use super::hub::HubCatalogue;
use super::serve::serve;
use super::tools::ToolGroups;
use super::wire::error::{INVALID_REQUEST, RpcError};
use super::wire::response::Reply;
use crate::v1::errors;
use crate::v1::problem::Problem;

const EXAMPLE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;

/// MCP, while the hub runs.
pub struct McpApi {
    context: HubContext,
}

impl McpApi {
    pub fn new(context: &HubContext) -> Self {
        Self { context: context.clone() }
    }
}

impl Api for McpApi {
    fn prefix(&self) -> &str {
        "mcp"
    }

    fn operations(&self) -> Vec<Operation<()>> {
        let hub = post("/mcp", Public, call_hub)
            .reads_too()
            .summary("Call the tools of the hub as a model")
            .request::<AnyObject>(EXAMPLE)
            .responds::<AnyObject>(200, "The result, or an error")
            .streams::<AnyObject>("Progress, and then the result")
            .error(406);
        let agents = post("/mcp/agents/{names}", Public, call_agents)
            .reads_too()
            .summary("Call the skills of some agents as tools")
            .request::<AnyObject>(EXAMPLE)
            .responds::<AnyObject>(200, "The result, or an error")
            .streams::<AnyObject>("Progress, and then the result")
            .error(404)
            .error(406);
        let state = || self.context.clone();
        vec![hub.with_state(state()), agents.with_state(state())]
    }

    fn error_response(&self, error: EdgeError) -> Response {
        refusal(&Problem::from(error))
    }

    fn unreadable_path(&self) -> Option<Response> {
        Some(refusal(&Problem::not_found()))
    }

    /// The key is checked before the body is read.
    fn call(&self, operation: &Arc<ServedOperation>, mut request: Request) -> ResponseFuture {
        let (mut parts, body) = request.into_parts();
        let credential = Credential::of(&self.context.engine, &mut parts);
        let caller = McpCaller::authenticate(&self.context.engine, credential);
        request = Request::from_parts(parts, body);
        match caller {
            Ok(caller) => {
                request.extensions_mut().insert(caller);
                operation.call_handler(request)
            }
            Err(error) => Box::pin(async move { caller_refusal(error) }),
        }
    }
}

async fn call_hub(
    State(context): State<HubContext>,
    Extension(caller): Extension<McpCaller>,
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
    serve(catalogue, &headers, &body, Arc::new(|_| ())).await
}

async fn call_agents(
    State(context): State<HubContext>,
    Extension(caller): Extension<McpCaller>,
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
        Ok(catalogue) => serve(Arc::new(catalogue), &headers, &body, Arc::new(|_| ())).await,
        Err(problem) if *problem.kind == errors::MALFORMED => bad_query(&problem.detail),
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
        CallerError::Suspended => rialto_core::refusal::Refusal::Suspended.into(),
        CallerError::OperatorKey => Problem::forbidden("an operator key cannot act for an agent"),
    })
}

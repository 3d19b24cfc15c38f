//! The catalogue at `/mcp`: the hub's tools.

use std::sync::Arc;

use rialto_protocols::adapter::HubContext;
use rialto_protocols::kit::ijson;

use super::caller::McpCaller;
use super::catalogue::{Catalogue, ResultFuture, ServerInfo};
use super::tools::{self, INSTRUCTIONS, ToolCall, ToolGroups};
use super::wire::error::RpcError;
use super::wire::message::ClientRequest;
use super::wire::method::Method;
use super::wire::result::{CacheHint, ResultObject, as_text};
use super::wire::version::Era;

/// The server as it names itself.
pub const SERVER: ServerInfo =
    ServerInfo { name: "rialto", title: "Rialto", version: env!("CARGO_PKG_VERSION") };

/// What one caller gets at `/mcp`.
pub struct HubCatalogue {
    pub context: HubContext,
    pub caller: McpCaller,
    pub groups: ToolGroups,
}

impl Catalogue for HubCatalogue {
    fn server(&self) -> ServerInfo {
        SERVER
    }

    fn instructions(&self) -> &str {
        &INSTRUCTIONS
    }

    fn capabilities(&self, _: Era) -> String {
        r#"{"tools":{}}"#.to_owned()
    }

    fn call(self: Arc<Self>, request: ClientRequest) -> ResultFuture {
        Box::pin(async move {
            match request.method {
                Method::ListTools => Ok(ResultObject::default()
                    .raw("tools", tools::list(&self.groups))
                    .cached(CacheHint::CATALOGUE)),
                Method::CallTool => self.call_tool(request).await,
                other => Err(RpcError::unknown_method(other.name())),
            }
        })
    }
}

impl HubCatalogue {
    async fn call_tool(&self, request: ClientRequest) -> Result<ResultObject, RpcError> {
        let params = ijson::read(request.params.as_bytes());
        let params = params.map_err(|bad| RpcError::invalid_params(bad.to_string()))?;
        let name = as_text(params.get("name"))
            .ok_or_else(|| RpcError::invalid_params("Invalid params: name must be a string"))?;
        let unknown = || RpcError::invalid_params(format!("Unknown tool: {name}"));
        if !self.groups.has(name) {
            return Err(unknown());
        }
        let none = ijson::read(b"{}").expect("an object");
        let arguments = params.get("arguments").unwrap_or(&none);
        let call = ToolCall {
            context: self.context.clone(),
            caller: self.caller,
            era: request.era,
            client: request.client,
            progress: request.progress,
        };
        match tools::call(name, arguments, call).await {
            None => Err(unknown()),
            Some(Ok(output)) => Ok(output.into_result()),
            Some(Err(error)) => Ok(error.into_result()),
        }
    }
}

//! The catalogue at `/mcp`: the hub's tools, resources and prompts.

mod completion;
mod prompts;
pub mod resources;

use std::sync::Arc;

use rialto_core::job::Job;
use rialto_protocols::adapter::HubContext;
use rialto_protocols::kit::ijson::{self, Json};

use super::caller::McpCaller;
use super::catalogue::{Catalogue, ResultFuture, ServerInfo};
use super::subscriptions::Listener;
use super::tools::{self, INSTRUCTIONS, ToolCall, ToolError, ToolGroups};
use super::wire::error::RpcError;
use super::wire::message::ClientRequest;
use super::wire::method::Method;
use super::wire::result::{CacheHint, ResultObject, as_text};
use super::wire::version::Era;

/// The server as it names itself.
pub const SERVER: ServerInfo =
    ServerInfo { name: "rialto", title: "Rialto hub", version: env!("CARGO_PKG_VERSION") };

const OLD_CAPABILITIES: &str = concat!(
    r#"{"tools":{"listChanged":false},"resources":{},"prompts":{"listChanged":false},"#,
    r#""completions":{}}"#
);
const CAPABILITIES: &str = concat!(
    r#"{"tools":{"listChanged":false},"resources":{"subscribe":true},"#,
    r#""prompts":{"listChanged":false},"completions":{},"#,
    r#""extensions":{"io.modelcontextprotocol/tasks":{}}}"#
);

/// What the server can do, as JSON text of an object.
pub fn capabilities(era: Era) -> &'static str {
    match era {
        Era::Old => OLD_CAPABILITIES,
        Era::New => CAPABILITIES,
    }
}

/// A list that is the same for every caller; `None` for other methods.
pub fn list(method: Method, groups: &ToolGroups) -> Option<ResultObject> {
    Some(match method {
        Method::ListTools => {
            ResultObject::default().raw("tools", tools::list(groups)).cached(CacheHint::CATALOGUE)
        }
        Method::ListResources => resources::list(),
        Method::ListResourceTemplates => resources::list_templates(),
        Method::ListPrompts => prompts::list(),
        _ => return None,
    })
}

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

    fn capabilities(&self, era: Era) -> String {
        capabilities(era).to_owned()
    }

    fn call(self: Arc<Self>, request: ClientRequest) -> ResultFuture {
        Box::pin(async move {
            if let Some(list) = list(request.method, &self.groups) {
                return refuse_cursor(&request).map(|()| list);
            }
            match request.method {
                Method::CallTool => self.call_tool(request).await,
                Method::ReadResource => resources::read(&self, request).await,
                Method::GetPrompt => prompts::get(&read_params(&request.params)?),
                Method::Complete => {
                    completion::complete(&self.context.engine, &read_params(&request.params)?)
                }
                Method::Listen => self.listener().listen(request).await,
                Method::GetTask | Method::UpdateTask | Method::CancelTask => {
                    let result_of = |job: &Job| tools::tasks::result_of_hire(&self.context, job);
                    tools::tasks::answer(&self.context, self.caller, &request, result_of).await
                }
                other => Err(RpcError::unknown_method(other.name())),
            }
        })
    }
}

/// The parameters of a request as JSON.
pub fn read_params(params: &str) -> Result<Json<'_>, RpcError> {
    ijson::read(params.as_bytes())
        .map_err(|bad| RpcError::invalid_params(format!("Invalid params: {bad}")))
}

/// Every list has one page, so no cursor was ever given out.
pub fn refuse_cursor(request: &ClientRequest) -> Result<(), RpcError> {
    match read_params(&request.params)?.get("cursor") {
        None => Ok(()),
        Some(_) => Err(RpcError::invalid_params("Invalid params: cursor is not one of this list")),
    }
}

impl HubCatalogue {
    /// A call of a tool in this request.
    pub fn tool_call(&self, request: ClientRequest) -> ToolCall {
        ToolCall {
            context: self.context.clone(),
            caller: self.caller,
            era: request.era,
            client: request.client,
            progress: request.progress,
            params: request.params,
        }
    }

    fn listener(self: Arc<Self>) -> Listener<Self> {
        Listener {
            context: self.context.clone(),
            caller: self.caller,
            catalogue: self,
            has_resources: true,
            tools: None,
        }
    }

    async fn call_tool(&self, request: ClientRequest) -> Result<ResultObject, RpcError> {
        let params = request.params.clone();
        let params = read_params(&params)?;
        let name = as_text(params.get("name"))
            .ok_or_else(|| RpcError::invalid_params("Invalid params: name must be a string"))?;
        let unknown = || RpcError::unknown_name("tool", name);
        if !self.groups.has(name) {
            return Err(unknown());
        }
        let writes = tools::is_read_only(name) == Some(false);
        if writes && let Err(problem) = self.caller.count_write(&self.context) {
            return Ok(ToolError::from(problem).into_result());
        }
        let none = ijson::read(b"{}").expect("an object");
        let arguments = params.get("arguments").unwrap_or(&none);
        match tools::call(name, arguments, self.tool_call(request)).await {
            None => Err(unknown()),
            Some(Ok(output)) => Ok(output.into_result()),
            Some(Err(error)) => error.into_response(),
        }
    }
}

//! The tools at `/mcp`: what each is called with, what it does, and what it answers.

mod accept_offer;
pub mod agents;
pub mod arguments;
mod catalog;
mod confirmation;
mod error;
pub mod get_job;
mod hire;
pub mod hiring;
mod inbox_text;
pub mod job_view;
mod make_offer;
pub mod names;
mod next_job;
mod output;
mod own_profile;
mod part;
mod read_inbox;
pub mod repetition;
mod report;
mod send_credits;
mod send_message;
pub mod stranger_text;
pub mod tasks;
mod update_profile;
pub mod waiting;
mod whoami;

pub use arguments::Arguments;
pub use catalog::{
    INSTRUCTIONS, ToolGroups, group_names, is_read_only, known_name, list, listed_tool,
};
pub use error::ToolError;
pub use output::{RESULT_MAX, ToolOutput};

use rialto_core::id::AgentId;
use rialto_engine::key_use;
use rialto_protocols::adapter::HubContext;
use rialto_protocols::kit::ijson::Json;
use tracing::Instrument;

use super::caller::McpCaller;
use super::wire::message::ClientCapabilities;
use super::wire::progress::Progress;
use super::wire::version::Era;
use crate::v1::auth::AgentCaller;

/// One call of a tool.
pub struct ToolCall {
    pub context: HubContext,
    pub caller: McpCaller,
    pub era: Era,
    pub client: ClientCapabilities,
    pub progress: Progress,
    /// The parameters of the request: JSON text of an object.
    pub params: String,
}

impl ToolCall {
    /// The agent that calls, for tools that need one.
    pub fn agent(&self) -> Result<AgentId, ToolError> {
        self.caller.agent().ok_or_else(ToolError::no_key)
    }

    /// The same as `/v1` knows its callers.
    pub fn agent_caller(&self) -> Result<AgentCaller, ToolError> {
        self.caller.agent_caller().ok_or_else(ToolError::no_key)
    }

    /// Refuses a caller whose key was revoked while it waited.
    pub fn ensure_still_valid(&self) -> Result<(), ToolError> {
        ensure_still_valid(self.caller, &self.context)
    }
}

fn ensure_still_valid(caller: McpCaller, context: &HubContext) -> Result<(), ToolError> {
    match caller.is_still_valid(&context.engine) {
        true => Ok(()),
        false => Err(ToolError::no_key()),
    }
}

/// The result of a tool.
pub type ToolResult = Result<ToolOutput, ToolError>;

/// Calls a tool by its name; `None` if there is no such tool.
pub async fn call(name: &str, arguments: &Json<'_>, call: ToolCall) -> Option<ToolResult> {
    catalog::input_schema(name)?;
    let (caller, context) = (call.caller, call.context.clone());
    let result = match Arguments::read(name, arguments) {
        Ok(arguments) => run(name, call, arguments).await,
        Err(error) => Err(error),
    };
    // A key that was revoked while the tool waited reads nothing more. That credits were moved is told.
    let result = match name {
        "send_credits" => result,
        _ => result.and_then(|output| ensure_still_valid(caller, &context).map(|()| output)),
    };
    Some(result.map_err(|error| match error.code {
        "malformed" => error.with_example_of(name),
        _ => error,
    }))
}

/// Every tool of the list has its line here.
async fn run(name: &str, call: ToolCall, arguments: Arguments) -> ToolResult {
    match name {
        "send_message" => send_message::call(call, arguments).await,
        "read_inbox" => read_inbox::call(call, arguments).await,
        "next_job" => next_job::call(call, arguments).await,
        "submit_result" => report::submit(call, arguments).await,
        "decline_job" => report::decline(call, arguments).await,
        "make_offer" => make_offer::call(call, arguments).await,
        "update_profile" => update_profile::call(call, arguments).await,
        "find_agents" => agents::find(call, arguments).await,
        "describe_agent" => agents::describe(call, arguments).await,
        "explain_reputation" => agents::explain(call, arguments).await,
        "hire" => hire::call(call, arguments).await,
        "get_job" => get_job::call(call, arguments).await,
        "list_jobs" => get_job::list(call, arguments).await,
        "cancel_job" => get_job::cancel(call, arguments).await,
        "accept_offer" => accept_offer::call(call, arguments).await,
        "whoami" => whoami::call(call, arguments).await,
        "send_credits" => send_credits::call(call, arguments).await,
        _ => Err(ToolError::of("internal", "the hub failed; its log has details")),
    }
}

/// Runs work that must be finished even if the caller hangs up, such as a command.
pub async fn detached<T: Send + 'static>(
    work: impl Future<Output = Result<T, ToolError>> + Send + 'static,
) -> Result<T, ToolError> {
    let running = key_use::spawn(work.in_current_span());
    running
        .await
        .unwrap_or_else(|_| Err(ToolError::of("internal", "the hub failed; its log has details")))
}

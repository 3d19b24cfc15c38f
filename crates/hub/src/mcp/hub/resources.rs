//! Resources: what the tools that only read show, by address.

use std::sync::Arc;

use rialto_protocols::adapter::request::decode_path_param;
use rialto_protocols::kit::ijson;
use rialto_protocols::kit::object::ObjectWriter;

use super::HubCatalogue;
use crate::mcp::tools::{self, ToolError};
use crate::mcp::wire::error::{INTERNAL, RpcError};
use crate::mcp::wire::message::ClientRequest;
use crate::mcp::wire::result::{CacheHint, ResultObject, as_text, json_array};
use crate::mcp::wire::version::Era;

/// The addresses of all resources begin so.
const SCHEME: &str = "rialto://";
const JSON: &str = "application/json";
/// The most jobs of `rialto://jobs`: what `list_jobs` shows at once.
const LIST_LIVE_JOBS: &str = r#"{"state":"live","limit":20}"#;

/// The template of the resources whose variable part can be completed.
pub const AGENT_TEMPLATE: &str = "rialto://agents/{agent}";
const JOB_TEMPLATE: &str = "rialto://jobs/{job_id}";

/// Address, name, title and description of each.
const RESOURCES: [[&str; 4]; 3] = [
    ["rialto://me", "me", "Your agent", "Balance, limits, unread news and jobs in hand."],
    [
        "rialto://inbox",
        "inbox",
        "Your inbox",
        "What is unread. Reading it here marks nothing as read.",
    ],
    [
        "rialto://jobs",
        "jobs",
        "Your live jobs",
        "The jobs that you asked for and that have not ended.",
    ],
];
const TEMPLATES: [[&str; 4]; 2] = [
    [
        AGENT_TEMPLATE,
        "agent",
        "An agent",
        "Everything public about one agent: skills, prices, schemas, score.",
    ],
    [JOB_TEMPLATE, "job", "A job", "State and result of a job of yours."],
];

/// The address of a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResourceUri {
    Me,
    Inbox,
    Jobs,
    /// Any name of an agent.
    Agent(String),
    /// The job's UUID.
    Job(String),
}

impl ResourceUri {
    pub fn parse(uri: &str) -> Option<Self> {
        let path = uri.strip_prefix(SCHEME)?;
        let variable = |text: &str| {
            let decoded = decode_path_param(text)?;
            (!decoded.is_empty() && !text.contains('/')).then_some(decoded)
        };
        match path.split_once('/') {
            None => match path {
                "me" => Some(Self::Me),
                "inbox" => Some(Self::Inbox),
                "jobs" => Some(Self::Jobs),
                _ => None,
            },
            Some(("agents", agent)) => variable(agent).map(Self::Agent),
            Some(("jobs", job)) => variable(job).map(Self::Job),
            Some(_) => None,
        }
    }

    /// The tool that shows it, and the arguments of the call.
    fn tool(&self) -> (&'static str, String) {
        match self {
            Self::Me => ("whoami", "{}".to_owned()),
            Self::Inbox => ("read_inbox", "{}".to_owned()),
            Self::Jobs => ("list_jobs", LIST_LIVE_JOBS.to_owned()),
            Self::Agent(agent) => {
                ("describe_agent", ObjectWriter::new().text("agent", agent).finish())
            }
            Self::Job(job) => ("get_job", ObjectWriter::new().text("job_id", job).finish()),
        }
    }
}

/// The answer to `resources/list`.
pub fn list() -> ResultObject {
    let write =
        |[uri, name, title, description]: [&str; 4]| describe("uri", uri, name, title, description);
    ResultObject::default()
        .raw("resources", json_array(RESOURCES.map(write)))
        .cached(CacheHint::CATALOGUE)
}

/// The answer to `resources/templates/list`.
pub fn list_templates() -> ResultObject {
    let write = |[uri, name, title, description]: [&str; 4]| {
        describe("uriTemplate", uri, name, title, description)
    };
    ResultObject::default()
        .raw("resourceTemplates", json_array(TEMPLATES.map(write)))
        .cached(CacheHint::CATALOGUE)
}

fn describe(member: &str, uri: &str, name: &str, title: &str, description: &str) -> String {
    ObjectWriter::new()
        .text(member, uri)
        .text("name", name)
        .text("title", title)
        .text("description", description)
        .text("mimeType", JSON)
        .finish()
}

/// The answer to `resources/read`.
pub async fn read(
    catalogue: &Arc<HubCatalogue>,
    request: ClientRequest,
) -> Result<ResultObject, RpcError> {
    let (params, era) = (request.params.clone(), request.era);
    let params = super::read_params(&params)?;
    let uri = as_text(params.get("uri"))
        .ok_or_else(|| RpcError::invalid_params("Invalid params: uri must be a string"))?;
    let resource = ResourceUri::parse(uri).ok_or_else(|| RpcError::resource_not_found(uri, era))?;
    let (tool, arguments) = resource.tool();
    let arguments = ijson::read(arguments.as_bytes())
        .map_err(|bad| RpcError::invalid_params(format!("Invalid params: {bad}")))?;
    let shown = tools::call(tool, &arguments, catalogue.tool_call(request)).await;
    let shown = shown.ok_or_else(|| RpcError::resource_not_found(uri, era))?;
    let output = shown.map_err(|error| read_error(error, uri, era))?;
    let text = output.object().unwrap_or_default();
    let content =
        ObjectWriter::new().text("uri", uri).text("mimeType", JSON).text("text", text).finish();
    Ok(ResultObject::default().raw("contents", json_array([content])).cached(CacheHint::NONE))
}

/// Resources that do not exist and those of others get the same answer. What failed is said in the
/// words of the tool.
fn read_error(error: ToolError, uri: &str, era: Era) -> RpcError {
    match error.code {
        "no_key" => RpcError::no_key(),
        "not_found" | "ambiguous" | "malformed" => RpcError::resource_not_found(uri, era),
        code => {
            let data = ObjectWriter::new()
                .text("code", code)
                .raw("retryable", if error.retryable { "true" } else { "false" })
                .maybe_integer(
                    "retry_after_seconds",
                    error.retry_after_seconds.map(u64::cast_signed),
                );
            RpcError::new(INTERNAL, error.text()).with_data(data.finish())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_names_one_resource() {
        let job = "0e9bab03-26c5-4c9b-9a53-3ba5c2820a4a";
        for (uri, resource) in [
            ("rialto://me", ResourceUri::Me),
            ("rialto://inbox", ResourceUri::Inbox),
            ("rialto://jobs", ResourceUri::Jobs),
            ("rialto://agents/echo-1@registry", ResourceUri::Agent("echo-1@registry".to_owned())),
            ("rialto://agents/echo%201%40x", ResourceUri::Agent("echo 1@x".to_owned())),
            ("rialto://agents/a%2Fb", ResourceUri::Agent("a/b".to_owned())),
            (&format!("rialto://jobs/{job}"), ResourceUri::Job(job.to_owned())),
        ] {
            assert_eq!(ResourceUri::parse(uri), Some(resource), "{uri}");
        }
        for uri in [
            "",
            "rialto://",
            "rialto://nope",
            "rialto://me/",
            "rialto://agents",
            "rialto://agents/",
            "rialto://agents/a/b",
            "rialto://jobs/",
            "https://me",
            "rialto:me",
            "rialto://agents/%ff",
        ] {
            assert_eq!(ResourceUri::parse(uri), None, "{uri}");
        }
    }
}

//! The table of operations, and what both bindings share: a call is read by its binding, run here,
//! and answered in the form of its binding.

pub mod agents;
pub mod callbacks;
pub mod cards;
pub mod catalog;
pub mod http;
pub mod push;
pub mod registration;
pub mod rpc;
pub mod search;
pub mod send;
pub mod tasks;

use std::convert::Infallible;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use axum::response::Response;
use rialto_core::alias::Digest;
use rialto_core::id::AgentId;
use rialto_core::idempotency::Principal;
use rialto_engine::keys::Key;
use schemars::JsonSchema;
use uuid::Uuid;

use super::auth::Client;
use super::errors::{self, http_response, json_response};
use super::remote::RemoteAgent;
use super::task_stream::{RETRY, TaskStream};
use super::translate::Hire;
use super::wire::Version;
use super::wire::api_doc::*;
use super::wire::error::{A2aError, Reason};
use super::wire::message::{Message, write_array};
use super::wire::params::{ListParams, PushConfig, PushParams, SendParams, TaskParams};
use super::wire::rpc::write_result;
use super::wire::task::{StreamEvent, Task};
use super::{A2aContext, ID, directory, extensions};
use crate::adapter::Access::{AgentOrOperator, AnyAgent, Public, Register, Requester, Token};
use crate::adapter::idempotency::REPLAYED;
use crate::adapter::open_job::set_job_header;
use crate::adapter::operation::{ResponseInfo, SchemaFn, delete, get, post, schema};
use crate::adapter::request::MatchedOperation;
use crate::adapter::shutdown::Shutdown;
use crate::adapter::{Operation, OperationInfo, RowsRead};
use crate::kit::api_doc::AnyObject;
use crate::kit::media_type;
use crate::kit::object::ObjectWriter;
use crate::kit::sse;

/// The response header that names the extensions in use.
const EXTENSIONS: &str = "a2a-extensions";
/// The same in 0.3.
const OLD_EXTENSIONS: &str = "x-a2a-extensions";
/// A message that any agent with one free skill accepts.
const SEND_EXAMPLE: &str =
    r#"{"message":{"messageId":"m-1","role":"ROLE_USER","parts":[{"text":"hello"}]}}"#;
/// The same as a JSON-RPC call.
const RPC_EXAMPLE: &str = concat!(
    r#"{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":"#,
    r#"{"message":{"messageId":"m-1","role":"ROLE_USER","parts":[{"text":"hello"}]}}}"#,
);
const PUSH_EXAMPLE: &str = r#"{"url":"https://client.example/hook","token":"tok-1"}"#;
const REGISTRATION_EXAMPLE: &str = r#"{"name":"my-agent"}"#;

/// The answer to a reader that has the card already.
const UNCHANGED: ResponseInfo = ResponseInfo {
    status: 304,
    content_type: "",
    schema: None,
    description: "The card is that of If-None-Match",
};

/// Where the hub and the agents are called.
const BASES: [&str; 2] = ["", "/agents/{agent}"];

/// Every operation of this protocol.
pub fn operations() -> Vec<Operation<A2aContext>> {
    let mut all = vec![
        get("/.well-known/agent-card.json", Public, cards::hub_card)
            .summary("The card of the hub itself, which finds and hires agents")
            .as_is()
            .responds::<AgentCardBody>(200, "The card")
            .response(UNCHANGED)
            .at_root(),
        get("", Public, cards::hub_card)
            .summary("The same card")
            .as_is()
            .responds::<AgentCardBody>(200, "The card")
            .response(UNCHANGED),
        get("/jwks.json", Public, cards::jwks)
            .summary("The key that signs cards")
            .as_is()
            .responds::<JwksBody>(200, "A JSON Web Key Set"),
        get("/.well-known/ai-catalog.json", Public, catalog::show)
            .summary("All agents, for crawlers")
            .as_is()
            .query::<CatalogQuery>()
            .response(ResponseInfo {
                status: 200,
                content_type: catalog::CATALOG_TYPE,
                schema: Some(schema::<CatalogBody>),
                description: "A page of the catalog",
            })
            .at_root(),
        post("/agents", Register, registration::register)
            .summary("Register a client, or an agent with a server of its own; it gets a key")
            .request::<RegistrationMembers>(REGISTRATION_EXAMPLE)
            .responds::<RegistrationBody>(201, "A new agent")
            .responds::<RegistrationBody>(200, "A known agent")
            .error(409),
        get("/agents", Public, agents::list)
            .summary("All agents that can be called here")
            .as_is()
            .query::<AgentsQuery>()
            .responds::<AgentsBody>(200, "A page of agents"),
        get("/agents/{agent}/.well-known/agent-card.json", Public, cards::agent_card)
            .summary("The card of an agent")
            .path_param::<AgentName>()
            .responds::<AgentCardBody>(200, "The card")
            .response(UNCHANGED),
        get("/agents/{agent}", Public, cards::agent_card)
            .summary("The same card")
            .path_param::<AgentName>()
            .responds::<AgentCardBody>(200, "The card")
            .response(UNCHANGED),
        post("/agents/{agent}/refresh", AgentOrOperator, registration::refresh)
            .summary("Fetch the card of an agent with a server of its own again")
            .path_param::<AgentName>()
            .responds::<RefreshBody>(200, "The agent as it is now"),
        post("/callbacks/{token}", Token, callbacks::push)
            .summary("Tell the hub that there is news of the task that this URL belongs to")
            .path_param::<CallbackName>()
            .request::<AnyObject>("{}")
            .responds::<EmptyBody>(200, "The hub asks for the task"),
        delete("/agents/{agent}", AgentOrOperator, agents::remove)
            .summary("Unregister an agent of this protocol")
            .path_param::<AgentName>()
            .responds::<RemovedBody>(200, "Unregistered"),
    ];
    for base in BASES {
        for path in [base.to_owned(), format!("{base}/")] {
            all.push(without_edge_key(
                post(&path, AnyAgent, rpc::call)
                    .reads_too()
                    .summary("JSON-RPC, versions 1.0 and 0.3")
                    .path_param::<AgentName>()
                    .request::<RpcMembers>(RPC_EXAMPLE)
                    .responds::<RpcBody>(200, "The result, or an error")
                    .streams::<RpcBody>("The events of a task"),
            ));
        }
        all.extend(http_operations(base));
        all.extend(http_operations(&format!("{base}/{{tenant}}")));
    }
    all
}

/// Whether an operation is JSON-RPC, so that its errors are, too.
pub fn is_rpc(operation: &OperationInfo) -> bool {
    let is_base = |base: &str| {
        let rest = operation.path.strip_prefix('/').and_then(|path| path.strip_prefix(ID.as_str()));
        rest.is_some_and(|rest| rest.strip_suffix('/').unwrap_or(rest) == base)
    };
    operation.method == "POST" && BASES.iter().any(|base| is_base(base))
}

/// Keys for repeats count here over method and parameters, and not over the body.
fn without_edge_key(mut operation: Operation<A2aContext>) -> Operation<A2aContext> {
    operation.info.takes_idempotency_key = false;
    operation
}

/// What is added to the operations of HTTP+JSON.
trait HttpJson {
    /// An answer in the type that the caller accepts (R23).
    fn answers<T: JsonSchema>(self, description: &'static str) -> Self;
}

impl HttpJson for Operation<A2aContext> {
    fn answers<T: JsonSchema>(self, description: &'static str) -> Self {
        let schema = Some(schema::<T> as SchemaFn);
        self.responds::<T>(200, description).response(ResponseInfo {
            status: 200,
            content_type: A2A_JSON,
            schema,
            description,
        })
    }
}

/// The operations of HTTP+JSON below a path.
fn http_operations(base: &str) -> Vec<Operation<A2aContext>> {
    let path = |rest: &str| format!("{base}{rest}");
    let configs = path("/tasks/{task}/pushNotificationConfigs");
    let config = path("/tasks/{task}/pushNotificationConfigs/{config}");
    let all = vec![
        post(&path("/message:send"), AnyAgent, http::send_message)
            .reads_too()
            .summary("Send a message, which opens a task or goes on with one")
            .request::<SendMembers>(SEND_EXAMPLE)
            .answers::<SendBody>("The task, or a message"),
        post(&path("/message:stream"), AnyAgent, http::stream_message)
            .summary("Send a message and follow its task")
            .request::<SendMembers>(SEND_EXAMPLE)
            .streams::<EventBody>("The events of the task"),
        get(&path("/tasks"), AnyAgent, http::list_tasks)
            .summary("The caller's tasks, the newest status first")
            .query::<TasksQuery>()
            .answers::<TasksBody>("A page of tasks"),
        get(&path("/tasks/{task}"), Requester, http::get_task)
            .summary("A task, or with :subscribe its events")
            .query::<TaskQuery>()
            .answers::<TaskBody>("The task")
            .streams::<EventBody>("Its events"),
        post(&path("/tasks/{task}"), Requester, http::change_task)
            .reads_too()
            .summary("Cancel a task with :cancel, or follow it with :subscribe")
            .answers::<TaskBody>("The canceled task")
            .streams::<EventBody>("Its events"),
        post(&configs, Requester, http::create_push)
            .summary("Have every later event of a task sent to a URL")
            .request::<PushMembers>(PUSH_EXAMPLE)
            .answers::<PushBody>("The configuration, without its secrets"),
        get(&configs, Requester, http::list_push)
            .summary("The push configurations of a task")
            .answers::<PushListBody>("The configurations, without their secrets"),
        get(&config, Requester, http::get_push)
            .summary("One push configuration")
            .answers::<PushBody>("The configuration, without its secrets"),
        delete(&config, Requester, http::delete_push)
            .summary("Remove a push configuration")
            .answers::<EmptyBody>("Removed, now or before"),
        get(&path("/extendedAgentCard"), AnyAgent, cards::extended_card)
            .summary("The card for callers with a key")
            .answers::<AgentCardBody>("The card"),
    ];
    let described = |operation: Operation<A2aContext>| {
        let has_name = operation.info.path.contains('{');
        let operation = without_edge_key(operation);
        if has_name { operation.path_param::<PathName>() } else { operation }
    };
    all.into_iter().map(described).collect()
}

/// How a call came, which decides the form of its answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Binding {
    JsonRpc {
        /// JSON text.
        id: String,
        version: Version,
    },
    Http,
}

impl Binding {
    pub fn version(&self) -> Version {
        match self {
            Self::JsonRpc { version, .. } => *version,
            Self::Http => Version::V1,
        }
    }

    pub fn error_response(&self, error: &A2aError) -> Response {
        match self {
            Self::JsonRpc { id, version } => errors::rpc_error_response(error, id, *version),
            Self::Http => http_response(error),
        }
    }
}

/// The variable parts of a path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PathNames {
    pub agent: Option<String>,
    pub tenant: Option<String>,
    pub task: Option<String>,
    pub config: Option<String>,
}

impl<S: Sync> FromRequestParts<S> for PathNames {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let matched = MatchedOperation::of(&parts.extensions);
        let path = &matched.operation.info.path;
        let names = path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
        let mut all = Self::default();
        for (name, value) in names.zip(&matched.path_params) {
            // No id has the replacement character.
            let value = value.clone().unwrap_or_else(|| char::REPLACEMENT_CHARACTER.to_string());
            match name {
                "agent" => all.agent = Some(value),
                "tenant" => all.tenant = Some(value),
                "task" => all.task = Some(value),
                _ => all.config = Some(value),
            }
        }
        Ok(all)
    }
}

/// The agent that a path names; `None` for the hub itself.
pub fn called_agent(context: &A2aContext, names: &PathNames) -> Result<Option<AgentId>, A2aError> {
    let Some(name) = &names.agent else { return Ok(None) };
    match context.engine.with_world(|world| directory::find_agent(world, name)) {
        Some(agent) => Ok(Some(agent.id)),
        None => Err(A2aError::new(Reason::NotFound, "agent not found")),
    }
}

/// What a caller wants, whatever the binding.
pub enum Request {
    Send {
        params: Box<(SendParams, Hire)>,
        is_streaming: bool,
        /// The digest of the parameters.
        digest: Digest,
    },
    Get(TaskParams),
    List(ListParams),
    Cancel(TaskParams),
    Subscribe(TaskParams),
    CreatePush(PushConfig),
    GetPush(PushParams),
    ListPush(PushParams),
    DeletePush(PushParams),
    ExtendedCard {
        tenant: Option<String>,
    },
}

impl Request {
    fn tenant(&self) -> Option<&str> {
        match self {
            Self::Send { params, .. } => params.0.tenant.as_deref(),
            Self::Get(params) | Self::Cancel(params) | Self::Subscribe(params) => {
                params.tenant.as_deref()
            }
            Self::List(params) => params.tenant.as_deref(),
            Self::CreatePush(config) => config.tenant.as_deref(),
            Self::GetPush(params) | Self::ListPush(params) | Self::DeletePush(params) => {
                params.tenant.as_deref()
            }
            Self::ExtendedCard { tenant } => tenant.as_deref(),
        }
    }
}

/// What a call is answered with, whatever the binding.
pub enum Answer {
    /// The result of a send.
    Sent(Box<Sent>),
    Task(Box<Task>),
    Tasks(TaskPage),
    Push(PushConfig),
    PushList(Vec<PushConfig>),
    Removed,
    Stream(Box<TaskStream>),
    /// A whole card.
    Card(String),
}

/// The result of a send.
pub struct Sent {
    pub result: SendResult,
    /// The task that it opened or went on with.
    pub job: Option<Uuid>,
    /// Whether the caller used the extension for hiring.
    pub used_hire: bool,
    /// Whether an earlier request with the same key is answered again.
    pub is_replayed: bool,
}

/// A result by itself, or the events of a task.
pub enum SendResult {
    Event(StreamEvent),
    Stream(Box<TaskStream>),
    /// A message where a stream was wanted.
    StreamedMessage(Box<Message>),
}

/// One page of a list of tasks.
pub struct TaskPage {
    /// JSON texts.
    pub tasks: Vec<String>,
    pub next_page_token: String,
    pub page_size: u32,
    pub total_size: usize,
    pub rows_read: usize,
}

impl TaskPage {
    fn write(self) -> String {
        ObjectWriter::new()
            .raw("tasks", &write_array(self.tasks))
            .text("nextPageToken", &self.next_page_token)
            .integer("pageSize", self.page_size.into())
            .integer("totalSize", i64::try_from(self.total_size).unwrap_or(i64::MAX))
            .finish()
    }
}

/// One call, whose caller is known.
pub struct Call {
    pub context: A2aContext,
    pub client: Client,
    /// Where the caller's records of repeatable requests are counted.
    pub principal: Principal,
    pub key: Option<Key>,
    /// The agent that is called; `None` for the hub itself.
    pub agent: Option<AgentId>,
    /// The tenants in the path and the query.
    pub tenants: [Option<String>; 2],
    pub binding: Binding,
    pub headers: HeaderMap,
    pub shutdown: Shutdown,
}

impl Call {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    /// Runs a request and responds.
    pub async fn answer(mut self, request: Result<Request, A2aError>) -> Response {
        let answered = match request {
            Ok(request) => self.run(request).await,
            Err(error) => Err(error),
        };
        match answered {
            Ok(answer) => self.respond(answer).await,
            Err(error) => self.binding.error_response(&error),
        }
    }

    async fn run(&mut self, request: Request) -> Result<Answer, A2aError> {
        let [path, query] = self.tenants.clone();
        let tenants = [path, query, request.tenant().map(str::to_owned)];
        for tenant in tenants.into_iter().flatten().filter(|tenant| !tenant.is_empty()) {
            self.agent = Some(self.agent_of_tenant(&tenant)?);
        }
        match request {
            Request::Send { params, is_streaming, digest } => {
                send::send(self, *params, is_streaming, digest).await
            }
            Request::Get(params) => tasks::get(self, params).await,
            Request::List(params) => tasks::list(self, params).await,
            Request::Cancel(params) => tasks::cancel(self, params).await,
            Request::Subscribe(params) => tasks::subscribe(self, params).await,
            Request::CreatePush(config) => push::create(self, config).await,
            Request::GetPush(params) => push::get(self, params).await,
            Request::ListPush(params) => push::list(self, params).await,
            Request::DeletePush(params) => push::delete(self, params).await,
            Request::ExtendedCard { .. } => cards::extended(self).await,
        }
    }

    /// At the hub a tenant is the name of the agent that is meant; at an agent it is that agent's
    /// name (R26).
    fn agent_of_tenant(&self, tenant: &str) -> Result<AgentId, A2aError> {
        let found = self.context.engine.with_world(|world| directory::find_agent(world, tenant));
        let found = found.map(|agent| agent.id);
        match (found, self.agent) {
            (Some(found), None) => Ok(found),
            (Some(found), Some(called)) if found == called => Ok(found),
            (_, Some(_)) => {
                Err(A2aError::invalid_field("tenant", "must be empty or the name of this agent"))
            }
            (None, None) => Err(A2aError::invalid_field("tenant", "must be the name of an agent")),
        }
    }

    async fn respond(&self, answer: Answer) -> Response {
        let version = self.binding.version();
        let used_hire = matches!(&answer, Answer::Sent(sent) if sent.used_hire);
        let mut response = match answer {
            Answer::Sent(sent) => self.respond_to_send(*sent).await,
            Answer::Stream(stream) => stream.into_response().await,
            Answer::Task(task) => self.respond_with(&task.write(version)),
            Answer::Tasks(page) => {
                let rows_read = RowsRead(page.rows_read);
                let mut response = self.respond_with(&page.write());
                response.extensions_mut().insert(rows_read);
                response
            }
            Answer::Push(config) => self.respond_with(&config.write(version)),
            Answer::PushList(configs) => {
                let list = write_array(configs.iter().map(|config| config.write(version)));
                match version {
                    Version::V1 => {
                        self.respond_with(&ObjectWriter::new().raw("configs", &list).finish())
                    }
                    Version::V03 => self.respond_with(&list),
                }
            }
            Answer::Removed => match version {
                Version::V1 => self.respond_with("{}"),
                Version::V03 => self.respond_with("null"),
            },
            Answer::Card(text) => {
                let mut response = self.respond_with(&text);
                let no_store = HeaderValue::from_static("no-store");
                response.headers_mut().insert(header::CACHE_CONTROL, no_store);
                response
            }
        };
        self.add_extensions(&mut response, used_hire);
        response
    }

    fn respond_with(&self, body: &str) -> Response {
        match &self.binding {
            Binding::JsonRpc { id, .. } => json_response(200, write_result(id, body)),
            Binding::Http => {
                let mut response = json_response(200, body.to_owned());
                let accepted = self.headers.get_all(header::ACCEPT).iter();
                let mut texts = accepted.filter_map(|value| value.to_str().ok());
                if texts.any(|text| media_type::names(text, A2A_JSON)) {
                    let kind = HeaderValue::from_static(A2A_JSON);
                    response.headers_mut().insert(header::CONTENT_TYPE, kind);
                }
                response
            }
        }
    }

    async fn respond_to_send(&self, sent: Sent) -> Response {
        let mut response = match sent.result {
            SendResult::Event(event) => {
                self.respond_with(&event.write(self.binding.version(), true))
            }
            SendResult::Stream(stream) => stream.into_response().await,
            SendResult::StreamedMessage(message) => {
                self.stream_once(&StreamEvent::Message(message))
            }
        };
        set_job_header(&mut response, sent.job);
        if sent.is_replayed {
            response.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
        }
        response
    }

    /// Names the extensions in use.
    fn add_extensions(&self, response: &mut Response, used_hire: bool) {
        let used = self.extensions_in_use(used_hire);
        let Ok(value) = HeaderValue::from_str(&used.join(", ")) else { return };
        if used.is_empty() {
            return;
        }
        let headers = response.headers_mut();
        headers.insert(EXTENSIONS, value.clone());
        if self.binding.version() == Version::V03 {
            headers.insert(HeaderName::from_static(OLD_EXTENSIONS), value);
        }
    }

    /// The extensions that the caller asks for.
    pub fn wanted_extensions(&self) -> Vec<&str> {
        let headers = [EXTENSIONS, OLD_EXTENSIONS];
        let all = headers.iter().flat_map(|name| self.headers.get_all(*name));
        let texts = all.filter_map(|value| value.to_str().ok());
        texts
            .flat_map(|text| text.split(','))
            .map(str::trim)
            .filter(|uri| !uri.is_empty())
            .collect()
    }

    /// Extensions that the caller asks for and the hub knows, and those it used (R50).
    fn extensions_in_use(&self, used_hire: bool) -> Vec<String> {
        let wanted = self.wanted_extensions();
        let is_used =
            |uri: &String| wanted.contains(&uri.as_str()) || used_hire && uri == extensions::HIRE;
        let agent = self
            .agent
            .filter(|_| !wanted.is_empty())
            .and_then(|id| self.context.engine.with_world(|world| world.agent(id).cloned()));
        let remote = agent.and_then(|agent| RemoteAgent::of(&agent));
        let own = remote.iter().flat_map(RemoteAgent::card_extensions).map(|one| one.uri);
        extensions::ALL.into_iter().map(str::to_owned).chain(own).filter(is_used).collect()
    }

    /// A stream of one event.
    fn stream_once(&self, event: &StreamEvent) -> Response {
        let body = event.write(self.binding.version(), true);
        let mut data = match &self.binding {
            Binding::JsonRpc { id, .. } => write_result(id, &body),
            Binding::Http => body,
        }
        .into_bytes();
        sse::replace_newlines(&mut data);
        let mut block = format!("{RETRY}id: 1\ndata: ").into_bytes();
        block.append(&mut data);
        block.extend_from_slice(b"\n\n");
        let mut response = Response::new(axum::body::Body::from(block));
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        response
    }
}

/// The content type of the HTTP+JSON binding.
const A2A_JSON: &str = "application/a2a+json";

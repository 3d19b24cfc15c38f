//! Calls to the server of an agent, in both bindings and both versions.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use rialto_core::agent::Agent;
use rialto_core::id::AgentId;
use rialto_engine::delivery::egress::{
    HostSlot, HttpRequest, Method as HttpMethod, ResponseLimits, SendError, StreamingResponse,
};
use tokio::sync::Semaphore;
use tokio::time::Instant;
use url::Url;

use super::RemoteAgent;
use super::access_token;
use super::credentials::{Credentials, SealedCredentials, origin_of};
use crate::a2a::A2aContext;
use crate::a2a::wire::Version;
use crate::a2a::wire::reader::{Reader, Violation, Violations};
use crate::a2a::wire::remote_card::{Binding, Interface};
use crate::a2a::wire::rpc::Method;
use crate::a2a::wire::task::{StreamEvent, Task};
use crate::kit::ijson::{self, Json, JsonValue};
use crate::kit::object::ObjectWriter;
use crate::kit::sse;

/// The largest event of a stream (R103).
pub const EVENT_BYTES_MAX: usize = 1 << 20;
/// The largest task (R29), with the JSON around it.
const TASK_BYTES_MAX: usize = 20 << 20;
/// Answers up to this size are read at any time; more only a few at once.
const SMALL_BYTES: usize = 256 << 10;
/// Long answers that are read at the same time.
static LONG_ANSWERS: Semaphore = Semaphore::const_new(8);
/// The largest answer that is an error.
const ERROR_BYTES_MAX: usize = 64 << 10;
/// The longest text of an error that is kept, in characters.
const ERROR_TEXT_MAX: usize = 1_024;
/// How long a stream may be silent before it is opened again.
const STREAM_IDLE: Duration = Duration::from_secs(120);
/// All bytes of one stream: those of a task with everything around its events.
const STREAM_BYTES_MAX: usize = 256 << 20;
/// The longest a call may take that a server answers when the task has ended.
const SLOW_CALL: Duration = Duration::from_secs(600);
/// The characters of an id that are no part of a path.
const NOT_IN_PATH: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// Why a call has no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallError {
    /// No connection was made, so nothing was sent.
    Unreachable(String),
    /// It may have been acted on.
    NoAnswer(String),
    /// The server refused it.
    Refused(RemoteError),
    /// The answer is none of this protocol.
    Malformed(String),
    /// The answer, or one event of it, is too large.
    TooLarge(String),
}

/// An error that a server answered with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteError {
    /// The HTTP status.
    pub status: u16,
    /// The code in JSON-RPC, also for errors of HTTP+JSON that have one.
    pub code: Option<i32>,
    pub text: String,
    pub retry_after: Option<Duration>,
}

/// What an error means for the job (R101).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// The agent cannot use the message.
    Misfit,
    Declined,
    /// The agent is not there, or does not accept the hub's credentials.
    Away,
    Busy {
        retry_after: Option<Duration>,
    },
    /// The server speaks another version than its card says.
    OtherVersion,
    TaskNotFound,
    /// The server does not have this operation.
    NoSuchOperation,
    Failed,
}

impl RemoteError {
    /// What it means.
    pub fn meaning(&self) -> Meaning {
        match (self.status, self.code) {
            (429 | 503, _) | (_, Some(-32052 | -32053)) => {
                Meaning::Busy { retry_after: self.retry_after }
            }
            (401 | 403, _) | (_, Some(-32050 | -32051)) => Meaning::Away,
            (_, Some(-32001)) => Meaning::TaskNotFound,
            (_, Some(-32602 | -32005 | -32008)) => Meaning::Misfit,
            (_, Some(-32004)) => Meaning::Declined,
            (_, Some(-32009)) => Meaning::OtherVersion,
            (_, Some(-32601)) | (405 | 501, _) => Meaning::NoSuchOperation,
            (404 | 410, _) => Meaning::Away,
            _ => Meaning::Failed,
        }
    }
}

impl std::fmt::Display for CallError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unreachable(why) => write!(f, "the agent could not be reached: {why}"),
            Self::NoAnswer(why) => write!(f, "the agent gave no answer: {why}"),
            Self::Refused(error) if error.text.is_empty() => {
                write!(f, "the agent answered HTTP {}", error.status)
            }
            Self::Refused(error) => write!(f, "the agent answered: {}", error.text),
            Self::Malformed(why) => write!(f, "the answer of the agent cannot be read: {why}"),
            Self::TooLarge(why) => write!(f, "the answer of the agent is too large: {why}"),
        }
    }
}

impl From<SendError> for CallError {
    fn from(error: SendError) -> Self {
        match error {
            SendError::Blocked(_) => Self::Unreachable("its URL may not be called".to_owned()),
            SendError::Unreachable(why) => Self::Unreachable(why),
            SendError::TimedOut => Self::NoAnswer("it did not come in time".to_owned()),
            SendError::InvalidResponse(why) => Self::NoAnswer(why),
        }
    }
}

/// A call: an operation and its parameters.
pub struct Call<'a> {
    pub method: Method,
    /// The task of an operation on one, for its path.
    pub task: Option<&'a str>,
    /// The parameters in the version of the interface: a JSON object as text.
    pub params: String,
    /// The same as a query, for operations that have no body in HTTP+JSON.
    pub query: Vec<(&'static str, String)>,
    /// The extensions that are activated.
    pub extensions: Vec<String>,
}

impl<'a> Call<'a> {
    /// A call with a body.
    pub fn new(method: Method, params: String) -> Self {
        Self { method, task: None, params, query: Vec::new(), extensions: Vec::new() }
    }

    /// A call about a task, without further parameters.
    pub fn of_task(method: Method, task: &'a str) -> Self {
        let params = ObjectWriter::new().text("id", task).finish();
        Self { task: Some(task), ..Self::new(method, params) }
    }
}

/// The server of one agent.
#[derive(Clone)]
pub struct RemoteClient {
    context: A2aContext,
    agent: AgentId,
    /// The agent's own name.
    name: String,
    pub interface: Interface,
    auth: Option<SealedCredentials>,
}

impl RemoteClient {
    /// The client of an agent, at an interface of its own.
    pub fn new(
        context: &A2aContext,
        agent: &Arc<Agent>,
        remote: &RemoteAgent,
        interface: Interface,
    ) -> Self {
        Self {
            context: context.clone(),
            agent: agent.id,
            name: agent.native_id.clone(),
            interface,
            auth: remote.auth.clone(),
        }
    }

    /// Calls once and returns the result as JSON text.
    pub async fn call(&self, call: &Call<'_>) -> Result<String, CallError> {
        let timeout = self.context.egress.max_call_duration() / 2;
        let limits = ResponseLimits::within(timeout, TASK_BYTES_MAX);
        let response = self.open(call, "application/json", limits, None).await?;
        self.read_result(response).await
    }

    /// The same for a server that may answer only when the task has ended.
    pub async fn call_slowly(&self, call: &Call<'_>) -> Result<String, CallError> {
        let Some(slot) = self.context.egress.try_reserve_slot(&self.interface.url) else {
            return self.call(call).await;
        };
        let limits = ResponseLimits::within(SLOW_CALL, TASK_BYTES_MAX);
        let response = self.open(call, "application/json", limits, Some(slot)).await?;
        self.read_result(response).await
    }

    /// Opens a stream, in a slot of the host that is kept for it.
    pub async fn stream(&self, call: &Call<'_>, slot: HostSlot) -> Result<RemoteStream, CallError> {
        let timeout = self.context.egress.max_call_duration() / 2;
        let limits = ResponseLimits {
            bytes_max: STREAM_BYTES_MAX,
            head_timeout: SLOW_CALL,
            idle_timeout: STREAM_IDLE.max(timeout),
            whole_timeout: None,
        };
        let response = self.open(call, "text/event-stream", limits, Some(slot)).await?;
        let is_stream = response.status == 200 && response.media_type == "text/event-stream";
        if is_stream {
            let parser = sse::Parser::new(EVENT_BYTES_MAX);
            let (events, interface) = (VecDeque::new(), self.interface.clone());
            let heard = Instant::now();
            let response = Some(response);
            let has_begun = false;
            return Ok(RemoteStream { response, parser, heard, has_begun, events, interface });
        }
        // Some servers answer a short task without a stream.
        let result = self.read_result(response).await?;
        let event = read_event(&result, self.interface.version)?;
        let (parser, interface) = (sse::Parser::new(0), self.interface.clone());
        let (heard, events) = (Instant::now(), event.map(Ok).into_iter().collect());
        Ok(RemoteStream { response: None, parser, heard, has_begun: true, events, interface })
    }

    async fn open(
        &self,
        call: &Call<'_>,
        accept: &str,
        limits: ResponseLimits,
        slot: Option<HostSlot>,
    ) -> Result<StreamingResponse, CallError> {
        let egress = &self.context.egress;
        let url = &self.interface.url;
        while let Err(wait) = egress.try_acquire_call(url, self.context.engine.now()) {
            tokio::time::sleep(Duration::from_millis(wait.0.unsigned_abs())).await;
        }
        let (method, url, body) = self.request(call)?;
        let mut headers = vec![
            ("content-type".to_owned(), "application/json".to_owned()),
            ("accept".to_owned(), accept.to_owned()),
            ("a2a-version".to_owned(), super::version_text(self.interface.version).to_owned()),
        ];
        if !call.extensions.is_empty() {
            let all = call.extensions.join(", ");
            if self.interface.version == Version::V03 {
                headers.push(("x-a2a-extensions".to_owned(), all.clone()));
            }
            headers.push(("a2a-extensions".to_owned(), all));
        }
        headers.extend(self.credentials(&url).await?);
        let request = HttpRequest { method, url: &url, headers, body };
        let response = egress.open(request, limits, slot).await?;
        if response.status == 401 {
            self.context.state.access_tokens.forget(self.agent);
        }
        Ok(response)
    }

    /// What the server wants to see, for the origin that it was registered for.
    async fn credentials(&self, url: &str) -> Result<Option<(String, String)>, CallError> {
        let Some(sealed) = &self.auth else { return Ok(None) };
        if origin_of(url).as_ref() != Some(&sealed.origin) {
            return Ok(None);
        }
        let opened = sealed.open(self.context.engine.hub_secret(), &self.name);
        match opened {
            Some(Credentials::OAuth2(client)) => {
                let token = access_token::get(&self.context, self.agent, &client).await;
                let token = token.map_err(CallError::Unreachable)?;
                Ok(Some(("authorization".to_owned(), format!("Bearer {token}"))))
            }
            Some(credentials) => Ok(credentials.header()),
            None => {
                let why = "its credentials cannot be opened; register it again".to_owned();
                Err(CallError::Unreachable(why))
            }
        }
    }

    /// The HTTP request of a call.
    fn request(&self, call: &Call<'_>) -> Result<(HttpMethod, String, Bytes), CallError> {
        let params = self.with_tenant(&call.params);
        if self.interface.binding == Binding::JsonRpc {
            let name = call.method.name(self.interface.version);
            let name = name.ok_or_else(|| CallError::Refused(RemoteError::no_such_operation()))?;
            let body = ObjectWriter::new()
                .text("jsonrpc", "2.0")
                .integer("id", 1)
                .text("method", name)
                .raw("params", &params)
                .finish();
            return Ok((HttpMethod::Post, self.interface.url.clone(), body.into()));
        }
        let id = call.task.map(|task| utf8_percent_encode(task, NOT_IN_PATH).to_string());
        let task = |rest: &str| format!("/tasks/{}{rest}", id.as_deref().unwrap_or_default());
        let (method, path) = match call.method {
            Method::SendMessage => (HttpMethod::Post, "/message:send".to_owned()),
            Method::SendStreamingMessage => (HttpMethod::Post, "/message:stream".to_owned()),
            Method::GetTask => (HttpMethod::Get, task("")),
            Method::ListTasks => (HttpMethod::Get, "/tasks".to_owned()),
            Method::CancelTask => (HttpMethod::Post, task(":cancel")),
            Method::SubscribeToTask => (HttpMethod::Post, task(":subscribe")),
            Method::CreatePushConfig => (HttpMethod::Post, task("/pushNotificationConfigs")),
            Method::GetPushConfig
            | Method::ListPushConfigs
            | Method::DeletePushConfig
            | Method::GetExtendedCard => {
                return Err(CallError::Refused(RemoteError::no_such_operation()));
            }
        };
        let tenant = self.interface.tenant.as_deref();
        let tenant = tenant.map(|tenant| utf8_percent_encode(tenant, NOT_IN_PATH).to_string());
        let tenant = tenant.map_or_else(String::new, |tenant| format!("/{tenant}"));
        let mut url = Url::parse(&self.interface.url)
            .map_err(|_| CallError::Unreachable("its URL cannot be read".to_owned()))?;
        let base = url.path().trim_end_matches('/').to_owned();
        url.set_path(&format!("{base}{tenant}{path}"));
        for (name, value) in &call.query {
            url.query_pairs_mut().append_pair(name, value);
        }
        let body =
            if method == HttpMethod::Get { Bytes::new() } else { call.params.clone().into() };
        Ok((method, url.into(), body))
    }

    /// In JSON-RPC the tenant of an interface is a parameter.
    fn with_tenant(&self, params: &str) -> String {
        match (&self.interface.tenant, ijson::read(params.as_bytes())) {
            (Some(tenant), Ok(json)) if self.interface.version == Version::V1 => {
                ObjectWriter::copy_without(&json, &["tenant"]).text("tenant", tenant).finish()
            }
            _ => params.to_owned(),
        }
    }

    /// Reads the result of a call, or its error.
    async fn read_result(&self, response: StreamingResponse) -> Result<String, CallError> {
        let (status, retry_after) = (response.status, response.retry_after);
        let max = if status == 200 { TASK_BYTES_MAX } else { ERROR_BYTES_MAX };
        let body = read_body(response, max).await;
        // An error that cannot be read whole is an error all the same.
        let body = match body {
            Err(_) if status != 200 => Bytes::new(),
            body => body?,
        };
        read_result(self.interface.binding, status, retry_after, &body)
    }
}

/// Reads a body. Only a few long ones are in memory at a time.
async fn read_body(mut response: StreamingResponse, max: usize) -> Result<Bytes, CallError> {
    let mut body = BytesMut::new();
    let mut permit = None;
    while let Some(chunk) = response.next_chunk().await? {
        body.extend_from_slice(&chunk);
        if body.len() > max {
            return Err(CallError::TooLarge(format!("more than {max} bytes")));
        }
        if body.len() > SMALL_BYTES && permit.is_none() {
            permit = LONG_ANSWERS.acquire().await.ok();
        }
    }
    Ok(body.freeze())
}

/// The result in an answer: JSON text.
fn read_result(
    binding: Binding,
    status: u16,
    retry_after: Option<Duration>,
    body: &[u8],
) -> Result<String, CallError> {
    let refused = |code: Option<i32>, text: String| {
        let text = text.chars().take(ERROR_TEXT_MAX).collect();
        CallError::Refused(RemoteError { status, code, text, retry_after })
    };
    let json = match ijson::read(body) {
        Ok(json) => json,
        Err(_) if status != 200 => return Err(refused(None, String::new())),
        Err(bad) => return Err(CallError::Malformed(format!("not valid JSON: {bad}"))),
    };
    if let Some(error) = json.get("error") {
        let (code, text) = read_error(error);
        return Err(refused(code, text));
    }
    if !(200..300).contains(&status) {
        return Err(refused(None, String::new()));
    }
    match binding {
        Binding::HttpJson => Ok(json.raw().to_owned()),
        Binding::JsonRpc => match json.get("result") {
            Some(result) => Ok(result.raw().to_owned()),
            None => Err(CallError::Malformed("it has neither a result nor an error".to_owned())),
        },
    }
}

/// The code and the text of an error in either binding.
fn read_error(error: &Json<'_>) -> (Option<i32>, String) {
    let text = match error.get("message").map(Json::value) {
        Some(JsonValue::String(text)) => text.clone().into_owned(),
        _ => String::new(),
    };
    let code = match error.get("code").map(Json::value) {
        Some(JsonValue::Number(digits)) => digits.parse::<i32>().ok().filter(|code| *code < 0),
        _ => None,
    };
    (code.or_else(|| code_of_reason(error)), text)
}

/// The code of an error of HTTP+JSON, by the reason in its details.
fn code_of_reason(error: &Json<'_>) -> Option<i32> {
    const CODES: [(&str, i32); 9] = [
        ("TASK_NOT_FOUND", -32001),
        ("TASK_NOT_CANCELABLE", -32002),
        ("UNSUPPORTED_OPERATION", -32004),
        ("CONTENT_TYPE_NOT_SUPPORTED", -32005),
        ("EXTENSION_SUPPORT_REQUIRED", -32008),
        ("VERSION_NOT_SUPPORTED", -32009),
        ("INVALID_PARAMS", -32602),
        ("METHOD_NOT_FOUND", -32601),
        ("INVALID_REQUEST", -32600),
    ];
    let JsonValue::Array(details) = error.get("details")?.value() else { return None };
    let reason = details.iter().find_map(|detail| match detail.get("reason")?.value() {
        JsonValue::String(reason) => Some(reason.clone().into_owned()),
        _ => None,
    })?;
    CODES.iter().find(|(name, _)| *name == reason).map(|(_, code)| *code)
}

impl RemoteError {
    /// For an operation that the version or the binding lacks.
    fn no_such_operation() -> Self {
        let text = "this version has no such operation".to_owned();
        Self { status: 200, code: Some(-32601), text, retry_after: None }
    }
}

/// A stream of a task's events.
pub struct RemoteStream {
    /// `None` for an answer that was no stream, and after an error.
    response: Option<StreamingResponse>,
    parser: sse::Parser,
    /// When the last bytes came.
    heard: Instant,
    /// The request was accepted: an error that comes now is not its answer.
    has_begun: bool,
    /// What was read and not returned yet, in order. An error is the last.
    events: VecDeque<Result<StreamEvent, CallError>>,
    interface: Interface,
}

impl RemoteStream {
    /// The next event; `None` at the end of the stream. An error ends the stream.
    pub async fn next(&mut self) -> Result<Option<StreamEvent>, CallError> {
        loop {
            if let Some(next) = self.events.pop_front() {
                return next.map(Some);
            }
            let Some(response) = &mut self.response else { return Ok(None) };
            let Some(chunk) = response.next_chunk().await? else { return Ok(None) };
            self.heard = Instant::now();
            let mut frames = Vec::new();
            let parsed = self.parser.push(&chunk, &mut frames);
            let too_long = parsed.err().map(|long| CallError::TooLarge(long.to_string()));
            let read = frames.iter().try_for_each(|frame| self.read_frame(frame));
            if let Err(error) = read.and(too_long.map_or(Ok(()), Err)) {
                self.events.push_back(Err(error));
                self.response = None;
            }
        }
    }

    /// Whether bytes came lately, for example comments that keep the connection open.
    pub fn is_alive(&self, within: Duration) -> bool {
        self.heard.elapsed() < within
    }

    /// Reads a frame and keeps its event.
    fn read_frame(&mut self, frame: &sse::Event) -> Result<(), CallError> {
        if frame.data.trim().is_empty() {
            return Ok(());
        }
        let status = if frame.event == "error" { 500 } else { 200 };
        let Interface { binding, version, .. } = self.interface;
        let event = read_result(binding, status, None, frame.data.as_bytes())
            .and_then(|result| read_event(&result, version));
        match event {
            Ok(event) => {
                self.has_begun = true;
                self.events.extend(event.map(Ok));
                Ok(())
            }
            Err(error) if self.has_begun => {
                Err(CallError::NoAnswer(format!("its stream broke off: {error}")))
            }
            Err(error) => Err(error),
        }
    }
}

/// Reads an event, or the result of a send. An event with a state that is unknown says nothing.
pub fn read_event(text: &str, version: Version) -> Result<Option<StreamEvent>, CallError> {
    read_with(text, |json, wrong| StreamEvent::read(json, version, wrong))
}

/// Reads a task.
pub fn read_task(text: &str, version: Version) -> Result<Option<Task>, CallError> {
    read_with(text, |json, wrong| Task::read(json, "task", version, wrong))
}

fn read_with<T>(
    text: &str,
    read: impl FnOnce(&Json<'_>, &mut Violations) -> Option<T>,
) -> Result<Option<T>, CallError> {
    let json = ijson::read(text.as_bytes());
    let json = json.map_err(|bad| CallError::Malformed(format!("not valid JSON: {bad}")))?;
    let mut wrong = Violations::new();
    let value = read(&json, &mut wrong);
    wrong.retain(|one| !is_harmless(one));
    if wrong.iter().any(|one| one.field.ends_with("state")) {
        return Ok(None);
    }
    match wrong.first() {
        None => Ok(value),
        Some(Violation { field, description }) => {
            Err(CallError::Malformed(format!("{field} {description}")))
        }
    }
}

/// Whether what is wrong with an event does not matter to the hub.
fn is_harmless(wrong: &Violation) -> bool {
    let field = wrong.field.as_str();
    let is_required = wrong.description == "is required";
    field.ends_with(".timestamp")
        || field.ends_with("essage.parts") && wrong.description.contains("at least one")
        || (field.ends_with(".messageId") || field.ends_with(".artifactId")) && is_required
}

/// The tasks of a list, and where the next page begins.
pub struct RemotePage {
    pub tasks: Vec<Task>,
    pub next: Option<String>,
}

/// Reads a page of a list of tasks. A task that cannot be read is left out.
pub fn read_page(text: &str, version: Version) -> Result<RemotePage, CallError> {
    let json = ijson::read(text.as_bytes());
    let json = json.map_err(|bad| CallError::Malformed(format!("not valid JSON: {bad}")))?;
    let mut wrong = Violations::new();
    let Some(r) = Reader::new(&json, "", &mut wrong) else {
        return Err(CallError::Malformed("it is no list of tasks".to_owned()));
    };
    let items = r.list("tasks", &mut wrong);
    let tasks = items.into_iter().filter_map(|(item, place)| {
        let mut wrong = Violations::new();
        Task::read(item, &place, version, &mut wrong)
    });
    let next = r.text("nextPageToken", &mut wrong).filter(|token| !token.is_empty());
    Ok(RemotePage { tasks: tasks.collect(), next })
}

//! A connection to a server of either era.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use rialto_protocols::kit::object::ObjectWriter;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::era::{self, Era, NEWEST, NEWEST_OLD};
use super::http::{HttpMessage, HttpServer};
use super::message::{self, McpError, Request, UNSUPPORTED_VERSION};
use super::news::{self, note_change};
use super::stdio::{ServerCommand, StdioServer};
use super::tool::{Tool, ToolResult};
use super::{META_PREFIX, TASKS_EXTENSION, task};

/// How long a server may take until it is open: some are downloaded first.
const OPEN_TIME_MAX: Duration = Duration::from_secs(180);
/// How long to wait for the answer of a server of the new era before one of the old era is assumed.
const PROBE_TIME: Duration = Duration::from_secs(10);
/// How long a list may take.
const LIST_TIME_MAX: Duration = Duration::from_secs(60);
/// Maximum number of pages of one list.
const PAGES_MAX: usize = 1_000;
/// How long a request may take whose result does not matter.
const DETACHED_TIME_MAX: Duration = Duration::from_secs(10);
const NAME: &str = "rialto";

/// An open server. Clones share it.
#[derive(Clone)]
pub struct Connection(Arc<Inner>);

struct Inner {
    transport: Transport,
    opened: OpenedServer,
    /// How often the server said that its tools have changed.
    changes: watch::Sender<u64>,
    /// Whether a server at a URL was found gone.
    gone: watch::Receiver<bool>,
    /// Reads the news; ends with the connection.
    _tasks: JoinSet<()>,
}

/// How a server is reached.
#[derive(Clone)]
pub(super) enum Transport {
    Stdio(Arc<StdioServer>),
    Http(HttpServer),
}

/// What a server said when it was opened.
#[derive(Clone, Debug)]
struct OpenedServer {
    era: Era,
    name: Option<String>,
    tells_changes: bool,
}

/// What a server reports about a call before its result.
#[derive(Clone, Debug, PartialEq)]
pub enum CallEvent {
    /// How far it is: a fraction if the total is known, and what it does.
    Progress(Option<f64>, Option<String>),
    /// It was asked and still works, and perhaps on what.
    Working(Option<String>),
}

/// A notification that belongs to a request.
pub(super) struct Note<'a> {
    pub(super) method: &'a str,
    pub(super) params: &'a str,
}

impl Connection {
    /// Starts a command and opens the server that it is.
    pub async fn start(command: &ServerCommand) -> Result<Self, McpError> {
        let changes = watch::Sender::new(0);
        let server = Arc::new(StdioServer::start(command, changes.clone())?);
        let opened = Self::open(Transport::Stdio(Arc::clone(&server)), changes).await;
        if opened.is_err() {
            server.close().await;
        }
        opened
    }

    /// Opens a server at a URL.
    pub async fn connect(server: &HttpServer) -> Result<Self, McpError> {
        server.forget_session();
        Self::open(Transport::Http(server.clone()), watch::Sender::new(0)).await
    }

    async fn open(transport: Transport, changed: watch::Sender<u64>) -> Result<Self, McpError> {
        let too_long = || McpError::NotSent("the server does not answer".to_owned());
        let opened =
            timeout(OPEN_TIME_MAX, transport.negotiate()).await.map_err(|_| too_long())??;
        let (lost, gone) = watch::channel(false);
        let mut tasks = JoinSet::new();
        if opened.tells_changes {
            let transport = transport.clone();
            match opened.era {
                Era::New => drop(tasks.spawn(news::listen(transport, changed.clone(), lost))),
                Era::Old => {
                    if let Transport::Http(server) = transport {
                        tasks.spawn(news::read_stream(server, changed.clone(), lost));
                    }
                }
            }
        }
        Ok(Self(Arc::new(Inner { transport, opened, changes: changed, gone, _tasks: tasks })))
    }

    /// The server's era.
    pub fn era(&self) -> Era {
        self.0.opened.era
    }

    /// What the server calls itself.
    pub fn server_name(&self) -> Option<&str> {
        self.0.opened.name.as_deref()
    }

    /// Whether both are the same connection.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    pub(super) fn is_http(&self) -> bool {
        matches!(self.0.transport, Transport::Http(_))
    }

    /// Counts the news that the tools have changed.
    pub fn watch_changes(&self) -> watch::Receiver<u64> {
        self.0.changes.subscribe()
    }

    /// Waits until the server's process has ended, or until a server at a URL that tells news cannot be
    /// reached any more.
    pub async fn ended(&self) -> String {
        match &self.0.transport {
            Transport::Stdio(server) => server.ended().await,
            Transport::Http(server) => {
                let mut gone = self.0.gone.clone();
                // Without news, only the next call notices that the server is gone.
                if gone.wait_for(|gone| *gone).await.is_err() {
                    std::future::pending::<()>().await;
                }
                format!("{} cannot be reached", server.url())
            }
        }
    }

    /// Ends the server's process, or its session.
    pub async fn close(&self) {
        match &self.0.transport {
            Transport::Stdio(server) => server.close().await,
            Transport::Http(server) => server.close().await,
        }
    }

    /// All tools, and why others were left out.
    pub async fn list_tools(&self) -> Result<(Vec<Tool>, Vec<String>), McpError> {
        let too_long = || McpError::Lost("the server does not list its tools".to_owned());
        timeout(LIST_TIME_MAX, self.read_tool_pages()).await.map_err(|_| too_long())?
    }

    async fn read_tool_pages(&self) -> Result<(Vec<Tool>, Vec<String>), McpError> {
        #[derive(Deserialize)]
        struct Page<'a> {
            #[serde(borrow)]
            tools: Vec<&'a RawValue>,
            #[serde(rename = "nextCursor")]
            next_cursor: Option<String>,
        }
        let (mut tools, mut left_out): (Vec<Tool>, Vec<String>) = Default::default();
        let mut cursor: Option<String> = None;
        for _ in 0..PAGES_MAX {
            let params = ObjectWriter::new().maybe_text("cursor", cursor.as_deref()).finish();
            let text = self.request(Request::new("tools/list", params), &mut |_| {}).await?;
            let page: Page<'_> = serde_json::from_str(&text).map_err(|error| {
                McpError::Unreadable(format!("the list of tools cannot be read: {error}"))
            })?;
            for tool in page.tools {
                match Tool::read(tool.get()) {
                    Ok(tool) if tools.iter().any(|other| other.name == tool.name) => {
                        left_out.push(format!("tool {} is listed twice", tool.name));
                    }
                    Ok(tool) => tools.push(tool),
                    Err(why) => left_out.push(why),
                }
            }
            match page.next_cursor {
                Some(next) if cursor.as_ref() != Some(&next) => cursor = Some(next),
                _ => break,
            }
        }
        Ok((tools, left_out))
    }

    /// Calls a tool. `arguments` is a JSON object, as text. Dropping the future cancels the call.
    pub async fn call_tool(
        &self,
        tool: &Tool,
        arguments: &str,
        on_event: &mut (dyn FnMut(CallEvent) + Send),
    ) -> Result<ToolResult, McpError> {
        let params = ObjectWriter::new().text("name", &tool.name).raw("arguments", arguments);
        let mut request =
            Request::new("tools/call", params.finish()).header("Mcp-Name", &tool.name);
        for (name, value) in tool.headers_for(arguments) {
            request = request.header(name, &value);
        }
        let mut on_note = |note: Note<'_>| {
            if note.method == "notifications/progress" {
                on_event(read_progress(note.params));
            }
        };
        let text = self.request(request, &mut on_note).await?;
        match result_type(&text).as_ref() {
            "complete" => ToolResult::read(&text),
            "task" => {
                let result = task::follow(self, &text, on_event).await?;
                ToolResult::read(&result)
            }
            "input_required" => Err(McpError::InputRequired),
            other => {
                Err(McpError::Unreadable(format!("the result is of an unknown type: {other}")))
            }
        }
    }

    /// Sends a request and waits for its result: JSON text.
    pub(super) async fn request(
        &self,
        request: Request,
        on_note: &mut (dyn FnMut(Note<'_>) + Send),
    ) -> Result<String, McpError> {
        let Inner { transport, opened, changes, .. } = &*self.0;
        let on_note = &mut |note: Note<'_>| {
            // Servers of the old era tell it wherever a stream is open.
            note_change(note.method, changes);
            on_note(note);
        };
        match transport.exchange(&request, opened.era, on_note).await {
            Err(McpError::SessionOver) => {
                // The server has forgotten us and did nothing: open again, and ask again.
                if let Transport::Http(server) = transport {
                    server.forget_session();
                }
                transport.initialize().await?;
                transport.exchange(&request, opened.era, on_note).await
            }
            result => result,
        }
    }

    /// Sends a request whose result does not matter.
    pub(super) fn send_detached(&self, request: Request) {
        let request = Request { is_cancellable: false, ..request };
        let (transport, era) = (self.0.transport.clone(), self.0.opened.era);
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                let mut ignore = |_: Note<'_>| {};
                let answer = transport.exchange(&request, era, &mut ignore);
                let _ = timeout(DETACHED_TIME_MAX, answer).await;
            });
        }
    }
}

impl Transport {
    /// Finds out the server's era. `server/discover` comes first. A server that does not know it, or
    /// says nothing for a while, is opened with `initialize`.
    async fn negotiate(&self) -> Result<OpenedServer, McpError> {
        let discover = self.discover();
        tokio::pin!(discover);
        let answer = tokio::select! {
            answer = &mut discover => answer,
            () = sleep(PROBE_TIME) => {
                // A server that was slow to start may still answer the first question.
                return tokio::select! {
                    Ok(opened) = &mut discover => Ok(opened),
                    opened = self.initialize() => opened,
                };
            }
        };
        match answer {
            Ok(opened) => Ok(opened),
            Err(McpError::Server(error)) if error.code == UNSUPPORTED_VERSION => {
                let offers_old = error
                    .data
                    .as_deref()
                    .is_none_or(|data| OLD_OFFERED.iter().any(|version| data.contains(version)));
                if offers_old { self.initialize().await } else { Err(McpError::Server(error)) }
            }
            Err(McpError::Lost(why)) if matches!(self, Self::Stdio(_)) => Err(McpError::Lost(why)),
            // A server that cannot be reached is of no era.
            Err(McpError::NotSent(why)) => Err(McpError::NotSent(why)),
            Err(_) => self.initialize().await,
        }
    }

    async fn discover(&self) -> Result<OpenedServer, McpError> {
        #[derive(Deserialize)]
        struct Discovered {
            #[serde(rename = "supportedVersions")]
            versions: Vec<String>,
            #[serde(default)]
            capabilities: Capabilities,
            #[serde(rename = "serverInfo")]
            info: Option<ServerInfo>,
            #[serde(rename = "_meta", default)]
            meta: ResultMeta,
        }
        let request = Request { is_cancellable: false, ..Request::new("server/discover", "{}") };
        let text = self.exchange(&request, Era::New, &mut |_| {}).await?;
        let found: Discovered = serde_json::from_str(&text).map_err(|error| {
            McpError::Unreadable(format!("the answer to server/discover is unreadable: {error}"))
        })?;
        if !found.versions.iter().any(|version| version == NEWEST) {
            return Err(McpError::Unreadable("the server does not offer the new era".to_owned()));
        }
        let name = found.info.or(found.meta.info).and_then(|info| info.name);
        let tells_changes = found.capabilities.tells_changes();
        Ok(OpenedServer { era: Era::New, name, tells_changes })
    }

    async fn initialize(&self) -> Result<OpenedServer, McpError> {
        #[derive(Deserialize)]
        struct Initialized {
            #[serde(rename = "protocolVersion")]
            version: String,
            #[serde(default)]
            capabilities: Capabilities,
            #[serde(rename = "serverInfo")]
            info: Option<ServerInfo>,
        }
        let params = ObjectWriter::new()
            .text("protocolVersion", NEWEST_OLD)
            .raw("capabilities", "{}")
            .raw("clientInfo", &client_info())
            .finish();
        let request = Request { is_cancellable: false, ..Request::new("initialize", params) };
        let text = self.exchange(&request, Era::Old, &mut |_| {}).await?;
        let found: Initialized = serde_json::from_str(&text).map_err(|error| {
            McpError::Unreadable(format!("the answer to initialize is unreadable: {error}"))
        })?;
        let Some(version) = era::known_old(&found.version) else {
            let why = format!("the server speaks the unknown version {}", found.version);
            return Err(McpError::Unreadable(why));
        };
        match self {
            Self::Stdio(server) => server.notify("notifications/initialized", None),
            Self::Http(server) => {
                server.set_version(version);
                server.send(message::notification("notifications/initialized", None)).await;
            }
        }
        let name = found.info.and_then(|info| info.name);
        let tells_changes = found.capabilities.tells_changes();
        Ok(OpenedServer { era: Era::Old, name, tells_changes })
    }

    /// Sends a request and waits for its result. What comes before it goes to `on_note`.
    pub(super) async fn exchange(
        &self,
        request: &Request,
        era: Era,
        on_note: &mut (dyn FnMut(Note<'_>) + Send),
    ) -> Result<String, McpError> {
        let params = |id| Some(with_meta(request, era, id));
        match self {
            Self::Stdio(server) => {
                let progress = |params: &str| {
                    on_note(Note { method: "notifications/progress", params });
                };
                server.begin(request, params)?.response(progress).await
            }
            Self::Http(server) => {
                let mut call = server.begin(request, stated_version(era), params).await?;
                loop {
                    match call.next().await? {
                        HttpMessage::Result(result) => return Ok(result),
                        HttpMessage::Notification { method, params } => {
                            on_note(Note { method: &method, params: &params });
                        }
                    }
                }
            }
        }
    }
}

/// Versions of the old era, as an error of the new one may list them.
const OLD_OFFERED: [&str; 3] = [NEWEST_OLD, "2025-06-18", "2025-03-26"];

#[derive(Default, Deserialize)]
struct Capabilities {
    tools: Option<ToolsCapability>,
}

#[derive(Deserialize)]
struct ToolsCapability {
    #[serde(rename = "listChanged", default)]
    list_changed: bool,
}

impl Capabilities {
    fn tells_changes(&self) -> bool {
        self.tools.as_ref().is_some_and(|tools| tools.list_changed)
    }
}

#[derive(Deserialize)]
struct ServerInfo {
    name: Option<String>,
}

#[derive(Default, Deserialize)]
struct ResultMeta {
    #[serde(rename = "io.modelcontextprotocol/serverInfo")]
    info: Option<ServerInfo>,
}

/// The version that a request states in its headers.
fn stated_version(era: Era) -> Option<&'static str> {
    (era == Era::New).then_some(NEWEST)
}

fn client_info() -> String {
    let info = ObjectWriter::new().text("name", NAME);
    info.text("version", env!("CARGO_PKG_VERSION")).finish()
}

/// The parameters of a request with its `_meta`: the token for its progress, and in the new era what
/// this client is and can do. It offers tasks, and no sampling, roots or elicitation.
fn with_meta(request: &Request, era: Era, id: i64) -> String {
    let mut meta = ObjectWriter::new();
    if era == Era::New {
        let tasks = ObjectWriter::new().raw(TASKS_EXTENSION, "{}").finish();
        let capabilities = ObjectWriter::new().raw("extensions", &tasks).finish();
        meta = meta
            .text(&format!("{META_PREFIX}protocolVersion"), NEWEST)
            .raw(&format!("{META_PREFIX}clientInfo"), &client_info())
            .raw(&format!("{META_PREFIX}clientCapabilities"), &capabilities);
    }
    if request.method == "tools/call" {
        meta = meta.integer("progressToken", id);
    }
    let params = request.params.as_deref().unwrap_or("{}").trim();
    let meta = meta.finish();
    if meta == "{}" {
        return params.to_owned();
    }
    // The parameters were written by this client, so they are an object without `_meta`.
    let members = params.trim_start_matches('{').trim_end();
    let comma = if members == "}" { "" } else { "," };
    format!(r#"{{"_meta":{meta}{comma}{members}"#)
}

/// `resultType`; results without it are complete.
fn result_type(text: &str) -> Cow<'_, str> {
    #[derive(Deserialize)]
    struct Typed<'a> {
        #[serde(borrow, rename = "resultType")]
        result_type: Option<Cow<'a, str>>,
    }
    let typed = serde_json::from_str::<Typed<'_>>(text).ok();
    typed.and_then(|typed| typed.result_type).unwrap_or(Cow::Borrowed("complete"))
}

fn read_progress(params: &str) -> CallEvent {
    #[derive(Deserialize)]
    struct Progress {
        progress: Option<f64>,
        total: Option<f64>,
        message: Option<String>,
    }
    match serde_json::from_str::<Progress>(params) {
        Ok(Progress { progress, total, message }) => {
            let total = total.filter(|total| *total > 0.0);
            let fraction = progress.zip(total).map(|(progress, total)| progress / total);
            CallEvent::Progress(fraction, message)
        }
        Err(_) => CallEvent::Progress(None, None),
    }
}

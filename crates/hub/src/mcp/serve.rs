//! Serves a catalogue: reads a message, calls what it asks for, and answers in its era.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use http::{HeaderMap, StatusCode};
use rialto_protocols::kit::ijson;
use rialto_protocols::kit::object::ObjectWriter;

use super::catalogue::{Catalogue, ResultFuture, ServerInfo};
use super::wire::error::{INVALID_REQUEST, RpcError};
use super::wire::message::{ClientRequest, Message};
use super::wire::method::Method;
use super::wire::progress::Outgoing;
use super::wire::response::{AcceptedForms, Reply, ReplyFuture, respond};
use super::wire::result::{CacheHint, ResultObject, as_text, json_array, json_string};
use super::wire::version::{self, Era};
use crate::telemetry::RequestScope;

/// How often a stream that waits for a response shows that it is alive.
const COMMENT_EVERY: Duration = Duration::from_secs(10);
/// The same for a stream of notifications.
const LISTENING_COMMENT_EVERY: Duration = Duration::from_secs(15);

/// What became of a request, for metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallOutcome {
    Ok,
    /// The tool says that it failed.
    ToolError,
    /// The request was wrong.
    ProtocolError,
    /// The caller hung up before there was a response.
    HungUp,
}

impl CallOutcome {
    /// Its name in metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::ToolError => "tool_error",
            Self::ProtocolError => "protocol_error",
            Self::HungUp => "hung_up",
        }
    }
}

/// What surrounds the calls of an endpoint.
pub trait CallObserver: Send + Sync + 'static {
    /// The scope of what a call logs. `trace_parent` is what the request says of its trace.
    fn scope(&self, _trace_parent: Option<&str>) -> Option<RequestScope> {
        None
    }

    /// Is told what became of each request that could be read.
    fn observe(&self, _: &ObservedCall<'_>) {}
}

/// Observes nothing.
pub struct Unobserved;

impl CallObserver for Unobserved {}

/// A request, and what became of it.
pub struct ObservedCall<'a> {
    pub method: Method,
    pub era: Era,
    /// The name of the tool, if it called one.
    pub tool: Option<&'a str>,
    pub outcome: CallOutcome,
}

/// Answers one POST.
pub async fn serve(
    catalogue: Arc<impl Catalogue>,
    headers: &HeaderMap,
    body: &[u8],
    observer: Arc<dyn CallObserver>,
) -> Response {
    let accepted = AcceptedForms::of(headers);
    if !accepted.json && !accepted.stream {
        return not_acceptable("Accept must have application/json or text/event-stream");
    }
    let (outgoing, messages) = Outgoing::new();
    let request = match Message::read(body, headers, outgoing) {
        Ok(Message::Request(request)) => *request,
        Ok(Message::Notification) => {
            let mut response = Response::new(Body::empty());
            *response.status_mut() = StatusCode::ACCEPTED;
            return response;
        }
        Err(refused) => {
            let message = refused.error.write(refused.id.as_deref());
            return Reply { status: refused.status, message }.into_json_response();
        }
    };
    let listens = request.method == Method::Listen;
    if listens && !accepted.stream {
        return not_acceptable("subscriptions/listen answers with text/event-stream alone");
    }
    let comments = if listens { LISTENING_COMMENT_EVERY } else { COMMENT_EVERY };
    respond(reply(catalogue, request, observer), messages, accepted, comments).await
}

fn not_acceptable(text: &str) -> Response {
    let error = RpcError::new(INVALID_REQUEST, format!("Invalid Request: {text}"));
    Reply { status: StatusCode::NOT_ACCEPTABLE, message: error.write(None) }.into_json_response()
}

/// Observes a request once, also if its reply is dropped half-way.
struct Observation {
    observer: Arc<dyn CallObserver>,
    method: Method,
    era: Era,
    tool: Option<String>,
    outcome: CallOutcome,
}

impl Observation {
    fn begin(observer: Arc<dyn CallObserver>, request: &ClientRequest) -> Self {
        let params = ijson::read(request.params.as_bytes()).ok();
        let params = params.filter(|_| request.method == Method::CallTool);
        let tool = params.and_then(|params| as_text(params.get("name")).map(str::to_owned));
        let (method, era, outcome) = (request.method, request.era, CallOutcome::HungUp);
        Self { observer, method, era, tool, outcome }
    }
}

impl Drop for Observation {
    fn drop(&mut self) {
        let Self { method, era, outcome, .. } = *self;
        let tool = self.tool.as_deref();
        self.observer.observe(&ObservedCall { method, era, tool, outcome });
    }
}

/// The reply to a request.
fn reply(
    catalogue: Arc<impl Catalogue>,
    request: ClientRequest,
    observer: Arc<dyn CallObserver>,
) -> ReplyFuture {
    let observation = Observation::begin(observer.clone(), &request);
    let scope = observer.scope(request.trace_parent.as_deref());
    Box::pin(async move {
        // Moved here whole, so that it is dropped with the reply.
        let mut observation = observation;
        let (id, era, method) = (request.id.clone(), request.era, request.method);
        let server = catalogue.server();
        let result = match method {
            Method::Initialize => Ok(initialize(&*catalogue, &request.params)),
            Method::Ping => Ok(ResultObject::default()),
            Method::Discover => Ok(discover(&*catalogue)),
            _ => within(scope, catalogue.call(request)).await,
        };
        observation.outcome = match &result {
            Ok(result) if result.is_error() => CallOutcome::ToolError,
            Ok(_) => CallOutcome::Ok,
            Err(_) => CallOutcome::ProtocolError,
        };
        match result {
            Ok(result) => Reply {
                status: StatusCode::OK,
                message: result.write(&id, era, &name_and_version(server)),
            },
            Err(error) => Reply { status: error.status(era), message: error.write(Some(&id)) },
        }
    })
}

/// Runs a call in the scope of its request. A stream goes on after the edge has answered.
async fn within(scope: Option<RequestScope>, call: ResultFuture) -> Result<ResultObject, RpcError> {
    let Some(mut scope) = scope else { return call.await };
    let mut call = pin!(call);
    poll_fn(|context| scope.during(|| call.as_mut().poll(context))).await
}

pub(super) fn name_and_version(server: ServerInfo) -> String {
    ObjectWriter::new().text("name", server.name).text("version", server.version).finish()
}

/// Answers the asked version if it is offered, else the newest of its era.
fn initialize(catalogue: &impl Catalogue, params: &str) -> ResultObject {
    let params = ijson::read(params.as_bytes()).ok();
    let asked = params.as_ref().and_then(|params| as_text(params.get("protocolVersion")));
    let version =
        asked.filter(|asked| version::is_offered_old(asked)).unwrap_or(version::NEWEST_OLD);
    let server = catalogue.server();
    let info = ObjectWriter::new()
        .text("name", server.name)
        .text("title", server.title)
        .text("version", server.version)
        .finish();
    ResultObject::default()
        .text("protocolVersion", version)
        .raw("capabilities", catalogue.capabilities(Era::Old))
        .raw("serverInfo", info)
        .text("instructions", catalogue.instructions())
}

/// What the server is, and what it can do.
pub(super) fn discover(catalogue: &impl Catalogue) -> ResultObject {
    ResultObject::default()
        .raw("supportedVersions", json_array(version::OFFERED.map(json_string)))
        .raw("capabilities", catalogue.capabilities(Era::New))
        .text("instructions", catalogue.instructions())
        .cached(CacheHint::CATALOGUE)
}

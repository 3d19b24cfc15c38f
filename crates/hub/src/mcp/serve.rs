//! Serves a catalogue: reads a message, calls what it asks for, and answers in its era.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use http::{HeaderMap, StatusCode};
use rialto_protocols::kit::ijson;
use rialto_protocols::kit::object::ObjectWriter;

use super::catalogue::{Catalogue, ServerInfo};
use super::wire::error::{INVALID_REQUEST, RpcError};
use super::wire::message::{ClientRequest, Message};
use super::wire::method::Method;
use super::wire::progress::Outgoing;
use super::wire::response::{AcceptedForms, Reply, ReplyFuture, respond};
use super::wire::result::{CacheHint, ResultObject, as_text, json_array, json_string};
use super::wire::version::{self, Era};

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
}

/// Is told what became of each request that could be read.
pub type CallObserver = Arc<dyn Fn(&ObservedCall<'_>) + Send + Sync>;

/// A request, and what became of it.
pub struct ObservedCall<'a> {
    pub method: Method,
    pub era: Era,
    pub params: &'a str,
    pub outcome: CallOutcome,
}

/// Answers one POST.
pub async fn serve(
    catalogue: Arc<impl Catalogue>,
    headers: &HeaderMap,
    body: &[u8],
    observer: CallObserver,
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

/// The reply to a request.
fn reply(
    catalogue: Arc<impl Catalogue>,
    request: ClientRequest,
    observer: CallObserver,
) -> ReplyFuture {
    Box::pin(async move {
        let (id, era, method) = (request.id.clone(), request.era, request.method);
        let params = request.params.clone();
        let server = catalogue.server();
        let result = match method {
            Method::Initialize => Ok(initialize(&*catalogue, &params)),
            Method::Ping => Ok(ResultObject::default()),
            Method::Discover => Ok(discover(&*catalogue)),
            _ => catalogue.call(request).await,
        };
        let outcome = match &result {
            Ok(result) if result.is_error() => CallOutcome::ToolError,
            Ok(_) => CallOutcome::Ok,
            Err(_) => CallOutcome::ProtocolError,
        };
        observer(&ObservedCall { method, era, params: &params, outcome });
        match result {
            Ok(result) => Reply {
                status: StatusCode::OK,
                message: result.write(&id, era, &name_and_version(server)),
            },
            Err(error) => Reply { status: error.status(era), message: error.write(Some(&id)) },
        }
    })
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

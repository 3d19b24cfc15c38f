//! Reads a message and what its headers say, and decides which era it belongs to.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderMap, StatusCode};
use rialto_protocols::kit::ijson::{self, Json, JsonValue};

use super::error::{HEADER_MISMATCH, INVALID_REQUEST, PARSE_ERROR, RpcError, shorten};
use super::method::Method;
use super::progress::{Outgoing, Progress};
use super::result::as_text;
use super::version::{self, Era};
use super::{META_PREFIX, TASKS_EXTENSION};

const VERSION_HEADER: &str = "mcp-protocol-version";
const METHOD_HEADER: &str = "mcp-method";
const NAME_HEADER: &str = "mcp-name";
/// What surrounds a value of a header that is not plain text.
const ENCODED: (&str, &str) = ("=?base64?", "?=");

/// What a client can do, as this request says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClientCapabilities {
    /// It can show its user a form.
    pub elicitation: bool,
    /// It understands results that are tasks.
    pub tasks: bool,
}

/// A request that was read.
#[derive(Debug)]
pub struct ClientRequest {
    /// JSON text.
    pub id: String,
    pub method: Method,
    /// JSON text of an object.
    pub params: String,
    pub era: Era,
    pub client: ClientCapabilities,
    /// The caller's place in a trace, from `_meta`.
    pub trace_parent: Option<String>,
    pub progress: Progress,
    /// For notifications other than progress.
    pub outgoing: Outgoing,
}

/// What a body holds.
#[derive(Debug)]
pub enum Message {
    Request(Box<ClientRequest>),
    /// Nothing is answered.
    Notification,
}

/// Why a message is refused.
#[derive(Debug)]
pub struct MessageError {
    pub error: RpcError,
    /// JSON text; `None` if it could not be read.
    pub id: Option<String>,
    pub status: StatusCode,
}

impl Message {
    /// Reads a body. What the request sends before its response goes to `outgoing`.
    pub fn read(
        body: &[u8],
        headers: &HeaderMap,
        outgoing: Outgoing,
    ) -> Result<Self, MessageError> {
        let json = ijson::read(body)
            .map_err(|bad| unreadable(PARSE_ERROR, format!("Parse error: {bad}")))?;
        let invalid = |text: &str| unreadable(INVALID_REQUEST, format!("Invalid Request: {text}"));
        if as_text(json.get("jsonrpc")) != Some("2.0") {
            return Err(invalid("send one JSON-RPC 2.0 message, no batch"));
        }
        let Some(method) = as_text(json.get("method")) else {
            let is_response = json.get("result").or(json.get("error")).is_some();
            return Err(invalid(if is_response {
                "nothing here waits for a response"
            } else {
                "method must be a string"
            }));
        };
        let Some(id) = json.get("id") else { return Ok(Self::Notification) };
        let id = read_id(id).ok_or_else(|| invalid("id must be a string or an integer"))?;
        let mut era = Era::Old;
        read_request(&json, method, id, headers, outgoing, &mut era)
            .map(|request| Self::Request(Box::new(request)))
            .map_err(|error| {
                let status = match error.code {
                    INVALID_REQUEST => StatusCode::BAD_REQUEST,
                    _ => error.status(era),
                };
                MessageError { error, id: Some(id.to_owned()), status }
            })
    }
}

fn unreadable(code: i64, message: String) -> MessageError {
    MessageError { error: RpcError::new(code, message), id: None, status: StatusCode::BAD_REQUEST }
}

/// A string or an integer, as JSON text.
fn read_id<'a>(id: &Json<'a>) -> Option<&'a str> {
    match id.value() {
        JsonValue::String(_) => Some(id.raw()),
        JsonValue::Number(digits) => {
            let is_integer = digits.bytes().all(|byte| byte == b'-' || byte.is_ascii_digit());
            is_integer.then_some(id.raw())
        }
        _ => None,
    }
}

/// `era` is also for the status of an error.
fn read_request(
    json: &Json<'_>,
    method: &str,
    id: &str,
    headers: &HeaderMap,
    outgoing: Outgoing,
    era: &mut Era,
) -> Result<ClientRequest, RpcError> {
    let params = json.get("params");
    if params.is_some_and(|params| !matches!(params.value(), JsonValue::Object(_))) {
        return Err(RpcError::bad_meta("Invalid params: params must be an object"));
    }
    let meta = params.and_then(|params| params.get("_meta"));
    let meta_member = |name: &str| meta.and_then(|meta| meta.get(&format!("{META_PREFIX}{name}")));
    let version_header = header(headers, VERSION_HEADER);
    let is_new = meta_member("protocolVersion").is_some()
        || version_header.as_deref().is_some_and(version::is_new)
        || method == "server/discover";
    let mut client = ClientCapabilities::default();
    if is_new {
        *era = Era::New;
        let stated =
            as_text(meta_member("protocolVersion")).ok_or_else(|| lacks("protocolVersion"))?;
        check_header("MCP-Protocol-Version", version_header.as_deref(), stated)?;
        if !version::is_offered(stated) || !version::is_new(stated) {
            return Err(RpcError::unsupported_version(stated));
        }
        let capabilities = meta_member("clientCapabilities");
        let capabilities = capabilities
            .filter(|json| matches!(json.value(), JsonValue::Object(_)))
            .ok_or_else(|| lacks("clientCapabilities"))?;
        client = read_capabilities(capabilities);
        check_header("Mcp-Method", header(headers, METHOD_HEADER).as_deref(), method)?;
    } else if let Some(stated) = version_header.filter(|stated| !version::is_offered_old(stated)) {
        return Err(RpcError::new(
            INVALID_REQUEST,
            format!(
                "Invalid Request: MCP-Protocol-Version '{}' is not offered; offered are {}",
                shorten(&stated),
                version::OFFERED.join(", ")
            ),
        ));
    }
    let known =
        Method::parse(method, *era).ok_or_else(|| RpcError::unknown_method(shorten(method)))?;
    if let (Era::New, Some(member)) = (*era, known.named_by()) {
        let named = as_text(params.and_then(|params| params.get(member)));
        let named = named.ok_or_else(|| {
            RpcError::invalid_params(format!("Invalid params: {member} must be a string"))
        })?;
        check_header("Mcp-Name", header(headers, NAME_HEADER).as_deref(), named)?;
    }
    let token = meta.and_then(|meta| meta.get("progressToken")).and_then(read_id);
    Ok(ClientRequest {
        id: id.to_owned(),
        method: known,
        params: params.map_or("{}", Json::raw).to_owned(),
        era: *era,
        client,
        trace_parent: as_text(meta.and_then(|meta| meta.get("traceparent"))).map(str::to_owned),
        progress: Progress::new(token.map(str::to_owned), outgoing.clone()),
        outgoing,
    })
}

fn lacks(name: &str) -> RpcError {
    RpcError::bad_meta(format!("Invalid params: _meta lacks {META_PREFIX}{name}"))
}

fn read_capabilities(json: &Json<'_>) -> ClientCapabilities {
    let elicitation = json.get("elicitation");
    let modes = elicitation.and_then(|json| match json.value() {
        JsonValue::Object(members) => Some(members),
        _ => None,
    });
    // An object without modes means forms, as it did before there were modes.
    let form =
        |modes: &Vec<_>| modes.is_empty() || elicitation.and_then(|e| e.get("form")).is_some();
    let extension = json.get("extensions").and_then(|all| all.get(TASKS_EXTENSION));
    ClientCapabilities { elicitation: modes.is_some_and(form), tasks: extension.is_some() }
}

/// The value of a header, decoded and without surrounding spaces; `None` if it is absent or not
/// readable.
fn header(headers: &HeaderMap, name: &str) -> Option<String> {
    let text = headers.get(name)?.to_str().ok()?.trim();
    let encoded = text.strip_prefix(ENCODED.0).and_then(|rest| rest.strip_suffix(ENCODED.1));
    match encoded {
        Some(encoded) => String::from_utf8(STANDARD.decode(encoded).ok()?).ok(),
        None => Some(text.to_owned()),
    }
}

/// A header repeats a value of the body, so that a proxy need not read the body.
fn check_header(name: &str, header: Option<&str>, body: &str) -> Result<(), RpcError> {
    let mismatch = |header: &str| {
        let text =
            format!("Header mismatch: {name} is {header}, the body says '{}'", shorten(body));
        RpcError::new(HEADER_MISMATCH, text)
    };
    match header {
        Some(header) if header == body => Ok(()),
        Some(header) => Err(mismatch(&format!("'{}'", shorten(header)))),
        None => Err(mismatch("missing or unreadable")),
    }
}

#[cfg(test)]
mod tests;

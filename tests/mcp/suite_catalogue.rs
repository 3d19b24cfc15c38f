//! The conformance suite's fixtures, served by the hub's wire layer alone: a catalogue for tests.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, Method as HttpMethod, StatusCode, header};
use axum::response::{IntoResponse, Response};
use rialto_hub::mcp::catalogue::{Catalogue, ResultFuture, ServerInfo};
use rialto_hub::mcp::serve::{Unobserved, serve};
use rialto_hub::mcp::wire::error::{MISSING_CAPABILITY, RpcError};
use rialto_hub::mcp::wire::message::ClientRequest;
use rialto_hub::mcp::wire::method::Method;
use rialto_hub::mcp::wire::result::{CacheHint, ResultObject, ResultType};
use rialto_hub::mcp::wire::version::Era;
use serde_json::{Value, json};
use tokio::sync::watch;

/// One red pixel.
const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
/// A sound without samples.
const WAV: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=";
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";

/// The tools, in the order of the list.
const TOOLS: [&str; 21] = [
    "test_simple_text",
    "test_image_content",
    "test_audio_content",
    "test_embedded_resource",
    "test_multiple_content_types",
    "test_error_handling",
    "test_tool_with_progress",
    "test_logging_tool",
    "test_missing_capability",
    "test_streaming_elicitation",
    "test_trigger_tool_change",
    "test_input_required_result_elicitation",
    "test_input_required_result_sampling",
    "test_input_required_result_list_roots",
    "test_input_required_result_request_state",
    "test_input_required_result_multiple_inputs",
    "test_input_required_result_multi_round",
    "test_input_required_result_tampered_state",
    "test_input_required_result_capabilities",
    "json_schema_2020_12_tool",
    "test_reconnection",
];

/// A server on a free port of this machine; it stops when dropped.
pub struct SuiteServer {
    pub url: String,
    task: tokio::task::JoinHandle<()>,
}

impl SuiteServer {
    pub async fn start() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}/mcp", listener.local_addr().expect("an address"));
        let catalogue = Arc::new(SuiteCatalogue { changes: watch::Sender::new(0) });
        let app = Router::new().fallback(answer).with_state(catalogue);
        let task = tokio::spawn(async move {
            let _ = axum::serve(listener, app).await;
        });
        Self { url, task }
    }
}

impl Drop for SuiteServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// What the hub's edge does for `/mcp`: hosts, origins and methods.
async fn answer(
    State(catalogue): State<Arc<SuiteCatalogue>>,
    method: HttpMethod,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let is_local = |name: header::HeaderName| {
        let text = headers.get(name).map(|value| value.to_str().unwrap_or_default());
        let host = text.map(|text| text.trim_start_matches("http://"));
        let name = host.map(|host| host.rsplit_once(':').map_or(host, |(name, _)| name));
        name.is_none_or(|name| ["127.0.0.1", "localhost", "[::1]"].contains(&name))
    };
    if !is_local(header::HOST) || !is_local(header::ORIGIN) {
        return StatusCode::FORBIDDEN.into_response();
    }
    match method == HttpMethod::POST {
        true => serve(catalogue, &headers, &body, Arc::new(Unobserved)).await,
        false => StatusCode::METHOD_NOT_ALLOWED.into_response(),
    }
}

/// The fixtures.
struct SuiteCatalogue {
    /// How often the list of tools has changed.
    changes: watch::Sender<u32>,
}

type Answer = Result<ResultObject, RpcError>;

impl Catalogue for SuiteCatalogue {
    fn server(&self) -> ServerInfo {
        ServerInfo { name: "suite", title: "Suite", version: "1" }
    }

    fn instructions(&self) -> &str {
        "Fixtures of the conformance suite."
    }

    fn capabilities(&self, era: Era) -> String {
        let subscribe = if era == Era::New { json!({"subscribe": true}) } else { json!({}) };
        json!({"tools": {"listChanged": era == Era::New}, "resources": subscribe, "prompts": {},
            "completions": {}})
        .to_string()
    }

    fn call(self: Arc<Self>, request: ClientRequest) -> ResultFuture {
        Box::pin(async move {
            let params: Value = serde_json::from_str(&request.params).expect("JSON");
            let name = params["name"].as_str().unwrap_or_default().to_owned();
            match request.method {
                Method::ListTools => {
                    let tool = |name: &str| match name {
                        "json_schema_2020_12_tool" => {
                            json!({"name": name, "description": "A fixture", "inputSchema": schema()})
                        }
                        _ => json!({"name": name, "description": "A fixture",
                            "inputSchema": {"type": "object", "properties": {}}}),
                    };
                    Ok(list("tools", TOOLS.map(tool).to_vec()))
                }
                Method::CallTool => self.call_tool(&name, &params, request).await,
                Method::ListResources => Ok(list("resources", resources())),
                Method::ListResourceTemplates => {
                    let template =
                        json!({"uriTemplate": "test://template/{id}/data", "name": "data"});
                    Ok(list("resourceTemplates", vec![template]))
                }
                Method::ReadResource => {
                    read(params["uri"].as_str().unwrap_or_default(), request.era)
                }
                Method::ListPrompts => Ok(list("prompts", prompts())),
                Method::GetPrompt => prompt(&name, &params),
                Method::Complete => {
                    let none = json!({"values": [], "total": 0, "hasMore": false});
                    Ok(ResultObject::default().raw("completion", none.to_string()))
                }
                Method::Listen => self.listen(&params, &request).await,
                other => Err(RpcError::unknown_method(other.name())),
            }
        })
    }
}

impl SuiteCatalogue {
    async fn call_tool(&self, name: &str, params: &Value, mut request: ClientRequest) -> Answer {
        let can = |capability: &str| params["_meta"][CAPABILITIES].get(capability).is_some();
        let png = json!({"type": "image", "data": PNG, "mimeType": "image/png"});
        let resource = |uri: &str, kind: &str, text: &str| json!({"type": "resource", "resource": {"uri": uri, "mimeType": kind, "text": text}});
        Ok(match name {
            "test_simple_text" => text("This is a simple text response for testing."),
            "test_image_content" => content(vec![png]),
            "test_audio_content" => {
                content(vec![json!({"type": "audio", "data": WAV, "mimeType": "audio/wav"})])
            }
            "test_embedded_resource" => {
                let about = "This is an embedded resource content.";
                content(vec![resource("test://embedded-resource", "text/plain", about)])
            }
            "test_multiple_content_types" => content(vec![
                json!({"type": "text", "text": "Multiple content types test:"}),
                png,
                resource(
                    "test://mixed-content-resource",
                    "application/json",
                    r#"{"test":"data","value":123}"#,
                ),
            ]),
            "test_error_handling" => {
                text("This tool intentionally returns an error for testing").flag("isError", true)
            }
            "test_tool_with_progress" => {
                for step in ["begun", "half", "done"] {
                    request.progress.report_of(step, Some(3));
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
                text("done")
            }
            "test_missing_capability" if !can("sampling") => {
                let data = json!({"requiredCapabilities": {"sampling": {}}}).to_string();
                let error = RpcError::new(MISSING_CAPABILITY, "Missing required client capability");
                return Err(error.with_data(data));
            }
            "test_trigger_tool_change" => {
                self.changes.send_modify(|count| *count += 1);
                text("changed")
            }
            "test_streaming_elicitation" => {
                asks(json!({"name": elicit("What is your name?")}), None)
            }
            name if name.starts_with("test_input_required_result_") => {
                return self.asking_tool(name, params);
            }
            name if TOOLS.contains(&name) => text("done"),
            _ => return Err(RpcError::invalid_params(format!("Unknown tool: {name}"))),
        })
    }

    /// The tools that ask before they answer.
    fn asking_tool(&self, name: &str, params: &Value) -> Answer {
        let answers = |key: &str| params["inputResponses"][key].is_object();
        let state = params["requestState"].as_str();
        let known = ["state-1", "state-2"];
        if state.is_some_and(|state| !known.contains(&state)) {
            return Err(RpcError::invalid_params("requestState is not one of this server"));
        }
        let sampling = |question: &str| {
            let message = json!({"role": "user", "content": {"type": "text", "text": question}});
            json!({"method": "sampling/createMessage", "params": {"messages": [message], "maxTokens": 100}})
        };
        let roots = json!({"method": "roots/list", "params": {}});
        let kind = name.trim_start_matches("test_input_required_result_");
        Ok(match kind {
            "elicitation" if answers("user_name") => text("Hello!"),
            "elicitation" => asks(json!({"user_name": elicit("What is your name?")}), None),
            "sampling" if answers("capital_question") => text("Paris"),
            "sampling" => asks(json!({"capital_question": sampling("What is the capital?")}), None),
            "list_roots" if answers("client_roots") => text("roots"),
            "list_roots" => asks(json!({"client_roots": roots}), None),
            "request_state" | "tampered_state"
                if answers("confirm") && state == Some("state-1") =>
            {
                text("state-ok")
            }
            "request_state" | "tampered_state" => {
                asks(json!({"confirm": elicit("Please confirm")}), Some("state-1"))
            }
            "multiple_inputs"
                if ["user_name", "greeting", "client_roots"].iter().all(|key| answers(key)) =>
            {
                text("all")
            }
            "multiple_inputs" => {
                let all = json!({"user_name": elicit("What is your name?"),
                    "greeting": sampling("Generate a greeting"), "client_roots": roots});
                asks(all, Some("state-1"))
            }
            "multi_round" if answers("step2") && state == Some("state-2") => text("done"),
            "multi_round" if answers("step1") && state == Some("state-1") => asks(
                json!({"step2": elicit("Step 2: What is your favorite color?")}),
                Some("state-2"),
            ),
            "multi_round" => {
                asks(json!({"step1": elicit("Step 1: What is your name?")}), Some("state-1"))
            }
            _ => {
                let can = |name: &str| params["_meta"][CAPABILITIES].get(name).is_some();
                let mut asked = json!({});
                if can("sampling") {
                    asked["greeting"] = sampling("Generate a greeting");
                }
                if can("elicitation") {
                    asked["user_name"] = elicit("What is your name?");
                }
                asks(asked, None)
            }
        })
    }

    async fn listen(&self, params: &Value, request: &ClientRequest) -> Answer {
        let mut changes = self.changes.subscribe();
        let id: Value = serde_json::from_str(&request.id).expect("JSON");
        let tag = json!({SUBSCRIPTION_ID: id});
        let tools = params["notifications"]["toolsListChanged"] == true;
        let honoured = if tools { json!({"toolsListChanged": true}) } else { json!({}) };
        let acknowledged = json!({"notifications": honoured, "_meta": tag}).to_string();
        let name = "notifications/subscriptions/acknowledged";
        request.outgoing.send(name, &acknowledged).await;
        let changed = json!({"_meta": tag}).to_string();
        while changes.changed().await.is_ok() {
            if tools {
                request.outgoing.send("notifications/tools/list_changed", &changed).await;
            }
        }
        Ok(ResultObject::default())
    }
}

fn list(name: &'static str, items: Vec<Value>) -> ResultObject {
    ResultObject::default().raw(name, Value::from(items).to_string()).cached(CacheHint::CATALOGUE)
}

fn content(blocks: Vec<Value>) -> ResultObject {
    ResultObject::default().raw("content", Value::from(blocks).to_string())
}

fn text(text: &str) -> ResultObject {
    content(vec![json!({"type": "text", "text": text})])
}

/// Asks the client's user or model, and waits for the next call.
fn asks(requests: Value, state: Option<&str>) -> ResultObject {
    let result =
        ResultObject::new(ResultType::InputRequired).raw("inputRequests", requests.to_string());
    match state {
        Some(state) => result.text("requestState", state),
        None => result,
    }
}

fn elicit(message: &str) -> Value {
    let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}});
    json!({"method": "elicitation/create",
        "params": {"mode": "form", "message": message, "requestedSchema": schema}})
}

fn resources() -> Vec<Value> {
    vec![
        json!({"uri": "test://static-text", "name": "text", "mimeType": "text/plain"}),
        json!({"uri": "test://static-binary", "name": "binary", "mimeType": "image/png"}),
    ]
}

fn read(uri: &str, era: Era) -> Answer {
    let variable = uri.strip_prefix("test://template/").and_then(|rest| rest.strip_suffix("/data"));
    let found = match (uri, variable) {
        ("test://static-text", _) => json!({"uri": uri, "mimeType": "text/plain",
            "text": "This is the content of the static text resource."}),
        ("test://static-binary", _) => json!({"uri": uri, "mimeType": "image/png", "blob": PNG}),
        (_, Some(id)) => {
            let data =
                json!({"id": id, "templateTest": true, "data": format!("Data for ID: {id}")});
            json!({"uri": uri, "mimeType": "application/json", "text": data.to_string()})
        }
        _ => return Err(RpcError::resource_not_found(uri, era)),
    };
    let contents = Value::from(vec![found]).to_string();
    Ok(ResultObject::default().raw("contents", contents).cached(CacheHint::NONE))
}

fn prompts() -> Vec<Value> {
    let prompt = |name: &str, arguments: &[&str]| {
        let argument =
            |name: &&str| json!({"name": name, "description": "An argument", "required": true});
        let arguments: Vec<Value> = arguments.iter().map(argument).collect();
        json!({"name": name, "description": "A fixture", "arguments": arguments})
    };
    vec![
        prompt("test_simple_prompt", &[]),
        prompt("test_prompt_with_arguments", &["arg1", "arg2"]),
        prompt("test_prompt_with_embedded_resource", &["resourceUri"]),
        prompt("test_prompt_with_image", &[]),
        prompt("test_input_required_result_prompt", &[]),
    ]
}

fn prompt(name: &str, params: &Value) -> Answer {
    let user = |content: Value| json!({"role": "user", "content": content});
    let said = |text: String| user(json!({"type": "text", "text": text}));
    let argument = |name: &str| params["arguments"][name].as_str().unwrap_or_default().to_owned();
    let messages = match name {
        "test_simple_prompt" => vec![said("This is a simple prompt for testing.".to_owned())],
        "test_prompt_with_arguments" => vec![said(format!(
            "Prompt with arguments: arg1='{}', arg2='{}'",
            argument("arg1"),
            argument("arg2")
        ))],
        "test_prompt_with_embedded_resource" => {
            let resource = json!({"uri": argument("resourceUri"), "mimeType": "text/plain",
                "text": "Embedded resource content for testing."});
            let embedded = user(json!({"type": "resource", "resource": resource}));
            vec![embedded, said("Please process the embedded resource above.".to_owned())]
        }
        "test_prompt_with_image" => {
            let image = user(json!({"type": "image", "data": PNG, "mimeType": "image/png"}));
            vec![image, said("Please analyze the image above.".to_owned())]
        }
        "test_input_required_result_prompt" => {
            if !params["inputResponses"]["user_context"].is_object() {
                let asked = elicit("What context should the prompt use?");
                return Ok(asks(json!({"user_context": asked}), None));
            }
            vec![said("With context.".to_owned())]
        }
        _ => return Err(RpcError::invalid_params(format!("Unknown prompt: {name}"))),
    };
    Ok(ResultObject::default().raw("messages", Value::from(messages).to_string()))
}

/// A schema with every keyword that the suite looks for.
fn schema() -> Value {
    json!({"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object",
        "$defs": {"address": {"$anchor": "addressDef", "type": "object", "properties":
            {"street": {"type": "string"}, "city": {"type": "string"}}}},
        "properties": {"name": {"type": "string"}, "address": {"$ref": "#/$defs/address"},
            "contactMethod": {"type": "string", "enum": ["phone", "email"]},
            "phone": {"type": "string"}, "email": {"type": "string"}},
        "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
        "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
        "then": {"required": ["phone"]}, "else": {"required": ["email"]},
        "additionalProperties": false})
}

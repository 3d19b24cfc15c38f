//! How the server of a test reads calls and answers them, in each dialect.

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::{CARD, Fault, Inner, KEYS, PuppetTask, Seen, Shared, TOKEN};

/// How a server is spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    JsonRpc,
    HttpJson,
    /// JSON-RPC of 0.3.
    Old,
}

impl Dialect {
    pub const ALL: [Self; 3] = [Self::JsonRpc, Self::HttpJson, Self::Old];
}

/// How one call is answered.
#[derive(Clone)]
struct Form {
    dialect: Dialect,
    id: Value,
}

impl Form {
    /// A result, which may be an event.
    fn write(&self, result: &Value) -> Value {
        match self.dialect {
            Dialect::HttpJson => result.clone(),
            Dialect::JsonRpc => json!({"jsonrpc": "2.0", "id": self.id, "result": result}),
            Dialect::Old => json!({"jsonrpc": "2.0", "id": self.id, "result": as_old(result)}),
        }
    }

    fn result(&self, result: &Value) -> Response {
        axum::Json(self.write(result)).into_response()
    }

    /// A task, as GetTask answers it.
    fn task(&self, task: &Value) -> Response {
        match self.dialect {
            Dialect::Old => self.result(&json!({ "task": task })),
            _ => self.result(task),
        }
    }

    fn error(&self, code: i64, text: &str) -> Response {
        if self.dialect != Dialect::HttpJson {
            let error = json!({"code": code, "message": text});
            let body = json!({"jsonrpc": "2.0", "id": self.id, "error": error});
            return axum::Json(body).into_response();
        }
        let (status, reason) = match code {
            -32001 => (404, "TASK_NOT_FOUND"),
            -32004 => (400, "UNSUPPORTED_OPERATION"),
            -32005 => (400, "CONTENT_TYPE_NOT_SUPPORTED"),
            -32008 => (400, "EXTENSION_SUPPORT_REQUIRED"),
            -32009 => (400, "VERSION_NOT_SUPPORTED"),
            -32601 => (404, "METHOD_NOT_FOUND"),
            -32602 => (400, "INVALID_PARAMS"),
            _ => (500, "INTERNAL_ERROR"),
        };
        let details = json!([{"@type": "type.googleapis.com/google.rpc.ErrorInfo",
            "reason": reason, "domain": "a2a-protocol.org"}]);
        let error = json!({"code": status, "message": text, "details": details});
        let status = StatusCode::from_u16(status).expect("a status");
        (status, axum::Json(json!({ "error": error }))).into_response()
    }
}

/// A call of HTTP+JSON as JSON-RPC would have it.
fn as_rpc(method: &Method, path: &str, body: &Value) -> Option<Value> {
    let call = |name: &str, params: Value| Some(json!({"method": name, "params": params}));
    match path {
        "/message:send" => return call("SendMessage", body.clone()),
        "/message:stream" => return call("SendStreamingMessage", body.clone()),
        "/tasks" => return call("ListTasks", Value::Null),
        _ => {}
    }
    let task = path.strip_prefix("/tasks/")?;
    match task.split_once(':') {
        None if method == Method::GET => call("GetTask", json!({ "id": task })),
        Some((task, "cancel")) => call("CancelTask", json!({ "id": task })),
        Some((task, "subscribe")) => call("SubscribeToTask", json!({ "id": task })),
        _ => None,
    }
}

pub(super) async fn answer(
    State(shared): State<Shared>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    raw: Bytes,
) -> Response {
    let mut body: Value = serde_json::from_slice(&raw).unwrap_or_default();
    let mut dialect = Dialect::JsonRpc;
    let rest = uri.path().strip_prefix("/rpc");
    if let Some(call) = rest.and_then(|path| as_rpc(&method, path, &body)) {
        (dialect, body) = (Dialect::HttpJson, call);
    } else if body["method"].as_str().is_some_and(|name| name.contains('/')) {
        dialect = Dialect::Old;
    }
    let form = Form { dialect, id: body["id"].clone() };
    let seen = Seen {
        method: method.to_string(),
        path: uri.path().to_owned(),
        headers: headers.clone(),
        raw: String::from_utf8_lossy(&raw).into_owned(),
        body: body.clone(),
    };
    let (is_send, rpc) = (seen.is_send(), seen.rpc().to_owned());
    let mut inner = shared.lock();
    inner.seen.push(seen);
    let name = match uri.path() {
        CARD => "card",
        KEYS => "keys",
        TOKEN => "token",
        _ => rpc.as_str(),
    };
    let fault = match is_send {
        true => inner.send_faults.pop_front(),
        false => {
            let at = inner.faults.iter().position(|(of, _)| of == name);
            at.and_then(|at| inner.faults.remove(at)).map(|(_, fault)| fault)
        }
    };
    match (&fault, name) {
        (None, "card") => return axum::Json(inner.card.clone()).into_response(),
        (None, "keys") => return axum::Json(inner.keys.clone()).into_response(),
        (None, "token") => {
            let number = inner.seen.iter().filter(|seen| seen.path == TOKEN).count();
            let token = json!({"access_token": format!("at-{number}"), "token_type": "Bearer",
                "expires_in": 3600});
            return axum::Json(token).into_response();
        }
        _ => {}
    }
    if let Some((name, value)) = &inner.wanted
        && !matches!(uri.path(), CARD | KEYS | TOKEN)
        && headers.get(name.as_str()).and_then(|value| value.to_str().ok()) != Some(value)
    {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    match &fault {
        Some(Fault::BreakAfter) => {
            let message = body["params"]["message"].clone();
            take(&mut inner, &message);
            return broken();
        }
        Some(fault) => return fault_response(fault, &form),
        None => {}
    }
    run(&mut inner, &rpc, &body["params"], &form)
}

/// Does what a call asks for.
fn run(inner: &mut Inner, rpc: &str, params: &Value, form: &Form) -> Response {
    let task = params["id"].as_str().unwrap_or_default();
    let at = inner.tasks.iter().position(|one| one.task["id"] == task);
    let missing = || form.error(-32001, "task not found");
    match rpc {
        "SendMessage" | "message/send" => {
            let at = take(inner, &params["message"]);
            form.result(&json!({"task": inner.tasks[at].task}))
        }
        "SendStreamingMessage" | "message/stream" => {
            let at = take(inner, &params["message"]);
            stream(&mut inner.tasks[at], form, true)
        }
        "SubscribeToTask" | "tasks/resubscribe" => match at {
            Some(at) if !is_over(&inner.tasks[at].task) => {
                let has_snapshots = inner.has_snapshots;
                stream(&mut inner.tasks[at], form, has_snapshots)
            }
            Some(_) => form.error(-32004, "the task has ended"),
            None => missing(),
        },
        "GetTask" | "tasks/get" => at.map_or_else(missing, |at| form.task(&inner.tasks[at].task)),
        "ListTasks" if inner.has_list => {
            let (count, size) = (inner.tasks.len(), inner.page_size);
            let start = params["pageToken"].as_str().map_or(0, |at| at.parse().expect("a token"));
            let page = inner.tasks.iter().skip(start).take(size);
            let tasks: Vec<Value> = page.map(|one| one.task.clone()).collect();
            let end = start + size;
            let next = if end < count { end.to_string() } else { String::new() };
            form.result(
                &json!({"tasks": tasks, "nextPageToken": next, "pageSize": size, "totalSize": count}),
            )
        }
        "CancelTask" | "tasks/cancel" => match at {
            Some(at) => {
                let one = &mut inner.tasks[at];
                one.task["status"] = json!({"state": "TASK_STATE_CANCELED"});
                one.streams.clear();
                form.task(&one.task)
            }
            None => missing(),
        },
        _ => form.error(-32601, "method not found"),
    }
}

fn is_over(task: &Value) -> bool {
    let state = task["status"]["state"].as_str().unwrap_or_default();
    ["COMPLETED", "FAILED", "CANCELED", "REJECTED"].iter().any(|end| state.ends_with(end))
}

/// Begins a task with a message; returns its place.
fn begin(inner: &mut Inner, message: &Value) -> usize {
    let number = inner.tasks.len() + 1;
    let context = message["contextId"].as_str().map(str::to_owned);
    let context = context.unwrap_or_else(|| format!("remote-c{number}"));
    let history = if inner.has_history { json!([message]) } else { json!([]) };
    let task = json!({
        "id": format!("remote-{number}"), "contextId": context,
        "status": {"state": "TASK_STATE_SUBMITTED"}, "artifacts": [], "history": history,
    });
    inner.tasks.push(PuppetTask { task, streams: Vec::new() });
    inner.tasks.len() - 1
}

/// The task that a message begins or goes on with.
fn take(inner: &mut Inner, message: &Value) -> usize {
    let mut message = message.clone();
    as_new(&mut message);
    let Some(task) = message["taskId"].as_str() else { return begin(inner, &message) };
    let at = inner.tasks.iter().position(|one| one.task["id"] == task).expect("a known task");
    if inner.has_history {
        let status = inner.tasks[at].task["status"]["message"].take();
        let history = inner.tasks[at].task["history"].as_array_mut().expect("a list");
        history.extend(Some(status).filter(|status| !status.is_null()));
        history.push(message.clone());
    }
    let one = &mut inner.tasks[at];
    one.task["status"] = json!({"state": "TASK_STATE_WORKING"});
    let (id, context) = (one.task["id"].clone(), one.task["contextId"].clone());
    let update = json!({"taskId": id, "contextId": context, "status": one.task["status"]});
    one.send(json!({"statusUpdate": update}));
    at
}

/// A stream of a task's events.
fn stream(one: &mut PuppetTask, form: &Form, has_snapshot: bool) -> Response {
    let (sender, mut events) = mpsc::unbounded_channel();
    if has_snapshot {
        let _ = sender.send(json!({"task": one.task}));
    }
    one.streams.push(sender);
    let form = form.clone();
    let (mut out, body) = tokio::io::duplex(1 << 16);
    tokio::spawn(async move {
        use tokio::io::AsyncWriteExt;
        while let Some(event) = events.recv().await {
            let data = form.write(&event);
            if out.write_all(format!("data: {data}\n\n").as_bytes()).await.is_err() {
                return;
            }
            let state = event.pointer("/statusUpdate/status/state");
            let state = state.or(event.pointer("/task/status/state")).and_then(Value::as_str);
            let ends = ["COMPLETED", "FAILED", "CANCELED", "REJECTED", "INPUT_REQUIRED"];
            if ends.iter().any(|end| state.is_some_and(|state| state.ends_with(end))) {
                return;
            }
        }
    });
    let headers = [("content-type", "text/event-stream")];
    (headers, Body::from_stream(bytes_of(body))).into_response()
}

/// The bytes of a pipe as a stream.
fn bytes_of(
    body: tokio::io::DuplexStream,
) -> impl futures_util::Stream<Item = Result<Bytes, std::io::Error>> {
    use tokio::io::AsyncReadExt;
    futures_util::stream::unfold(body, async |mut body| {
        let mut bytes = vec![0; 8_192];
        match body.read(&mut bytes).await {
            Ok(0) | Err(_) => None,
            Ok(count) => {
                bytes.truncate(count);
                Some((Ok(Bytes::from(bytes)), body))
            }
        }
    })
}

/// A result as 0.3 has it.
fn as_old(result: &Value) -> Value {
    let (name, inner) = result.as_object().and_then(|all| all.iter().next()).expect("one member");
    let mut old = inner.clone();
    let kind = match name.as_str() {
        "task" => "task",
        "statusUpdate" => "status-update",
        "artifactUpdate" => "artifact-update",
        _ => "message",
    };
    old["kind"] = kind.into();
    old_names(&mut old);
    if kind == "status-update" {
        old["final"] = is_over(inner).into();
    }
    old
}

fn old_names(value: &mut Value) {
    match value {
        Value::Object(members) => {
            if members.contains_key("parts") && members.contains_key("role") {
                members.insert("kind".to_owned(), "message".into());
            }
            if members.contains_key("text") && !members.contains_key("kind") {
                members.insert("kind".to_owned(), "text".into());
            }
            members.values_mut().for_each(old_names);
        }
        Value::Array(items) => items.iter_mut().for_each(old_names),
        Value::String(text) => {
            if let Some(state) = text.strip_prefix("TASK_STATE_") {
                *text = state.to_lowercase().replace('_', "-");
            } else if let Some(role) = text.strip_prefix("ROLE_") {
                *text = role.to_lowercase();
            }
        }
        _ => {}
    }
}

/// A message of 0.3 as the server keeps it.
fn as_new(message: &mut Value) {
    let Some(members) = message.as_object_mut() else { return };
    members.remove("kind");
    if members.get("role").is_some_and(|role| role == "user") {
        members.insert("role".to_owned(), "ROLE_USER".into());
    }
    let parts = members.get_mut("parts").and_then(Value::as_array_mut);
    for part in parts.into_iter().flatten().filter_map(Value::as_object_mut) {
        part.remove("kind");
    }
}

fn fault_response(fault: &Fault, form: &Form) -> Response {
    match fault {
        Fault::Status(status, headers, body) => {
            let status = StatusCode::from_u16(*status).expect("a status");
            let mut response = (status, body.clone()).into_response();
            for (name, value) in *headers {
                response.headers_mut().insert(*name, value.parse().expect("a value"));
            }
            response
        }
        Fault::Refuse(code, text) => form.error(*code, text),
        Fault::Message(message) => form.result(&json!({ "message": message })),
        Fault::Text(content_type, text) => {
            ([("content-type", *content_type)], text.clone()).into_response()
        }
        Fault::BreakAfter | Fault::BreakBefore => broken(),
        Fault::Silence => {
            Body::from_stream(futures_util::stream::pending::<Result<Bytes, std::io::Error>>())
                .into_response()
        }
    }
}

/// A response whose body breaks off.
fn broken() -> Response {
    let cut = futures_util::stream::once(async {
        // The head of the response is sent first.
        tokio::task::yield_now().await;
        Err::<Bytes, _>(std::io::Error::other("cut"))
    });
    ([("content-type", "text/event-stream")], Body::from_stream(cut)).into_response()
}

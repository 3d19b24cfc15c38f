//! Connects the way the client will, by what was written.

use std::process::Stdio;
use std::time::Duration;

use rialto_client::call::root_cause;
use rialto_client::{CallError, Hub, KeyFile};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

use super::clients::{Door, Setup};
use crate::commands::context::DEFAULT_HUB;
use crate::commands::v1::{format_amount, parse_amount};
use crate::commands::{CliError, CliResult, V1};

/// How long one answer may take.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(20);
const VERSION: &str = "2025-11-25";

/// What the connection offers.
#[derive(Debug)]
pub struct Connected {
    pub tools: Vec<String>,
    /// The credits of the caller's account.
    pub available: String,
    /// What the key may spend, in words.
    pub limits: String,
}

impl Connected {
    pub fn describe(&self) -> String {
        let count = self.tools.len();
        let plural = if count == 1 { "" } else { "s" };
        let tools = self.tools.join(", ");
        format!("connected: {count} tool{plural} ({tools}); {} credits available", self.available)
    }
}

/// Whether the hub knows this key.
pub async fn is_valid(key: &KeyFile) -> CliResult<bool> {
    match hub_of(key)?.me().await {
        Ok(_) => Ok(true),
        Err(CallError::Refused { status: 401, .. }) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Opens the connection, lists its tools, and calls one of them.
pub async fn connect(setup: &Setup, key: &KeyFile) -> CliResult<Connected> {
    let mut connection = match written_door(setup)? {
        Door::Stdio { program, arguments } => {
            let mut bridge = Bridge::start(&program, &arguments)?;
            let open = json!({"protocolVersion": VERSION, "capabilities": {},
                "clientInfo": {"name": "rialto-connect", "version": env!("CARGO_PKG_VERSION")}});
            bridge.call("initialize", &open).await?;
            Connection::Bridge(Box::new(bridge))
        }
        Door::Http { url, .. } => Connection::Hub { url, key: key.clone() },
    };
    let listed = connection.call("tools/list", &json!({})).await?;
    let tools = listed["tools"].as_array().map(Vec::as_slice).unwrap_or_default();
    let tools: Vec<String> =
        tools.iter().filter_map(|tool| Some(tool["name"].as_str()?.to_owned())).collect();
    let available = if tools.iter().any(|tool| tool == "whoami") {
        let whoami = json!({"name": "whoami", "arguments": {}});
        let result = connection.call("tools/call", &whoami).await?;
        let text = result["content"][0]["text"].as_str().unwrap_or_default();
        if result["isError"] == true {
            return Err(CliError::plain(text));
        }
        let available = result["structuredContent"]["available"].as_str();
        available.ok_or_else(|| unreadable("whoami does not say what is available"))?.to_owned()
    } else {
        let me = hub_of(key)?.me().await?;
        format_amount(parse_amount(&me.account.available)?)
    };
    Ok(Connected { tools, available, limits: describe_limits(key).await? })
}

/// The limits of a key, as the hub knows them: one that was kept may have others than were asked for.
async fn describe_limits(key: &KeyFile) -> CliResult<String> {
    for listed in hub_of(key)?.keys().await? {
        let listed = listed.parse()?;
        if listed.is_current {
            return Ok(listed.describe_limits());
        }
    }
    Err(unreadable("the list of keys lacks the key of the connection"))
}

fn hub_of(key: &KeyFile) -> CliResult<V1> {
    let hub = key.hub.as_deref().unwrap_or(DEFAULT_HUB);
    Ok(V1(Hub::new(hub)?.with_key(key.key.reveal())))
}

/// The way to the hub, as the client's file says it now; as the client was told if it keeps it
/// elsewhere.
fn written_door(setup: &Setup) -> CliResult<Door> {
    let Some(file) = &setup.file else { return Ok(setup.door.clone()) };
    let entry = file.read_entry()?;
    let text = |name: &str| entry.get(name).and_then(Value::as_str).map(str::to_owned);
    let arguments = entry.get("args").and_then(Value::as_array);
    let arguments = arguments.into_iter().flatten();
    match (text("command"), text("url")) {
        (Some(program), _) => Ok(Door::Stdio {
            program,
            arguments: arguments.filter_map(|one| one.as_str().map(str::to_owned)).collect(),
        }),
        (None, Some(url)) => Ok(Door::Http { url, key: None }),
        (None, None) => Err(CliError::plain(format!("{} has no entry rialto", file.shown))),
    }
}

fn unreadable(why: &str) -> CliError {
    CliError::plain(format!("cannot read the answer: {why}"))
}

/// A connection of either kind.
enum Connection {
    Bridge(Box<Bridge>),
    Hub { url: String, key: KeyFile },
}

impl Connection {
    async fn call(&mut self, method: &str, params: &Value) -> CliResult<Value> {
        match self {
            Self::Bridge(bridge) => bridge.call(method, params).await,
            Self::Hub { url, key } => call_hub(url, key, method, params).await,
        }
    }
}

/// The result of a request by HTTP.
async fn call_hub(url: &str, key: &KeyFile, method: &str, params: &Value) -> CliResult<Value> {
    let unreachable = |error: reqwest::Error| {
        CliError::plain(format!("cannot call {url}: {}", root_cause(&error.without_url())))
    };
    let http = reqwest::Client::builder().no_proxy().timeout(ANSWER_TIME_MAX);
    let http = http.build().map_err(unreachable)?;
    let request = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    let request = http
        .post(url)
        .bearer_auth(key.key.reveal())
        .header("accept", "application/json")
        .header("content-type", "application/json")
        .header("mcp-protocol-version", VERSION)
        .body(request.to_string());
    let text = request.send().await.map_err(unreachable)?.text().await.map_err(unreachable)?;
    let response = serde_json::from_str(&text).map_err(|_| unreadable("it is not JSON"))?;
    result_of(response)
}

fn result_of(mut response: Value) -> CliResult<Value> {
    match response["error"]["message"].as_str() {
        Some(why) => Err(CliError::plain(why)),
        None => Ok(response["result"].take()),
    }
}

/// `rialto mcp`, started as the client will start it.
struct Bridge {
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
    /// Killed when this is dropped.
    _child: tokio::process::Child,
}

impl Bridge {
    fn start(program: &str, arguments: &[String]) -> CliResult<Self> {
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        // The client has its own environment.
        for name in ["RIALTO_HUB", "RIALTO_CONTEXT", "RIALTO_KEY"] {
            command.env_remove(name);
        }
        let failed = |why: String| CliError::plain(format!("cannot start {program}: {why}"));
        let mut child = command.spawn().map_err(|error| failed(error.to_string()))?;
        match (child.stdin.take(), child.stdout.take()) {
            (Some(input), Some(output)) => {
                Ok(Self { input, output: BufReader::new(output).lines(), _child: child })
            }
            _ => Err(failed("it has no pipes".to_owned())),
        }
    }

    async fn call(&mut self, method: &str, params: &Value) -> CliResult<Value> {
        let request = json!({"jsonrpc": "2.0", "id": method, "method": method, "params": params});
        let ended = |_| CliError::plain("rialto mcp ended early");
        self.input.write_all(format!("{request}\n").as_bytes()).await.map_err(ended)?;
        let response = timeout(ANSWER_TIME_MAX, async {
            while let Some(line) = self.output.next_line().await.map_err(ended)? {
                let message: Value = serde_json::from_str(&line)
                    .map_err(|_| unreadable("rialto mcp wrote a line that is not JSON"))?;
                if message["id"] == method {
                    return Ok(message);
                }
            }
            Err(CliError::plain("rialto mcp ended early"))
        });
        let too_slow = |_| CliError::plain(format!("rialto mcp did not answer {method}"));
        result_of(response.await.map_err(too_slow)??)
    }
}

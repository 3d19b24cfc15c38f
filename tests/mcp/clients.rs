//! Unmodified official clients and frameworks at a hub as `rialto dev` runs it, with its demo agents.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::kit::{Process, eventually, http, node_24, npm_folder, output, python_packages};

const NEW: &str = "2026-07-28";
const OLD: &str = "2025-11-25";

/// Where a client calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Door {
    Http,
    Stdio,
}

/// What runs a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Runner {
    /// `python3` with the packages of a folder.
    Python(&'static str),
    Node,
}

/// A hub of its own, an agent with credits, and another owner to send some to.
pub struct Scene {
    pub hub: Process,
    pub key: String,
    place: TempDir,
}

impl Scene {
    pub async fn build() -> Self {
        let place = TempDir::new().expect("a directory");
        let hub = Process::start("dev", &place.path().join("data"), &[]);
        register(&hub.url, "receiver").await;
        let key = register(&hub.url, "buyer").await;
        let url = format!("{}/registry/discover?skill=count_words", hub.url);
        eventually(async || {
            let found = http().get(&url).send().await.expect("an answer").text().await;
            found.expect("a text").contains("agent_id")
        })
        .await;
        Self { hub, key, place }
    }

    /// The URL of an MCP endpoint.
    pub fn url(&self, path: &str) -> String {
        format!("{}{path}", self.hub.url)
    }

    /// A command that knows the hub and the key, and nothing else of this machine's settings.
    pub fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command
            .env("HOME", self.place.path())
            .env("RIALTO_HOME", self.place.path().join("home"))
            .env("RIALTO_HUB", &self.hub.url)
            .env("RIALTO_KEY", &self.key)
            .current_dir(self.place.path());
        command
    }

    /// Runs a program of this folder to its end: what it printed.
    fn run(&self, runner: Runner, program: &str, era: &str, door: Door) -> Value {
        let program = folder().join("clients").join(program);
        let mut command = match runner {
            Runner::Python(folder) => {
                let mut python = self.command(Path::new("python3"));
                python.env("PYTHONPATH", python_packages(&packages(folder)));
                python
            }
            Runner::Node => {
                let mut node = self.command(&node_24());
                node.env("PACKAGES", npm_folder(&packages("npm")));
                node
            }
        };
        command.arg(&program).arg(era);
        match door {
            Door::Http => command.arg(self.url("/mcp")),
            Door::Stdio => command.args([env!("CARGO_BIN_EXE_rialto"), "mcp"]),
        };
        let ran = output(&mut command).expect("it starts");
        let (said, errors) = (text(&ran.stdout), text(&ran.stderr));
        assert!(ran.status.success(), "{program:?} {era} {door:?}: {said}\n{errors}");
        let last = said.lines().last().unwrap_or_default();
        serde_json::from_str(last).unwrap_or_else(|error| panic!("{program:?}: {error}: {said}"))
    }
}

/// Registers an agent without skills; its key.
pub async fn register(url: &str, owner: &str) -> String {
    let body = json!({"agent_name": format!("{owner}'s agent"), "owner_id": owner, "version": "0.1",
        "skills": []});
    let request = http().post(format!("{url}/registry/register")).body(body.to_string());
    let answer = request.send().await.expect("an answer").text().await.expect("a text");
    let answer: Value = serde_json::from_str(&answer).expect("JSON");
    answer["api_key"].as_str().expect("a key").to_owned()
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/mcp")
}

/// A folder that says which packages to install.
pub fn packages(name: &str) -> PathBuf {
    folder().join("packages").join(name)
}

fn tools_of_the_book() -> Value {
    let file = include_str!("../../crates/hub/src/mcp/fixtures/tools.json");
    let file: Value = serde_json::from_str(file).expect("JSON");
    file["tools"].as_array().expect("tools").iter().map(|tool| tool["name"].clone()).collect()
}

/// What every official client must have seen.
#[track_caller]
fn assert_complete(seen: &Value, version: &str, door: Door) {
    assert_eq!(seen["version"], version, "{seen}");
    let instructions = seen["instructions"].as_str().expect("instructions");
    assert!(instructions.starts_with("Rialto is a hub"), "{instructions}");
    assert_eq!(seen["tools"], tools_of_the_book());
    assert_hired(&seen["job"]);
    let text: Value = serde_json::from_str(seen["text"].as_str().expect("a text")).expect("JSON");
    assert_eq!(text, seen["job"]);
    let progress = seen["progress"].as_array().expect("progress");
    let progress: Vec<f64> = progress.iter().map(|done| done.as_f64().expect("a number")).collect();
    // The npm clients drop a notification that they read from a pipe together with the response.
    let least = if door == Door::Stdio { 2 } else { 3 };
    assert!(progress.len() >= least && progress[0] == 1.0, "{progress:?}");
    assert!(progress.is_sorted_by(|earlier, later| earlier < later), "{progress:?}");
    assert_eq!(seen["error"]["is_error"], true, "{seen}");
    assert_too_little(seen["error"]["text"].as_str().expect("a text"));
    assert_eq!(seen["unknown_tool"], -32602, "{seen}");
    assert!(seen["resource"]["agent"].is_string(), "{seen}");
    let resources = json!(["rialto://me", "rialto://inbox", "rialto://jobs"]);
    assert_eq!(seen["resources"], resources);
    let unknown = seen["unknown_resource"].as_i64().expect("a code");
    // The npm client reads the old code as the new one.
    assert!(unknown == -32602 || (version == OLD && unknown == -32002), "{seen}");
    assert!(seen["prompt"].as_str().expect("a text").contains("\"count my words\""), "{seen}");
    assert_eq!(seen["completion"], json!(["count_words"]));
    assert_eq!(seen["sent"]["moved"], true, "{seen}");
    assert_eq!(seen["sent"]["amount"], "0.25", "{seen}");
    let asked = seen["asked"].as_array().expect("questions");
    // Without a stream of its own, an old client cannot be asked: it gets a code.
    if (version, door) == (OLD, Door::Http) {
        let code = seen["code"].as_str().expect("a code");
        assert!(code.len() == 12 && code.bytes().all(|digit| digit.is_ascii_hexdigit()), "{code}");
        assert!(asked.is_empty(), "{asked:?}");
    } else {
        assert!(seen["code"].is_null(), "{seen}");
        assert_eq!(asked.len(), 1, "{asked:?}");
        assert!(asked[0].as_str().expect("a question").contains("0.25"), "{asked:?}");
    }
}

#[track_caller]
fn assert_hired(job: &Value) {
    assert_eq!(job["state"], "completed", "{job}");
    assert_eq!(job["output"]["words"], 3, "{job}");
    assert_eq!((&job["paid"], &job["done"]), (&json!("0.05"), &json!(true)), "{job}");
}

#[track_caller]
fn assert_too_little(text: &str) {
    assert!(text.starts_with("budget_too_low: ") && text.contains("Fix: "), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_python_client_2_3_works_in_both_eras() {
    let scene = Scene::build().await;
    let runner = Runner::Python("python-2.3");
    assert_complete(&scene.run(runner, "python_2.py", "modern", Door::Http), NEW, Door::Http);
    let scene = Scene::build().await;
    assert_complete(&scene.run(runner, "python_2.py", "legacy", Door::Http), OLD, Door::Http);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_python_client_1_30_works_in_the_old_era() {
    let scene = Scene::build().await;
    let seen = scene.run(Runner::Python("python-1.30"), "python_1.py", "legacy", Door::Http);
    assert_complete(&seen, OLD, Door::Http);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_npm_client_2_4_works_in_both_eras() {
    let scene = Scene::build().await;
    assert_complete(&scene.run(Runner::Node, "client.mjs", "modern", Door::Http), NEW, Door::Http);
    let scene = Scene::build().await;
    assert_complete(&scene.run(Runner::Node, "client.mjs", "legacy", Door::Http), OLD, Door::Http);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_npm_sdk_1_32_works_in_the_old_era() {
    let scene = Scene::build().await;
    assert_complete(&scene.run(Runner::Node, "sdk.mjs", "legacy", Door::Http), OLD, Door::Http);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_official_clients_work_over_stdio_in_both_eras() {
    let programs = [
        (Runner::Python("python-2.3"), "python_2.py", "modern", NEW),
        (Runner::Python("python-2.3"), "python_2.py", "legacy", OLD),
        (Runner::Python("python-1.30"), "python_1.py", "legacy", OLD),
        (Runner::Node, "client.mjs", "modern", NEW),
        (Runner::Node, "sdk.mjs", "legacy", OLD),
    ];
    for (runner, program, era, version) in programs {
        // The same hire within two minutes is the first one, so each has its own hub.
        let scene = Scene::build().await;
        assert_complete(&scene.run(runner, program, era, Door::Stdio), version, Door::Stdio);
    }
}

/// What both frameworks must have seen of a hire and of one with too small a budget.
#[track_caller]
fn assert_round_trip(tools: &Value, hired: &Value, refused: &Value) {
    assert_eq!(*tools, tools_of_the_book());
    let job: Value = serde_json::from_str(hired.as_str().expect("a text")).expect("JSON");
    assert_hired(&job);
    assert_too_little(refused.as_str().expect("a text"));
}

#[tokio::test(flavor = "multi_thread")]
async fn langchain_lists_the_tools_and_hires() {
    for door in [Door::Http, Door::Stdio] {
        let scene = Scene::build().await;
        let seen = scene.run(Runner::Python("python-1.30"), "langchain.py", "legacy", door);
        assert_round_trip(&seen["tools"], &seen["hired"]["text"], &seen["refused"]["text"]);
        assert_eq!(seen["refused"]["status"], "error");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_of_the_openai_sdk_lists_the_tools_and_hires() {
    for door in [Door::Http, Door::Stdio] {
        let scene = Scene::build().await;
        let seen = scene.run(Runner::Python("python-1.30"), "openai_agents.py", "legacy", door);
        // It hands the content block of a result to its model.
        let said = |at: usize| match &seen["outputs"][at] {
            Value::Array(blocks) => blocks[0]["text"].clone(),
            Value::String(text) => serde_json::from_str::<Value>(text)
                .ok()
                .and_then(|block| block.get("text").cloned())
                .unwrap_or_else(|| text.as_str().into()),
            other => other["text"].clone(),
        };
        assert_round_trip(&seen["tools"], &said(0), &said(1));
        assert_eq!(seen["final"], "done");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_inspector_finds_nothing_to_warn_about_in_either_era() {
    let scene = Scene::build().await;
    let inspector = npm_folder(&packages("npm"))
        .join("node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js");
    for era in ["modern", "legacy"] {
        let mut command = scene.command(&node_24());
        command.arg(&inspector).args(["--cli", &scene.url("/mcp"), "--transport", "http"]);
        command.args(["--header", &format!("Authorization: Bearer {}", scene.key)]);
        command.args(["--protocol-era", era, "--method", "tools/list", "--strict"]);
        let ran = output(&mut command).expect("it starts");
        let (said, errors) = (text(&ran.stdout), text(&ran.stderr));
        assert_eq!(ran.status.code(), Some(0), "{era}: {said}\n{errors}");
        assert_eq!(errors, "", "{era}: it warns");
        let listed: Value = serde_json::from_str(&said).expect("JSON");
        assert_eq!(listed["tools"].as_array().map(Vec::len), Some(17), "{era}: {said}");
    }
}

//! Benchmarks SendMessage of A2A to a free agent that returns its input, until the task has ended:
//! against the echo, and against a server as the samples of a2a-sdk build it.
//!
//! The hub opens a job, calls the agent's endpoint, settles, and answers with the finished task. The
//! job and its result are on disk before that. The sample server keeps its tasks in memory.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use hyper::StatusCode;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::connection::RawRequest;
use crate::echo::{A2A_PATH, EchoProcess, FREE_WORKER_PATH};
use crate::figure::Figure;
use crate::fill::send_all;
use crate::hub::{BenchHub, HubBinary, json_headers};
use crate::load::{self, LoadPlan, Target};
use crate::measurement::Measurement;
use crate::process::{ServerProcess, temporary_dir};
use crate::rounds::{BenchOptions, Benchmark, Results, rate, run_interleaved};

/// Goal: how many times the rate of the sample server.
const GOAL: f64 = 20.0;
/// Time limit for the start of the sample server.
const START_TIMEOUT: Duration = Duration::from_secs(60);
const SAMPLE_SERVER: &str = include_str!("sample_server.py");
/// The packages that the tests install below the target directory.
const PACKAGES: &str = "foreign/python-1.3-of-sdk";
const SKILL: &str = "echo";
/// What a good answer contains.
const COMPLETED: &[u8] = b"TASK_STATE_COMPLETED";

/// Each run sends messages of its own.
static RUNS: AtomicU64 = AtomicU64::new(1);

/// Measures echo, sample server and hubs in alternating rounds, for each number of connections.
pub fn measure(options: &BenchOptions) -> io::Result<Results> {
    let echo = EchoProcess::start()?;
    let (sample, notes) = match SampleServer::start()? {
        Some(server) => (Some(server), Vec::new()),
        None => (None, vec![missing()]),
    };
    let start = |binary| A2aFixture::start(binary, &echo, options.most_connections());
    let fixtures = options.hubs.iter().map(start).collect::<io::Result<Vec<_>>>()?;
    let keys = &fixtures[0].keys;
    let mut benchmarks = Vec::new();
    for &connections in &options.connections {
        let plan = options.plan(echo.target(), connections);
        let run = move |_| send(&plan, A2A_PATH, Arc::clone(keys));
        benchmarks.push(Benchmark::new("echo of a SendMessage", run));
        for fixture in &fixtures {
            let plan = options.plan(fixture.hub.target(), connections);
            let run = move |_| send(&plan, &fixture.path, Arc::clone(&fixture.keys));
            benchmarks.push(Benchmark::new("SendMessage", run).of_hub(&fixture.hub.label));
        }
        if let Some(sample) = &sample {
            let plan = options.plan(sample.target(), connections);
            let run = move |_| send(&plan, "/", Arc::clone(keys));
            benchmarks.push(Benchmark::new(format!("SendMessage, {}", sample.name), run));
        }
    }
    let series = run_interleaved(options.rounds, benchmarks)?;
    let mut figures = Vec::new();
    let servers = 1 + fixtures.len() + usize::from(sample.is_some());
    for (connections, group) in options.connections.iter().zip(series.chunks(servers)) {
        let (echo, rest) = (&group[0], &group[1..]);
        let (sends, sampled) = rest.split_at(fixtures.len());
        for hub in sends {
            let name = format!("SendMessage / echo ({connections} connections)");
            figures.push(Figure::higher(name, hub.ratios_to(echo, rate), "×").of_hub(&hub.hub));
            if let [sampled] = sampled {
                let name = format!("SendMessage / a2a-sdk's server ({connections} connections)");
                let times = Figure::higher(name, hub.ratios_to(sampled, rate), "×");
                figures.push(times.with_target(GOAL).of_hub(&hub.hub));
            }
            let request = format!("SendMessage ({connections} connections)");
            figures.push(hub.cpu_figure(&request, echo.median(Measurement::cpu_us)));
        }
    }
    Ok(Results { series, figures, notes })
}

/// A hub with the agent, and the keys of its clients.
struct A2aFixture {
    hub: BenchHub,
    /// Where the agent is called.
    path: String,
    keys: Arc<Vec<String>>,
}

impl A2aFixture {
    fn start(binary: &HubBinary, worker: &EchoProcess, clients: usize) -> io::Result<Self> {
        // As many calls to the one agent as there are connections.
        let per_host = clients.to_string();
        let settings = [("egress.allow", "127.0.0.0/8"), ("egress.per_host", &per_host)];
        let hub = BenchHub::start(binary, &settings)?;
        let endpoint = format!("http://{}{FREE_WORKER_PATH}", worker.target().address);
        let agent = json!({"agent_name": SKILL, "owner_id": SKILL, "api_endpoint": endpoint,
            "skills": [{"skill_name": SKILL, "cost_per_call": 0}]});
        let register = |path: &str, body: &Value| {
            let json = "content-type: application/json\r\n";
            RawRequest::post(hub.address, path, json, body.to_string().as_bytes())
        };
        send_all(hub.address, 1, |_| register("/registry/register", &agent), read_json)?;
        let listed = format!("/a2a/agents?skill={SKILL}");
        let listed =
            send_all(hub.address, 1, |_| RawRequest::get(hub.address, &listed), read_json)?;
        let name = listed[0]["agents"][0]["name"].as_str();
        let name = name.ok_or_else(|| io::Error::other("the agent is not listed"))?;
        let path = format!("/a2a/agents/{name}");
        let client = |at: usize| register("/a2a/agents", &json!({"name": format!("client-{at}")}));
        let keys = send_all(hub.address, clients, client, |status, body| {
            Some(read_json(status, body)?["api_key"].as_str()?.to_owned())
        })?;
        Ok(Self { path, keys: Arc::new(keys), hub })
    }
}

fn read_json(status: StatusCode, body: &[u8]) -> Option<Value> {
    serde_json::from_slice(body).ok().filter(|_| status.is_success())
}

/// Sends messages, each as a task of its own.
fn send(plan: &LoadPlan, path: &str, keys: Arc<Vec<String>>) -> io::Result<Measurement> {
    let (run, address) = (RUNS.fetch_add(1, Ordering::Relaxed), plan.address);
    let path = path.to_owned();
    let request_for = move |at: usize, n: u64| {
        let id = format!("{run}-{at}-{n}");
        message(address, &path, &keys[at], &id)
    };
    let is_good = |status: StatusCode, body: &[u8]| {
        status.is_success() && body.windows(COMPLETED.len()).any(|part| part == COMPLETED)
    };
    load::run(plan, request_for, is_good)
}

fn message(to: SocketAddr, path: &str, key: &str, id: &str) -> RawRequest {
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":"{id}","method":"SendMessage","params":{{"message":{{"messageId":"{id}","role":"ROLE_USER","parts":[{{"text":"Revenue for Q3 was 42000"}}]}}}}}}"#
    );
    let headers = format!("{}a2a-version: 1.0\r\n", json_headers(key));
    RawRequest::post(to, path, &headers, body.as_bytes())
}

/// A server with a2a-sdk; it ends when this is dropped.
struct SampleServer {
    /// Its name and version.
    name: String,
    address: SocketAddr,
    server: ServerProcess,
    _dir: TempDir,
}

impl SampleServer {
    /// Starts it; `None` if the SDK is not installed.
    fn start() -> io::Result<Option<Self>> {
        let Some(version) = sdk_version() else { return Ok(None) };
        let dir = temporary_dir()?;
        let script = dir.path().join("sample_server.py");
        std::fs::write(&script, SAMPLE_SERVER)?;
        let server = ServerProcess::spawn(python().arg(script))?;
        let address = server.next_line(START_TIMEOUT).and_then(|line| line.parse().ok());
        let address = address.ok_or_else(|| io::Error::other("a2a-sdk's server did not start"))?;
        Ok(Some(Self { name: format!("a2a-sdk {version}"), address, server, _dir: dir }))
    }

    fn target(&self) -> Target {
        Target { pid: Some(self.server.pid()), ..Target::new(self.address) }
    }
}

/// Python, with the packages of the tests if they are there.
fn python() -> Command {
    let mut python = Command::new("python3");
    if let Some(packages) = packages().filter(|folder| folder.is_dir()) {
        python.env("PYTHONPATH", packages);
    }
    python
}

fn packages() -> Option<PathBuf> {
    let program = std::env::current_exe().ok()?;
    Some(program.parent()?.parent()?.join(PACKAGES))
}

/// The version of the SDK, if Python finds it and what its server needs.
fn sdk_version() -> Option<String> {
    let script = "import importlib.metadata, a2a.server.routes, starlette, uvicorn; \
                  print(importlib.metadata.version('a2a-sdk'))";
    let output = python().args(["-c", script]).output().ok()?;
    let version = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| version.trim().to_owned())
}

fn missing() -> String {
    "a2a-sdk is not installed (`python3 -m pip install 'a2a-sdk[http-server]==1.3.0' uvicorn`), so \
     it was not measured"
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_a_whole_call_with_its_own_id() {
        let request = message(([127, 0, 0, 1], 7425).into(), "/a2a/agents/e", "rk_1", "1-2-3");
        let head = String::from_utf8(request.0.to_vec()).unwrap();
        assert!(head.starts_with("POST /a2a/agents/e HTTP/1.1\r\n"), "{head}");
        assert!(head.contains("\r\nauthorization: Bearer rk_1\r\n"), "{head}");
        assert!(head.contains("\r\na2a-version: 1.0\r\n"), "{head}");
        let body: Value = serde_json::from_slice(&request.body()).unwrap();
        assert_eq!(body["method"], "SendMessage");
        assert_eq!(
            (&body["id"], &body["params"]["message"]["messageId"]),
            (&"1-2-3".into(), &"1-2-3".into())
        );
    }

    #[test]
    fn only_a_good_answer_is_read() {
        assert_eq!(read_json(StatusCode::OK, b"{}"), Some(json!({})));
        assert_eq!(read_json(StatusCode::CONFLICT, b"{}"), None);
        assert_eq!(read_json(StatusCode::OK, b"no"), None);
    }
}

//! Hubs that are measured, each a process of its own, and the agents registered at them.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use hyper::StatusCode;
use serde_json::{Value, json};
use tempfile::TempDir;
use uuid::Uuid;

use crate::connection::RawRequest;
use crate::fill::send_all;
use crate::load::Target;
use crate::process::{ServerProcess, temporary_dir};
use crate::usage::rss_bytes;

/// Limits are raised: they are meant for one caller, and a benchmark acts as many. Agents stay
/// online and jobs open for as long as a run may take.
const SETTINGS: [(&str, &str); 12] = [
    ("limits.registrations_per_minute", "0"),
    ("limits.registrations_per_minute_total", "0"),
    ("limits.writes_per_minute", "0"),
    ("limits.read_bytes_per_minute", "0"),
    ("limits.inbox_pending", "0"),
    ("egress.per_host_per_minute", "0"),
    ("http.max_connections", "50000"),
    ("http.max_connections_per_address", "50000"),
    ("registry.heartbeat_ttl", "24h"),
    ("jobs.lease", "24h"),
    ("store.memory", "34359738368"),
    ("store.memory_per_owner", "17179869184"),
];

/// Time limit for a start. A hub with a million agents needs some seconds.
const START_TIMEOUT: Duration = Duration::from_secs(120);
/// The most that one grant may be.
const GRANT: u64 = 1_000_000_000;
/// Lines of a hub's log that are shown if it does not start.
const LOG_LINES: usize = 5;

/// A `rialto` program to measure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HubBinary {
    pub path: PathBuf,
    /// Its name in the report; empty if there is only one.
    pub label: String,
}

impl HubBinary {
    /// The given programs, or else the one that was built beside this program.
    pub fn all(paths: &[PathBuf]) -> io::Result<Vec<Self>> {
        let built = match paths {
            [] => vec![built_beside()?],
            paths => paths.to_vec(),
        };
        if let Some(missing) = built.iter().find(|path| !path.is_file()) {
            return Err(io::Error::other(format!("--hub {} not found", missing.display())));
        }
        let labels = labels(&built);
        Ok(built.into_iter().zip(labels).map(|(path, label)| Self { path, label }).collect())
    }
}

/// File names, with a number where two are the same; nothing if there is only one.
fn labels(paths: &[PathBuf]) -> Vec<String> {
    let name = |path: &Path| {
        path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned())
    };
    let label = |(at, path): (usize, &PathBuf)| {
        let twice = paths.iter().filter(|other| name(other) == name(path)).count() > 1;
        if twice { format!("{}#{}", name(path), at + 1) } else { name(path) }
    };
    match paths {
        [_] => vec![String::new()],
        paths => paths.iter().enumerate().map(label).collect(),
    }
}

fn built_beside() -> io::Result<PathBuf> {
    let name = format!("rialto{}", std::env::consts::EXE_SUFFIX);
    let binary = std::env::current_exe()?.with_file_name(name);
    if binary.exists() {
        return Ok(binary);
    }
    let problem =
        "not found; build it with `cargo build --release -p rialto`, or name one with --hub";
    Err(io::Error::other(format!("{} {problem}", binary.display())))
}

/// A running hub with a data directory of its own. Both end when this is dropped.
pub struct BenchHub {
    pub address: SocketAddr,
    pub label: String,
    binary: PathBuf,
    settings: Vec<(String, String)>,
    shared_store: Option<SharedStore>,
    operator_key: String,
    server: Option<ServerProcess>,
    dir: TempDir,
}

/// What all nodes of one hub have in common.
#[derive(Clone, Debug)]
pub struct SharedStore {
    pub database_url: String,
    /// The process of the database.
    pub database: Option<u32>,
    /// The hub's secret; it protects nothing but this benchmark.
    pub secret: String,
}

/// How a hub ends before it is started again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// As an operator stops it.
    Clean,
    /// As `kill -9` or a power failure ends it.
    Killed,
}

impl BenchHub {
    /// Starts a hub with raised limits and these further settings, and waits until it accepts writes.
    pub fn start(binary: &HubBinary, settings: &[(&str, &str)]) -> io::Result<Self> {
        Self::start_with(binary, raised_limits(settings), None, String::new())
    }

    /// Starts one node of a hub over a shared database. The first node creates the operator key,
    /// which the others get from it.
    pub fn start_node(
        binary: &HubBinary,
        store: &SharedStore,
        first: Option<&Self>,
    ) -> io::Result<Self> {
        let operator_key = first.map_or_else(String::new, |first| first.operator_key.clone());
        Self::start_with(binary, raised_limits(&[]), Some(store.clone()), operator_key)
    }

    /// Starts a hub as an operator would, with all settings at their defaults.
    pub fn start_with_defaults(binary: &HubBinary) -> io::Result<Self> {
        Self::start_with(binary, Vec::new(), None, String::new())
    }

    fn start_with(
        binary: &HubBinary,
        settings: Vec<(String, String)>,
        shared_store: Option<SharedStore>,
        operator_key: String,
    ) -> io::Result<Self> {
        let mut hub = Self {
            address: SocketAddr::from(([127, 0, 0, 1], 0)),
            label: binary.label.clone(),
            binary: binary.path.clone(),
            settings,
            shared_store,
            operator_key,
            server: None,
            dir: temporary_dir()?,
        };
        hub.start_process()?;
        Ok(hub)
    }

    /// Ends the hub, starts it again on the same data, and returns how long the start took until it
    /// accepted writes.
    pub fn restart(&mut self, ending: Ending) -> io::Result<Duration> {
        match self.server.take() {
            Some(server) if ending == Ending::Clean => server.stop()?,
            Some(server) => server.kill()?,
            None => {}
        }
        self.start_process()
    }

    /// Takes the process, so that it can be ended while the hub is still under load. The hub can be
    /// started again.
    pub fn take_server(&mut self) -> Option<ServerProcess> {
        self.server.take()
    }

    fn start_process(&mut self) -> io::Result<Duration> {
        let log = self.dir.path().join("log");
        let mut command = Command::new(&self.binary);
        command.args(["serve", "--listen", "127.0.0.1:0", "--set", "log.level=warn"]);
        for (key, value) in &self.settings {
            command.args(["--set", &format!("{key}={value}")]);
        }
        command.arg("--data").arg(self.dir.path().join("data"));
        // Neither the machine's settings nor a file in this directory may change what is measured.
        command.current_dir(self.dir.path()).stderr(File::create(&log)?);
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("RIALTO_") {
                command.env_remove(name);
            }
        }
        if let Some(SharedStore { database_url, secret, .. }) = &self.shared_store {
            command.env("RIALTO_STORE__DATABASE_URL", database_url);
            command.env("RIALTO_HUB_SECRET", secret).env("RIALTO_CLUSTER__LISTEN", "127.0.0.1:0");
        }
        let began = Instant::now();
        let mut server = ServerProcess::spawn(&mut command)?;
        let address = find_in_output(&server, read_address).ok_or_else(|| {
            let log = fs::read_to_string(&log).unwrap_or_default();
            let last: Vec<_> = log.lines().rev().take(LOG_LINES).collect();
            let last = last.into_iter().rev().collect::<Vec<_>>().join("\n");
            io::Error::other(format!("{} did not start:\n{last}", self.binary.display()))
        })?;
        server.wait_until(START_TIMEOUT, || is_ready(address))?;
        let took = began.elapsed();
        if self.operator_key.is_empty() {
            self.operator_key = find_in_output(&server, read_operator_key)
                .ok_or_else(|| io::Error::other("the hub did not show its operator key"))?;
        }
        (self.address, self.server) = (address, Some(server));
        Ok(took)
    }

    /// Its process; `None` while it does not run.
    pub fn pid(&self) -> Option<u32> {
        self.server.as_ref().map(ServerProcess::pid)
    }

    /// This hub as the target of a load.
    pub fn target(&self) -> Target {
        let database = self.shared_store.as_ref().and_then(|store| store.database);
        Target { address: self.address, pid: self.pid(), database, has_counters: true }
    }

    /// Sends its process a signal, for example `TERM`.
    pub fn signal(&self, name: &str) -> io::Result<()> {
        self.server.as_ref().map_or(Ok(()), |server| server.signal(name))
    }

    /// Whether its process was started and has not ended.
    pub fn is_running(&mut self) -> io::Result<bool> {
        self.server.as_mut().map_or(Ok(false), ServerProcess::is_running)
    }

    /// Whether it is the node that writes.
    pub fn is_writer(&self) -> io::Result<bool> {
        let key = format!("authorization: Bearer {}\r\n", self.operator_key);
        let answer = get_with(self.address, "/v1/operator/cluster", &key)?;
        let (_, body) = answer.split_once("\r\n\r\n").unwrap_or_default();
        let status: Value = serde_json::from_str(body).unwrap_or_default();
        Ok(status["role"] == "writer")
    }

    /// Its memory, where the system reports it.
    pub fn rss_bytes(&self) -> Option<u64> {
        rss_bytes(self.pid()?)
    }

    /// Grants each owner more credits than a benchmark can spend.
    pub fn grant_credits(&self, owners: &[String]) -> io::Result<()> {
        let headers = json_headers(&self.operator_key);
        let request_for = |at: usize| {
            let body = json!({"owner": owners[at], "amount": GRANT, "create": true}).to_string();
            RawRequest::post(self.address, "/v1/operator/grants", &headers, body.as_bytes())
        };
        let done = send_all(self.address, owners.len(), request_for, |status, _| {
            status.is_success().then_some(())
        });
        done.map(drop)
    }

    /// Registers registry agents that fetch their jobs.
    pub fn register_agents(&self, agents: &[NewAgent]) -> io::Result<Vec<BenchAgent>> {
        let request_for = |at: usize| agents[at].request(self.address);
        send_all(self.address, agents.len(), request_for, read_agent)
    }
}

/// Agents of the same owner, where many are registered.
const AGENTS_PER_OWNER: usize = 100;

impl BenchHub {
    /// Registers `count` workers; each owner has a hundred.
    pub fn register_crowd(
        &self,
        count: usize,
        skill_of: impl Fn(usize) -> (String, u32),
    ) -> io::Result<()> {
        let worker = |at: usize| {
            let (skill, cents) = skill_of(at);
            NewAgent::worker(format!("crowd-{}", at / AGENTS_PER_OWNER), skill, cents)
        };
        let firsts: Vec<_> = (0..count).step_by(AGENTS_PER_OWNER).map(worker).collect();
        let firsts = self.register_agents(&firsts)?;
        let others: Vec<_> = (0..count)
            .filter(|at| at % AGENTS_PER_OWNER != 0)
            .map(|at| NewAgent {
                owner_key: Some(firsts[at / AGENTS_PER_OWNER].key.clone()),
                ..worker(at)
            })
            .collect();
        self.register_agents(&others).map(drop)
    }
}

/// The first thing in a hub's output that `find` makes something of. Its sentences differ between
/// versions; an address and a key look the same in all.
fn find_in_output<T>(server: &ServerProcess, find: impl Fn(&str) -> Option<T>) -> Option<T> {
    loop {
        let line = server.next_line(START_TIMEOUT)?;
        if let Some(value) = line.split_whitespace().find_map(&find) {
            return Some(value);
        }
    }
}

fn read_address(word: &str) -> Option<SocketAddr> {
    word.strip_prefix("http://")?.parse().ok()
}

fn read_operator_key(word: &str) -> Option<String> {
    word.starts_with("ro_").then(|| word.to_owned())
}

fn raised_limits(further: &[(&str, &str)]) -> Vec<(String, String)> {
    let all = SETTINGS.iter().chain(further);
    all.map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

/// Whether the hub reports that it accepts writes.
pub fn is_ready(address: SocketAddr) -> bool {
    get(address, "/readyz").is_ok_and(|answer| answer.starts_with("HTTP/1.1 200"))
}

/// The whole answer to a GET request, head and body.
pub fn get(address: SocketAddr, path: &str) -> io::Result<String> {
    get_with(address, path, "")
}

/// The same with further header lines, each with its line break.
fn get_with(address: SocketAddr, path: &str, headers: &str) -> io::Result<String> {
    let mut stream = TcpStream::connect_timeout(&address, Duration::from_millis(200))?;
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    write!(stream, "GET {path} HTTP/1.1\r\nhost: {address}\r\n{headers}connection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

/// The header lines of a JSON body from the holder of `key`.
pub fn json_headers(key: &str) -> String {
    format!("authorization: Bearer {key}\r\ncontent-type: application/json\r\n")
}

/// A registry agent to register.
#[derive(Clone, Debug)]
pub struct NewAgent {
    pub owner: String,
    /// A skill and its price in hundredths of a credit.
    pub skill: Option<(String, u32)>,
    /// The key of another agent of the same owner, if there is one.
    pub owner_key: Option<String>,
}

impl NewAgent {
    /// An agent that only requests work.
    pub fn requester(owner: impl Into<String>) -> Self {
        Self { owner: owner.into(), skill: None, owner_key: None }
    }

    /// An agent with one skill.
    pub fn worker(owner: impl Into<String>, skill: impl Into<String>, cents: u32) -> Self {
        Self { owner: owner.into(), skill: Some((skill.into(), cents)), owner_key: None }
    }

    /// Its registration (registry, `POST /register`).
    pub fn request(&self, hub: SocketAddr) -> RawRequest {
        let skills: Vec<Value> = self.skill.iter().map(skill_json).collect();
        let body =
            json!({"agent_name": "benchmark agent", "owner_id": self.owner, "skills": skills});
        let headers = match &self.owner_key {
            Some(key) => json_headers(key),
            None => "content-type: application/json\r\n".to_owned(),
        };
        RawRequest::post(hub, "/registry/register", &headers, body.to_string().as_bytes())
    }
}

fn skill_json((name, cents): &(String, u32)) -> Value {
    let price = f64::from(*cents) / 100.0;
    json!({"skill_name": name, "description": "benchmark", "cost_per_call": price})
}

/// An agent and its key.
#[derive(Clone, Debug)]
pub struct BenchAgent {
    pub id: Uuid,
    pub key: String,
}

fn read_agent(status: StatusCode, answer: &[u8]) -> Option<BenchAgent> {
    let answer: Value = serde_json::from_slice(answer).ok().filter(|_| status.is_success())?;
    let id = answer["agent_id"].as_str()?.parse().ok()?;
    Some(BenchAgent { id, key: answer["api_key"].as_str()?.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_told_apart_by_name_or_by_number() {
        let paths = |names: &[&str]| names.iter().map(PathBuf::from).collect::<Vec<_>>();
        assert_eq!(labels(&paths(&["a/rialto"])), [""]);
        assert_eq!(labels(&paths(&["a/old", "b/new"])), ["old", "new"]);
        assert_eq!(labels(&paths(&["a/rialto", "b/rialto"])), ["rialto#1", "rialto#2"]);
    }

    #[test]
    fn addresses_and_keys_are_found_in_any_sentence() {
        let address = |line: &str| line.split_whitespace().find_map(read_address);
        let expected = Some(([127, 0, 0, 1], 7425).into());
        assert_eq!(address("rialto 0.1.0 is listening on http://127.0.0.1:7425"), expected);
        assert_eq!(address("rialto 0.1.0 listens on http://127.0.0.1:7425"), expected);
        assert_eq!(address("see https://hub.example or http://localhost"), None);
        let key = |line: &str| line.split_whitespace().find_map(read_operator_key);
        assert_eq!(key("operator key (shown only once): ro_1f").as_deref(), Some("ro_1f"));
        assert_eq!(key("zero_"), None);
    }

    #[test]
    fn a_program_that_does_not_exist_is_refused() {
        let error = HubBinary::all(&["no/such/hub".into()]).unwrap_err().to_string();
        assert!(error.contains("no/such/hub not found"), "{error}");
    }

    #[test]
    fn only_a_registration_with_a_key_gives_an_agent() {
        let id = "0b7e1a52-4a39-4d50-9c66-9f0a3c9a7d11";
        let answer = json!({"status": "registered", "agent_id": id, "api_key": "rk_1"}).to_string();
        let agent = read_agent(StatusCode::CREATED, answer.as_bytes()).unwrap();
        assert_eq!((agent.id.to_string().as_str(), agent.key.as_str()), (id, "rk_1"));
        assert!(read_agent(StatusCode::CONFLICT, answer.as_bytes()).is_none());
        assert!(read_agent(StatusCode::OK, br#"{"agent_id":"x"}"#).is_none());
    }
}

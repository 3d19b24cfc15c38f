//! A hub in its own process, with the highest possible limit of file handles.

use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::kit::{Lines, Reply, http, in_time};
use crate::relay::kit::Peer;

/// The hub process; it is killed when dropped.
pub struct HubProcess {
    pub url: String,
    pub address: SocketAddr,
    pub http: reqwest::Client,
    child: Child,
    _data: TempDir,
}

impl HubProcess {
    /// A hub with these settings and those that every crowd needs.
    pub fn open(settings: &[(&str, &str)]) -> Self {
        let data = TempDir::new().expect("a directory");
        let crowd = [
            ("http.max_connections", "100000"),
            ("http.max_connections_per_address", "100000"),
            ("egress.allow", "127.0.0.0/8"),
            ("egress.per_host_per_minute", "0"),
            ("limits.writes_per_minute", "0"),
            ("limits.read_bytes_per_minute", "0"),
            ("limits.wrong_keys_per_minute", "0"),
            ("limits.registrations_per_minute", "0"),
            ("limits.registrations_per_minute_total", "0"),
        ];
        let all = crowd.iter().chain(settings);
        let set = all.flat_map(|(key, value)| ["--set".to_owned(), format!("{key}={value}")]);
        let mut child = Command::new("sh")
            .args(["-c", r#"ulimit -n "$(ulimit -Hn)"; exec "$@""#, "sh"])
            .arg(env!("CARGO_BIN_EXE_rialto"))
            .args(["serve", "--listen", "127.0.0.1:0", "--data"])
            .arg(data.path())
            .args(set)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the binary starts");
        let url = Lines::of(child.stdout.take()).address().1;
        let url = url.expect("the hub greets before it ends");
        let address = url.trim_start_matches("http://").parse().expect("an address");
        let http = http();
        Self { url, address, http, child, _data: data }
    }

    /// Its resident memory, in bytes.
    pub fn memory(&self) -> u64 {
        let path = format!("/proc/{}/status", self.child.id());
        let status = std::fs::read_to_string(path).expect("it is alive");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a size");
        let kibibytes: u64 = line.trim().trim_end_matches("kB").trim().parse().expect("a number");
        kibibytes * 1_024
    }

    /// Checks that its memory has not grown by more than this.
    #[track_caller]
    pub fn assert_within(&self, before: u64, allowance: u64, what: &str) {
        let grown = self.memory().saturating_sub(before);
        assert!(grown <= allowance, "{what}: {grown} bytes more, and {allowance} are allowed");
        println!("{what}: {} KiB more (at most {})", grown >> 10, allowance >> 10);
    }

    pub async fn post(&self, path: &str, key: Option<&str>, body: &Value) -> Reply {
        let mut request = self.http.post(format!("{}{path}", self.url)).body(body.to_string());
        if let Some(key) = key {
            request = request.bearer_auth(key);
        }
        Reply::to(request).await
    }

    pub async fn get(&self, path: &str, key: Option<&str>) -> Reply {
        let mut request = self.http.get(format!("{}{path}", self.url));
        if let Some(key) = key {
            request = request.bearer_auth(key);
        }
        Reply::to(request).await
    }

    /// Registers a relay agent.
    pub async fn join(&self, name: &str) -> Peer {
        let reply = self.post("/relay/register", None, &json!({"agent_id": name})).await;
        let reply = reply.expect(201);
        Peer { id: reply.str("/data/agent_id"), key: reply.str("/data/api_key") }
    }

    pub async fn say(&self, from: &Peer, to: &Peer, text: &str) -> Reply {
        let body = crate::relay::kit::message(&from.id, &to.id, text);
        self.post("/relay/messages", Some(&from.key), &body).await
    }

    /// Registers a registry agent with one free skill; without an endpoint it polls.
    pub async fn agent(&self, owner: &str, skill: &str, endpoint: Option<&str>) -> Peer {
        let mut body = json!({"agent_name": owner, "owner_id": owner,
            "skills": [{"skill_name": skill, "cost_per_call": 0}]});
        if let Some(endpoint) = endpoint {
            body["api_endpoint"] = endpoint.into();
        }
        let reply = self.post("/registry/register", None, &body).await.expect(201);
        Peer { id: reply.str("/agent_id"), key: reply.str("/api_key") }
    }

    /// Sends these bytes and reads until the hub closes.
    pub async fn raw(&self, bytes: &[u8]) -> String {
        let mut stream = TcpStream::connect(self.address).await.expect("it listens");
        let mut answer = Vec::new();
        in_time(async {
            // The hub need not read all of it.
            let _ = stream.write_all(bytes).await;
            let _ = stream.read_to_end(&mut answer).await;
        })
        .await;
        String::from_utf8_lossy(&answer).into_owned()
    }
}

impl Drop for HubProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

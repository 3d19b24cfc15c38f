//! A hub in its own process: its memory after a storm of requests and after a restart.

use std::path::Path;

use futures_util::future::join_all;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::clara::kit::Wallet;
use crate::kit::{Process, http};

/// Memory that may remain after a storm: kept by allocators and connection buffers. None of it is
/// content of the requests, of which one alone had a tenth of this.
const LEFT_BEHIND: u64 = 24 << 20;
/// Memory that may remain after a restart: the earlier agents, what a start reads, and nothing of the
/// storm. About 12 MiB in a debug build.
const RESTARTED: u64 = 16 << 20;
/// Disk space that may remain: the records of executed signed orders.
const ON_DISK: u64 = 4 << 20;

/// Bytes of memory a process has in use.
fn memory(process: &Process) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", process.id()));
    let status = status.expect("it is alive");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a size");
    line.trim().trim_end_matches("kB").trim().parse::<u64>().expect("a number") << 10
}

/// Bytes of all files of a data directory.
fn disk(dir: &Path) -> u64 {
    let files = std::fs::read_dir(dir).expect("a directory");
    files.map(|file| file.expect("a file").metadata().expect("its size").len()).sum()
}

fn start(dir: &Path) -> Process {
    let unlimited = [
        "--set",
        "limits.registrations_per_minute=0",
        "--set",
        "limits.registrations_per_minute_total=0",
        "--set",
        "limits.writes_per_minute=0",
        "--set",
        "limits.read_bytes_per_minute=0",
    ];
    Process::start("serve", dir, &unlimited)
}

struct Caller<'h> {
    url: &'h str,
    http: reqwest::Client,
}

impl Caller<'_> {
    async fn send(&self, request: reqwest::RequestBuilder, status: u16) -> Vec<u8> {
        let answer = request.send().await.expect("an answer");
        assert_eq!(answer.status().as_u16(), status);
        answer.bytes().await.expect("a body").to_vec()
    }

    async fn post(&self, path: &str, key: Option<String>, body: &Value, status: u16) -> Vec<u8> {
        let mut request = self.http.post(format!("{}{path}", self.url)).body(body.to_string());
        if let Some(key) = key {
            request = request.header("idempotency-key", key);
        }
        self.send(request, status).await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_storm_and_after_a_restart_the_hub_has_the_memory_it_had_before() {
    let dir = TempDir::new().expect("a directory");
    let hub = start(dir.path());
    let caller = Caller { url: &hub.url, http: http() };
    let schema = json!({"type": "object", "description": "d".repeat(15_000)});
    for number in 0..12 {
        let skill = |name: String| {
            json!({"skill_name": name, "cost_per_call": 0,
            "input_schema": schema, "output_schema": schema})
        };
        let skills =
            [skill("long".to_owned()), skill(format!("b{number}")), skill(format!("c{number}"))];
        let body =
            json!({"agent_name": "long", "owner_id": format!("o{number}"), "skills": skills});
        caller.post("/registry/register", None, &body, 201).await;
    }
    // Each once, so that everything allocated once exists before the measurement.
    let question = json!({"skill": "long", "limit": 200});
    let list = [("Action", "List-Agents")];
    caller.post("/discover", None, &question, 200).await;
    let item = Wallet::of(1).item(&list, b"");
    caller.send(caller.http.post(format!("{}/clara/mu", hub.url)).body(item), 202).await;
    let (memory_before, disk_before) = (memory(&hub), disk(dir.path()));

    // A read with a new idempotency key each time.
    for number in 0..300 {
        caller.post("/discover", Some(format!("storm {number}")), &question, 200).await;
    }
    // Signed reads, each a new message.
    for _ in 0..100 {
        let item = Wallet::of(1).item(&list, b"");
        caller.send(caller.http.post(format!("{}/clara/mu", hub.url)).body(item), 202).await;
    }
    // Many long responses at once.
    for _ in 0..4 {
        let paths = [
            "/discover?skill=long&limit=200",
            "/openclaw/agents?limit=200",
            "/v1/agents?limit=200",
        ];
        let asked = (0..48).map(|at| {
            let path = paths[at % paths.len()];
            caller.send(caller.http.get(format!("{}{path}", hub.url)), 200)
        });
        join_all(asked).await;
    }
    let left = memory(&hub).saturating_sub(memory_before);
    println!("after the storm: {} KiB more (at most {})", left >> 10, LEFT_BEHIND >> 10);
    assert!(left <= LEFT_BEHIND, "the storm left {left} bytes in memory");
    hub.kill();

    let again = start(dir.path());
    let http = http();
    let request = http.get(format!("{}/discover?skill=long", again.url));
    assert_eq!(request.send().await.expect("an answer").status().as_u16(), 200);
    let left = memory(&again).saturating_sub(memory_before);
    println!("after a restart: {} KiB more (at most {})", left >> 10, RESTARTED >> 10);
    assert!(left <= RESTARTED, "{left} bytes remain after a restart");
    again.kill();
    let grown = disk(dir.path()).saturating_sub(disk_before);
    println!("on disk: {} KiB more (at most {})", grown >> 10, ON_DISK >> 10);
    assert!(grown <= ON_DISK, "the storm left {grown} bytes on disk");
}

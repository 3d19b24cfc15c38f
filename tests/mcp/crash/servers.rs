//! SIGKILL of an agent that sells an MCP server, of the server and of the hub, in turns, while a tool is
//! called that must not be called twice: one job, one payment, at most one call.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::clients::register;
use crate::kit::{
    Dice, Process, Reply, SEED, assert_audit_is_clean, digits, eventually, http, seed,
};
use crate::servers::kit::{fixture, lines, place};
use crate::servers::runtime::{Place, Runtime};

const ROUNDS: u64 = 15;
/// How long a call takes, and the latest moment of a kill.
const CALL_MS: u64 = 80;
const KILL_WITHIN_MS: u64 = 160;
/// An address from which no client of another test connects, so that its port stays free.
const TO_COME_BACK: &str = if cfg!(target_os = "linux") { "127.0.3.1:0" } else { "127.0.0.1:0" };

struct Buyer {
    url: String,
    key: String,
}

impl Buyer {
    /// Posts a job under an id of its own, as often as it takes until the hub has it.
    async fn post(&self, id: &str) {
        let body = json!({"id": id, "skill": "append", "budget": 0.10,
            "input": {"text": id, "ms": CALL_MS}});
        eventually(async || {
            let request = http().post(format!("{}/v1/jobs", self.url)).bearer_auth(&self.key);
            match request.body(body.to_string()).send().await {
                Ok(answer) if answer.status().is_success() => true,
                Ok(answer) => {
                    let text = answer.text().await.unwrap_or_default();
                    // The agent is not back yet.
                    assert!(text.contains("offline") || text.contains("no_such_skill"), "{text}");
                    false
                }
                Err(_) => false,
            }
        })
        .await;
    }

    /// Waits for the end of a job.
    async fn ended(&self, id: &str) -> Value {
        let mut job = Value::Null;
        eventually(async || {
            let request = http().get(format!("{}/v1/jobs/{id}", self.url)).bearer_auth(&self.key);
            let Ok(answer) = request.send().await else { return false };
            let text = answer.text().await.unwrap_or_default();
            job = serde_json::from_str(&text).unwrap_or_default();
            !job["ended_at"].is_null()
        })
        .await;
        job
    }
}

fn start_hub(data: &TempDir, address: &str) -> Process {
    Process::at(address, "dev", data.path(), &[], &[])
}

fn start_agent(place: &Place, url: &str) -> Runtime {
    let command = fixture("--only append");
    place.run("said", &["--mcp", &command, "--price", "0.05", "--name", "writer", "--hub", url])
}

/// Waits until the agent is online.
async fn back(url: &str) {
    let list = format!("{url}/v1/agents?skill=append&online=true");
    eventually(async || {
        let Ok(answer) = http().get(&list).send().await else { return false };
        let found: Value =
            serde_json::from_str(&answer.text().await.unwrap_or_default()).unwrap_or_default();
        found["items"].as_array().is_some_and(|agents| !agents.is_empty())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn kills_of_agent_server_and_hub_make_no_call_twice_and_pay_no_job_twice() {
    let seed = seed();
    println!("{SEED}={seed}");
    let (mut dice, place) = (Dice(seed), place());
    let data = TempDir::new().expect("a directory");
    let mut hub = start_hub(&data, TO_COME_BACK);
    let url = hub.url.clone();
    // The agent knows one address, so every later hub listens at the first one's.
    let address = url.trim_start_matches("http://").to_owned();
    let buyer = Buyer { url: url.clone(), key: register(&url, "buyer").await };
    let mut runtime = start_agent(&place, &url);
    let mut done = 0;
    let mut ends = BTreeMap::new();
    for round in 0..ROUNDS {
        back(&url).await;
        let id = format!("00000000-0000-4000-8000-{round:012}");
        let kill = async {
            // The random moment is the point of the test, so a real sleep is right here.
            tokio::time::sleep(Duration::from_millis(dice.roll(KILL_WITHIN_MS))).await;
        };
        tokio::join!(buyer.post(&id), kill);
        match round % 3 {
            0 => {
                runtime.kill();
                runtime = start_agent(&place, &url);
            }
            1 => {
                let pid = lines(&place, "starts").pop().expect("it was started");
                let killed = std::process::Command::new("kill").args(["-KILL", &pid]).status();
                assert!(killed.expect("kill runs").success());
            }
            _ => {
                hub.kill();
                assert_audit_is_clean(data.path());
                hub = start_hub(&data, &address);
            }
        }
        let job = buyer.ended(&id).await;
        let calls = lines(&place, "calls").iter().filter(|line| **line == id).count();
        let state = job["state"].as_str().expect("a state").to_owned();
        match state.as_str() {
            "completed" => {
                assert_eq!((calls, job["paid"].to_string()), (1, "0.05".to_owned()), "{job}");
                done += 1;
            }
            _ => assert!(calls <= 1 && job["paid"].as_f64() == Some(0.0), "{calls} calls: {job}"),
        }
        *ends.entry(state).or_insert(0) += 1;
    }
    println!("{ends:?}");
    let request = http().get(format!("{url}/v1/me")).bearer_auth(&buyer.key);
    let me = Reply::to(request).await.expect(200).text;
    let left = 10_000 - 5 * done;
    let left = format!("{}.{:02}", left / 100, left % 100);
    assert_eq!((digits(&me, "available"), digits(&me, "held")), (left, "0.00".to_owned()));
    runtime.kill();
    hub.kill();
    assert_audit_is_clean(data.path());
}

//! SIGKILL of working agents, and of their hub: no job is lost, none is paid twice, and none is run
//! twice.
//!
//! Jobs arrive all the time, each takes a moment, and every so often a process is killed. The
//! handler records its begin and end, so that runs can be counted.

use std::collections::BTreeMap;
use std::time::Duration;

use reqwest::Client;
use serde_json::{Value, json};
use tempfile::TempDir;
use uuid::Uuid;

use super::kit::{Place, Runtime};
use crate::crash::{Dice, TO_COME_BACK, assert_audit_is_clean, seed, start, start_at};
use crate::kit::{http, operator_key};

const AGENT_KILLS: usize = 100;
const HUB_KILLS: usize = 50;
/// Maximum pause between two kills, in milliseconds.
const PAUSE_MS: u64 = 250;
/// The time limit for everything to settle after the last kill.
const TIME_LIMIT: Duration = Duration::from_secs(120);

/// Takes up to a quarter of a second, and records its begin and end.
const HANDLER: &str = r#"
read job
id=$(printf %s "$job" | sed 's/.*"job_id":"\([^"]*\)".*/\1/')
echo "begin $id" >>runs
sleep 0.$(( $(printf %d "0x$(printf %.4s "$id")") % 25 + 10 ))
echo "end $id" >>runs
echo "{\"id\":\"$id\"}"
"#;

/// A requester that posts jobs and records which were accepted.
struct Boss {
    http: Client,
    url: String,
    key: String,
    posted: Vec<Uuid>,
}

impl Boss {
    async fn hired(url: &str) -> Self {
        let http = http();
        let body = json!({"agent_name": "boss", "owner_id": "boss", "skills": []});
        let answer =
            http.post(format!("{url}/registry/register")).body(body.to_string()).send().await;
        let answer = value(answer.expect("an answer")).await;
        let key = answer["api_key"].as_str().expect("a key").to_owned();
        let grant = json!({"owner": "boss", "amount": 1000, "create": true});
        let granted = http
            .post(format!("{url}/v1/operator/grants"))
            .bearer_auth(operator_key())
            .body(grant.to_string())
            .send()
            .await
            .expect("an answer");
        assert!(granted.status().is_success());
        Self { http, url: url.to_owned(), key, posted: Vec::new() }
    }

    /// Posts a job; an unacknowledged one is posted again under its id until it is acknowledged.
    async fn post(&mut self) {
        let id = Uuid::from_u128(rand_u128());
        let body = json!({"id": id, "skill": "slow", "input": {}, "budget": 0.10});
        let url = format!("{}/v1/jobs", self.url);
        let request = self.http.post(url).bearer_auth(&self.key).body(body.to_string());
        match request.send().await {
            Ok(answer) if answer.status().is_success() => self.posted.push(id),
            Ok(answer) => {
                let text = answer.text().await.unwrap_or_default();
                // On a busy machine the agent may have been away for too long.
                assert!(text.contains("offline"), "{text}");
            }
            // The hub was killed: it is unknown whether it accepted the job.
            Err(_) => {}
        }
    }

    async fn job(&self, id: Uuid) -> Option<Value> {
        let url = format!("{}/v1/jobs/{id}", self.url);
        let answer = self.http.get(url).bearer_auth(&self.key).send().await.ok()?;
        Some(value(answer).await)
    }

    /// Waits until every acknowledged job has ended.
    async fn all_ended(&self) -> Vec<Value> {
        let all = async {
            let mut ended = Vec::new();
            for id in &self.posted {
                loop {
                    match self.job(*id).await {
                        Some(job) if !job["ended_at"].is_null() => break ended.push(job),
                        _ => tokio::time::sleep(Duration::from_millis(20)).await,
                    }
                }
            }
            while self.is_any_left().await {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            ended
        };
        tokio::time::timeout(TIME_LIMIT, all).await.expect("every job ends")
    }
}

impl Boss {
    /// Whether any job is unfinished, including unacknowledged ones.
    async fn is_any_left(&self) -> bool {
        let url = format!("{}/v1/jobs?state=live", self.url);
        let Ok(answer) = self.http.get(url).bearer_auth(&self.key).send().await else {
            return true;
        };
        let live = value(answer).await;
        live["items"].as_array().is_none_or(|items| !items.is_empty())
    }
}

/// The response body; null if it was truncated.
async fn value(answer: reqwest::Response) -> Value {
    serde_json::from_str(&answer.text().await.unwrap_or_default()).unwrap_or_default()
}

fn rand_u128() -> u128 {
    use rialto_engine::random::{OsRandom, RandomSource};
    OsRandom.new_uuid().as_u128()
}

fn agent(place: &Place, url: &str) -> Runtime {
    let flags = ["--skill", "slow", "--price", "0.05", "--exec", "sh handler.sh"];
    place.run("said", &[&flags[..], &["--hub", url, "--name", "slow"]].concat())
}

async fn is_listed(boss: &Boss) {
    let listed = async {
        loop {
            let url = format!("{}/registry/discover?skill=slow", boss.url);
            let found = match boss.http.get(url).send().await {
                Ok(answer) => value(answer).await,
                Err(_) => Value::Null,
            };
            if found["total"] == 1 {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(TIME_LIMIT, listed).await.expect("it is listed");
}

/// How often each job's handler began and ended.
fn runs(place: &Place) -> BTreeMap<String, (usize, usize)> {
    let mut runs = BTreeMap::<String, (usize, usize)>::new();
    for line in place.text("runs").lines() {
        match line.split_once(' ') {
            Some(("begin", id)) => runs.entry(id.to_owned()).or_default().0 += 1,
            Some(("end", id)) => runs.entry(id.to_owned()).or_default().1 += 1,
            _ => panic!("unexpected line: {line}"),
        }
    }
    runs
}

/// Checks that every job was run once and paid once, and has its own result.
async fn assert_all_is_well(boss: &Boss, place: &Place) {
    let ended = boss.all_ended().await;
    let runs = runs(place);
    for job in &ended {
        let id = job["id"].as_str().expect("an id");
        assert_eq!(job["state"], "completed", "{job}");
        assert_eq!(job["paid"], json!(0.05), "{job}");
        assert_eq!(job["result"]["output"]["id"], id, "{job}");
        assert_eq!(runs.get(id), Some(&(1, 1)), "{id} was not run exactly once");
    }
    // An unacknowledged job was run at most once as well.
    assert!(runs.values().all(|(_, ends)| *ends <= 1), "{runs:?}");
    let account = boss
        .http
        .get(format!("{}/v1/accounts/boss", boss.url))
        .bearer_auth(operator_key())
        .send()
        .await
        .expect("an answer")
        .text()
        .await
        .expect("text");
    let cents = 100_000 - 5 * runs.len();
    let wanted = format!("\"available\":{}.{:02}", cents / 100, cents % 100);
    assert!(account.contains(&wanted), "{wanted} is not in {account}: a job was paid twice or not");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_kills_of_an_agent_lose_no_job_and_repeat_none() {
    let seed = seed();
    println!("RIALTO_CRASH_SEED={seed}");
    let (mut dice, data, place) = (Dice(seed), TempDir::new().expect("a directory"), Place::new());
    place.file("handler.sh", HANDLER);
    let hub = start(data.path());
    let mut boss = Boss::hired(&hub.url).await;
    let mut runtime = agent(&place, &hub.url);
    is_listed(&boss).await;
    for _ in 0..AGENT_KILLS {
        boss.post().await;
        tokio::time::sleep(Duration::from_millis(dice.roll(PAUSE_MS))).await;
        runtime.kill();
        runtime = agent(&place, &hub.url);
    }
    assert_all_is_well(&boss, &place).await;
    assert_eq!(boss.posted.len(), AGENT_KILLS, "every job was accepted");
    runtime.kill();
    hub.kill();
    assert_audit_is_clean(data.path());
}

#[tokio::test(flavor = "multi_thread")]
async fn fifty_kills_of_the_hub_lose_no_job_and_pay_none_twice() {
    let seed = seed();
    println!("RIALTO_CRASH_SEED={seed}");
    let (mut dice, data, place) = (Dice(seed), TempDir::new().expect("a directory"), Place::new());
    place.file("handler.sh", HANDLER);
    let mut hub = start_at(data.path(), TO_COME_BACK);
    let mut boss = Boss::hired(&hub.url).await;
    // The agent knows one address, so every later hub listens at the first one's.
    let address = hub.url.trim_start_matches("http://").to_owned();
    let runtime = agent(&place, &hub.url);
    is_listed(&boss).await;
    for _ in 0..HUB_KILLS {
        boss.post().await;
        tokio::time::sleep(Duration::from_millis(dice.roll(PAUSE_MS))).await;
        hub.kill();
        hub = start_at(data.path(), &address);
    }
    assert_all_is_well(&boss, &place).await;
    runtime.kill();
    hub.kill();
    assert_audit_is_clean(data.path());
}

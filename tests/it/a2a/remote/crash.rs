//! SIGKILL while a task at another server is followed: its client loses no event and gets none
//! twice, the server gets each message once, and the money is exact (R65, R99).

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::watch;

use super::server::Puppet;
use crate::a2a::kit::{hire_message, id, state, text_message};
use crate::crash::{Dice, SEED, assert_audit_is_clean, moved, seed, start};
use crate::kit::{digits, http, in_time, operator_key};
use crate::relay::kit::events;

const ROUNDS: usize = 25;
/// The kill comes within this time after the task was ordered, in milliseconds.
const KILL_MS: u64 = 150;
/// The longest pause between two events of the worker, in milliseconds.
const PAUSE_MS: u64 = 20;
/// The texts of a task's artifact.
const CHUNKS: [&str; 6] = ["one ", "two ", "three ", "four ", "five ", "six"];
const BASE: &str = "/a2a/agents/geo";

/// A client that follows the hub to its current address.
#[derive(Clone)]
struct Client {
    http: reqwest::Client,
    urls: watch::Receiver<String>,
    key: String,
}

impl Client {
    /// Sends until there is an answer. A repeat has the effect of the first.
    async fn send(&mut self, repeat: &str, message: &Value) -> Value {
        let body = json!({"message": message, "configuration": {"returnImmediately": true}});
        loop {
            let url = self.urls.borrow_and_update().clone();
            let request = self.http.post(format!("{url}{BASE}/message:send"));
            let request = request.bearer_auth(&self.key).header("a2a-version", "1.0");
            let request = request.header("idempotency-key", repeat).body(body.to_string());
            if let Ok(answer) = request.send().await {
                let status = answer.status();
                if let Ok(text) = answer.text().await {
                    assert_eq!(status, 200, "{text}");
                    let answer: Value = serde_json::from_str(&text).expect("JSON");
                    return answer["task"].clone();
                }
            }
            moved(&mut self.urls).await.expect("the hub comes back");
        }
    }

    /// Orders a task and follows it to its end; returns its id and its events by their positions.
    async fn order(mut self, round: usize) -> (String, BTreeMap<u64, Value>) {
        let message = hire_message(&format!("m-{round}"), "count", json!({"budget": "0.25"}));
        let task = id(&self.send(&format!("order-{round}"), &message).await);
        let mut seen = BTreeMap::new();
        loop {
            let url = self.urls.borrow_and_update().clone();
            let last = seen.keys().next_back().copied().unwrap_or(1_u64);
            let path = format!("{url}{BASE}/tasks/{task}:subscribe");
            let request = self.http.post(path).bearer_auth(&self.key);
            let request = request.header("a2a-version", "1.0").header("last-event-id", last);
            if let Ok(mut answer) = request.send().await {
                assert_eq!(answer.status(), 200);
                let mut bytes = Vec::new();
                while let Ok(Some(more)) = answer.chunk().await {
                    bytes.extend_from_slice(&more);
                    for event in events(&mut bytes) {
                        let before = seen.insert(event.position(), event.data.clone());
                        assert_eq!(before, None, "{} came twice", event.position());
                        match event.data["statusUpdate"]["status"]["state"].as_str() {
                            Some("TASK_STATE_COMPLETED") => return (task, seen),
                            Some("TASK_STATE_INPUT_REQUIRED") => {
                                let mut answer = text_message(&format!("a-{round}"), "six");
                                answer["taskId"] = task.clone().into();
                                self.send(&format!("answer-{round}"), &answer).await;
                            }
                            _ => {}
                        }
                    }
                }
            }
            moved(&mut self.urls).await.expect("the hub comes back");
        }
    }
}

/// Does one task, with pauses; asks in the middle of some.
async fn work(puppet: &Puppet, asks: bool, mut dice: Dice) -> String {
    let task = puppet.task().await;
    for (number, chunk) in CHUNKS.iter().enumerate() {
        // The random moments are the point of the test, so real sleeps are right here.
        tokio::time::sleep(Duration::from_millis(dice.roll(PAUSE_MS))).await;
        puppet.says(&task, "TASK_STATE_WORKING", &format!("w-{number}"), chunk);
        puppet.text(&task, "count", chunk, number > 0);
        if asks && number == 2 {
            puppet.says(&task, "TASK_STATE_INPUT_REQUIRED", "q-1", "How far?");
            let works = async || puppet.snapshot(&task)["history"].to_string().contains("\"six\"");
            crate::kit::eventually(works).await;
        }
    }
    puppet.status(&task, "TASK_STATE_COMPLETED", None);
    task
}

/// Every event is there, each once and in the order of the worker.
fn assert_complete(round: usize, seen: &BTreeMap<u64, Value>) {
    let positions: Vec<u64> = seen.keys().copied().collect();
    assert_eq!(positions, (2..=seen.len() as u64 + 1).collect::<Vec<_>>(), "round {round}");
    let chunks = seen.values().filter_map(|event| {
        let parts = event["artifactUpdate"]["artifact"]["parts"].as_array()?;
        Some(parts.iter().map(|part| part["text"].as_str().expect("a text")).collect::<String>())
    });
    assert_eq!(chunks.collect::<String>(), CHUNKS.concat(), "round {round}: {seen:#?}");
    let said = seen.values().filter_map(|event| {
        let message = &event["statusUpdate"]["status"]["message"];
        message["messageId"].as_str().filter(|id| id.starts_with("w-"))
    });
    let said: Vec<&str> = said.collect();
    let expected: Vec<String> = (0..CHUNKS.len()).map(|number| format!("w-{number}")).collect();
    assert_eq!(said, expected, "round {round}: {seen:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn kills_while_tasks_are_followed_lose_no_event_and_send_no_message_twice() {
    let seed = seed();
    println!("{SEED}={seed}");
    let mut dice = Dice(seed);
    let data = tempfile::TempDir::new().expect("a directory");
    let puppet = Puppet::start().await;
    let mut hub = start(data.path());
    let http = http();
    let post = async |url: &str, path: &str, key: Option<&str>, body: Value| -> Value {
        let request = http.post(format!("{url}{path}")).body(body.to_string());
        let request = key.into_iter().fold(request, |request, key| request.bearer_auth(key));
        let text = request.send().await.expect("an answer").text().await.expect("a text");
        serde_json::from_str(&text).expect("JSON")
    };
    let body = json!({"card_url": puppet.card_url(), "name": "geo", "prices": {"route": "0.25"}});
    let geo = post(&hub.url, "/a2a/agents", None, body).await;
    puppet.change_card(|card| card["capabilities"]["extensions"] = json!([geo["proof"]]));
    let key = geo["api_key"].as_str().expect("a key");
    let refreshed = post(&hub.url, "/a2a/agents/geo/refresh", Some(key), json!({})).await;
    assert_eq!(refreshed["skills"][0]["price"], "0.25", "{refreshed}");
    let client = post(&hub.url, "/a2a/agents", None, json!({"name": "client"})).await;
    let operator = operator_key();
    let grant = json!({"owner_id": "a2a:client", "initial_balance": 100});
    post(&hub.url, "/registry/accounts", Some(&operator), grant).await;
    let (url, urls) = watch::channel(hub.url.clone());
    let key = client["api_key"].as_str().expect("a key").to_owned();
    let client = Client { http: http.clone(), urls, key };
    for round in 0..ROUNDS {
        let asks = round % 4 == 3;
        let order = tokio::spawn(client.clone().order(round));
        let (pause, own_dice) = (dice.roll(KILL_MS), Dice(dice.roll(u64::MAX)));
        let dir = data.path().to_owned();
        let (task, next) = tokio::join!(in_time(work(&puppet, asks, own_dice)), async {
            tokio::time::sleep(Duration::from_millis(pause)).await;
            hub.kill();
            let next = tokio::task::spawn_blocking(move || start(&dir)).await;
            let next = next.expect("it starts");
            url.send_replace(next.url.clone());
            next
        });
        hub = next;
        let (own, seen) = in_time(order).await.expect("no panic");
        assert_complete(round, &seen);
        assert_eq!(state(&puppet.snapshot(&task)), "TASK_STATE_COMPLETED", "it was not canceled");
        let ids = puppet.message_ids();
        let of_round: Vec<&String> = ids.iter().filter(|id| id.contains(&own)).collect();
        let mut expected = vec![format!("m-{round}.{own}-1")];
        expected.extend(asks.then(|| format!("a-{round}.{own}-2")));
        assert_eq!(of_round, expected.iter().collect::<Vec<_>>(), "round {round}");
    }
    assert_eq!(puppet.task_count(), ROUNDS);
    for (owner, balance) in [("a2a:client", "93.75"), ("a2a:geo", "6.25")] {
        let path = format!("{}/registry/accounts/{owner}", hub.url);
        let request = http.get(path).bearer_auth(&operator);
        let text = request.send().await.expect("an answer").text().await.expect("a text");
        assert_eq!(
            (digits(&text, "balance"), digits(&text, "held")),
            (balance.to_owned(), "0.00".to_owned())
        );
    }
    hub.kill();
    assert_audit_is_clean(data.path());
}

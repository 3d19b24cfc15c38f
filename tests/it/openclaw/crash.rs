//! SIGKILL during collaborations: an acknowledged message is stored exactly once, an unacknowledged
//! one can be sent again, and no credit is lost or created (R64, R69, R88; G1, G2, G5).

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::watch;

use super::kit::{Node, able, fresh_id, identity};
use super::scene::{COLLABORATIONS, owner};
use crate::crash::{Dice, SEED, all_done, assert_audit_is_clean, moved, seed, start, under_load};
use crate::kit::{digits, http, operator_key};
use crate::relay::kit::events;

const ROUNDS: usize = 6;
/// Duration of the load in one round, in milliseconds: minimum and maximum.
const LOAD_MS: (u64, u64) = (150, 500);
/// Starting balance of each requester.
const STARTING_CREDITS: i64 = 100_000;

/// A client that follows the hub to its current address.
#[derive(Clone)]
struct Client {
    http: reqwest::Client,
    urls: watch::Receiver<String>,
    /// Messages that had to be sent again.
    repeats: Arc<AtomicU64>,
}

impl Client {
    fn new(urls: watch::Receiver<String>) -> Self {
        let http = http();
        Self { http, urls, repeats: Arc::default() }
    }

    /// One call; a truncated response counts as none.
    async fn call(&self, request: reqwest::RequestBuilder) -> Option<(u16, String)> {
        let answer = request.send().await.ok()?;
        Some((answer.status().as_u16(), answer.text().await.ok()?))
    }

    /// Posts the same message until it is acknowledged, and returns the answer.
    async fn tell(&mut self, path: &str, key: &str, body: &Value) -> Value {
        loop {
            let url = format!("{}{path}", *self.urls.borrow_and_update());
            let request = self.http.post(url).bearer_auth(key).body(body.to_string());
            match self.call(request).await {
                Some((200, text)) => return serde_json::from_str(&text).expect("JSON"),
                Some(other) => panic!("{path} {body}: {other:?}"),
                None => {
                    self.repeats.fetch_add(1, Ordering::Relaxed);
                    moved(&mut self.urls).await.expect("the hub comes back");
                }
            }
        }
    }

    async fn get(&self, path: &str, key: &str) -> String {
        let url = format!("{}{path}", *self.urls.borrow());
        let (status, text) =
            self.call(self.http.get(url).bearer_auth(key)).await.expect("an answer");
        assert_eq!(status, 200, "{text}");
        text
    }

    async fn json(&self, path: &str, key: &str) -> Value {
        serde_json::from_str(&self.get(path, key).await).expect("JSON")
    }

    async fn publish(&self, name: &str, capability: Value) -> Node {
        let now = rialto_core::time::Timestamp(0);
        let identity = able(&identity(name, now), capability);
        let url = format!("{}/openclaw/identity", *self.urls.borrow());
        let (_, text) =
            self.call(self.http.post(url).body(identity.to_string())).await.expect("an answer");
        let reply: Value = serde_json::from_str(&text).expect("JSON");
        let text = |name: &str| reply[name].as_str().expect("text").to_owned();
        Node { id: text("agent_id"), key: text("api_key"), identity }
    }

    async fn fund(&self, node: &Node) {
        let body =
            json!({"owner_id": owner(node), "initial_balance": STARTING_CREDITS}).to_string();
        let url = format!("{}/registry/accounts", *self.urls.borrow());
        let request = self.http.post(url).bearer_auth(operator_key()).body(body);
        let (status, text) = self.call(request).await.expect("an answer");
        assert_eq!(status, 201, "{text}");
    }

    /// Hundredths of a credit: available and held.
    async fn account(&self, node: &Node) -> (i64, i64) {
        let path = format!("/registry/accounts/{}", owner(node));
        let text = self.get(&path, &operator_key()).await;
        let read = |name| digits(&text, name).replace('.', "").parse().expect("two decimals");
        (read("balance"), read("held"))
    }

    /// The collaborations whose results and cancellations a stream delivers, read from its
    /// beginning.
    async fn heard(&self, node: &Node, count: usize) -> Vec<String> {
        let url = format!("{}/openclaw/stream", *self.urls.borrow());
        let request = self.http.get(url).bearer_auth(&node.key).header("last-event-id", "0-0");
        let mut answer = request.send().await.expect("an answer");
        let (mut bytes, mut all) = (Vec::new(), Vec::new());
        while all.len() < count {
            let more = tokio::time::timeout(Duration::from_secs(60), answer.chunk());
            bytes.extend_from_slice(&more.await.expect("bytes").expect("bytes").expect("more"));
            let ends = ["collaboration_result", "collaboration_cancelled"];
            let told =
                events(&mut bytes).into_iter().filter(|one| ends.contains(&one.event.as_str()));
            all.extend(
                told.map(|one| one.data["collaboration_id"].as_str().expect("an id").to_owned()),
            );
        }
        all
    }
}

fn request(by: &Node, of: &Node, more: Value) -> Value {
    let request = json!({"request_id": fresh_id(), "requester_agent_id": by.id,
        "responder_agent_id": of.id, "capability_id": "sum", "input_data": {"a": 0.5},
        "correlation_id": fresh_id(), "timestamp": "2026-02-06T16:30:00Z"});
    super::kit::with(&request, more)
}

fn result(by: &Node, request: &Value, id: &str, well: bool) -> Value {
    let result = json!({"collaboration_id": id, "request_id": request["request_id"],
        "responder_agent_id": by.id, "correlation_id": request["correlation_id"],
        "timestamp": "2026-02-06T16:30:00Z"});
    super::kit::with(
        &result,
        match well {
            true => json!({"result_status": "completed", "output_data": {"r": 1}}),
            false => {
                json!({"result_status": "failed", "error": {"code": "E", "message": "it broke"}})
            }
        },
    )
}

/// What the clients record.
#[derive(Default)]
struct Book {
    /// By requester: the collaboration, its request and how it ended.
    ended: BTreeMap<String, Vec<(String, Value, &'static str)>>,
    /// In hundredths, by agent.
    moved: BTreeMap<String, i64>,
}

/// Sends requests to one worker after the other and follows each to its end.
async fn collaborate(
    mut client: Client,
    asker: Node,
    workers: Vec<Node>,
    book: Arc<Mutex<Book>>,
    stop: Arc<AtomicBool>,
) {
    for n in 0_usize.. {
        if stop.load(Ordering::SeqCst) {
            return;
        }
        let worker = &workers[n % workers.len()];
        let keyed = match n % 2 {
            0 => json!({"budget": 3, "idempotency_key": format!("key {n}")}),
            _ => json!({"budget": 3}),
        };
        let asked = request(&asker, worker, keyed);
        let told = client.tell(COLLABORATIONS, &asker.key, &asked).await;
        assert_eq!(told["response_status"], "accepted", "{told}");
        let id = told["collaboration_id"].as_str().expect("an id").to_owned();
        let (state, paid) = match n % 4 {
            3 => ("failed", 0),
            _ => ("completed", 125),
        };
        let said = result(worker, &asked, &id, paid > 0);
        let path = format!("{COLLABORATIONS}/{id}/result");
        let told = client.tell(&path, &worker.key, &said).await;
        assert_eq!(told["status"], "published");
        let mut book = book.lock().expect("no panic");
        book.ended.entry(asker.id.clone()).or_default().push((id, asked, state));
        *book.moved.entry(asker.id.clone()).or_default() -= paid;
        *book.moved.entry(worker.id.clone()).or_default() += paid;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn kills_during_collaborations_lose_nothing_double_nothing_and_conserve_money() {
    let seed = seed();
    println!("{SEED}={seed}");
    let mut dice = Dice(seed);
    let data = tempfile::TempDir::new().expect("a directory");
    let mut hub = start(data.path());
    let (url, urls) = watch::channel(hub.url.clone());
    let mut client = Client::new(urls);
    let (mut askers, mut workers) = (Vec::new(), Vec::new());
    for n in 0..3 {
        let asker = client.publish(&format!("asker-{n}"), json!({})).await;
        client.fund(&asker).await;
        askers.push(asker);
    }
    for n in 0..2 {
        let worker = client.publish(&format!("worker-{n}"), json!({"price": 1.25})).await;
        client.fund(&worker).await;
        workers.push(worker);
    }
    let (book, stop) = (Arc::new(Mutex::new(Book::default())), Arc::new(AtomicBool::new(false)));
    let mut running = Vec::new();
    for asker in &askers {
        let (client, asker) = (client.clone(), asker.clone());
        let task = collaborate(client, asker, workers.clone(), book.clone(), stop.clone());
        running.push(tokio::spawn(task));
    }
    for _ in 0..ROUNDS {
        under_load(&mut dice, LOAD_MS, async || {
            book.lock().expect("no panic").ended.values().map(Vec::len).sum()
        })
        .await;
        hub.kill();
        assert_audit_is_clean(data.path());
        hub = start(data.path());
        url.send_replace(hub.url.clone());
    }
    stop.store(true, Ordering::SeqCst);
    all_done(running).await;
    // One more restart without load, so that everything is read from disk.
    hub.kill();
    hub = start(data.path());
    url.send_replace(hub.url.clone());
    let book = std::mem::take(&mut *book.lock().expect("no panic"));
    let mut count = 0;
    for asker in &askers {
        let ended = &book.ended[&asker.id];
        count += ended.len();
        let wanted: Vec<_> = ended.iter().map(|(id, ..)| id.clone()).collect();
        assert_eq!(client.heard(asker, ended.len()).await, wanted, "each result once, in order");
        for (id, asked, state) in ended {
            let shown = client.json(&format!("{COLLABORATIONS}/{id}"), &asker.key).await;
            assert_eq!(shown["state"], *state);
            let again = client.tell(COLLABORATIONS, &asker.key, asked).await;
            assert_eq!(again["collaboration_id"], id.as_str());
            assert_eq!(again["result"]["result_status"], *state);
        }
        let live = client.json(&format!("{COLLABORATIONS}?state=running"), &asker.key).await;
        assert_eq!(live["collaborations"], json!([]), "no unacknowledged collaboration");
    }
    for node in askers.iter().chain(&workers) {
        let moved = book.moved.get(&node.id).copied().unwrap_or_default();
        assert_eq!(client.account(node).await, (STARTING_CREDITS * 100 + moved, 0));
    }
    assert_eq!(book.moved.values().sum::<i64>(), 0);
    let mut total = 0;
    for worker in &workers {
        let path = format!("/openclaw/agents/{}/reputation", worker.id);
        let shown = client.json(&path, &worker.key).await;
        total += shown["reputation_update"]["metrics"]["total_collaborations"]
            .as_u64()
            .expect("a number");
    }
    assert_eq!(total, count as u64, "each counted once");
    hub.kill();
    assert_audit_is_clean(data.path());
    let repeats = client.repeats.load(Ordering::Relaxed);
    println!("{count} collaborations over {ROUNDS} kills, {repeats} repeats");
    assert!(repeats > 0, "no kill interrupted a request");
    assert!(count > ROUNDS, "too little load: {count}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kill_after_every_step_changes_no_step() {
    let data = tempfile::TempDir::new().expect("a directory");
    let mut hub = start(data.path());
    let (url, urls) = watch::channel(hub.url.clone());
    let mut client = Client::new(urls);
    let asker = client.publish("asker", json!({})).await;
    let worker = client.publish("worker", json!({"price": 2, "requires_approval": true})).await;
    client.fund(&asker).await;
    client.fund(&worker).await;
    let full = STARTING_CREDITS * 100;
    let asked = request(&asker, &worker, json!({"budget": 3, "idempotency_key": "k"}));
    let told = client.tell(COLLABORATIONS, &asker.key, &asked).await;
    assert_eq!(told["response_status"], "deferred");
    let page = client.json(COLLABORATIONS, &worker.key).await;
    let id = asked["request_id"].as_str().expect("an id").to_owned();
    assert_eq!(page["collaborations"][0]["request"]["request_id"], id.as_str());
    for (step, state, account) in [
        ("", "deferred", (full - 300, 300)),
        ("approve", "running", (full - 300, 300)),
        ("result", "completed", (full - 200, 0)),
    ] {
        match step {
            "approve" => {
                let path = format!("{COLLABORATIONS}/{id}/approve");
                client.tell(&path, &worker.key, &json!({"approved": true})).await;
            }
            "result" => {
                let shown = client.json(&format!("{COLLABORATIONS}/{id}"), &worker.key).await;
                let own = shown["collaboration_id"].as_str().expect("an id").to_owned();
                let said = result(&worker, &asked, &own, true);
                let path = format!("{COLLABORATIONS}/{own}/result");
                for _ in 0..2 {
                    client.tell(&path, &worker.key, &said).await;
                }
            }
            _ => {}
        }
        hub.kill();
        assert_audit_is_clean(data.path());
        hub = start(data.path());
        url.send_replace(hub.url.clone());
        let shown = client.json(&format!("{COLLABORATIONS}/{id}"), &asker.key).await;
        assert_eq!(shown["state"], state);
        assert_eq!(client.account(&asker).await, account);
        let again = client.tell(COLLABORATIONS, &asker.key, &asked).await;
        let wanted = if state == "deferred" { "deferred" } else { "accepted" };
        assert_eq!(again["response_status"], wanted, "a repeat gets the current state");
        assert_eq!(
            client.json(COLLABORATIONS, &asker.key).await["collaborations"]
                .as_array()
                .map(Vec::len),
            Some(1)
        );
    }
    assert_eq!(client.account(&worker).await, (full + 200, 0));
    hub.kill();
    assert_audit_is_clean(data.path());
}

//! SIGKILL during tasks: an acknowledged item is stored exactly once, an unacknowledged one can be
//! posted again, and no credit is lost or created (R43, R50, R72).

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use rialto_protocols::clara::PROCESS;
use rialto_protocols::clara::wire::result::{MessageResult, ResultPage};
use serde_json::{Value, json};
use tokio::sync::watch;

use super::kit::{Wallet, about};
use crate::crash::{Dice, SEED, all_done, assert_audit_is_clean, moved, seed, start, under_load};
use crate::kit::{digits, http, operator_key};

const ROUNDS: usize = 5;
/// Duration of the load in one round, in milliseconds: minimum and maximum.
const LOAD_MS: (u64, u64) = (150, 500);
/// Starting balance of each requester.
const STARTING_CREDITS: i64 = 100_000;
const PROTOCOL: (&str, &str) = ("Protocol", "C.L.A.R.A.");
/// The agents: owner, id and fee.
const AGENTS: [(u8, &str, i64); 2] = [(1, "A", 20), (2, "B", 45)];

/// A client that follows the hub to its current address.
#[derive(Clone)]
struct Client {
    http: reqwest::Client,
    urls: watch::Receiver<String>,
    /// Requests that had to be sent again.
    repeats: Arc<AtomicU64>,
}

impl Client {
    fn new(urls: watch::Receiver<String>) -> Self {
        let http = http();
        Self { http, urls, repeats: Arc::default() }
    }

    /// Repeats the same request until there is an answer.
    async fn ask(&mut self, path: &str, body: Option<&[u8]>, status: u16) -> String {
        loop {
            let url = format!("{}{path}", *self.urls.borrow_and_update());
            let request = match body {
                Some(body) => self.http.post(url).body(body.to_vec()),
                None => self.http.get(url).bearer_auth(operator_key()),
            };
            if let Ok(answer) = request.send().await {
                let given = answer.status().as_u16();
                if let Ok(text) = answer.text().await {
                    assert_eq!(given, status, "{path}: {text}");
                    return text;
                }
            }
            self.repeats.fetch_add(1, Ordering::Relaxed);
            moved(&mut self.urls).await.expect("the hub comes back");
        }
    }

    /// Posts an item and reads its result.
    async fn post(&mut self, item: &[u8]) -> (String, MessageResult) {
        let text = self.ask("/clara/mu", Some(item), 202).await;
        let taken: Value = serde_json::from_str(&text).expect("JSON");
        let id = taken["id"].as_str().expect("an id").to_owned();
        (id.clone(), self.result(&id).await)
    }

    async fn result(&mut self, id: &str) -> MessageResult {
        let text =
            self.ask(&format!("/clara/cu/result/{id}?process-id={PROCESS}"), None, 200).await;
        MessageResult::read(text.as_bytes()).expect("a result")
    }

    async fn fund(&self, wallet: &Wallet) {
        let owner = format!("clara:{}", wallet.address());
        let body = json!({"owner_id": owner, "initial_balance": STARTING_CREDITS}).to_string();
        let url = format!("{}/registry/accounts", *self.urls.borrow());
        let request = self.http.post(url).bearer_auth(operator_key()).body(body);
        assert_eq!(request.send().await.expect("an answer").status().as_u16(), 201);
    }

    /// Whole credits: available and held.
    async fn account(&mut self, wallet: &Wallet) -> (i64, i64) {
        let path = format!("/registry/accounts/clara:{}", wallet.address());
        let text = self.ask(&path, None, 200).await;
        let read = |name| {
            let cents: i64 = digits(&text, name).replace('.', "").parse().expect("two decimals");
            cents / 100
        };
        (read("balance"), read("held"))
    }
}

/// What the clients record: every item with its result, and every payment.
#[derive(Default)]
struct Book {
    items: Vec<(Vec<u8>, String, MessageResult)>,
    moved: BTreeMap<String, i64>,
    done: usize,
}

/// Registers one task after the other and follows each to its end.
async fn work(mut client: Client, asker: Wallet, book: Arc<Mutex<Book>>, stop: Arc<AtomicBool>) {
    let reward = [("RedStone-Agent-Topic", "tweet"), ("RedStone-Agent-Reward", "50")];
    let task = [&[("Action", "Register-Task"), PROTOCOL], &reward[..]].concat();
    for n in 0_usize.. {
        if stop.load(Ordering::SeqCst) {
            return;
        }
        let mut items = vec![asker.item(&task, b"{\"n\":1}")];
        let (id, given) = client.post(&items[0]).await;
        let mut said = vec![(id.clone(), given)];
        let mut chosen = said[0].1.messages[0].tag("Agent-Id").expect("an agent").to_owned();
        let says = |action: &'static str, agent: &str| {
            let (number, ..) = *AGENTS.iter().find(|one| one.1 == agent).expect("an agent");
            let [first, second] = about(agent, &id);
            Wallet::of(number).item(&[("Action", action), PROTOCOL, first, second], b"{}")
        };
        if n % 3 == 2 {
            items.push(says("Decline-Task", &chosen));
            said.push(client.post(&items[1]).await);
            let next = &said[1].1.messages[1];
            assert_eq!(next.tag("Action"), Some("Agent-Task-Assignment"));
            chosen = next.tag("Agent-Id").expect("an agent").to_owned();
        }
        items.push(says("Send-Result", &chosen));
        said.push(client.post(items.last().expect("an item")).await);
        let (_, done) = said.last().expect("a result");
        assert_eq!(done.messages[0].tag("Action"), Some("Task-Result"), "{done:?}");
        let (number, _, fee) = *AGENTS.iter().find(|one| one.1 == chosen).expect("an agent");
        let mut book = book.lock().expect("no panic");
        *book.moved.entry(asker.address()).or_default() -= fee;
        *book.moved.entry(Wallet::of(number).address()).or_default() += fee;
        book.done += 1;
        let told = items.into_iter().zip(said).map(|(item, (id, result))| (item, id, result));
        book.items.extend(told);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn kills_during_tasks_lose_nothing_double_nothing_and_conserve_money() {
    let seed = seed();
    println!("{SEED}={seed}");
    let mut dice = Dice(seed);
    let data = tempfile::TempDir::new().expect("a directory");
    let mut hub = start(data.path());
    let (url, urls) = watch::channel(hub.url.clone());
    let mut client = Client::new(urls);
    for (number, id, fee) in AGENTS {
        let fee = fee.to_string();
        let tags = [
            ("Action", "Register-Agent-Profile"),
            PROTOCOL,
            ("RedStone-Agent-Topic", "tweet"),
            ("RedStone-Agent-Fee", &fee),
            ("RedStone-Agent-Id", id),
        ];
        client.post(&Wallet::of(number).item(&tags, b"{}")).await;
    }
    let askers = [11, 12, 13].map(Wallet::of);
    let (book, stop) = (Arc::new(Mutex::new(Book::default())), Arc::new(AtomicBool::new(false)));
    let mut running = Vec::new();
    for asker in &askers {
        client.fund(asker).await;
        let task = work(client.clone(), asker.clone(), book.clone(), stop.clone());
        running.push(tokio::spawn(task));
    }
    for _ in 0..ROUNDS {
        under_load(&mut dice, LOAD_MS, async || book.lock().expect("no panic").done).await;
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
    for (item, id, first) in &book.items {
        let (again, now) = client.post(item).await;
        assert_eq!((&again, &now), (id, first), "a repeat gets the first result");
    }
    for (wallet, start) in askers
        .iter()
        .map(|one| (one.clone(), STARTING_CREDITS))
        .chain(AGENTS.map(|(number, ..)| (Wallet::of(number), 0)))
    {
        let moved = book.moved.get(&wallet.address()).copied().unwrap_or_default();
        assert_eq!(client.account(&wallet).await, (start + moved, 0));
    }
    assert_eq!(book.moved.values().sum::<i64>(), 0);
    let references = references(&mut client).await;
    let wanted: Vec<u64> = (1..=references.len() as u64).collect();
    assert_eq!(references, wanted, "every message once, with its own number");
    let repeats = client.repeats.load(Ordering::Relaxed);
    hub.kill();
    assert_audit_is_clean(data.path());
    println!("{} tasks over {ROUNDS} kills, {repeats} repeats", book.done);
    assert!(book.done > ROUNDS, "too little load: {}", book.done);
}

/// The numbers of all messages the market ever sent, in order.
async fn references(client: &mut Client) -> Vec<u64> {
    let (mut all, mut from) = (Vec::new(), String::new());
    loop {
        let path = format!("/clara/cu/results/{PROCESS}?limit=1000&from={from}");
        let text = client.ask(&path, None, 200).await;
        let page = ResultPage::read(text.as_bytes()).expect("a page");
        let sent = page.edges.iter().flat_map(|edge| &edge.node.messages);
        all.extend(sent.map(|one| {
            one.tag("Reference").and_then(|text| text.parse::<u64>().ok()).expect("a number")
        }));
        let Some(last) = page.edges.last().filter(|_| page.page_info.has_next_page) else {
            return all;
        };
        from = last.cursor.clone();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kill_after_every_step_changes_no_step() {
    let data = tempfile::TempDir::new().expect("a directory");
    let mut hub = start(data.path());
    let (url, urls) = watch::channel(hub.url.clone());
    let mut client = Client::new(urls);
    let (agent, asker) = (Wallet::of(1), Wallet::of(9));
    client.fund(&asker).await;
    let register = agent.item(
        &[
            ("Action", "Register-Agent-Profile"),
            PROTOCOL,
            ("RedStone-Agent-Topic", "tweet"),
            ("RedStone-Agent-Fee", "20"),
            ("RedStone-Agent-Id", "A"),
        ],
        b"{}",
    );
    let task = asker.item(
        &[
            ("Action", "Register-Task"),
            PROTOCOL,
            ("RedStone-Agent-Topic", "tweet"),
            ("RedStone-Agent-Reward", "50"),
        ],
        b"{}",
    );
    let id = rialto_protocols::kit::ans104::Item::read(&task).expect("an item").id().to_string();
    let [first, second] = about("A", &id);
    let result = agent.item(&[("Action", "Send-Result"), PROTOCOL, first, second], b"{}");
    let steps = [
        (register, (STARTING_CREDITS, 0)),
        (task, (STARTING_CREDITS - 50, 50)),
        (result, (STARTING_CREDITS - 20, 0)),
    ];
    for (item, account) in steps {
        let before = client.post(&item).await;
        assert_eq!(before.1.error, None, "{before:?}");
        hub.kill();
        assert_audit_is_clean(data.path());
        hub = start(data.path());
        url.send_replace(hub.url.clone());
        assert_eq!(client.post(&item).await, before);
        assert_eq!(client.account(&asker).await, account);
    }
    assert_eq!(client.account(&agent).await, (20, 0));
    assert_eq!(references(&mut client).await, [1, 2, 3]);
    hub.kill();
    assert_audit_is_clean(data.path());
}

//! SIGKILL during negotiations: an acknowledged envelope is stored exactly once, an unacknowledged
//! one can be sent again, and no credit is lost or created (R25, R54, R63; G1, G2, G5, G8, G10).

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use rialto_protocols::agora::MessageType;
use rialto_protocols::kit::ed25519::PublicKey;
use serde_json::{Value, json};
use tokio::sync::watch;

use super::kit::{Key, Said, assert_vouched};
use super::scene::SEARCH;
use crate::crash::{Dice, SEED, all_done, assert_audit_is_clean, moved, seed, start, under_load};
use crate::kit::{digits, eventually, http, operator_key};

const ROUNDS: usize = 8;
/// Duration of the load in one round, in milliseconds: minimum and maximum.
const LOAD_MS: (u64, u64) = (150, 600);
/// Starting balance of each requester.
const STARTING_CREDITS: i64 = 100_000;

/// A client that follows the hub to its current address.
#[derive(Clone)]
struct Client {
    http: reqwest::Client,
    urls: watch::Receiver<String>,
    /// Envelopes that had to be sent again.
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

    fn url(&self, path: &str) -> String {
        format!("{}{path}", *self.urls.borrow())
    }

    async fn get(&self, path: &str, key: &str) -> String {
        let asked = self.call(self.http.get(self.url(path)).bearer_auth(key)).await;
        let (status, text) = asked.expect("an answer");
        assert_eq!(status, 200, "{text}");
        text
    }

    async fn json(&self, path: &str, key: &str) -> Value {
        serde_json::from_str(&self.get(path, key).await).expect("JSON")
    }

    /// Posts the same bytes until they are acknowledged, and returns the answer.
    async fn tell(&mut self, said: &Said) -> Value {
        loop {
            let url = format!("{}/agora/envelopes", *self.urls.borrow_and_update());
            match self.call(self.http.post(url).body(said.text.clone())).await {
                Some((200 | 202, text)) => return serde_json::from_str(&text).expect("JSON"),
                Some(other) => panic!("{other:?}"),
                None => {
                    self.repeats.fetch_add(1, Ordering::Relaxed);
                    moved(&mut self.urls).await.expect("the hub comes back");
                }
            }
        }
    }

    async fn state(&mut self, said: &Said) -> String {
        let told = self.tell(said).await;
        assert_eq!(told["payload"]["message_id"], said.id, "{told}");
        told["payload"]["state"].as_str().expect("a state").to_owned()
    }

    async fn hub_key(&self) -> PublicKey {
        let about = self.json("/agora", "").await;
        PublicKey::parse(about["hub"].as_str().expect("text")).expect("a key")
    }

    /// Returns a token; a provider also registers its resource.
    async fn hello(&mut self, key: &Key, provides: bool) -> String {
        let mut profile = json!({"inbox": true});
        if provides {
            profile["capabilities"] = json!([SEARCH]);
        }
        let hello = key.sign_for(MessageType::Hello, &profile, Some(self.hub_key().await));
        let welcome = self.tell(&hello).await;
        welcome["payload"]["inbox_token"].as_str().expect("a token").to_owned()
    }

    async fn fund(&self, key: &Key) {
        let body =
            json!({"owner_id": key.owner(), "initial_balance": STARTING_CREDITS}).to_string();
        let request = self.http.post(self.url("/registry/accounts")).bearer_auth(operator_key());
        let (status, text) = self.call(request.body(body)).await.expect("an answer");
        assert_eq!(status, 201, "{text}");
    }

    /// Hundredths of a credit: available and held.
    async fn account(&self, key: &Key) -> (i64, i64) {
        let path = format!("/registry/accounts/{}", key.owner());
        let text = self.get(&path, &operator_key()).await;
        let read = |name| digits(&text, name).replace('.', "").parse().expect("two decimals");
        (read("balance"), read("held"))
    }

    /// The whole inbox, page by page, with every receipt verified.
    async fn inbox(&self, token: &str) -> Vec<Value> {
        let hub = self.hub_key().await;
        let (mut after, mut all) = (0, Vec::new());
        loop {
            let path = format!("/agora/messages?after={after}&limit=200");
            let page = self.json(&path, token).await;
            let messages = page["messages"].as_array().expect("a list").clone();
            if messages.is_empty() {
                return all;
            }
            for message in messages {
                assert_vouched(hub, &message);
                let position = message["position"].as_u64().expect("a number");
                assert!(position > after, "positions only grow");
                after = position;
                all.push(message["envelope"].clone());
            }
        }
    }
}

/// What the clients record: envelopes by recipient, payments, and how requests ended.
#[derive(Default)]
struct Book {
    mail: BTreeMap<String, Vec<String>>,
    /// In hundredths, by owner.
    moved: BTreeMap<String, i64>,
    ended: Vec<(Key, String, &'static str)>,
}

/// Sends requests to one provider after the other and follows each to its end.
async fn negotiate(
    mut client: Client,
    alice: Key,
    providers: Vec<Key>,
    book: Arc<Mutex<Book>>,
    stop: Arc<AtomicBool>,
) {
    for n in 0_usize.. {
        if stop.load(Ordering::SeqCst) {
            return;
        }
        let bob = &providers[n % providers.len()];
        let cost = (n % 7) as i64 * 100 + 25;
        let payload = json!({"resource": SEARCH, "params": {"n": n}, "budget": {"max": 10}});
        let request = alice.sign_for(MessageType::Request, &payload, Some(bob.public()));
        assert_eq!(client.state(&request).await, "PENDING");
        let offer = bob.offer(&request.id, json!(cost as f64 / 100.0));
        assert_eq!(client.state(&offer).await, "NEGOTIATING");
        let accept = alice.accept(&offer);
        assert_eq!(client.state(&accept).await, "PROCESSING");
        let (last, wanted, paid) = match n % 4 {
            3 => (bob.error(&request.id, 500), "FAILED", 0),
            _ => (bob.result(&request.id), "COMPLETED", cost),
        };
        assert_eq!(client.state(&last).await, wanted);
        let mut book = book.lock().expect("no panic");
        for (to, said) in [(bob, &request), (&alice, &offer), (bob, &accept), (&alice, &last)] {
            book.mail.entry(to.owner()).or_default().push(said.id.clone());
        }
        *book.moved.entry(alice.owner()).or_default() -= paid;
        *book.moved.entry(bob.owner()).or_default() += paid;
        book.ended.push((alice.clone(), request.id, wanted));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn kills_during_negotiations_lose_nothing_double_nothing_and_conserve_money() {
    let seed = seed();
    println!("{SEED}={seed}");
    let mut dice = Dice(seed);
    let data = tempfile::TempDir::new().expect("a directory");
    let mut hub = start(data.path());
    let (url, urls) = watch::channel(hub.url.clone());
    let mut client = Client::new(urls);
    let (askers, providers): (Vec<Key>, Vec<Key>) =
        ((1..=4).map(Key::of).collect(), (11..=12).map(Key::of).collect());
    let mut tokens = BTreeMap::new();
    for (key, provides) in
        askers.iter().map(|k| (k, false)).chain(providers.iter().map(|k| (k, true)))
    {
        client.fund(key).await;
        tokens.insert(key.owner(), client.hello(key, provides).await);
    }
    let (book, stop) = (Arc::new(Mutex::new(Book::default())), Arc::new(AtomicBool::new(false)));
    let mut running = Vec::new();
    for alice in &askers {
        let (client, alice) = (client.clone(), alice.clone());
        let task = negotiate(client, alice, providers.clone(), book.clone(), stop.clone());
        running.push(tokio::spawn(task));
    }
    for _ in 0..ROUNDS {
        under_load(&mut dice, LOAD_MS, async || book.lock().expect("no panic").ended.len()).await;
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
    for key in askers.iter().chain(&providers) {
        let inbox = client.inbox(&tokens[&key.owner()]).await;
        let mut got: Vec<String> =
            inbox.iter().map(|one| one["id"].as_str().expect("an id").to_owned()).collect();
        let mut wanted = book.mail[&key.owner()].clone();
        got.sort_unstable();
        wanted.sort_unstable();
        assert_eq!(got, wanted, "everything acknowledged, once, and nothing else");
        let account = (STARTING_CREDITS * 100 + book.moved[&key.owner()], 0);
        assert_eq!(client.account(key).await, account, "{}", key.owner());
    }
    assert_eq!(book.moved.values().sum::<i64>(), 0);
    for (key, id, wanted) in &book.ended {
        let path = format!("/agora/requests/{id}");
        assert_eq!(client.json(&path, &tokens[&key.owner()]).await["state"], *wanted);
    }
    hub.kill();
    assert_audit_is_clean(data.path());
    let repeats = client.repeats.load(Ordering::Relaxed);
    println!("{} negotiations over {ROUNDS} kills, {repeats} repeats", book.ended.len());
    assert!(repeats > 0, "no kill interrupted a request");
    assert!(book.ended.len() > ROUNDS, "too little load: {}", book.ended.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kill_after_every_step_changes_no_step() {
    let data = tempfile::TempDir::new().expect("a directory");
    let mut hub = start(data.path());
    let (url, urls) = watch::channel(hub.url.clone());
    let mut client = Client::new(urls);
    let (alice, bob) = (Key::of(1), Key::of(2));
    client.fund(&alice).await;
    client.fund(&bob).await;
    let alice_reads = client.hello(&alice, false).await;
    let bob_reads = client.hello(&bob, true).await;
    let request = alice.request(SEARCH, json!({"budget": {"max": 6}}));
    let offer = bob.offer(&request.id, json!(5.25));
    let accept = alice.accept(&offer);
    let result = bob.result(&request.id);
    let full = STARTING_CREDITS * 100;
    let mut said = Vec::new();
    for (step, state, account, to_alice, to_bob) in [
        (&request, "PENDING", (full, 0), 0, 1),
        (&offer, "NEGOTIATING", (full, 0), 1, 1),
        (&accept, "PROCESSING", (full - 525, 525), 1, 2),
        (&result, "COMPLETED", (full - 525, 0), 2, 2),
    ] {
        assert_eq!(client.state(step).await, state);
        said.push((step, state));
        hub.kill();
        assert_audit_is_clean(data.path());
        hub = start(data.path());
        url.send_replace(hub.url.clone());
        // Every envelope, sent again, gets its first answer.
        for (step, state) in &said {
            assert_eq!(client.state(step).await, *state);
        }
        let path = format!("/agora/requests/{}", request.id);
        for reads in [&alice_reads, &bob_reads] {
            assert_eq!(client.json(&path, reads).await["state"], state);
        }
        assert_eq!(client.account(&alice).await, account);
        assert_eq!(client.inbox(&alice_reads).await.len(), to_alice);
        assert_eq!(client.inbox(&bob_reads).await.len(), to_bob);
    }
    assert_eq!(client.account(&bob).await, (full + 525, 0));
    hub.kill();
    assert_audit_is_clean(data.path());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_timeout_that_was_running_when_the_hub_was_killed_still_comes() {
    let data = tempfile::TempDir::new().expect("a directory");
    let hub = start(data.path());
    let (url, urls) = watch::channel(hub.url.clone());
    let mut client = Client::new(urls);
    let (alice, bob) = (Key::of(1), Key::of(2));
    client.fund(&alice).await;
    let alice_reads = client.hello(&alice, false).await;
    let bob_reads = client.hello(&bob, true).await;
    let request = alice.request(SEARCH, json!({"budget": {"max": 6}, "timeout": 4_000}));
    client.state(&request).await;
    let offer = bob.offer(&request.id, json!(2));
    client.state(&offer).await;
    assert_eq!(client.state(&alice.accept(&offer)).await, "PROCESSING");
    hub.kill();
    let hub = start(data.path());
    url.send_replace(hub.url.clone());
    let path = format!("/agora/requests/{}", request.id);
    eventually(async || client.json(&path, &alice_reads).await["state"] == "FAILED").await;
    for reads in [&alice_reads, &bob_reads] {
        let inbox = client.inbox(reads).await;
        let last = inbox.last().expect("it was told");
        assert_eq!(last["sender"]["id"], client.hub_key().await.did());
        assert_eq!(last["payload"]["code"], 408);
        assert_eq!(last["payload"]["request_id"], request.id);
    }
    assert_eq!(client.account(&alice).await, (STARTING_CREDITS * 100, 0));
    hub.kill();
    assert_audit_is_clean(data.path());
}

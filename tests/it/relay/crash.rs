//! SIGKILL during traffic: readers that reconnect find every acknowledged message, once and in
//! order, and only messages they did not acknowledge come again (R39, R44, R47, R61, R63).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::watch;

use super::kit::{Peer, events, registration, turn, with};
use super::looks::header;
use crate::crash::{Dice, SEED, all_done, assert_audit_is_clean, moved, seed, start, under_load};
use crate::kit::{Behaviour, Worker, eventually, http};

const ROUNDS: usize = 10;
/// Duration of the load in one round, in milliseconds: minimum and maximum.
const LOAD_MS: (u64, u64) = (100, 500);
/// Messages of one conversation: few enough for the loop guard.
const TALK: u64 = 20;

/// One event as a reader received it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Seen {
    position: u64,
    trace: String,
    text: String,
}

/// One connection of a reader: what it had acknowledged before, what the hub may also have
/// received, and its events.
#[derive(Clone, Debug)]
struct Session {
    acked: u64,
    perhaps: u64,
    events: Vec<Seen>,
}

/// What a reader records.
#[derive(Clone, Debug, Default)]
struct ReaderLog {
    acked: u64,
    perhaps: u64,
    sessions: Vec<Session>,
}

/// What all clients record.
#[derive(Default)]
struct Book {
    /// Acknowledged messages: recipient, text and trace id.
    sent: Mutex<Vec<(String, String, String)>>,
    read: Mutex<BTreeMap<String, ReaderLog>>,
}

impl Book {
    fn log<R>(&self, reader: &str, change: impl FnOnce(&mut ReaderLog) -> R) -> R {
        change(self.read.lock().expect("no panic").entry(reader.to_owned()).or_default())
    }
}

/// A client that follows the hub to its current address.
#[derive(Clone)]
struct Client {
    http: reqwest::Client,
    urls: watch::Receiver<String>,
    book: Arc<Book>,
}

impl Client {
    async fn post(&self, url: &str, key: &str, path: &str, body: &Value) -> Option<(u16, Value)> {
        let request = self.http.post(format!("{url}{path}")).bearer_auth(key);
        let answer = request.body(body.to_string()).send().await.ok()?;
        let status = answer.status().as_u16();
        // A truncated response counts as none.
        Some((status, serde_json::from_str(&answer.text().await.ok()?).expect("JSON")))
    }

    /// Sends to each recipient in turn. An unacknowledged message is sent again, verbatim.
    async fn send(mut self, from: Peer, to: Vec<Peer>, stop: Arc<AtomicBool>) {
        for n in 1_u64.. {
            if stop.load(Ordering::SeqCst) {
                return;
            }
            let to = &to[n as usize % to.len()];
            let (text, talk) = (format!("{} {n}", from.id), (n / TALK).to_string());
            let body = json!({"receiver_id": to.id, "envelope": turn(&from.id, &text, &talk, n)});
            let told = loop {
                let url = self.urls.borrow_and_update().clone();
                match self.post(&url, &from.key, "/messages", &body).await {
                    Some((200 | 202, told)) => break told,
                    Some(other) => panic!("{other:?}"),
                    None => moved(&mut self.urls).await.expect("the hub comes back"),
                }
            };
            let trace = told["data"]["trace_id"].as_str().expect("a trace id").to_owned();
            self.book.sent.lock().expect("no panic").push((to.id.clone(), text, trace));
        }
    }

    /// Reads an inbox, reconnecting until there are no more hubs.
    async fn read(mut self, peer: Peer, explicit: bool, mut dice: Dice) {
        loop {
            let url = self.urls.borrow_and_update().clone();
            self.session(&url, &peer, explicit, &mut dice).await;
            if moved(&mut self.urls).await.is_err() {
                return;
            }
        }
    }

    /// One connection, to its end.
    async fn session(&self, url: &str, peer: &Peer, explicit: bool, dice: &mut Dice) {
        let ReaderLog { acked, .. } = self.book.log(&peer.id, |log| log.clone());
        let query = if explicit { "?ack=explicit" } else { "" };
        let mut request = self.http.get(format!("{url}/agent/inbox{query}")).bearer_auth(&peer.key);
        if !explicit {
            request = request.header("last-event-id", acked.to_string());
        }
        let Ok(mut answer) = request.send().await else { return };
        assert_eq!(answer.status(), 200);
        self.book.log(&peer.id, |log| {
            let ReaderLog { acked, perhaps, .. } = *log;
            log.sessions.push(Session { acked, perhaps, events: Vec::new() });
        });
        let mut bytes = Vec::new();
        while let Ok(Some(more)) = answer.chunk().await {
            bytes.extend_from_slice(&more);
            for event in events(&mut bytes).into_iter().filter(|event| event.event == "message") {
                let trace = event.data["trace_id"].as_str().expect("a trace id").to_owned();
                let position = event.position();
                let seen = Seen { position, trace, text: event.said().to_owned() };
                self.book.log(&peer.id, |log| {
                    let session = log.sessions.last_mut().expect("it has begun");
                    session.events.push(seen);
                    if !explicit {
                        // It will resume after this one, which acknowledges it.
                        (log.acked, log.perhaps) = (position, position);
                    }
                });
                if explicit && dice.roll(3) == 0 && !self.ack(url, peer, position).await {
                    return;
                }
            }
        }
    }

    /// Acknowledges; returns whether the hub confirmed it.
    async fn ack(&self, url: &str, peer: &Peer, up_to: u64) -> bool {
        self.book.log(&peer.id, |log| log.perhaps = up_to);
        let told = self.post(url, &peer.key, "/agent/inbox/ack", &json!({"up_to": up_to})).await;
        let Some((status, told)) = told else { return false };
        assert_eq!((status, &told["data"]["acked_to"]), (200, &json!(up_to)), "{told}");
        self.book.log(&peer.id, |log| log.acked = up_to);
        true
    }
}

async fn join(http: &reqwest::Client, url: &str, body: &Value) -> Peer {
    let request = http.post(format!("{url}/register")).body(body.to_string());
    let answer = request.send().await.expect("an answer");
    assert_eq!(answer.status(), 201);
    let made: Value = serde_json::from_str(&answer.text().await.expect("text")).expect("JSON");
    let word = |name: &str| made["data"][name].as_str().expect("text").to_owned();
    Peer { id: word("agent_id"), key: word("api_key") }
}

/// How many different positions a reader has seen.
fn count(log: &ReaderLog) -> usize {
    let events = log.sessions.iter().flat_map(|session| &session.events);
    events.map(|event| event.position).collect::<BTreeSet<_>>().len()
}

/// Checks what a reader saw: every acknowledged message, once, in order; repeated only what it had
/// not acknowledged.
fn assert_complete(reader: &str, log: &ReaderLog, sent: &[(String, String, String)], strict: bool) {
    let mut inbox: BTreeMap<u64, &Seen> = BTreeMap::new();
    for session in &log.sessions {
        let Some(first) = session.events.first() else { continue };
        // Nothing acknowledged comes again, and nothing is left out.
        let before = first.position - 1;
        assert!(before >= session.acked, "{reader}: {before} came again after {}", session.acked);
        let most = if strict { session.acked } else { session.acked.max(session.perhaps) };
        assert!(before <= most, "{reader}: {before} of {most} left out");
        for (event, position) in session.events.iter().zip(first.position..) {
            assert_eq!(event.position, position, "{reader}: a gap in a connection");
            let known = *inbox.entry(position).or_insert(event);
            assert_eq!(event, known, "{reader}: a position means one message for ever");
        }
    }
    let positions: Vec<u64> = inbox.keys().copied().collect();
    assert_eq!(positions, (1..=inbox.len() as u64).collect::<Vec<_>>(), "{reader}: a gap");
    // Exactly the acknowledged messages: a repeated turn is not a second message.
    let got: BTreeSet<_> = inbox.values().map(|seen| (&seen.text, &seen.trace)).collect();
    assert_eq!(got.len(), inbox.len(), "{reader}: a message twice");
    let own = sent.iter().filter(|(to, ..)| to == reader);
    let wanted: BTreeSet<_> = own.map(|(_, text, trace)| (text, trace)).collect();
    assert_eq!(got, wanted, "{reader}");
    // Each sender waited for one before it sent the next.
    let mut last: BTreeMap<&str, u64> = BTreeMap::new();
    for seen in inbox.values() {
        let (sender, n) = seen.text.rsplit_once(' ').expect("a number");
        let n: u64 = n.parse().expect("a number");
        let before = last.insert(sender, n);
        assert!(before < Some(n), "{reader}: {sender} sent {n} after {before:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn kills_during_traffic_lose_nothing_and_repeat_only_what_was_not_acknowledged() {
    let seed = seed();
    println!("{SEED}={seed}");
    let mut dice = Dice(seed);
    let data = tempfile::TempDir::new().expect("a directory");
    let mut hub = start(data.path());
    let (http, book) = (http(), Arc::new(Book::default()));
    let (url, urls) = watch::channel(hub.url.clone());
    let mut readers = Vec::new();
    for name in ["explicit-1", "resuming-1", "explicit-2", "resuming-2"] {
        readers.push(join(&http, &hub.url, &registration(&format!("{name}@chorus"))).await);
    }
    let client = Client { http: http.clone(), urls, book: book.clone() };
    let stop = Arc::new(AtomicBool::new(false));
    let mut sending = Vec::new();
    for name in ["s1@chorus", "s2@chorus", "s3@chorus"] {
        let sender = join(&http, &hub.url, &registration(name)).await;
        sending.push(tokio::spawn(client.clone().send(sender, readers.clone(), stop.clone())));
    }
    let is_explicit = |peer: &Peer| peer.id.starts_with("explicit");
    let mut reading = Vec::new();
    for peer in &readers {
        let dice = Dice(dice.roll(u64::MAX));
        reading.push(tokio::spawn(client.clone().read(peer.clone(), is_explicit(peer), dice)));
    }
    drop(client);
    for round in 0..ROUNDS {
        // A reader that has not reconnected yet would not test anything.
        let is_back = |peer: &Peer| book.log(&peer.id, |log| log.sessions.len()) > round;
        eventually(async || readers.iter().all(is_back)).await;
        under_load(&mut dice, LOAD_MS, async || book.sent.lock().expect("no panic").len()).await;
        hub.kill();
        assert_audit_is_clean(data.path());
        hub = start(data.path());
        url.send_replace(hub.url.clone());
    }
    stop.store(true, Ordering::SeqCst);
    all_done(sending).await;
    let sent = book.sent.lock().expect("no panic").clone();
    for peer in &readers {
        let wanted = sent.iter().filter(|(to, ..)| *to == peer.id).count();
        eventually(async || book.log(&peer.id, |log| count(log)) >= wanted).await;
    }
    drop(url);
    hub.kill();
    all_done(reading).await;
    assert_audit_is_clean(data.path());
    for peer in &readers {
        let log = book.log(&peer.id, |log| log.clone());
        assert_complete(&peer.id, &log, &sent, !is_explicit(peer));
        assert!(log.sessions.len() >= ROUNDS, "it reconnected");
    }
    println!("{} acknowledged messages over {ROUNDS} kills", sent.len());
    assert!(sent.len() > ROUNDS, "too little load: {}", sent.len());
}

/// The ids in an inbox after a position, up to the newest.
async fn ids_after(http: &reqwest::Client, url: &str, peer: &Peer, last: u64) -> Vec<u64> {
    let request = http.get(format!("{url}/agent/inbox")).bearer_auth(&peer.key);
    let request = request.header("last-event-id", last.to_string());
    let mut answer = request.send().await.expect("an answer");
    let (mut bytes, mut ids, mut backlog) = (Vec::new(), Vec::new(), None);
    while backlog.is_none_or(|backlog| ids.len() < backlog) {
        bytes.extend_from_slice(&answer.chunk().await.expect("bytes").expect("no end"));
        for event in events(&mut bytes) {
            match event.event.as_str() {
                "connected" => backlog = event.data["backlog"].as_u64().map(|n| n as usize),
                _ => ids.push(event.position()),
            }
        }
    }
    ids
}

#[tokio::test(flavor = "multi_thread")]
async fn the_worked_values_of_resuming_hold_after_a_kill() {
    let data = tempfile::TempDir::new().expect("a directory");
    let (mut hub, http) = (start(data.path()), http());
    let alice = join(&http, &hub.url, &registration("alice@chorus")).await;
    let bob = join(&http, &hub.url, &registration("bob@chorus")).await;
    for n in 1..=5 {
        let body = super::kit::message(&alice.id, &bob.id, &format!("message {n}"));
        let request = http.post(format!("{}/messages", hub.url)).bearer_auth(&alice.key);
        let answer = request.body(body.to_string()).send().await.expect("an answer");
        assert_eq!(answer.status(), 202);
    }
    for _ in 0..2 {
        hub.kill();
        hub = start(data.path());
        assert_eq!(ids_after(&http, &hub.url, &bob, 0).await, [1, 2, 3, 4, 5]);
        assert_eq!(ids_after(&http, &hub.url, &bob, 3).await, [4, 5]);
        assert!(ids_after(&http, &hub.url, &bob, 5).await.is_empty());
    }
    hub.kill();
    assert_audit_is_clean(data.path());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_whose_first_try_was_cut_short_by_a_kill_is_kept_and_tried_when_repeated() {
    let data = tempfile::TempDir::new().expect("a directory");
    let worker = Worker::start(Behaviour::Dawdle(Duration::from_secs(600))).await;
    let (hub, http) = (start(data.path()), http());
    let alice = join(&http, &hub.url, &registration("alice@chorus")).await;
    let endpoint = with(&registration("bob@chorus"), "/endpoint", Some(worker.url.clone().into()));
    let bob = join(&http, &hub.url, &endpoint).await;
    let body = json!({"receiver_id": bob.id, "envelope": turn(&alice.id, "hello", "c", 1)});
    let request = http.post(format!("{}/messages", hub.url)).bearer_auth(&alice.key);
    let asking = tokio::spawn(request.body(body.to_string()).send());
    worker.heard(1).await;
    hub.kill();
    assert!(asking.await.expect("no panic").is_err(), "nothing was acknowledged");
    assert_audit_is_clean(data.path());

    // There was no acknowledgement, but the message is stored.
    worker.behave(Behaviour::Say(200, r#"{"status":"ok"}"#.to_owned()));
    let hub = start(data.path());
    assert_eq!(worker.got().len(), 1);
    let request = http.post(format!("{}/messages", hub.url)).bearer_auth(&alice.key);
    let answer = request.body(body.to_string()).send().await.expect("an answer");
    assert_eq!(answer.status(), 200);
    let told: Value = serde_json::from_str(&answer.text().await.expect("text")).expect("JSON");
    assert_eq!(told["data"]["delivery"], "delivered", "{told}");
    let got = worker.got();
    assert_eq!(got.len(), 2);
    for one in &got {
        assert_eq!(one.body, got[0].body);
        assert_eq!(header(one, "webhook-id"), told["data"]["trace_id"]);
    }
    assert_eq!(ids_after(&http, &hub.url, &bob, 0).await, [1], "one message");
    hub.kill();
    assert_audit_is_clean(data.path());
}

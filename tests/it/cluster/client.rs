//! A client that knows all nodes: it asks any of them, and another one with the same key if the
//! first does not answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::harness::{Cluster, REQUEST_TIMEOUT};
use super::history::{Attempt, History, Operation, Outcome, Read, Seen};
use crate::crash::Dice;
use crate::kit::together;

/// The pause before the next attempt.
const RETRY_PAUSE: Duration = Duration::from_millis(20);
/// A command without an answer for so long, over all nodes, is a violation: every fault is healed
/// long before.
const ANSWER_DEADLINE: Duration = Duration::from_secs(60);

/// What all clients of a round share.
#[derive(Clone)]
pub struct RoundContext {
    pub urls: Arc<Vec<String>>,
    pub http: reqwest::Client,
    pub history: Arc<History>,
    /// Set when the round ends: no client begins anything new.
    pub stop: Arc<AtomicBool>,
    /// Which nodes are ready, as a load balancer sees it.
    pub ready: Arc<Vec<AtomicBool>>,
}

/// How often nodes are asked whether they are ready, and how long they may take to answer.
const PROBE_INTERVAL: Duration = Duration::from_millis(30);
const PROBE_TIMEOUT: Duration = Duration::from_millis(300);

impl RoundContext {
    pub fn new(cluster: &Cluster) -> Self {
        let urls = cluster.urls();
        Self {
            ready: Arc::new(urls.iter().map(|_| AtomicBool::new(true)).collect()),
            urls: Arc::new(urls),
            http: cluster.http.clone(),
            history: Arc::default(),
            stop: Arc::default(),
        }
    }

    /// Keeps `ready` up to date for one node, until the round ends.
    pub async fn probe(self, node: usize) {
        let url = format!("{}/readyz", self.urls[node]);
        while !self.stop.load(Ordering::SeqCst) {
            let answer = self.http.get(&url).timeout(PROBE_TIMEOUT).send().await;
            let is_ready = answer.is_ok_and(|answer| answer.status() == 200);
            self.ready[node].store(is_ready, Ordering::SeqCst);
            tokio::time::sleep(PROBE_INTERVAL).await;
        }
    }
}

/// One client. It does one thing at a time.
pub struct Client {
    pub number: u32,
    pub round: RoundContext,
    pub dice: Dice,
    next_key: u64,
}

/// A command, as all its attempts are sent.
#[derive(Clone, Debug)]
pub struct Request {
    pub operation: Operation,
    pub key: String,
    pub path: String,
    pub bearer: Option<String>,
    /// Whether the key is also sent as `Idempotency-Key`.
    pub sends_key: bool,
    pub body: Vec<u8>,
    pub content_type: &'static str,
}

/// An answer that leaves nothing open.
#[derive(Clone, Debug)]
pub struct Reply {
    pub node: usize,
    pub status: u16,
    pub text: String,
}

impl Reply {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_default()
    }

    pub fn is_done(&self) -> bool {
        (200..300).contains(&self.status)
    }
}

impl Request {
    pub fn new(operation: Operation, key: impl Into<String>, path: impl Into<String>) -> Self {
        let content_type = "application/json";
        let (key, path) = (key.into(), path.into());
        Self {
            operation,
            key,
            path,
            bearer: None,
            sends_key: false,
            body: Vec::new(),
            content_type,
        }
    }

    pub fn bearer(mut self, key: &str) -> Self {
        self.bearer = Some(key.to_owned());
        self
    }

    pub fn json(mut self, body: &Value) -> Self {
        self.body = body.to_string().into_bytes();
        self
    }

    /// Sends the key as `Idempotency-Key`, too.
    pub fn with_key(mut self) -> Self {
        self.sends_key = true;
        self
    }
}

impl Client {
    pub fn new(number: u32, round: RoundContext, seed: u64) -> Self {
        let dice = Dice(seed.wrapping_add(u64::from(number).wrapping_mul(0x9e37_79b9)));
        Self { number, round, dice, next_key: 0 }
    }

    /// Whether the round is over.
    pub fn is_over(&self) -> bool {
        self.round.stop.load(Ordering::SeqCst)
    }

    /// A key that no other command of the run has.
    pub fn fresh_key(&mut self) -> String {
        self.next_key += 1;
        uuid::Uuid::from_u64_pair(self.dice.roll(u64::MAX), self.dice.roll(u64::MAX)).to_string()
    }

    /// Any node. One that is not ready is chosen seldom: clients behind a load balancer do not
    /// come to it, and others do.
    pub fn any_node(&mut self) -> usize {
        let count = self.round.urls.len();
        let first = self.dice.roll(count as u64) as usize;
        if self.dice.roll(10) == 0 {
            return first;
        }
        let is_ready = |node: &usize| self.round.ready[*node].load(Ordering::SeqCst);
        (first..first + count).map(|node| node % count).find(is_ready).unwrap_or(first)
    }

    /// Another node than this one, if there is any.
    pub fn other_node(&mut self, node: usize) -> usize {
        let (count, next) = (self.round.urls.len(), self.any_node());
        if next == node { (node + 1) % count } else { next }
    }

    /// One attempt at one node. `None` if it stays open whether it was done.
    pub async fn attempt(&self, node: usize, request: &Request) -> Option<Reply> {
        let begin = self.round.history.now();
        let outcome = match self.send(node, request).await {
            Err(error) => Outcome::Unknown(error),
            Ok((_, true, text)) => Outcome::Unknown(text),
            Ok((200..300, _, text)) => Outcome::Done(text),
            Ok((status, _, text)) => {
                if status >= 500 {
                    let path = &request.path;
                    self.round.history.violation(format!("{path} got {status} at {node}: {text}"));
                }
                Outcome::Refused(status, text)
            }
        };
        let reply = match &outcome {
            Outcome::Done(text) => Some(Reply { node, status: 200, text: text.clone() }),
            Outcome::Refused(status, text) => {
                Some(Reply { node, status: *status, text: text.clone() })
            }
            Outcome::Unknown(_) => None,
        };
        self.round.history.add_attempt(Attempt {
            client: self.number,
            node,
            operation: request.operation.clone(),
            key: request.key.clone(),
            begin,
            end: self.round.history.now(),
            outcome,
        });
        reply
    }

    /// Status, whether it leaves open what happened, and body.
    async fn send(&self, node: usize, request: &Request) -> Result<(u16, bool, String), String> {
        let url = format!("{}{}", self.round.urls[node], request.path);
        let mut sent = self.round.http.post(url).timeout(REQUEST_TIMEOUT);
        sent = sent.header("content-type", request.content_type).body(request.body.clone());
        if let Some(bearer) = &request.bearer {
            sent = sent.bearer_auth(bearer);
        }
        if request.sends_key {
            sent = sent.header("idempotency-key", &request.key);
        }
        let answer = sent.send().await.map_err(|error| error.to_string())?;
        let status = answer.status().as_u16();
        // Not now, or the first attempt is still running.
        let is_open = [429, 503, 507].contains(&status)
            || status == 409 && answer.headers().contains_key("retry-after");
        let text = answer.text().await.map_err(|error| error.to_string())?;
        Ok((status, is_open, text))
    }

    /// Sends a command until a node answers it. After the first attempt other nodes are asked, too.
    pub async fn run(&mut self, request: &Request) -> Option<Reply> {
        let node = self.any_node();
        self.run_at(node, request).await
    }

    /// The same, beginning at a node.
    pub async fn run_at(&mut self, node: usize, request: &Request) -> Option<Reply> {
        let deadline = Instant::now() + ANSWER_DEADLINE;
        let mut node = node;
        loop {
            if let Some(reply) = self.attempt(node, request).await {
                return Some(reply);
            }
            if Instant::now() > deadline {
                let text = format!("no answer for {ANSWER_DEADLINE:?}: {request:?}");
                self.round.history.violation(text);
                return None;
            }
            tokio::time::sleep(RETRY_PAUSE).await;
            node = self.other_node(node);
        }
    }

    /// Sends one command with its key to all nodes at once, and again until one has answered.
    pub async fn run_everywhere(&mut self, request: &Request) -> Option<Reply> {
        let all = (0..self.round.urls.len()).map(|node| self.attempt(node, request));
        let answered = together(all).await.into_iter().flatten().next();
        match answered {
            Some(reply) => Some(reply),
            None => self.run(request).await,
        }
    }

    /// A read at a node: the body, and when it began and ended. `None` if the node does not answer
    /// now.
    pub async fn read(
        &self,
        node: usize,
        path: &str,
        bearer: Option<&str>,
    ) -> Option<(Value, Duration, Duration)> {
        let begin = self.round.history.now();
        let (status, text) = self.get(node, path, bearer).await?;
        if status != 200 {
            let text = format!("GET {path} got {status} at {node}: {text}");
            self.round.history.violation(text);
            return None;
        }
        Some((serde_json::from_str(&text).ok()?, begin, self.round.history.now()))
    }

    /// Status and body; `None` if the node does not answer now.
    pub async fn get(
        &self,
        node: usize,
        path: &str,
        bearer: Option<&str>,
    ) -> Option<(u16, String)> {
        let url = format!("{}{path}", self.round.urls[node]);
        let mut sent = self.round.http.get(url).timeout(REQUEST_TIMEOUT);
        if let Some(bearer) = bearer {
            sent = sent.bearer_auth(bearer);
        }
        let answer = sent.send().await.ok()?;
        let status = answer.status().as_u16();
        let text = answer.text().await.ok()?;
        Some((status, text)).filter(|_| ![429, 503, 507].contains(&status))
    }

    pub fn record(&self, node: usize, (begin, end): (Duration, Duration), seen: Seen) {
        self.round.history.add_read(Read { client: self.number, node, begin, end, seen });
    }

    /// A short random pause, so that readers leave the machine to the others.
    pub async fn pause(&mut self, most_ms: u64) {
        tokio::time::sleep(Duration::from_millis(1 + self.dice.roll(most_ms))).await;
    }
}

/// Cents of an amount as the hub prints it.
pub fn cents(amount: &Value) -> u64 {
    let text = amount.to_string();
    let (whole, part) = text.split_once('.').unwrap_or((&text, ""));
    let part = format!("{part:0<2}");
    let number = |text: &str| text.parse::<u64>().unwrap_or_else(|_| panic!("{amount}"));
    number(whole) * 100 + number(&part[..2])
}

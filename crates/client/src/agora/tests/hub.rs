//! A test hub: it accepts everything, and sends what the test specifies.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use rialto_core::time::{Millis, Timestamp};
use rialto_protocols::agora::wire::hello::Welcome;
use rialto_protocols::agora::wire::status::MessageStatus;
use rialto_protocols::agora::wire::{envelope, responses, signature};
use rialto_protocols::agora::{Envelope, MessageType, Receipt};
use rialto_protocols::kit::sse;
use serde_json::{Value, json};

use crate::agora::{Agent, Identity, RetryPolicy, Seed, Server};
use crate::clock;
use crate::testing::{RecordedRequest, TestServer, answer, stream};

pub(super) fn identity(byte: u8) -> Identity {
    Identity::new(&Seed::from_bytes([byte; 32]))
}

/// Called for each posted envelope; may add to the inbox.
type React = dyn Fn(&Hub, &Value) + Send + Sync;

/// The state of the test hub.
pub(super) struct Hub {
    pub(super) me: Identity,
    /// Events of the only inbox; an event's position is its number, from 1.
    events: Mutex<Vec<String>>,
    pub(super) posted: Mutex<Vec<Value>>,
    tokens: Mutex<u32>,
    /// The reconnect delay sent to readers, in milliseconds.
    pub(super) comes_back_after: AtomicU64,
}

impl Hub {
    /// Adds an envelope to the inbox, as if it had just arrived.
    pub(super) fn put(&self, by: &Identity, kind: MessageType, payload: &Value) -> String {
        self.put_at(by, kind, payload, clock::now())
    }

    /// Like `put`, for an envelope that arrived earlier.
    pub(super) fn put_at(
        &self,
        by: &Identity,
        kind: MessageType,
        payload: &Value,
        at: Timestamp,
    ) -> String {
        let id = super::super::identity::new_id().expect("random");
        let envelope = by.sign_with_id(&id, at, kind, &payload.to_string(), None).expect("signed");
        self.put_raw(envelope.as_str(), Some(&self.receipt(envelope.as_str(), at)));
        id
    }

    pub(super) fn put_raw(&self, envelope: &str, receipt: Option<&str>) {
        self.events.lock().expect("sound").push(responses::write_event(envelope, receipt));
    }

    /// The hub's receipt for an envelope.
    pub(super) fn receipt(&self, text: &str, at: Timestamp) -> String {
        let json = envelope::read_json(text.as_bytes()).expect("JSON");
        let read = Envelope::read(&json).expect("an envelope");
        let proof = signature::verify(&read).expect("a proof");
        self.say(MessageType::Status, &Receipt::of(&read, &proof, at).write())
    }

    pub(super) fn say(&self, kind: MessageType, payload: &str) -> String {
        self.me.sign(kind, payload, None).expect("signed").as_str().to_owned()
    }

    /// Revokes all inbox tokens.
    pub(super) fn revoke(&self) {
        *self.tokens.lock().expect("sound") += 1;
    }

    fn token(&self) -> String {
        format!("at_{}", self.tokens.lock().expect("sound"))
    }

    fn answer(&self, heard: &RecordedRequest, react: &React) -> Vec<u8> {
        let path = heard.target.split('?').next().unwrap_or_default();
        let reads = !matches!(
            (heard.method.as_str(), path),
            ("POST", "/agora/envelopes") | ("GET", "/agora")
        );
        let token = format!("Bearer {}", self.token());
        if reads && heard.header("authorization") != Some(&token) {
            let error = json!({"code": 401, "message": "no token", "retryable": false});
            return answer(401, "", &self.say(MessageType::Error, &error.to_string()));
        }
        match path {
            "/agora" => {
                let about = json!({"protocol": "agora/1.0", "hub": self.me.did(),
                    "window_ms": 60_000, "endpoints": {}});
                answer(200, "", &about.to_string())
            }
            "/agora/envelopes" => self.post(&heard.body, react),
            "/agora/inbox" => {
                let after =
                    heard.header("last-event-id").map_or(0, |id| id.parse().expect("digits"));
                stream(&self.events(after))
            }
            "/agora/inbox/ack" => answer(200, "", r#"{"acked_to":7,"pending":0}"#),
            "/agora/messages" => {
                let events = self.events.lock().expect("sound");
                let items = events.iter().zip(1..).map(|(event, n): (_, u64)| {
                    let event: responses::InboxEvent<'_> =
                        serde_json::from_str(event).expect("an event");
                    responses::write_message(
                        n,
                        event.envelope.get(),
                        event.receipt.map(|r| r.get()),
                    )
                });
                let items: Vec<_> = items.collect();
                answer(200, "", &responses::write_page(&items, items.len() as u64))
            }
            other => panic!("{other}"),
        }
    }

    fn events(&self, after: usize) -> String {
        let events = self.events.lock().expect("sound");
        let data = json!({"resume_from": after, "backlog": events.len() - after});
        let wait = self.comes_back_after.load(Ordering::Relaxed);
        let mut out = format!("retry: {wait}\n").into_bytes();
        sse::write_frame(&mut out, Some(&after.to_string()), "connected", &data.to_string());
        for (n, event) in events.iter().enumerate().skip(after) {
            sse::write_frame(&mut out, Some(&(n + 1).to_string()), "envelope", event);
        }
        String::from_utf8(out).expect("text")
    }

    fn post(&self, body: &str, react: &React) -> Vec<u8> {
        let envelope: Value = serde_json::from_str(body).expect("JSON");
        let id = envelope["id"].as_str().expect("an id").to_owned();
        self.posted.lock().expect("sound").push(envelope.clone());
        if envelope["type"] == "HELLO" {
            let (sender, nonce) =
                (envelope["sender"]["id"].as_str(), envelope["payload"]["nonce"].as_str());
            let token = self.token();
            let inbox = envelope["payload"]["inbox"] == true;
            let welcome = Welcome {
                nonce,
                hello_id: Some(&id),
                hello_sender: sender,
                inbox_token: inbox.then_some(token.as_str()),
                inbox_token_expires_at: inbox.then(|| clock::now().plus(Millis::hours(1))),
                hub: Some(self.me.did()),
                webhook_secret: None,
            };
            return answer(200, "", &self.say(MessageType::Welcome, &welcome.write()));
        }
        react(self, &envelope);
        answer(202, "", &self.say(MessageType::Status, &MessageStatus::accepted(&id, None).write()))
    }

    /// Posted envelopes of one type.
    pub(super) fn said(&self, kind: &str) -> Vec<Value> {
        let posted = self.posted.lock().expect("sound");
        posted.iter().filter(|envelope| envelope["type"] == kind).cloned().collect()
    }
}

/// A running test hub, and an agent at it.
pub(super) async fn hub(
    react: impl Fn(&Hub, &Value) + Send + Sync + 'static,
) -> (Arc<Hub>, TestServer, Agent) {
    let hub = Arc::new(Hub {
        me: identity(100),
        events: Mutex::default(),
        posted: Mutex::default(),
        tokens: Mutex::default(),
        comes_back_after: AtomicU64::new(1),
    });
    let inner = Arc::clone(&hub);
    let stage = TestServer::new(move |heard, _| inner.answer(heard, &react)).await;
    let server = Server::discover(&stage.url).await.expect("a server");
    let agent = Agent::new(identity(1), server);
    let quick = RetryPolicy {
        initial_delay: std::time::Duration::from_millis(1),
        ..RetryPolicy::default()
    };
    (hub, stage, agent.with_retry(quick))
}

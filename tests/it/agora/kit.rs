//! Shared by agora's tests: agents with throw-away keys, signed envelopes, and inbox reads.

#![allow(dead_code)]

use std::sync::atomic::{AtomicU64, Ordering};

use rialto_core::time::Timestamp;
use rialto_protocols::agora::wire::envelope::{self, Envelope};
use rialto_protocols::agora::wire::{receipt, signature};
use rialto_protocols::agora::{EnvelopeSigner, MessageType, UnsignedEnvelope, WINDOW};
use rialto_protocols::kit::ed25519::{PublicKey, SecretKey};
use rialto_protocols::kit::ijson;
use serde_json::{Value, json};

use crate::kit::{Reply, TestHub};
use crate::relay::kit::{Event, Inbox};

/// For message ids that are unique in this process.
static NEXT: AtomicU64 = AtomicU64::new(1);

pub fn fresh_id(what: &str) -> String {
    format!("{what}-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// Payloads of a type as foreign clients write them; the fixture names the clients.
pub fn foreign(kind: MessageType) -> Vec<String> {
    const CLIENTS: &str = include_str!("../../../crates/protocols/src/agora/fixtures/clients.json");
    let all = ijson::read(CLIENTS.as_bytes()).expect("JSON");
    match all.get(kind.as_str()).map(ijson::Json::value) {
        Some(ijson::JsonValue::Array(payloads)) => {
            payloads.iter().map(|payload| payload.raw().to_owned()).collect()
        }
        other => panic!("{kind:?}: {other:?}"),
    }
}

/// The hub's time: the machine's clock.
pub fn now() -> Timestamp {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    Timestamp(i64::try_from(since.expect("after 1970").as_millis()).expect("before 292278994"))
}

/// An agent with a throw-away key.
#[derive(Clone, Debug)]
pub struct Key {
    pub composer: EnvelopeSigner,
}

impl Key {
    /// The key derived from a number, the same every time.
    pub fn of(number: u8) -> Self {
        Self { composer: EnvelopeSigner::new(SecretKey::from_seed(&[number; 32])) }
    }

    pub fn did(&self) -> &str {
        self.composer.did()
    }

    pub fn owner(&self) -> String {
        format!("agora:{}", self.did())
    }

    pub fn public(&self) -> PublicKey {
        self.composer.key()
    }

    /// An envelope signed now, with a new id.
    pub fn sign(&self, kind: MessageType, payload: &Value) -> Said {
        self.sign_for(kind, payload, None)
    }

    pub fn sign_for(&self, kind: MessageType, payload: &Value, to: Option<PublicKey>) -> Said {
        self.sign_at(&fresh_id(kind.as_str()), now(), kind, payload, to)
    }

    pub fn sign_at(
        &self,
        id: &str,
        timestamp: Timestamp,
        kind: MessageType,
        payload: &Value,
        recipient: Option<PublicKey>,
    ) -> Said {
        self.sign_text(id, timestamp, kind, &payload.to_string(), recipient)
    }

    /// The same with the payload as text.
    pub fn sign_text(
        &self,
        id: &str,
        timestamp: Timestamp,
        kind: MessageType,
        payload: &str,
        recipient: Option<PublicKey>,
    ) -> Said {
        let draft =
            UnsignedEnvelope { id, timestamp, kind, payload, recipient, hub: None, bridge: None };
        let signed = self.composer.sign(&draft).expect("a payload");
        Said { id: id.to_owned(), text: signed.text }
    }

    pub fn request(&self, resource: &str, more: Value) -> Said {
        self.request_for(resource, more, None)
    }

    pub fn request_for(&self, resource: &str, more: Value, to: Option<PublicKey>) -> Said {
        let mut payload = json!({"resource": resource, "params": {"q": "weather tokyo"}});
        let (members, more) = (payload.as_object_mut().expect("an object"), more);
        members.extend(more.as_object().expect("an object").clone());
        self.sign_for(MessageType::Request, &payload, to)
    }

    pub fn offer(&self, request_id: &str, cost: Value) -> Said {
        let payload = json!({"request_id": request_id, "cost": cost, "ttl": 60_000, "eta": 1_000});
        self.sign(MessageType::Offer, &payload)
    }

    /// Accepts an offer and names its sender.
    pub fn accept(&self, offer: &Said) -> Said {
        let provider =
            offer.json()["sender"]["id"].as_str().and_then(|id| PublicKey::parse(id).ok());
        self.sign_for(MessageType::Accept, &json!({"offer_id": offer.id}), provider)
    }

    /// Accepts an offer by its id alone, as the spec prints it.
    pub fn accept_id(&self, offer_id: &str) -> Said {
        self.sign(MessageType::Accept, &json!({"offer_id": offer_id}))
    }

    pub fn result(&self, request_id: &str) -> Said {
        let payload = json!({"request_id": request_id, "status": "success", "data": {"n": 1}});
        self.sign(MessageType::Result, &payload)
    }

    pub fn partial(&self, request_id: &str, last: bool) -> Said {
        let mut payload = json!({"request_id": request_id, "status": "partial", "data": {"n": 1}});
        if last {
            payload["final"] = true.into();
        }
        self.sign(MessageType::Result, &payload)
    }

    pub fn error(&self, request_id: &str, code: i64) -> Said {
        let payload = json!({"request_id": request_id, "code": code, "message": "cannot"});
        self.sign(MessageType::Error, &payload)
    }
}

/// A signed envelope and its id.
#[derive(Clone, Debug)]
pub struct Said {
    pub id: String,
    pub text: String,
}

impl Said {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).expect("JSON")
    }
}

/// An inbox token.
#[derive(Clone, Debug)]
pub struct Token(pub String);

/// A hub with agora's requests.
pub struct Hub(pub TestHub);

impl std::ops::Deref for Hub {
    type Target = TestHub;

    fn deref(&self) -> &TestHub {
        &self.0
    }
}

impl Hub {
    pub async fn serve(flags: &[(&str, &str)]) -> Self {
        Self(TestHub::serve(flags).await)
    }

    /// Shuts the hub down and starts another on the same data.
    pub async fn restart(self, flags: &[(&str, &str)]) -> Self {
        Self(self.0.restart(rialto_hub::config::Profile::Serve, flags).await)
    }

    /// The hub's own key.
    pub async fn hub_key(&self) -> PublicKey {
        let did = self.get("/agora", None).await.expect(200).str("/hub");
        PublicKey::parse(&did).expect("a key")
    }

    /// Posts an envelope.
    pub async fn tell(&self, said: &Said) -> Reply {
        self.call("POST", "/agora/envelopes", None, Some(&said.text)).await
    }

    /// Posts an envelope to the agent that the path names.
    pub async fn tell_to(&self, to: &str, said: &Said) -> Reply {
        self.call("POST", &format!("/agora/agents/{to}"), None, Some(&said.text)).await
    }

    /// Sends HELLO with a profile and returns the inbox token.
    pub async fn hello(&self, key: &Key, profile: Value) -> Token {
        let mut payload = profile;
        payload["inbox"] = true.into();
        let hub = self.hub_key().await;
        let hello = key.sign_for(MessageType::Hello, &payload, Some(hub));
        let welcome = self.tell(&hello).await.expect(200);
        assert_eq!(welcome.str("/type"), "WELCOME");
        Token(welcome.str("/payload/inbox_token"))
    }

    /// Registers a provider of one resource, with a listed price or by offer.
    pub async fn provider(&self, key: &Key, resource: &str, price: Option<Value>) -> Token {
        let mut capability = json!({"resource": resource});
        if let Some(price) = price {
            capability["price"] = price;
        }
        self.hello(key, json!({"name": "provider", "capabilities": [capability]})).await
    }

    /// All envelopes in an inbox.
    pub async fn letters(&self, token: &Token) -> Vec<Value> {
        let page = self.get("/agora/messages?after=0&limit=200", Some(&token.0)).await.expect(200);
        page.at("/messages").as_array().expect("a list").clone()
    }

    /// The newest envelope in an inbox, verified with its receipt.
    pub async fn newest(&self, token: &Token) -> Value {
        let letters = self.letters(token).await;
        let last = letters.last().expect("something came");
        assert_vouched(self.hub_key().await, last);
        last["envelope"].clone()
    }

    /// The state of a request as one of its parties sees it.
    pub async fn standing(&self, token: &Token, id: &str) -> Value {
        self.get(&format!("/agora/requests/{id}"), Some(&token.0)).await.expect(200).json()
    }

    pub async fn state_of(&self, token: &Token, id: &str) -> String {
        self.standing(token, id).await["state"].as_str().expect("a state").to_owned()
    }

    /// Opens the SSE inbox and reads `connected`.
    pub async fn agora_inbox(&self, token: &Token, last: Option<&str>) -> Inbox {
        let mut inbox = self.inbox_from("/agora/inbox", &token.0, last).await;
        let hello = inbox.next().await;
        assert_eq!(hello.event, "connected");
        inbox.hello = Some(hello);
        inbox
    }

    /// Grants credits to the owner of a key, as the operator.
    pub async fn fund(&self, key: &Key, amount: &str) {
        self.grant(&key.owner(), amount).await;
    }
}

/// Verifies the hub's receipt of an item of `/messages` or of an event's data.
#[track_caller]
pub fn assert_vouched(hub: PublicKey, item: &Value) {
    let text = item["envelope"].to_string();
    let json = envelope::read_json(text.as_bytes()).expect("an envelope");
    let envelope = Envelope::read(&json).expect("an envelope");
    let vouched = receipt::check_receipt(&item["receipt"].to_string(), hub, &envelope, WINDOW);
    vouched.expect("the hub vouches for it");
}

/// Checks that a response is an envelope signed just now, and returns its sender.
#[track_caller]
pub fn assert_signed(text: &str) -> PublicKey {
    let json = envelope::read_json(text.as_bytes()).expect("an envelope");
    let envelope = Envelope::read(&json).expect("an envelope");
    signature::prove(&envelope, now(), WINDOW).expect("a signature").key
}

/// A refusal: the HTTP status equals the code, and the hub signed it.
#[track_caller]
pub fn assert_error(reply: &Reply, code: u16) {
    assert_eq!(reply.status, code, "{}", reply.text);
    assert_eq!(reply.str("/type"), "ERROR", "{}", reply.text);
    assert_eq!(reply.at("/payload/code"), code, "{}", reply.text);
    assert!(!reply.str("/payload/message").is_empty());
    assert!(reply.at("/payload/retryable").is_boolean());
    assert_signed(&reply.text);
}

/// The envelope of an event.
pub fn envelope_of(event: &Event) -> &Value {
    assert_eq!(event.event, "envelope", "{event:?}");
    &event.data["envelope"]
}

/// Hubs that stop and restart.
impl Hub {
    /// Shuts the hub down and returns its data directory.
    pub async fn halt(self) -> tempfile::TempDir {
        self.0.stop().await
    }

    /// Starts a hub on an existing data directory.
    pub async fn resume(dir: tempfile::TempDir, flags: &[(&str, &str)]) -> Self {
        Self(TestHub::start(rialto_hub::config::Profile::Serve, flags, dir).await)
    }
}

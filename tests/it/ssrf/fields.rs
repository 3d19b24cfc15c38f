//! Every field of every protocol that takes a URL, and what makes the hub call it.

use std::net::IpAddr;

use rialto_protocols::agora::{EnvelopeSigner, MessageType};
use rialto_protocols::kit::ed25519::SecretKey;
use serde_json::{Value, json};

use super::card_server::CardServer;
use crate::a2a::kit::{id, text_message};
use crate::agora::kit::Key;
use crate::clara::kit::Wallet;
use crate::kit::{Agent, Reply, eventually};
use crate::openclaw::kit::{Hub, Node, fresh_id, identity, with};
use crate::relay::kit::{Peer, message, registration};

/// A place for a URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Field {
    ApiEndpoint,
    CallbackUrl,
    Callback,
    RelayEndpoint,
    RelayEndpointByOperator,
    ClawEndpoint,
    ClawEndpointInMessage,
    AgoraEndpoint,
    A2aCard,
    A2aKeySet,
    A2aInterface,
    A2aTokenUrl,
    A2aPush,
    // These may contain URLs and are never called.
    SchemaReference,
    ClawSchemaReference,
    CardMember,
    ClaraTag,
}

use Field::{
    A2aCard, A2aInterface, A2aKeySet, A2aPush, A2aTokenUrl, AgoraEndpoint, ApiEndpoint, Callback,
    CallbackUrl, CardMember, ClaraTag, ClawEndpoint, ClawEndpointInMessage, ClawSchemaReference,
    RelayEndpoint, RelayEndpointByOperator, SchemaReference,
};

/// Fields that the hub calls.
pub const CALLED: [Field; 13] = [
    ApiEndpoint,
    CallbackUrl,
    Callback,
    RelayEndpoint,
    RelayEndpointByOperator,
    ClawEndpoint,
    ClawEndpointInMessage,
    AgoraEndpoint,
    A2aCard,
    A2aKeySet,
    A2aInterface,
    A2aTokenUrl,
    A2aPush,
];

/// Fields that it does not call.
pub const KEPT: [Field; 4] = [SchemaReference, ClawSchemaReference, CardMember, ClaraTag];

/// The hub's files that accept URLs, each with the number of places: a new place must be added here
/// as a field.
pub const CHECKED: &[(&str, usize)] = &[
    ("crates/hub/src/v1/jobs/open.rs", 1),
    ("crates/protocols/src/a2a/operations/push.rs", 1),
    ("crates/protocols/src/a2a/operations/registration.rs", 1),
    // One is for cards and key sets.
    ("crates/protocols/src/a2a/remote/card_fetch.rs", 2),
    ("crates/protocols/src/agora/envelope.rs", 1),
    ("crates/protocols/src/openclaw/operations/identity.rs", 1),
    ("crates/protocols/src/registry/operations/agents.rs", 1),
    ("crates/protocols/src/registry/operations/jobs.rs", 1),
    ("crates/protocols/src/relay/operations/agents.rs", 1),
];

impl Field {
    /// Whether the answer of the URL decides if the request is accepted. A trap gives no good one.
    pub fn is_read_at_once(self) -> bool {
        matches!(self, A2aCard | A2aKeySet)
    }
}

/// A hub with an agent of every protocol, to make it call URLs.
pub struct Bench {
    pub hub: Hub,
    asker: Agent,
    worker: Agent,
    sender: Peer,
    node: Node,
    cards: CardServer,
    /// Where the worker is called in A2A.
    worker_base: String,
}

impl Bench {
    /// A hub that may call these networks besides the public ones, and a server of cards at an
    /// address. The operator trusts key sets at these URLs.
    pub async fn set(allow: &str, cards: IpAddr, key_sets: &[String]) -> Self {
        let networks = format!("{cards},{allow}");
        let key_sets = key_sets.join(",");
        let flags = [
            ("egress.allow", networks.trim_end_matches(',')),
            ("a2a.trust_jku", &key_sets),
            ("registry.sync_wait", "1ms"),
            ("egress.timeout", "10s"),
            ("egress.connect_timeout", "4s"),
        ];
        let hub = Hub::serve(&flags).await;
        let asker = hub.orchestrator("asker").await;
        let worker = hub.agent("worker", "free", "0", None).await;
        let (sender, node) = (hub.join("sender").await, hub.node("asker").await);
        let worker_base = hub.a2a_path("registry", &worker.id);
        let cards = CardServer::start(cards).await;
        Self { hub, asker, worker, sender, node, cards, worker_base }
    }

    pub async fn end(self) {
        self.hub.0.stop().await;
    }

    /// Puts a URL into a field and, if it is accepted, triggers the call. Returns the status of the
    /// first step.
    pub async fn give(&self, field: Field, url: &str) -> u16 {
        let (hub, asker) = (&self.hub, &self.asker);
        match field {
            ApiEndpoint => {
                let body = json!({"agent_name": "probe", "owner_id": fresh_id(), "api_endpoint": url,
                    "skills": [{"skill_name": "probed", "cost_per_call": 0}]});
                self.enrol_and_hire(&body).await
            }
            SchemaReference => {
                let schema = json!({"$ref": url, "properties": {"text": {"$ref": url}}});
                let skill = json!({"skill_name": "probed", "cost_per_call": 0,
                    "input_schema": schema, "output_schema": schema});
                let body =
                    json!({"agent_name": "probe", "owner_id": fresh_id(), "skills": [skill]});
                self.enrol_and_hire(&body).await
            }
            CallbackUrl => {
                let body = json!({"orchestrator_id": asker.id, "skill_name": "free",
                    "input_data": {}, "budget": 0, "callback_url": url});
                let path = format!("/registry/agents/{}/jobs", self.worker.id);
                let reply = hub.post(&path, Some(&asker.key), &body).await;
                if reply.status < 300 {
                    hub.0.report(&self.worker, &reply.str("/job_id"), "SUCCESS", "0").await;
                }
                reply.status
            }
            Callback => {
                let body = json!({"to": self.worker.id, "skill": "free", "budget": 0,
                    "callback": url});
                let reply = hub.post("/v1/jobs", Some(&asker.key), &body).await;
                if reply.status < 300 {
                    let path = format!("/v1/jobs/{}/result", reply.str("/id"));
                    let done = json!({"ok": true, "output": {}});
                    hub.post(&path, Some(&self.worker.key), &done).await.expect(200);
                }
                reply.status
            }
            RelayEndpoint => {
                let body = self.addressed(json!({"endpoint": url}));
                self.write_to(hub.post("/relay/register", None, &body).await).await
            }
            RelayEndpointByOperator => {
                let body = self.addressed(json!({"endpoint": url}));
                self.write_to(hub.post("/relay/agents", Some(&hub.operator), &body).await).await
            }
            CardMember => {
                let card = json!({"card_version": "0.3", "user_culture": "en",
                    "supported_languages": ["en"], "url": url, "endpoint": url,
                    "provider": {"url": url}, "iconUrl": url});
                let body = self.addressed(json!({"agent_card": card}));
                self.write_to(hub.post("/relay/register", None, &body).await).await
            }
            ClawEndpoint => {
                let body = with(&identity("probe", hub.now()), json!({"endpoint": url}));
                self.ask_of(&body, hub.post("/openclaw/identity", None, &body).await).await
            }
            ClawEndpointInMessage => {
                let mut body = with(&identity("probe", hub.now()), json!({"endpoint": url}));
                body["message_type"] = "identity".into();
                self.ask_of(&body, hub.post("/openclaw/messages", None, &body).await).await
            }
            ClawSchemaReference => {
                let mut body = identity("probe", hub.now());
                body["capabilities"]["input_schemas"]["sum"] = json!({"$ref": url});
                body["capabilities"]["output_schemas"]["sum"] = json!({"$ref": url});
                self.ask_of(&body, hub.post("/openclaw/identity", None, &body).await).await
            }
            AgoraEndpoint => self.speak(url).await,
            A2aCard => self.register(url, Value::Null).await.status,
            A2aKeySet => {
                self.register(&self.cards.card_with("key_set", url), Value::Null).await.status
            }
            A2aInterface => {
                let card = self.cards.card_with("interface", url);
                self.hire(self.register(&card, Value::Null).await).await
            }
            A2aTokenUrl => {
                let auth = json!({"scheme": "oauth2", "token_url": url, "client_id": "c",
                    "client_secret": "s"});
                let registered = self.register(&self.cards.plain_card(), auth).await;
                self.hire(registered).await
            }
            A2aPush => {
                let body = json!({"message": text_message("m", "hello"), "configuration": {
                    "returnImmediately": true, "taskPushNotificationConfig": {"url": url}}});
                let path = format!("{}/message:send", self.worker_base);
                let reply = hub.post(&path, Some(&asker.key), &body).await;
                if reply.status < 300 {
                    let task = reply.str("/task/id");
                    let path = format!("{}/tasks/{task}:cancel", self.worker_base);
                    hub.post(&path, Some(&asker.key), &json!({})).await.expect(200);
                }
                reply.status
            }
            ClaraTag => {
                let tags = [
                    ("Action", "Register-Agent-Profile"),
                    ("RedStone-Agent-Topic", "tweet"),
                    ("RedStone-Agent-Fee", "1"),
                    ("RedStone-Agent-Endpoint", url),
                ];
                let item = Wallet::of(9).item(&tags, url.as_bytes());
                let sent = hub.http.post(format!("{}/clara/mu", hub.url)).body(item).send().await;
                sent.expect("an answer").status().as_u16()
            }
        }
    }

    async fn enrol_and_hire(&self, body: &Value) -> u16 {
        let reply = self.hub.post("/registry/register", None, body).await;
        if reply.status < 300 {
            let job = json!({"orchestrator_id": self.asker.id, "skill_name": "probed",
                "input_data": {"text": "x"}, "budget": 0});
            let path = format!("/registry/agents/{}/jobs", reply.str("/agent_id"));
            self.hub.post(&path, Some(&self.asker.key), &job).await;
            let key = reply.str("/api_key");
            self.hub.post("/v1/webhooks/test", Some(&key), &json!({})).await;
        }
        reply.status
    }

    /// Registers an agent with a server of its own.
    async fn register(&self, card: &str, auth: Value) -> Reply {
        let name = format!("p{}", fresh_id());
        let mut body = json!({"name": name, "card_url": card});
        if !auth.is_null() {
            body["auth"] = auth;
        }
        self.hub.post("/a2a/agents", None, &body).await
    }

    /// Opens a task with a new agent, and removes it when the hub has tried to call it.
    async fn hire(&self, registered: Reply) -> u16 {
        if registered.status < 300 {
            let (hub, name) = (&self.hub, registered.str("/name"));
            let base = format!("/a2a/agents/{name}");
            let task = hub.begin(&base, &self.asker.key, text_message("m", "hello")).await;
            let task = id(&task).parse().expect("an id");
            // Nothing was handed over, so the job is given back or has failed.
            eventually(async || {
                hub.engine.with_world(|world| {
                    let job = world.job_by_uuid(task);
                    job.is_none_or(|job| job.epoch > 0 && !job.state.is_assigned())
                })
            })
            .await;
            let key = registered.str("/api_key");
            hub.call("DELETE", &base, Some(&key), None).await.expect(200);
        }
        registered.status
    }

    fn addressed(&self, more: Value) -> Value {
        with(&registration(&format!("p{}", fresh_id())), more)
    }

    async fn write_to(&self, registered: Reply) -> u16 {
        if registered.status < 300 {
            let id = registered.str("/data/agent_id");
            let text = message(&self.sender.id, &id, "hello");
            self.hub.post("/relay/messages", Some(&self.sender.key), &text).await;
        }
        registered.status
    }

    async fn ask_of(&self, identity: &Value, published: Reply) -> u16 {
        if published.status < 300 {
            let of = identity["agent_id"].clone();
            let request = self.hub.request(&self.node, json!({"responder_agent_id": of}));
            self.hub.ask(&self.node, &request).await;
        }
        published.status
    }

    /// A new agora agent registers this endpoint and gets a message.
    async fn speak(&self, url: &str) -> u16 {
        let key = |text: &str| {
            let mut seed = [7; 32];
            let bytes = text.as_bytes();
            seed[..bytes.len().min(32)].copy_from_slice(&bytes[bytes.len().saturating_sub(32)..]);
            Key { composer: EnvelopeSigner::new(SecretKey::from_seed(&seed)) }
        };
        let (new, other) = (key(&fresh_id()), key("somebody else"));
        let hello = new.sign(MessageType::Hello, &json!({"endpoint": url}));
        let post =
            async |text: &str| self.hub.call("POST", "/agora/envelopes", None, Some(text)).await;
        let reply = post(&hello.text).await;
        if reply.status < 300 {
            let note = other.sign_for(MessageType::Hello, &json!({"x": 1}), Some(new.public()));
            post(&note.text).await;
        }
        reply.status
    }
}

/// Checks that the list of places that accept URLs is complete.
#[test]
fn every_place_that_lets_a_url_in_is_one_of_these_fields() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut found = Vec::new();
    let mut folders: Vec<_> = ["hub", "protocols"]
        .iter()
        .map(|name| root.join("crates").join(name).join("src"))
        .collect();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = std::fs::read_to_string(&path).expect("text");
            let joined: String = text.split_whitespace().collect();
            let count = joined.matches("egress.check_url(").count();
            if count > 0 {
                let path = path.strip_prefix(&root).expect("below the root");
                found.push((path.display().to_string().replace('\\', "/"), count));
            }
        }
    }
    found.sort();
    let known: Vec<(String, usize)> =
        CHECKED.iter().map(|(path, count)| ((*path).to_owned(), *count)).collect();
    assert_eq!(found, known, "a place that accepts URLs must be a field here");
}

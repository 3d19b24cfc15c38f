//! The participants: agents of all five protocols, registered and funded on a hub that was shut
//! down cleanly. Every run begins with a copy of its data.

use std::path::PathBuf;
use std::sync::OnceLock;

use rialto_protocols::agora::MessageType;
use rialto_protocols::kit::ed25519::PublicKey;
use serde_json::{Value, json};

use super::disk::{DataDir, Fault};
use super::hub::{Caller, Hub, Request, wait_for};
use crate::agora::kit::Key;
use crate::clara::kit::Wallet;
use crate::kit::operator_key;
use crate::openclaw::kit as claw;
use crate::relay::kit as relay;

pub const SKILL: &str = "analyze_text";
pub const RESOURCE: &str = "agora:search:v1";
pub const CLARA_AGENT: &str = "A";
const STARTING_CREDITS: u64 = 1_000;

/// An agent and its key.
#[derive(Clone, Debug)]
pub struct Player {
    pub id: String,
    pub key: String,
}

/// All participants, and their data directory.
pub struct Scene {
    room: DataDir,
    /// Registry agents.
    pub requester: Player,
    pub worker: Player,
    pub payer: Player,
    /// The agent that rotates its key, and the one that leaves.
    pub careful: Player,
    pub leaver: Player,
    /// Relay agents.
    pub alice: Player,
    pub bob: Player,
    /// openclaw agents.
    pub asker: Player,
    pub helper: Player,
    /// Inbox tokens of the two agora keys.
    pub seeks: String,
    pub finds: String,
}

/// The two agora keys, and the two clara wallets.
pub fn seeker() -> Key {
    Key::of(1)
}

pub fn finder() -> Key {
    Key::of(2)
}

pub fn customer() -> Wallet {
    Wallet::of(3)
}

pub fn recorder() -> Wallet {
    Wallet::of(4)
}

/// The participants, created once.
pub fn scene() -> &'static Scene {
    static SCENE: OnceLock<Scene> = OnceLock::new();
    SCENE.get_or_init(|| {
        std::thread::spawn(|| wait_for(Scene::set())).join().expect("the scene can be set")
    })
}

impl Scene {
    pub fn data(&self) -> PathBuf {
        self.room.data()
    }

    async fn set() -> Self {
        let room = DataDir::empty();
        let hub = Hub::start(&room, &Fault::none());
        let line = Line { caller: Caller::new(), url: hub.url().to_owned() };
        let skills = json!([{"skill_name": SKILL, "cost_per_call": 0.10}]);
        let scene = Self {
            requester: line.register("requester", json!([])).await,
            worker: line.register("worker", skills).await,
            payer: line.register("payer", json!([])).await,
            careful: line.register("careful", json!([])).await,
            leaver: line.register("leaver", json!([])).await,
            alice: line.join("alice@chorus").await,
            bob: line.join("bob@chorus").await,
            asker: line.publish("asker", json!({})).await,
            helper: line.publish("helper", json!({"price": 1.25})).await,
            seeks: line.hello(&seeker(), json!({})).await,
            finds: line.hello(&finder(), json!({"capabilities": [{"resource": RESOURCE}]})).await,
            room,
        };
        line.profile().await;
        let claws = [&scene.asker, &scene.helper].map(|one| format!("openclaw:{}", one.id));
        let owners = [
            "requester".to_owned(),
            "payer".to_owned(),
            seeker().owner(),
            finder().owner(),
            format!("clara:{}", customer().address()),
        ];
        for owner in owners.iter().chain(&claws) {
            line.fund(owner).await;
        }
        assert!(hub.stop().0.success());
        scene
    }
}

/// A hub and a caller.
struct Line {
    caller: Caller,
    url: String,
}

impl Line {
    async fn tell(&self, path: &str, key: Option<&str>, body: &Value) -> Value {
        self.caller.must(&self.url, &Request::post(path, key, body)).await
    }

    async fn register(&self, owner: &str, skills: Value) -> Player {
        let body = json!({"agent_name": owner, "owner_id": owner, "skills": skills});
        player(&self.tell("/registry/register", None, &body).await)
    }

    async fn join(&self, name: &str) -> Player {
        let told = self.tell("/relay/register", None, &relay::registration(name)).await;
        player(&told["data"])
    }

    async fn publish(&self, name: &str, able: Value) -> Player {
        let identity = claw::identity(name, rialto_core::time::Timestamp(0));
        player(&self.tell("/openclaw/identity", None, &claw::able(&identity, able)).await)
    }

    async fn hello(&self, key: &Key, mut profile: Value) -> String {
        let about = self.caller.must(&self.url, &Request::get("/agora", None)).await;
        let hub = PublicKey::parse(about["hub"].as_str().expect("text")).expect("a key");
        profile["inbox"] = true.into();
        let hello = key.sign_for(MessageType::Hello, &profile, Some(hub));
        let request = Request {
            body: hello.text.into_bytes(),
            ..Request::post("/agora/envelopes", None, &Value::Null)
        };
        let told = self.caller.must(&self.url, &request).await;
        told["payload"]["inbox_token"].as_str().expect("a token").to_owned()
    }

    /// The market's one agent.
    async fn profile(&self) {
        let tags = [
            ("Action", "Register-Agent-Profile"),
            ("Protocol", "C.L.A.R.A."),
            ("RedStone-Agent-Topic", "tweet"),
            ("RedStone-Agent-Fee", "20"),
            ("RedStone-Agent-Id", CLARA_AGENT),
        ];
        let body = recorder().item(&tags, b"{}");
        let request = Request { body, ..Request::post("/clara/mu", None, &Value::Null) };
        self.caller.must(&self.url, &request).await;
    }

    async fn fund(&self, owner: &str) {
        let body = json!({"owner_id": owner, "initial_balance": STARTING_CREDITS});
        self.tell("/registry/accounts", Some(&operator_key()), &body).await;
    }
}

fn player(told: &Value) -> Player {
    let word = |name: &str| told[name].as_str().expect("text").to_owned();
    Player { id: word("agent_id"), key: word("api_key") }
}

//! Test fixture: a node with all APIs on a port of its own, and a raw client.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use rialto_core::agent::Liveness;
use rialto_core::agent::key::Holder;
use rialto_core::alias::Protocol;
use rialto_core::command::{Actor, Command, Registration, SendMessage};
use rialto_core::id::AgentId;
use rialto_core::time::Millis;
use rialto_core::world::Rules;
use rialto_engine::clock::SystemClock;
use rialto_engine::cluster::state::{CoordinatorRequest, Role};
use rialto_engine::keys::{Key, KeyPrefix};
use rialto_engine::secret::HubSecret;
use rialto_engine::store::Store;
use rialto_engine::store::memory::MemoryStore;
use rialto_engine::testkit::SeededRandom;
use rialto_engine::{Engine, EngineParts, ManualNode};
use rialto_protocols::{adapter, registry};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::app::Hub;
use crate::config::{Config, LoadedConfig, Profile};
use crate::edge::bind;
use crate::shutdown::{Shutdown, ShutdownTrigger};

/// A test in which this much time passes has failed.
pub const LONG: Duration = Duration::from_secs(60);

/// A running node; it stops when dropped.
pub struct Node {
    pub address: SocketAddr,
    pub engine: Engine,
    pub manual: ManualNode,
    pub coordinator: Arc<Coordinator>,
    pub hub: Hub,
    pub trigger: ShutdownTrigger,
    pub shutdown: Shutdown,
}

/// What the log says when the node looks at it.
#[derive(Default)]
pub struct Coordinator {
    looks: AtomicU32,
    fails: AtomicBool,
    resigned: AtomicBool,
    /// What the next look finds.
    found: Mutex<Option<Command>>,
}

impl Coordinator {
    /// How often the node has looked since the last call.
    pub fn take_looks(&self) -> u32 {
        self.looks.swap(0, Ordering::SeqCst)
    }

    /// Whether the node has given up the lease.
    pub fn has_resigned(&self) -> bool {
        self.resigned.load(Ordering::SeqCst)
    }

    pub fn fail_looks(&self) {
        self.fails.store(true, Ordering::SeqCst);
    }

    /// Makes the next look find what another node has written.
    pub fn write_elsewhere(&self, command: Command) {
        *self.found.lock() = Some(command);
    }

    async fn answer(&self, engine: &Engine, request: CoordinatorRequest) {
        let found = match request {
            CoordinatorRequest::Look(found) => found,
            CoordinatorRequest::Resign(done) => {
                self.resigned.store(true, Ordering::SeqCst);
                let _ = done.send(());
                return;
            }
            CoordinatorRequest::Leave(done) => {
                let _ = done.send(());
                return;
            }
            _ => return,
        };
        self.looks.fetch_add(1, Ordering::SeqCst);
        let command = self.found.lock().take();
        if let Some(command) = command {
            engine.run(command).await.expect("the other node has committed it");
        }
        if !self.fails.load(Ordering::SeqCst) {
            let _ = found.send(0);
        }
    }
}

fn config() -> Config {
    let limits = [
        "limits.registrations_per_minute",
        "limits.registrations_per_minute_total",
        "limits.writes_per_minute",
        "limits.wrong_keys_per_minute",
    ];
    let mut flags = limits.map(|key| (key, "0".to_owned())).to_vec();
    flags.push(("egress.allow", "127.0.0.0/8".to_owned()));
    let none = std::path::Path::new("/dev/null");
    let loaded = LoadedConfig::load(Profile::Serve, Some(none), std::iter::empty(), &flags);
    loaded.expect("the flags are valid").config
}

impl Node {
    /// A node with this role, which is current.
    pub async fn start(role: Role) -> Self {
        Self::over(Box::new(MemoryStore::default()), role).await
    }

    /// The same, over a store.
    pub async fn over(store: Box<dyn Store>, role: Role) -> Self {
        let config = config();
        let setup = EngineParts {
            store,
            rules: Rules { confusables: adapter::confusables(), ..Rules::default() },
            clock: Arc::new(SystemClock::start()),
            random: SeededRandom::new(1),
            secret: HubSecret::from_bytes([7; 32]),
            markets: adapter::markets(),
            cluster: None,
        };
        let started = ManualNode::start(setup, role).expect("memory is there");
        let (running, manual, mut requests) = started;
        let engine = running.engine.clone();
        let coordinator = Arc::new(Coordinator::default());
        let (played, reader) = (coordinator.clone(), engine.clone());
        tokio::spawn(async move {
            while let Some(request) = requests.recv().await {
                played.answer(&reader, request).await;
            }
        });
        // The writer has made it.
        let (made, _) = new_operator_key(&engine);
        engine.run(made).await.expect("a key");
        let listener = bind(SocketAddr::from(([127, 0, 0, 1], 0))).expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let (trigger, shutdown) = Shutdown::manual();
        let on = (listener, address);
        let hub = Hub::serve_engine(&config, running, None, on, shutdown.clone()).await;
        let hub = hub.expect("it starts");
        coordinator.take_looks();
        Self { address, engine, manual, coordinator, hub, trigger, shutdown }
    }

    /// Sends a request on a connection of its own. The header lines end in `\r\n`.
    pub async fn send(&self, method: &str, path: &str, headers: &str) -> Client {
        let mut stream = TcpStream::connect(self.address).await.expect("the node accepts");
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{headers}\r\n"
        );
        stream.write_all(head.as_bytes()).await.expect("the node reads");
        Client(stream)
    }

    /// The whole response to a request.
    pub async fn ask(&self, method: &str, path: &str, headers: &str) -> String {
        self.send(method, path, headers).await.rest().await
    }

    /// The whole response to a request with a body.
    pub async fn post(&self, path: &str, headers: &str, body: &str) -> String {
        let head = format!("{headers}Content-Length: {}\r\n\r\n{body}", body.len());
        self.ask("POST", path, &head).await
    }

    /// Registers an agent, and returns the header that shows its key.
    pub async fn register(&self) -> String {
        let body = r#"{"agent_id":"alice@chorus","agent_card":{"card_version":"0.3","user_culture":"en","supported_languages":["en"]}}"#;
        let answer = self.post("/relay/register", "", body).await;
        let (_, rest) = answer.split_once(r#""api_key":""#).expect(&answer);
        let (key, _) = rest.split_once('"').expect("the end of the key");
        self.coordinator.take_looks();
        format!("Authorization: Bearer {key}\r\n")
    }

    /// Registers an agent as an older version of the hub did that had one protocol.
    pub async fn register_without_aliases(&self) {
        let order = Registration {
            actor: Actor::OpenRegistration,
            home: registry::ID,
            native_id: "a3b8d1b6-0b3b-4b1a-9c1a-1a2b3c4d5e6f".to_owned(),
            aliases: Vec::new(),
            owner: "acme".to_owned(),
            name: "adder".to_owned(),
            endpoint: None,
            liveness: Liveness::Always,
            skills: Vec::new(),
            terms: Default::default(),
            status: None,
            card: "{}".to_owned(),
            key: None,
            rotate_key: false,
        };
        self.engine.run(Command::Register(Box::new(order))).await.expect("an agent");
    }

    /// Waits until the node has looked this often.
    pub async fn until_looked(&self, count: u32) {
        let looked = async {
            while self.coordinator.looks.load(Ordering::SeqCst) < count {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(LONG, looked).await.expect("it looks in time");
    }

    /// A command that issues an operator key, and the header that shows that key.
    pub fn issue_key(&self) -> (Command, String) {
        new_operator_key(&self.engine)
    }
}

fn new_operator_key(engine: &Engine) -> (Command, String) {
    let key = Key::from_random(KeyPrefix::OPERATOR, engine.random().new_key_bytes());
    let (holder, hash) = (Holder::Operator, key.hash());
    let command = Command::IssueKey { holder, hash, retire_others: false, by_operator: false };
    (command, format!("Authorization: Bearer {}\r\n", key.expose()))
}

/// A message of an agent to itself, delivered to a URL if one is given.
pub fn message(to: AgentId, url: Option<String>) -> Command {
    Command::SendMessage(Box::new(SendMessage {
        from: Some(to),
        to,
        protocol: Protocol::new("v1"),
        body: "hello".to_owned(),
        url,
        first_try: Millis(0),
        identity: None,
        by_operator: false,
    }))
}

/// A connection with one request.
pub struct Client(TcpStream);

impl Client {
    /// Everything until the node closes.
    pub async fn rest(&mut self) -> String {
        let mut bytes = Vec::new();
        let read = timeout(LONG, self.0.read_to_end(&mut bytes)).await;
        read.expect("the node closes in time").expect("the connection is not reset");
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Everything up to and including `end`.
    pub async fn until(&mut self, end: &str) -> String {
        let mut bytes = Vec::new();
        let reading = async {
            while !String::from_utf8_lossy(&bytes).ends_with(end) {
                bytes.push(self.0.read_u8().await.expect("there is more"));
            }
        };
        timeout(LONG, reading).await.expect("it arrives in time");
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

//! Hubs for benchmarks and the agents registered at them: in this process, on a runtime with the
//! echo's thread count, or in a process of its own for what can only be measured from outside.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use rialto_core::agent::{Liveness, Skill};
use rialto_core::answer::Answer;
use rialto_core::command::{Actor, Command, Registration};
use rialto_core::money::Credits;
use rialto_engine::Engine;
use rialto_engine::keys::{Key, KeyPrefix};
use rialto_hub::app::{Hub, Options};
use rialto_hub::config::{LoadedConfig, Profile};
use rialto_hub::shutdown::{Shutdown, ShutdownTrigger};
use rialto_protocols::registry::ID;
use tempfile::TempDir;
use tokio::runtime::Runtime;
use uuid::Uuid;

use crate::usage::rss_bytes;

/// Limits are raised: they are meant for one caller, and a benchmark acts as many.
pub const SETTINGS: [(&str, &str); 7] = [
    ("limits.registrations_per_minute", "0"),
    ("limits.registrations_per_minute_total", "0"),
    ("limits.writes_per_minute", "0"),
    ("limits.inbox_pending", "0"),
    ("egress.per_host_per_minute", "0"),
    ("http.max_connections", "50000"),
    ("http.max_connections_per_address", "50000"),
];

/// Time limit for a start.
const START_TIMEOUT: Duration = Duration::from_secs(20);

/// A running hub; it ends when this is dropped.
pub struct BenchHub {
    pub address: SocketAddr,
    pub engine: Engine,
    pub runtime: Option<Runtime>,
    trigger: ShutdownTrigger,
    _dir: TempDir,
}

impl BenchHub {
    /// Starts a hub over the named store, without rate limits.
    pub fn start(threads: usize, backend: &str) -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(threads.max(1))
            .thread_name("hub")
            .enable_all()
            .build()?;
        let dir = temporary_dir()?;
        let mut flags = vec![
            ("http.listen", "127.0.0.1:0".to_owned()),
            ("data.dir", dir.path().display().to_string()),
            ("store.backend", backend.to_owned()),
        ];
        flags.extend(SETTINGS.map(|(key, value)| (key, value.to_owned())));
        let loaded = LoadedConfig::load(Profile::Serve, None, std::iter::empty(), &flags);
        let loaded = loaded.map_err(io::Error::other)?;
        let (trigger, shutdown) = Shutdown::manual();
        let hub =
            runtime.block_on(Hub::start(&loaded.config, Options::default(), shutdown.clone()));
        let hub = hub.map_err(io::Error::other)?;
        let (address, engine) = (hub.address, hub.engine.clone());
        runtime.spawn(async move { hub.run(&shutdown).await });
        Ok(Self { address, engine, runtime: Some(runtime), trigger, _dir: dir })
    }

    /// Blocks on a future on the hub's runtime.
    pub fn block_on<T>(&self, work: impl Future<Output = T>) -> T {
        let runtime = self.runtime.as_ref().expect("the runtime lives as long as the hub");
        runtime.block_on(work)
    }
}

impl Drop for BenchHub {
    fn drop(&mut self) {
        self.trigger.trigger();
        self.block_on(self.engine.stop());
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_timeout(Duration::from_secs(2));
        }
    }
}

/// A directory for a hub's data, removed when this is dropped.
pub fn temporary_dir() -> io::Result<TempDir> {
    tempfile::Builder::new().prefix("rialto-bench-").tempdir()
}

/// An agent and its key.
#[derive(Clone, Debug)]
pub struct BenchAgent {
    pub id: Uuid,
    pub key: String,
}

/// A skill of an agent and its price.
#[derive(Clone, Debug)]
pub struct SkillPrice {
    pub skill: String,
    pub price: Credits,
}

/// Registers an agent.
pub async fn register_agent(
    engine: &Engine,
    owner: &str,
    liveness: Liveness,
    offered: Option<SkillPrice>,
) -> io::Result<BenchAgent> {
    let id = engine.random().new_uuid();
    let key = Key::from_random(KeyPrefix::AGENT, engine.random().new_key_bytes());
    let skill = |offered: SkillPrice| Skill {
        name: offered.skill,
        price: offered.price,
        by_offer: false,
        expected_duration: None,
        needs_approval: false,
        category: None,
        native_name: None,
        description: "benchmark".to_owned(),
        input: "{}".to_owned(),
        output: "{}".to_owned(),
    };
    let registration = Registration {
        actor: Actor::Operator,
        home: ID,
        native_id: id.to_string(),
        aliases: Vec::new(),
        owner: owner.to_owned(),
        name: "benchmark agent".to_owned(),
        endpoint: None,
        liveness,
        skills: offered.into_iter().map(skill).collect(),
        terms: Default::default(),
        status: None,
        card: "{}".to_owned(),
        key: Some(key.hash()),
        rotate_key: false,
    };
    match engine.run(Command::Register(Box::new(registration))).await {
        Ok(Answer::Agent { .. }) => Ok(BenchAgent { id, key: key.expose().to_owned() }),
        Ok(_) => Err(io::Error::other("the registration returned an unexpected answer")),
        Err(failure) => Err(io::Error::other(failure)),
    }
}

/// Grants an owner more credits than a benchmark can spend.
pub async fn grant_credits(engine: &Engine, owner: &str) -> io::Result<()> {
    let grant = Command::Grant { name: owner.to_owned(), amount: Credits::MAX };
    engine.run(grant).await.map(drop).map_err(io::Error::other)
}

/// A hub that is ready; it stops when this is dropped.
pub struct HubProcess {
    pub address: SocketAddr,
    child: Child,
}

impl HubProcess {
    /// Starts the hub and waits until it accepts writes.
    pub fn start(dir: &Path, settings: &[(&str, &str)]) -> io::Result<Self> {
        let port = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        let began = Instant::now();
        let child = std::process::Command::new(hub_binary()?)
            .args(["serve", "--listen", &address.to_string()])
            .args(
                settings.iter().flat_map(|(key, value)| ["--set".into(), format!("{key}={value}")]),
            )
            .arg("--data")
            .arg(dir)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let mut hub = Self { address, child };
        while !is_ready(address) {
            if began.elapsed() > START_TIMEOUT || hub.child.try_wait()?.is_some() {
                return Err(io::Error::other("the hub did not become ready in time"));
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(hub)
    }

    /// Its memory, where the system reports it.
    pub fn rss_bytes(&self) -> Option<u64> {
        rss_bytes(self.child.id())
    }
}

impl Drop for HubProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The `rialto` that was built beside this program.
fn hub_binary() -> io::Result<PathBuf> {
    let name = format!("rialto{}", std::env::consts::EXE_SUFFIX);
    let binary = std::env::current_exe()?.with_file_name(name);
    if binary.exists() {
        return Ok(binary);
    }
    Err(io::Error::other(format!("{} not found; build it first", binary.display())))
}

/// Whether the hub reports that it accepts writes.
fn is_ready(address: SocketAddr) -> bool {
    let Ok(mut stream) = TcpStream::connect_timeout(&address, Duration::from_millis(50)) else {
        return false;
    };
    let mut answer = [0; 12];
    let sent = write!(stream, "GET /readyz HTTP/1.1\r\nhost: {address}\r\n\r\n");
    sent.is_ok() && stream.read_exact(&mut answer).is_ok() && answer.ends_with(b"200")
}

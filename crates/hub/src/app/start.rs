//! Starts and stops a hub.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;

use rialto_core::agent::key::Holder;
use rialto_core::command::Command;
use rialto_core::market::Market;
use rialto_core::idempotency::Amount;
use rialto_core::world::Rules;
use rialto_core::world::footprint::MemoryLimits;
use rialto_engine::clock::{Clock, SystemClock};
use rialto_engine::delivery::Delivery;
use rialto_engine::delivery::egress::{BadEgress, Egress, EgressSettings};
use rialto_engine::random::{Ids, OsIds};
use rialto_engine::keys::{Key, Kind};
use rialto_engine::permissions;
use rialto_engine::secret::{HubSecret, NoSecret};
use rialto_engine::store::memory::MemoryStore;
use rialto_engine::store::sqlite::SqliteStore;
use rialto_engine::store::{Store, StoreError};
use rialto_engine::{Engine, Failure, Setup, Started};
use rialto_protocols::adapter::{self, Floor, Ground, Settings};
use rialto_protocols::{agora, clara, openclaw, relay};
use tokio::net::TcpListener;

use super::path_policy::{Paths, SignersLimits};
use super::{routes, probes, settings};
use crate::config::{Backend, Config, Limit, Loaded};
use crate::edge::{self, Front, Hosts, Limits};
use crate::shutdown::Shutdown;
use crate::telemetry::{self, Metrics};

/// How many ports above one in use are tried when suggesting a free one.
const PORTS_TRIED: usize = 100;

/// Inputs from outside the configuration: secrets and the clock.
#[derive(Clone, Default)]
pub struct Options {
    /// The source of time; the system clock if `None`.
    pub clock: Option<Arc<dyn Clock>>,
    /// The value of `RIALTO_OPERATOR_KEY`.
    pub operator_key: Option<String>,
    /// The value of `RIALTO_HUB_SECRET`.
    pub hub_secret: Option<String>,
}

/// Why a hub cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("cannot create the data directory {dir}: {error}")]
    DataDir { dir: String, error: io::Error },
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Secret(#[from] NoSecret),
    #[error(transparent)]
    Egress(#[from] BadEgress),
    #[error("cannot listen on {address}: {error}{}", way_out(*address, error))]
    Listen { address: SocketAddr, error: io::Error },
    #[error("RIALTO_OPERATOR_KEY is not an operator key; expected `ro_` followed by 48 hex digits")]
    OperatorKey,
    #[error(
        "RIALTO_OPERATOR_KEY does not match the operator key of this hub: \
         unset it or set it to the key of this hub; replace a lost key with `rialto operator key \
         rotate --data {0}` while the hub is stopped"
    )]
    OtherOperatorKey(String),
    #[error("the hub cannot write: {0}")]
    Write(#[from] Failure),
}

/// A hint for an address in use: the nearest port that is free now.
fn way_out(address: SocketAddr, error: &io::Error) -> String {
    if error.kind() != io::ErrorKind::AddrInUse {
        return String::new();
    }
    let ports = (address.port()..=u16::MAX).skip(1).take(PORTS_TRIED);
    let mut free = ports.map(|port| SocketAddr::new(address.ip(), port));
    match free.find(|address| std::net::TcpListener::bind(address).is_ok()) {
        Some(free) => format!("; the port is in use, {free} is free: use --listen {free}"),
        None => "; the port is in use: choose another one with --listen".to_owned(),
    }
}

/// A running hub.
pub struct Hub {
    pub address: SocketAddr,
    pub url: String,
    /// The operator key, if one was created at this start. It is shown once and not stored.
    pub new_operator_key: Option<String>,
    pub engine: Engine,
    limits: Arc<Limits>,
    lane: JoinHandle<()>,
    served: tokio::task::JoinHandle<()>,
    delivered: tokio::task::JoinHandle<()>,
}

impl Hub {
    /// Opens the store, starts the commit lane, and listens.
    pub async fn start(
        config: &Config,
        options: Options,
        shutdown: Shutdown,
    ) -> Result<Self, StartError> {
        let address = config.http.listen;
        let listener =
            edge::bind(address).map_err(|error| StartError::Listen { address, error })?;
        let bound = listener.local_addr().map_err(|error| StartError::Listen { address, error })?;
        let Started { engine, lane } = start_engine(config, options.hub_secret, options.clock)?;
        let new_operator_key = settle_operator(config, &engine, options.operator_key).await?;
        let url = config.http.base_url(bound);
        let limits = Arc::new(Limits::new(&config.limits));
        let floor = floor(config, engine.clone(), url.clone(), limits.clone())?;
        adapter::complete_aliases(&engine).await?;
        let delivery = Delivery::new(engine.clone(), floor.egress.clone(), adapter::couriers(&floor));
        let background = adapter::background(&floor);
        let delivered = tokio::spawn(async {
            tokio::join!(delivery.work(), background);
        });
        let served = serve(config, &floor, limits.clone(), listener, bound, shutdown);
        let epoch = engine.look(|world| world.next.epoch);
        let (version, data) = (env!("CARGO_PKG_VERSION"), config.data.dir.display());
        tracing::info!(version, %url, address = %bound, %data, epoch, "hub started");
        Ok(Self { address: bound, url, new_operator_key, engine, limits, lane, served, delivered })
    }

    /// A handle that applies changed settings while the hub runs.
    pub fn reload(&self) -> Reload {
        Reload(self.limits.clone())
    }

    /// Runs until shutdown or until the store fails; a store failure is returned as an error.
    pub async fn run(self, shutdown: &Shutdown) -> Result<(), String> {
        let mut broken = self.engine.broken();
        let failed = tokio::select! {
            () = shutdown.wait() => None,
            found = broken.wait_for(Option::is_some) => found.ok().and_then(|why| why.clone()),
        };
        if let Some(why) = failed {
            // Requests in progress may still finish, but without any guarantee.
            self.served.abort();
            return Err(why);
        }
        tracing::info!("hub stopping");
        // Waits for running requests, up to the edge's own grace period.
        let _ = self.served.await;
        self.delivered.abort();
        self.engine.stop().await;
        let _ = tokio::task::spawn_blocking(move || self.lane.join()).await;
        tracing::info!("hub stopped");
        Ok(())
    }
}

/// Applies the settings that can change while a hub runs.
#[derive(Clone)]
pub struct Reload(Arc<Limits>);

impl Reload {
    /// Applies a new configuration. Returns the changed keys that are in force now, and the changed
    /// keys that need a restart. The caller sets the log level itself.
    pub fn take(&self, old: &Loaded, new: &Loaded) -> (Vec<&'static str>, Vec<&'static str>) {
        self.0.set(&new.config.limits);
        let changed = old.rows().iter().zip(new.rows()).filter(|(old, new)| old.value != new.value);
        changed.map(|(_, new)| new.key).partition(|key| RELOADED.contains(key))
    }
}

/// Keys that take effect without a restart.
const RELOADED: [&str; 6] = [
    "limits.registrations_per_minute",
    "limits.registrations_per_minute_total",
    "limits.read_bytes_per_minute",
    "limits.writes_per_minute",
    "limits.wrong_keys_per_minute",
    "log.level",
];

fn start_engine(
    config: &Config,
    hub_secret: Option<String>,
    clock: Option<Arc<dyn Clock>>,
) -> Result<Started, StartError> {
    let dir = &config.data.dir;
    permissions::directory(dir)
        .map_err(|error| StartError::DataDir { dir: dir.display().to_string(), error })?;
    let secret = HubSecret::load_or_make(dir, hub_secret)?;
    let store: Box<dyn Store> = match config.store.backend {
        Backend::Sqlite => Box::new(SqliteStore::open(dir)?),
        Backend::Memory => Box::new(MemoryStore::default()),
    };
    let most = |limit: Limit| limit.max().map_or(0, |max| u64::from(max.get()));
    let rules = Rules {
        presence_ttl: config.registry.heartbeat_ttl.millis(),
        welcome_grant: config.ledger.welcome_grant,
        inbox_messages_max: most(config.limits.inbox_pending),
        kept_per_principal: Amount {
            answers: most(config.limits.kept_answers),
            bytes: most(config.limits.kept_answer_bytes),
        },
        kept_total: Amount {
            answers: most(config.limits.kept_answers_total),
            bytes: most(config.limits.kept_answer_bytes_total),
        },
        invitations_max: usize::try_from(config.limits.invitations.get()).unwrap_or(usize::MAX),
        attempts_max: config.jobs.max_attempts.get(),
        unproven_ttl: config.limits.unproven_ttl.map(|span| span.millis()),
        approval_window: config.openclaw.approval_window.millis(),
        fair_time: config.reputation.fair_time.millis(),
        likeness: adapter::likeness(),
        memory: MemoryLimits {
            total: config.store.memory.bytes() as u64,
            per_owner: config.store.memory_per_owner.bytes() as u64,
        },
        ..Rules::default()
    };
    let clock = clock.unwrap_or_else(|| Arc::new(SystemClock::start()));
    let market = Market { protocol: clara::ID, scribe: Arc::new(clara::Board) };
    let market = Some(Arc::new(market));
    let setup = Setup { store, rules, clock, ids: Arc::new(OsIds), secret, market };
    Ok(Engine::start(setup)?)
}

/// The first start stores the given operator key or creates one. On later starts a given key must
/// match the stored one: if a variable left over in the environment could replace the key, its
/// holder would be locked out.
async fn settle_operator(
    config: &Config,
    engine: &Engine,
    given: Option<String>,
) -> Result<Option<String>, StartError> {
    let (key, made) = match given {
        Some(text) => {
            let key = Key::read(text.trim()).filter(|key| key.kind() == Kind::Operator);
            (key.ok_or(StartError::OperatorKey)?, false)
        }
        None if has_operator(engine) => return Ok(None),
        None => (Key::make(Kind::Operator, OsIds.key_bits()), true),
    };
    let hash = key.hash();
    let works = engine.look(|world| world.key(&hash).is_some_and(|key| key.works(engine.now())));
    if !works && has_operator(engine) {
        return Err(StartError::OtherOperatorKey(config.data.dir.display().to_string()));
    }
    if !works {
        let holder = Holder::Operator;
        engine
            .run(Command::IssueKey { holder, hash, retire_others: true, by_operator: true })
            .await?;
    }
    Ok(made.then(|| key.expose().to_owned()))
}

fn has_operator(engine: &Engine) -> bool {
    let now = engine.now();
    engine.look(|world| world.operator_keys().any(|key| key.works(now)))
}

fn floor(
    config: &Config,
    engine: Engine,
    hub_url: String,
    limits: Arc<Limits>,
) -> Result<Floor, StartError> {
    let egress = Egress::new(EgressSettings {
        allow: config.egress.allow.clone(),
        connect_timeout: config.egress.connect_timeout.duration(),
        timeout: config.egress.timeout.duration(),
        per_host: config.egress.per_host.get() as usize,
        per_host_per_minute: config.egress.per_host_per_minute.max(),
    })?;
    if let Some(why) = egress.https_trouble() {
        tracing::warn!(why, "https endpoints cannot be called");
    }
    Ok(Floor::new(Ground {
        clara: settings::clara(config, engine.secret()),
        relay: relay::Room::new(settings::relay(config), engine.secret()),
        agora: agora::Room::new(settings::agora(config), engine.secret()),
        openclaw: openclaw::Room::new(settings::openclaw(config), engine.secret()),
        writes: Arc::new(SignersLimits(limits)),
        engine,
        egress: Arc::new(egress),
        hub_url: hub_url.trim_end_matches('/').to_owned(),
        body_limit: config.http.body_limit.bytes(),
        settings: Settings { registry: settings::registry(config) },
        running: adapter::idempotency::Running::default(),
        waits: Default::default(),
        trying: Default::default(),
    }))
}

fn serve(
    config: &Config,
    floor: &Floor,
    limits: Arc<Limits>,
    listener: TcpListener,
    bound: SocketAddr,
    shutdown: Shutdown,
) -> tokio::task::JoinHandle<()> {
    let counted = floor.engine.clone();
    let counting = telemetry::Counting(floor.engine.clone());
    let process = telemetry::Process::default();
    let metrics = Metrics::with(
        move || probes::numbers(&counted),
        vec![Box::new(counting), Box::new(process)],
    );
    let probes = probes::Probes { engine: floor.engine.clone(), metrics: metrics.clone() };
    let front = Front {
        house: Arc::new(Paths::new(floor)),
        hosts: Hosts::new(&config.http, bound),
        limits,
        request_ids: request_ids(),
        metrics: metrics.clone(),
        refused_keys: AtomicU64::new(0),
        tempo: edge::Tempo::from(&config.http),
    };
    let (stop, stopping) = tokio::sync::watch::channel(false);
    let told = shutdown.clone();
    tokio::spawn(async move {
        told.wait().await;
        stop.send_replace(true);
        // Keeps the sender alive until every receiver is gone.
        stop.closed().await;
    });
    let router = routes::router(floor, probes).layer(axum::Extension(stopping));
    let fronted = front.over(router);
    let settings = edge::Settings::from(&config.http);
    tokio::spawn(async move { edge::serve(listener, fronted, settings, &metrics, shutdown).await })
}

/// Ids for requests. They must be unique but not secret, so the OS is asked for randomness only
/// once.
fn request_ids() -> edge::IdSource {
    let mut seed = [0; 8];
    OsIds.fill(&mut seed);
    let next = AtomicU64::new(u64::from_le_bytes(seed));
    Arc::new(move || {
        let n = next.fetch_add(1, Ordering::Relaxed);
        // Multiplying by an odd constant is a bijection, so ids stay unique while neighbours look
        // unrelated.
        let spread = u128::from(n).wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835);
        let random = spread.to_be_bytes();
        uuid::Builder::from_random_bytes(random).into_uuid().to_string()
    })
}

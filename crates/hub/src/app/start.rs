//! Starts and stops a hub.

use std::io;
use std::net::SocketAddr;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use rialto_core::agent::key::Holder;
use rialto_core::agent::key_limits::KeyLimits;
use rialto_core::command::Command;
use rialto_core::idempotency::SavedSize;
use rialto_core::money::Credits;
use rialto_core::world::Rules;
use rialto_core::world::footprint::MemoryLimits;
use rialto_engine::clock::{Clock, SystemClock};
use rialto_engine::delivery::Deliverer;
use rialto_engine::delivery::egress::{Egress, EgressError, EgressSettings};
use rialto_engine::keys::{Key, KeyPrefix};
use rialto_engine::permissions;
use rialto_engine::random::{OsRandom, RandomSource};
use rialto_engine::secret::{HubSecret, SecretError};
use rialto_engine::store::memory::MemoryStore;
use rialto_engine::store::postgres::{PostgresOptions, PostgresStore};
use rialto_engine::store::sqlite::SqliteStore;
use rialto_engine::store::{Store, StoreError};
use rialto_engine::{ClusterOptions, Engine, EngineParts, Failure, RunningEngine};
use rialto_protocols::adapter::{self, HubContext, HubContextParts};
use tokio::net::TcpListener;

use super::callers::{SignerLimits, key_uses, principals};
use super::{apis, probes};
use crate::config::{Backend, Config, Limit, LoadedConfig};
use crate::edge::{self, ConnectionThreads, Dispatcher, HostPolicy, OperationClash, RateLimits};
use crate::shutdown::Shutdown;
use crate::telemetry::{self, Metrics};

/// How many ports above one in use are tried when suggesting a free one.
const PORTS_TRIED: usize = 100;

/// How often a node checks how many nodes share the rate limits.
const NODE_COUNT_INTERVAL: Duration = Duration::from_secs(1);
/// How often a new node checks whether the hub has an operator key, and for how long.
const OPERATOR_KEY_INTERVAL: Duration = Duration::from_millis(20);
const OPERATOR_KEY_TIMEOUT: Duration = Duration::from_secs(10);

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
    Secret(#[from] SecretError),
    #[error(transparent)]
    Egress(#[from] EgressError),
    #[error("cannot listen on {address}: {error}{}", free_port_hint(*address, error))]
    Listen { address: SocketAddr, error: io::Error },
    #[error("cannot start the threads that serve connections: {0}")]
    Threads(io::Error),
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
    #[error(transparent)]
    Operations(#[from] OperationClash),
    #[error("store.backend = \"postgres\" needs the URL of the database; set store.database_url")]
    NoDatabaseUrl,
}

/// A hint for an address in use: the nearest port that is free now.
fn free_port_hint(address: SocketAddr, error: &io::Error) -> String {
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
    limits: Arc<RateLimits>,
    lane: JoinHandle<()>,
    /// Returns the threads that served the connections.
    server_task: tokio::task::JoinHandle<ConnectionThreads>,
    delivery_task: tokio::task::JoinHandle<()>,
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
        let Options { clock, operator_key, hub_secret } = options;
        let settings = config.clone();
        // Reading the store takes a while, and a database is waited for.
        let starting =
            tokio::task::spawn_blocking(move || start_engine(&settings, hub_secret, clock));
        let started = starting.await;
        let running = started.unwrap_or_else(|error| resume_unwind(error.into_panic()))?;
        tokio::select! {
            () = running.engine.join() => {}
            () = shutdown.wait() => {}
        }
        Self::serve_engine(config, running, operator_key, (listener, bound), shutdown).await
    }

    /// Serves what an engine has.
    pub(super) async fn serve_engine(
        config: &Config,
        RunningEngine { engine, lane }: RunningEngine,
        operator_key: Option<String>,
        (listener, bound): (TcpListener, SocketAddr),
        shutdown: Shutdown,
    ) -> Result<Self, StartError> {
        let new_operator_key = ensure_operator_key(config, &engine, operator_key).await?;
        let url = config.http.base_url(bound);
        let limits = Arc::new(RateLimits::new(&config.limits));
        let urls = (url.clone(), bound);
        let context = hub_context(config, engine.clone(), urls, limits.clone(), &shutdown)?;
        if engine.is_writer() {
            adapter::add_missing_aliases(&engine).await?;
        }
        let delivery = Deliverer::new(
            engine.clone(),
            context.egress.clone(),
            adapter::delivery_encoders(&context),
        );
        let background = adapter::background(&context);
        let as_node = run_node_tasks(engine.clone(), limits.clone());
        let delivered = tokio::spawn(async {
            tokio::join!(delivery.run(), background, as_node);
        });
        let served = serve(config, &context, limits.clone(), listener, bound, shutdown)?;
        let epoch = engine.with_world(|world| world.next.epoch);
        let (version, data) = (env!("CARGO_PKG_VERSION"), config.data.dir.display());
        tracing::info!(version, %url, address = %bound, %data, epoch, "hub started");
        Ok(Self {
            address: bound,
            url,
            new_operator_key,
            engine,
            limits,
            lane,
            server_task: served,
            delivery_task: delivered,
        })
    }

    /// A handle that applies changed settings while the hub runs.
    pub fn reload_handle(&self) -> ReloadHandle {
        ReloadHandle(self.limits.clone())
    }

    /// Runs until shutdown or until the store fails; a store failure is returned as an error.
    pub async fn run(self, shutdown: &Shutdown) -> Result<(), String> {
        let mut broken = self.engine.watch_store_failure();
        let failed = tokio::select! {
            () = shutdown.wait() => None,
            found = broken.wait_for(Option::is_some) => found.ok().and_then(|why| why.clone()),
        };
        if let Some(why) = failed {
            // Requests in progress may still finish, but without any guarantee.
            self.server_task.abort();
            return Err(why);
        }
        tracing::info!("hub stopping");
        // Another node takes over at once, while this one still finishes its requests.
        self.engine.resign().await;
        // Waits for running requests, up to the edge's own grace period. What they started may go on
        // until the lane has stopped.
        let _threads = self.server_task.await;
        self.delivery_task.abort();
        self.engine.stop().await;
        let _ = tokio::task::spawn_blocking(move || self.lane.join()).await;
        self.engine.leave().await;
        tracing::info!("hub stopped");
        Ok(())
    }
}

/// Applies the settings that can change while a hub runs.
#[derive(Clone)]
pub struct ReloadHandle(Arc<RateLimits>);

impl ReloadHandle {
    /// Applies a new configuration. Returns the changed keys that are in force now, and the changed
    /// keys that need a restart. The caller sets the log level itself.
    pub fn apply(
        &self,
        old: &LoadedConfig,
        new: &LoadedConfig,
    ) -> (Vec<&'static str>, Vec<&'static str>) {
        self.0.update(&new.config.limits);
        let changed =
            old.settings().iter().zip(new.settings()).filter(|(old, new)| old.value != new.value);
        changed.map(|(_, new)| new.key).partition(|key| RELOADABLE_KEYS.contains(key))
    }
}

/// Keys that take effect without a restart.
const RELOADABLE_KEYS: [&str; 6] = [
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
) -> Result<RunningEngine, StartError> {
    let dir = &config.data.dir;
    permissions::create_private_dir(dir)
        .map_err(|error| StartError::DataDir { dir: dir.display().to_string(), error })?;
    let secret = HubSecret::load_or_create(dir, hub_secret)?;
    let (store, cluster): (Box<dyn Store>, _) = match config.store.backend {
        Backend::Sqlite => (Box::new(SqliteStore::open(dir)?), None),
        Backend::Memory => (Box::new(MemoryStore::default()), None),
        Backend::Postgres => {
            let (store, options) = open_postgres(config, &secret)?;
            (store, Some(options))
        }
    };
    let most = |limit: Limit| limit.max().map_or(0, |max| u64::from(max.get()));
    let limit = |most: Credits| Some(most).filter(|most| !most.is_zero());
    let mut rules = Rules {
        default_key_limits: KeyLimits {
            per_job: limit(config.mcp.per_job),
            per_day: limit(config.mcp.per_day),
            ..KeyLimits::NONE
        },
        welcome_grant: config.ledger.welcome_grant,
        inbox_messages_max: most(config.limits.inbox_pending),
        saved_per_principal: SavedSize {
            answers: most(config.limits.kept_answers),
            bytes: most(config.limits.kept_answer_bytes),
        },
        saved_total: SavedSize {
            answers: most(config.limits.kept_answers_total),
            bytes: most(config.limits.kept_answer_bytes_total),
        },
        invitations_max: usize::try_from(config.limits.invitations.get()).unwrap_or(usize::MAX),
        attempts_max: config.jobs.max_attempts.get(),
        probation_period: config.limits.unproven_ttl.map(|span| span.millis()),
        answer_timeout: config.jobs.answer_window.millis(),
        grace_period: config.reputation.fair_time.millis(),
        confusables: adapter::confusables(),
        memory: MemoryLimits {
            total: config.store.memory.bytes() as u64,
            per_owner: config.store.memory_per_owner.bytes() as u64,
        },
        ..Rules::default()
    };
    for protocol in &config.protocols {
        protocol.set_rules(&mut rules);
    }
    let clock = clock.unwrap_or_else(|| Arc::new(SystemClock::start()));
    let markets = adapter::markets();
    let setup =
        EngineParts { store, rules, clock, random: Arc::new(OsRandom), secret, markets, cluster };
    Ok(Engine::start(setup)?)
}

/// The store of a hub that shares a database with other nodes, and how this node takes part.
fn open_postgres(
    config: &Config,
    secret: &HubSecret,
) -> Result<(Box<dyn Store>, ClusterOptions), StartError> {
    let url = config.store.database_url.as_ref().ok_or(StartError::NoDatabaseUrl)?;
    let store = PostgresStore::open(url.expose(), PostgresOptions::default())?;
    store.check_secret(secret.cluster_check())?;
    let options = ClusterOptions {
        listen: config.cluster.listen,
        advertise: config.cluster.advertise.as_ref().map(ToString::to_string),
        lease: config.cluster.lease.to_duration(),
        hub: store.hub_id(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        dir: Some(config.data.dir.clone()),
    };
    Ok((Box::new(store), options))
}

/// What a node among several does besides serving; ends at once at a hub of one node.
async fn run_node_tasks(engine: Engine, limits: Arc<RateLimits>) {
    if engine.subscribe_current().is_none() {
        return;
    }
    let share_limits = async {
        loop {
            limits.share_between(engine.node_count());
            tokio::time::sleep(NODE_COUNT_INTERVAL).await;
        }
    };
    let complete_aliases = async {
        loop {
            engine.until_writer().await;
            if let Err(failure) = adapter::add_missing_aliases(&engine).await {
                tracing::warn!(%failure, "agents lack aliases in some protocols");
            }
            engine.until_follower().await;
        }
    };
    tokio::join!(share_limits, complete_aliases);
}

/// Waits until a new node knows whether the hub has an operator key: only the writer creates one.
async fn wait_for_operator_key(engine: &Engine) {
    let known = async {
        while !engine.is_writer() && !has_operator_key(engine) {
            tokio::time::sleep(OPERATOR_KEY_INTERVAL).await;
        }
    };
    if tokio::time::timeout(OPERATOR_KEY_TIMEOUT, known).await.is_err() {
        tracing::warn!("the hub has no operator key yet: no node writes");
    }
}

/// The first start stores the given operator key or creates one. On later starts a given key must
/// match the stored one: if a variable left over in the environment could replace the key, its
/// holder would be locked out. Of several nodes, the one that writes stores the key.
async fn ensure_operator_key(
    config: &Config,
    engine: &Engine,
    given: Option<String>,
) -> Result<Option<String>, StartError> {
    wait_for_operator_key(engine).await;
    let (key, made) = match given {
        Some(text) => {
            let key = Key::parse(text.trim()).filter(|key| key.prefix() == KeyPrefix::OPERATOR);
            (key.ok_or(StartError::OperatorKey)?, false)
        }
        None if has_operator_key(engine) => return Ok(None),
        None => (Key::from_random(KeyPrefix::OPERATOR, OsRandom.new_key_bytes()), true),
    };
    let hash = key.hash();
    let works =
        engine.with_world(|world| world.key(&hash).is_some_and(|key| key.is_valid(engine.now())));
    if !works && has_operator_key(engine) {
        return Err(StartError::OtherOperatorKey(config.data.dir.display().to_string()));
    }
    if !engine.is_writer() {
        return Ok(None);
    }
    if !works {
        let holder = Holder::Operator;
        engine
            .run(Command::IssueKey { holder, hash, retire_others: true, by_operator: true })
            .await?;
    }
    Ok(made.then(|| key.expose().to_owned()))
}

fn has_operator_key(engine: &Engine) -> bool {
    let now = engine.now();
    engine.with_world(|world| world.operator_keys().any(|key| key.is_valid(now)))
}

fn hub_context(
    config: &Config,
    engine: Engine,
    (hub_url, listens_on): (String, SocketAddr),
    limits: Arc<RateLimits>,
    shutdown: &Shutdown,
) -> Result<HubContext, StartError> {
    let egress = Egress::new(EgressSettings {
        allow: config.egress.allow.clone(),
        connect_timeout: config.egress.connect_timeout.to_duration(),
        timeout: config.egress.timeout.to_duration(),
        per_host: config.egress.per_host.get() as usize,
        per_host_per_minute: config.egress.per_host_per_minute.max(),
    })?;
    if let Some(why) = egress.https_error() {
        tracing::warn!(why, "https endpoints cannot be called");
    }
    Ok(HubContext::new(HubContextParts {
        protocols: config.protocols.iter().map(|one| one.open(engine.hub_secret())).collect(),
        write_limiter: Arc::new(SignerLimits(limits)),
        shutdown: shutdown.for_responses().or_stale(engine.subscribe_current()),
        engine,
        egress: Arc::new(egress),
        hub_url: hub_url.trim_end_matches('/').to_owned(),
        listens_on,
        body_limit: config.http.body_limit.bytes(),
        settings: config.for_protocols(),
        running_requests: adapter::idempotency::RunningRequests::default(),
        pending_waits: Default::default(),
        open_streams: Default::default(),
        endpoint_checks: Default::default(),
    }))
}

fn serve(
    config: &Config,
    context: &HubContext,
    limits: Arc<RateLimits>,
    listener: TcpListener,
    bound: SocketAddr,
    shutdown: Shutdown,
) -> Result<tokio::task::JoinHandle<ConnectionThreads>, StartError> {
    let counted = context.engine.clone();
    let counting = telemetry::EngineCollector(context.engine.clone());
    let process = telemetry::ProcessCollector::default();
    let metrics = Metrics::with_collectors(
        move || probes::hub_metrics(&counted),
        vec![Box::new(counting), Box::new(process)],
    );
    let probes = probes::ProbeState { engine: context.engine.clone(), metrics: metrics.clone() };
    let origins = config.mcp.allowed_origins.iter().map(ToString::to_string).collect();
    let dispatcher = Dispatcher {
        operations: apis::operation_table(context, probes)?,
        principals: principals(context.clone()),
        key_uses: key_uses(context.clone()),
        hosts: HostPolicy::new(&config.http, bound).with_listed_origins(origins),
        limits,
        request_ids: request_id_source(),
        metrics: metrics.clone(),
        refused_keys: AtomicU64::new(0),
        body_rate_limits: edge::BodyRateLimits::from(&config.http),
        node: context.engine.cluster_status().map(|_| context.engine.clone()),
    };
    let (dispatcher, settings) = (Arc::new(dispatcher), edge::Settings::from(&config.http));
    let threads = ConnectionThreads::start().map_err(StartError::Threads)?;
    Ok(tokio::spawn(async move {
        edge::serve(listener, &threads, dispatcher, settings, &metrics, shutdown).await;
        threads
    }))
}

/// Ids for requests. They must be unique but not secret, so the OS is asked for randomness only
/// once.
fn request_id_source() -> edge::IdSource {
    let mut seed = [0; 8];
    OsRandom.fill_bytes(&mut seed);
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

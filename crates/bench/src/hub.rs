//! A hub for benchmarks: in this process, on its own runtime with the echo's thread count.

use std::io;
use std::net::SocketAddr;

use rialto_engine::Engine;
use rialto_hub::app::{Hub, Options};
use rialto_hub::config::{LoadedConfig, Profile};
use rialto_hub::shutdown::{Shutdown, ShutdownTrigger};
use tempfile::TempDir;
use tokio::runtime::Runtime;

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
        let dir = tempfile::Builder::new().prefix("rialto-bench-").tempdir()?;
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
            runtime.shutdown_timeout(std::time::Duration::from_secs(2));
        }
    }
}

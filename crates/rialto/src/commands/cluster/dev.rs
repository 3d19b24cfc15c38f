//! `rialto cluster dev`: a hub of several nodes on this machine, with a database and a load balancer.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rialto_engine::keys::{Key, KeyPrefix};
use rialto_engine::permissions;
use rialto_engine::secret::{ENV_VAR, FILE_NAME, HubSecret};
use rialto_hub::shutdown::{Shutdown, ShutdownTrigger};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use super::balancer::Balancer;
use super::database::Database;
use super::nodes::{Node, NodeSettings, free_address};
use crate::commands::context::DEFAULT_HUB;
use crate::commands::{CliError, CliResult, Exit, output, print_error, runtime};

const OPERATOR_KEY: &str = "RIALTO_OPERATOR_KEY";
/// The file in the data directory that keeps the operator key.
const OPERATOR_KEY_FILE: &str = "operator.key";
/// How often it is checked whether the nodes are ready, and how long they may take.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);
const START_TIMEOUT: Duration = Duration::from_secs(60);

#[derive(clap::Args)]
pub struct Args {
    /// Number of nodes
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u8).range(1..=9))]
    nodes: u8,
    /// Address and port of the load balancer; the nodes get the ports after it
    #[arg(long, default_value = "127.0.0.1:7425")]
    listen: SocketAddr,
    /// Use this PostgreSQL database instead of starting a private one
    #[arg(long, value_name = "URL")]
    database_url: Option<String>,
    /// Keep the data in this directory instead of removing it
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Other settings of every node, as key=value
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,
}

pub fn run(args: Args) -> Exit {
    let runtime = match runtime() {
        Ok(runtime) => runtime,
        Err(error) => return print_error(error),
    };
    let exit = runtime.block_on(run_cluster(args));
    runtime.shutdown_background();
    exit.unwrap_or_else(|error| error.report(false))
}

async fn run_cluster(args: Args) -> CliResult {
    if !args.listen.ip().is_loopback() {
        return Err(CliError::usage(
            format!("{} is not on loopback, and the nodes require no keys", args.listen),
            "use 127.0.0.1; `rialto serve --database-url URL` runs nodes for other machines",
        ));
    }
    let signals = Shutdown::on_signals().map_err(|error| CliError::plain(error.to_string()))?;
    let listener = TcpListener::bind(args.listen).await.map_err(|error| {
        CliError::failed(format!("{}: {error}", args.listen), "choose another port with --listen")
    })?;
    let bound = listener.local_addr().map_err(|error| CliError::plain(error.to_string()))?;
    let url = format!("http://{bound}");
    let scratch = scratch_dir(args.data.is_none())?;
    let data = match (&args.data, &scratch) {
        (Some(dir), _) => create_dir(dir)?,
        (None, Some(scratch)) => scratch.path().to_owned(),
        (None, None) => return Err(CliError::plain("there is no data directory")),
    };
    let database = match args.database_url {
        Some(url) => Database::at(url),
        None => Database::start(&data, args.data.is_none())?,
    };
    let operator_key = load_operator_key(&data)?;
    let settings = Arc::new(NodeSettings {
        data: data.clone(),
        database_url: database.url.clone(),
        public_url: url.clone(),
        operator_key,
        set: args.set,
    });
    let nodes = (1..=args.nodes)
        .map(|number| Ok(Node::new(number, node_address(args.listen, number)?, settings.clone())))
        .collect::<io::Result<Vec<_>>>()
        .map_err(|error| {
            CliError::failed(error.to_string(), "choose another port with --listen")
        })?;
    share_secret(&data, &nodes)?;
    let balancer = Balancer::new(nodes.iter().map(|node| node.address));
    let mut running = Running::start(&nodes, &balancer, listener);
    let ended = match running.wait_until_ready(&balancer, &signals).await {
        Ok(true) => {
            greet(&url, &nodes, &settings, &database).await;
            signals.wait().await;
            Ok(Exit::Ok)
        }
        Ok(false) => Ok(Exit::Ok),
        Err(reason) => Err(CliError::failed(reason, "nothing is left running")),
    };
    running.stop().await;
    database.stop();
    ended
}

/// The nodes and the load balancer, while they run.
struct Running {
    stop: ShutdownTrigger,
    nodes: JoinSet<Result<(), String>>,
    has_started: Arc<AtomicBool>,
}

impl Running {
    fn start(nodes: &[Arc<Node>], balancer: &Arc<Balancer>, listener: TcpListener) -> Self {
        let (stop, shutdown) = Shutdown::manual();
        let has_started = Arc::new(AtomicBool::new(false));
        let mut tasks = JoinSet::new();
        for node in nodes {
            tasks.spawn(node.clone().run(shutdown.clone(), has_started.clone()));
        }
        tokio::spawn(balancer.clone().watch_nodes());
        tokio::spawn(balancer.clone().serve(listener));
        Self { stop, nodes: tasks, has_started }
    }

    /// False if the command was stopped before; an error if a node has ended.
    async fn wait_until_ready(
        &mut self,
        balancer: &Balancer,
        signals: &Shutdown,
    ) -> Result<bool, String> {
        let are_ready = async {
            while !balancer.are_all_ready() {
                tokio::time::sleep(CHECK_INTERVAL).await;
            }
        };
        tokio::select! {
            () = are_ready => {
                self.has_started.store(true, Ordering::Relaxed);
                Ok(true)
            }
            () = signals.wait() => Ok(false),
            ended = self.nodes.join_next() => match ended {
                Some(Ok(Err(reason))) => Err(reason),
                _ => Err("a node has ended".to_owned()),
            },
            () = tokio::time::sleep(START_TIMEOUT) => {
                Err(format!("the nodes were not ready after {} s", START_TIMEOUT.as_secs()))
            }
        }
    }

    async fn stop(mut self) {
        self.stop.trigger();
        while self.nodes.join_next().await.is_some() {}
    }
}

/// The nodes get the ports after that of the load balancer, or any if that has any.
fn node_address(listen: SocketAddr, number: u8) -> io::Result<SocketAddr> {
    match listen.port() {
        0 => free_address(),
        port => {
            let port = port.checked_add(number.into());
            let port = port.ok_or_else(|| io::Error::other("there are too few ports after it"))?;
            Ok(SocketAddr::new(listen.ip(), port))
        }
    }
}

/// A directory that is removed when the command ends.
fn scratch_dir(is_needed: bool) -> CliResult<Option<tempfile::TempDir>> {
    if !is_needed {
        return Ok(None);
    }
    let scratch = tempfile::Builder::new().prefix("rialto-cluster-").tempdir();
    let scratch = scratch.map_err(|error| CliError::plain(error.to_string()))?;
    let_others_enter(scratch.path()).map_err(|error| CliError::plain(error.to_string()))?;
    Ok(Some(scratch))
}

fn create_dir(dir: &Path) -> CliResult<PathBuf> {
    let created = if dir.is_dir() {
        Ok(())
    } else {
        permissions::create_private_dir(dir).and_then(|()| let_others_enter(dir))
    };
    // Programs of other users get the path, and they have other working directories.
    created.and_then(|()| dir.canonicalize()).map_err(|error| {
        let message = format!("{}: {error}", dir.display());
        CliError::failed(message, "name another directory with --data")
    })
}

/// Root starts PostgreSQL as another user, which must be able to reach its own folder in here. What
/// is private in here has its own permissions.
#[cfg(unix)]
fn let_others_enter(dir: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(dir, fs::Permissions::from_mode(0o711))
}

#[cfg(not(unix))]
fn let_others_enter(_: &Path) -> io::Result<()> {
    Ok(())
}

/// The key in the environment, or the one in the data directory, which is created if it is missing.
fn load_operator_key(data: &Path) -> CliResult<String> {
    if let Ok(key) = std::env::var(OPERATOR_KEY) {
        return Ok(key);
    }
    let path = data.join(OPERATOR_KEY_FILE);
    if let Ok(key) = fs::read_to_string(&path) {
        return Ok(key.trim_end().to_owned());
    }
    let mut random = [0; 20];
    getrandom::fill(&mut random).map_err(|error| CliError::no_randomness(error, "try again"))?;
    let key = Key::from_random(KeyPrefix::OPERATOR, random).expose().to_owned();
    let failed = |error| CliError::plain(format!("{}: {error}", path.display()));
    permissions::open_private_file(&path).map_err(failed)?;
    fs::write(&path, format!("{key}\n")).map_err(failed)?;
    Ok(key)
}

/// Gives every node the hub's secret, unless it is in the environment.
fn share_secret(data: &Path, nodes: &[Arc<Node>]) -> CliResult<()> {
    if std::env::var_os(ENV_VAR).is_some() {
        return Ok(());
    }
    let shared = HubSecret::load_or_create(data, None).map(drop);
    let file = data.join(FILE_NAME);
    let shared = shared.and_then(|()| {
        nodes.iter().try_for_each(|node| HubSecret::import_file(&file, &node.dir()))
    });
    shared
        .map_err(|error| CliError::failed(error.to_string(), "name another directory with --data"))
}

/// Prints where everything is, and what to do next.
async fn greet(url: &str, nodes: &[Arc<Node>], settings: &NodeSettings, database: &Database) {
    let mut lines =
        vec![format!("rialto {} hub of {} nodes at {url}", env!("CARGO_PKG_VERSION"), nodes.len())];
    let mut writer = None;
    for node in nodes {
        let role = role_of(node, &settings.operator_key).await.unwrap_or_default();
        if role == "writer" {
            writer = Some(node.process());
        }
        let (number, address, process) = (node.number, node.address, node.process());
        lines.push(format!("node {number}: http://{address}, process {process}, {role}"));
    }
    let key = &settings.operator_key;
    lines.push(match database.is_private() {
        true => format!("database: a private PostgreSQL, {}", database.url),
        false => "database: the one of --database-url".to_owned(),
    });
    lines.push(format!("logs: {}", settings.data.join("node-*.log").display()));
    lines.push(format!("operator key: {key}"));
    lines.push("\ntry:".to_owned());
    if url != DEFAULT_HUB {
        lines.push(format!("  export RIALTO_HUB={url}"));
    }
    lines.push(format!(
        "  curl -d '{{\"agent_name\":\"me\",\"owner_id\":\"me\",\"skills\":[]}}' {url}/registry/register"
    ));
    lines.push(format!("  RIALTO_OPERATOR_KEY={key} rialto cluster status"));
    if let Some(writer) = writer {
        lines.push(format!("  kill -9 {writer}     the writer: another node takes over"));
    }
    // The cluster keeps running if standard output is closed.
    output::print_data(lines.join("\n"));
}

/// What a node says it is.
async fn role_of(node: &Node, operator_key: &str) -> Option<String> {
    let client = reqwest::Client::builder().no_proxy().timeout(CHECK_INTERVAL * 20).build().ok()?;
    let status = client.get(format!("http://{}/v1/operator/cluster", node.address));
    let answer = status.bearer_auth(operator_key).send().await.ok()?;
    let status: Value = serde_json::from_str(&answer.text().await.ok()?).ok()?;
    status["role"].as_str().map(str::to_owned)
}

//! `rialto agent run`: runs any program as an agent.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rialto_client::agent::{AgentError, StateDir};
use rialto_core::time::Millis;
use rialto_hub::shutdown::Shutdown;
use tokio::net::TcpListener;

use super::event_printer::EventPrinter;
use super::mcp;
use super::plan::Plan;
use crate::commands::context::agents::{AgentStart, dir_name_with_digest};
use crate::commands::context::home;
use crate::commands::hub_options::KeyOrigin;
use crate::commands::time::positive_duration;
use crate::commands::{CliError, CliResult, Exit, HubOptions, key_file};

#[derive(clap::Args)]
pub struct Args {
    /// Skill the agent offers
    #[arg(long, value_name = "NAME", group = "offered", requires = "price", requires = "program")]
    pub skill: Option<String>,
    /// Sell the tools of this MCP server: a command line or a URL
    #[arg(long, value_name = "COMMAND|URL", group = "offered", conflicts_with_all = ["file", "env"])]
    pub mcp: Option<String>,
    /// Header for an MCP server at a URL, like 'Authorization: env:TOKEN'; can be repeated
    #[arg(long, value_name = "NAME: VALUE", requires = "mcp")]
    pub mcp_header: Vec<String>,
    /// Tools to sell, like a,read_* [default: all at a hub on this machine, else read-only ones]
    #[arg(
        long,
        value_name = "NAMES",
        value_delimiter = ',',
        requires = "mcp",
        conflicts_with = "all_tools"
    )]
    pub tools: Vec<String>,
    /// Sell all tools of the MCP server, wherever the hub is
    #[arg(long, requires = "mcp")]
    pub all_tools: bool,
    /// Price of one job, like 0.05; with --mcp the price of all tools, or of one, like TOOL=0.05
    #[arg(long, value_name = "CREDITS", requires = "offered")]
    pub price: Vec<String>,
    /// Command line to run for each job
    #[arg(long, value_name = "CMD", group = "program", requires = "skill")]
    pub exec: Option<String>,
    /// URL to post each job to
    #[arg(long, value_name = "URL", group = "program", requires = "skill")]
    pub http: Option<String>,
    /// Start the command once and write one job per line to it
    #[arg(long, requires = "exec")]
    pub persistent: bool,
    /// Exchange JSON lines with the command: progress, parts, questions, messages
    #[arg(long, requires = "exec")]
    pub lines: bool,
    /// Time limit of a job; then the program gets SIGTERM, and SIGKILL if it does not exit, and a
    /// call of an MCP tool is cancelled [default: 30s, of MCP tools 60s]
    #[arg(long, value_name = "TIME", value_parser = positive_duration)]
    pub timeout: Option<Millis>,
    /// Jobs at a time; others wait
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub concurrency: Option<u16>,
    /// Description of the skill, for people
    #[arg(long, value_name = "TEXT", requires = "skill")]
    pub about: Option<String>,
    /// JSON Schema of the input: text, or @FILE
    #[arg(long, value_name = "SCHEMA", requires = "skill")]
    pub input_schema: Option<String>,
    /// JSON Schema of the output: text, or @FILE
    #[arg(long, value_name = "SCHEMA", requires = "skill")]
    pub output_schema: Option<String>,
    /// Read several skills from a file [default: agent.toml, without --skill]
    #[arg(long, value_name = "FILE", conflicts_with = "skill")]
    pub file: Option<PathBuf>,
    /// Media type the agent takes as input, like text/* or */*; can be repeated [default: JSON and text]
    #[arg(long, value_name = "TYPE")]
    pub accepts: Vec<String>,
    /// Variable of this environment to pass to commands; can be repeated
    #[arg(long, value_name = "NAME")]
    pub env: Vec<String>,
    /// Name of the agent [default: that of its first skill]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Owner who is paid for its jobs [default: an account of its own]
    #[arg(long, value_name = "OWNER")]
    pub owner: Option<String>,
    /// Listen for peers on this address; no hub is used unless --hub is given
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub direct: Option<SocketAddr>,
}

/// Runs an agent until it is stopped.
pub async fn run(options: &HubOptions, args: &Args) -> CliResult {
    let stop = Shutdown::on_signals()
        .map_err(|error| CliError::failed(error.to_string(), "run it again"))?;
    options.reject_acting("name the agent with --name, or pass its key with --key-file")?;
    let plan = match Plan::read(args)? {
        Plan::Mcp(plan) => return mcp::run(options, args, *plan, stop).await,
        Plan::Programs(plan) => plan,
    };
    let folder = std::fs::canonicalize(&plan.folder)
        .map_err(|error| home::read_error(&plan.folder, &error))?;
    let state_dir = open_state_dir(options, &plan.name, &folder, plan.state_name.as_deref())?;
    let printer = Arc::new(EventPrinter::new(options.json));
    let records = state_dir.records().map_err(agent_error)?;
    let mut agent = plan.build_agent(&records, &printer).state_dir(state_dir);
    if let Some(address) = args.direct {
        agent = agent.listener(listen(address).await?);
    }
    // Peers need no hub, so with --direct a hub is used only if it is named.
    if args.direct.is_none() || options.hub.is_some() {
        agent = agent.hub(hub_url(options)?);
    }
    let agent = agent.on_event(move |event| printer.print_event(&event));
    agent.run(stop.wait()).await.map_err(agent_error)?;
    Ok(Exit::Ok)
}

/// Listens for peers.
pub async fn listen(address: SocketAddr) -> CliResult<TcpListener> {
    TcpListener::bind(address).await.map_err(|error| {
        let message = format!("cannot listen at {address}: {error}");
        CliError::failed(message, "choose another address with --direct")
    })
}

/// Opens the agent's state directory: the one for its key if a key is given, or else the one for
/// its name in its folder.
pub fn open_state_dir(
    options: &HubOptions,
    name: &str,
    folder: &Path,
    state_name: Option<&str>,
) -> CliResult<StateDir> {
    let variable_key = match options.key_origin()? {
        KeyOrigin::Variable => options.load_key()?,
        KeyOrigin::File(_) | KeyOrigin::Context(_) => None,
    };
    let context = options.context()?;
    let open = |path: PathBuf| {
        StateDir::open(path).map_err(|error| match error {
            AgentError::AlreadyRunning { .. } => {
                let context = context.name();
                let message = format!("agent {name} of context {context} is already running");
                CliError::conflict(message, "give this one another name with --name")
            }
            error => agent_error(error),
        })
    };
    let dir_of_key = |key: &str| context.ensure_agent_dir(&dir_name_with_digest(name, key));
    match (&options.key_file, variable_key) {
        (Some(path), _) => {
            let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
            let dir = dir_of_key(&absolute.display().to_string())?;
            Ok(open(dir)?.with_key_file(path))
        }
        (None, Some(keys)) => Ok(open(dir_of_key(keys.key.reveal())?)?.with_key(keys.key)),
        (None, None) => open(context.claim_name(&AgentStart { name, folder, state_name })?),
    }
}

/// The hub to work for. A key is used only at its own hub.
pub fn hub_url(options: &HubOptions) -> CliResult<String> {
    let keys = match &options.key_file {
        Some(path) if path.exists() => Some(key_file::load(path)?),
        _ => None,
    };
    let chosen = options.hub_url(keys.as_ref()).to_owned();
    match keys.and_then(|keys| keys.hub) {
        Some(own) if !home::is_same_hub(&own, &chosen) => {
            let message = format!("the key file belongs to {own}, not to {chosen}");
            Err(CliError::conflict(message, "use another file with --key-file, or the key's hub"))
        }
        _ => Ok(chosen),
    }
}

/// Turns an agent error into an error of the command line.
pub fn agent_error(error: AgentError) -> CliError {
    match error {
        AgentError::Call(error) => error.into(),
        AgentError::StateFile { path, error } => home::write_error(&path, &error),
        AgentError::KeyFile { path, error } => key_file::read_error(&path, &error),
        error @ (AgentError::AlreadyRunning { .. } | AgentError::NoHubOrListener) => {
            CliError::conflict(error.to_string(), "see `rialto agent run --help`")
        }
        error @ AgentError::OtherInstance => {
            CliError::conflict(error.to_string(), "give this one another name with --name")
        }
        error @ AgentError::Removed => {
            CliError::conflict(error.to_string(), "`rialto agent run` registers it again")
        }
    }
}

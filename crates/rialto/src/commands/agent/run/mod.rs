//! `rialto agent run`: runs any program as an agent.

mod event_printer;
mod file;
mod flags;
mod plan;
mod state_dir;

use std::net::SocketAddr;
use std::sync::Arc;

use rialto_hub::shutdown::Shutdown;
use tokio::net::TcpListener;

use super::super::error::CliError;
use super::super::hub_options::HubOptions;
use crate::exit::Exit;
use event_printer::EventPrinter;
pub use flags::Args;
use plan::AgentPlan;

/// Runs an agent until it is stopped.
pub async fn run(access: &HubOptions, args: &Args) -> Result<Exit, CliError> {
    let stop = Shutdown::on_signals()
        .map_err(|error| CliError::failed(error.to_string(), "run it again"))?;
    access.reject_acting("name the agent with --name, or pass its key with --key-file")?;
    let plan = AgentPlan::read(args)?;
    let state_dir = state_dir::open_state_dir(access, &plan)?;
    let printer = Arc::new(EventPrinter::new(access.json));
    let records = state_dir.records().map_err(state_dir::agent_error)?;
    let mut agent = plan.build_agent(&records, &printer).state_dir(state_dir);
    if let Some(address) = args.direct {
        agent = agent.listener(bind_listener(address).await?);
    }
    // Peers need no hub, so with --direct a hub is used only if it is named.
    if args.direct.is_none() || access.hub.is_some() {
        agent = agent.hub(state_dir::hub_url(access)?);
    }
    let agent = agent.on_event(move |told| printer.print_event(&told));
    agent.run(stop.wait()).await.map_err(state_dir::agent_error)?;
    Ok(Exit::Ok)
}

/// The listener for peers.
async fn bind_listener(address: SocketAddr) -> Result<TcpListener, CliError> {
    TcpListener::bind(address).await.map_err(|error| {
        let message = format!("cannot listen at {address}: {error}");
        CliError::failed(message, "choose another address with --direct")
    })
}

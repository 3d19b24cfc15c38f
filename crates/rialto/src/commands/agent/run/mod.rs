//! `rialto agent run`: runs any program as an agent.

mod file;
mod flags;
mod plan;
mod state_dir;
mod event_printer;

use std::net::SocketAddr;
use std::sync::Arc;

use rialto_hub::shutdown::Shutdown;
use tokio::net::TcpListener;

use super::super::hub_options::Access;
use super::super::error::Trouble;
use crate::exit::Exit;
pub use flags::Args;
use plan::Plan;
use event_printer::Teller;

/// Runs an agent until it is stopped.
pub async fn run(access: &Access, args: &Args) -> Result<Exit, Trouble> {
    let stop = Shutdown::on_signals()
        .map_err(|error| Trouble::failed(error.to_string(), "run it again"))?;
    access.without_acting("name the agent with --name, or pass its key with --key-file")?;
    let plan = Plan::read(args)?;
    let seat = state_dir::take(access, &plan)?;
    let teller = Arc::new(Teller::new(access.json));
    let records = seat.records().map_err(state_dir::trouble)?;
    let mut agent = plan.agent(&records, &teller).seat(seat);
    if let Some(address) = args.direct {
        agent = agent.direct(listener(address).await?);
    }
    // Peers need no hub, so with --direct a hub is used only if it is named.
    if args.direct.is_none() || access.hub.is_some() {
        agent = agent.at_hub(state_dir::hub(access)?);
    }
    let agent = agent.tell(move |told| teller.tell(&told));
    agent.run(stop.wait()).await.map_err(state_dir::trouble)?;
    Ok(Exit::Ok)
}

/// The listener for peers.
async fn listener(address: SocketAddr) -> Result<TcpListener, Trouble> {
    TcpListener::bind(address).await.map_err(|error| {
        let message = format!("cannot listen at {address}: {error}");
        Trouble::failed(message, "choose another address with --direct")
    })
}

//! `rialto mcp`: the hub as an MCP server on standard input and output.
//!
//! A client starts this command and writes JSON-RPC, one message per line. The bridge calls the hub by
//! HTTP in the new era of the protocol. A client of the new era gets what the hub says; for one of the
//! old era, every message is translated. Standard output has messages only; everything for people goes
//! to standard error.

mod client_requests;
mod door;
mod hub;
pub mod key;
mod lines;
mod message;
mod offline;
mod old_era;
mod session;
mod subscriptions;

use std::sync::Arc;

use rialto_hub::shutdown::Shutdown;

pub use door::DoorArgs;

use super::{CliError, CliResult, Exit, HubOptions, print_error, runtime};
use hub::HubDoor;
use key::BridgeKey;
use session::Session;

#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    door: DoorArgs,
    #[command(flatten)]
    options: HubOptions,
}

pub fn run(args: Args) -> Exit {
    // Errors are for people, since standard output belongs to the client.
    let options = args.options.without_json();
    match runtime() {
        Err(error) => print_error(error),
        Ok(runtime) => runtime
            .block_on(serve(args.door, options))
            .unwrap_or_else(|cli_error| cli_error.report(false)),
    }
}

/// Serves one client, until it closes standard input or the process is told to stop.
async fn serve(door: DoorArgs, options: HubOptions) -> CliResult {
    let stop = Shutdown::on_signals()
        .map_err(|error| CliError::failed(error.to_string(), "run it again"))?;
    let groups = door.tool_groups()?;
    let base = options.base_url()?;
    let hub = HubDoor::new(&base, &door, BridgeKey::new(options))?;
    let lines = lines::read_lines(std::io::stdin());
    let (output, written) = lines::write_lines(std::io::stdout());
    Session::new(Arc::new(hub), groups, output).serve(lines, &stop).await;
    written.wait().await;
    Ok(Exit::Ok)
}

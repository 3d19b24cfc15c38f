//! `rialto cluster accept`: goes on from a database that lost its newest changes.

use rialto_engine::backup;
use rialto_engine::clock::{Clock, SystemClock};
use rialto_engine::store::StoreError;
use serde_json::json;

use crate::commands::{CliError, CliResult, Exit, database, output};

#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    database: database::Required,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args) -> Exit {
    accept(args).unwrap_or_else(|error| error.report(args.json))
}

fn accept(args: &Args) -> CliResult {
    let now = SystemClock::start().wall_time();
    let url = args.database.url();
    let epoch = backup::accept_database(url, now).map_err(|error| match &error {
        StoreError::InUse(name) => CliError::conflict(
            format!("nodes are running on {name}"),
            "stop all nodes; one that was killed counts as running for ten seconds",
        ),
        _ => database::cli_error(&error),
    })?;
    Ok(output::print(args.json, json!({"epoch": epoch}), || {
        format!("the hub goes on from this database: epoch {epoch} begins; start its nodes")
    }))
}

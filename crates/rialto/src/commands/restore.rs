//! `rialto restore`: creates a data directory from a backup.

use std::path::PathBuf;

use rialto_engine::backup::{self, RestoreOptions, SecretSource};
use rialto_engine::clock::{Clock, SystemClock};
use rialto_engine::secret::ENV_VAR;
use serde_json::json;

use super::backup::backup_error;
use super::error::CliError;
use super::output;
use crate::exit::Exit;

#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  rialto restore --from monday.db --data ./restored --hub-key hub.key.copy\n  rialto restore --from monday.db --data ./restored --new-hub-key\n\nThe backup is audited before and after. The new hub starts a new epoch, which its history records:\nwhat the original did after the backup is not in it. A backup of a hub that is running on this\nmachine is refused, unless --beside-original is given."
)]
pub struct Args {
    /// Backup, or the rialto.db of a stopped hub
    #[arg(long, value_name = "FILE")]
    from: PathBuf,
    /// Data directory to create
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
    /// Copy of the original's hub.key
    #[arg(long, value_name = "FILE")]
    hub_key: Option<PathBuf>,
    /// Continue without it: webhook secrets and the hub's own identities change
    #[arg(long, conflicts_with = "hub_key")]
    new_hub_key: bool,
    /// Allow the original to keep running
    #[arg(long)]
    beside_original: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args) -> Exit {
    match restore_backup(args) {
        Ok(told) => {
            let _ = output::print_line(&told);
            Exit::Ok
        }
        Err(error) => error.report(args.json),
    }
}

fn restore_backup(args: &Args) -> Result<String, CliError> {
    let secret = match &args.hub_key {
        Some(path) => SecretSource::File(path),
        None if args.new_hub_key => SecretSource::New,
        None => SecretSource::Existing { in_environment: std::env::var_os(ENV_VAR).is_some() },
    };
    let order = RestoreOptions {
        from: &args.from,
        dir: &args.data,
        secret,
        allow_running_original: args.beside_original,
    };
    let restored =
        backup::restore_backup(&order, SystemClock::start().wall_time()).map_err(backup_error)?;
    let (data, epoch) = (args.data.display().to_string(), restored.epoch);
    Ok(match args.json {
        true => json!({"data": data, "epoch": epoch, "audited": true}).to_string(),
        false => format!("{data}: restored and audited, epoch {epoch} begins"),
    })
}

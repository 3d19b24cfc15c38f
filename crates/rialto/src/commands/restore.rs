//! `rialto restore`: creates a data directory from a backup.

use std::path::PathBuf;

use rialto_engine::backup::{self, Restore, SecretFrom};
use rialto_engine::clock::{Clock, SystemClock};
use rialto_engine::secret::VARIABLE;
use serde_json::json;

use super::backup::explained;
use super::output;
use super::error::Trouble;
use crate::exit::Exit;

#[derive(clap::Args)]
#[command(
    before_help = "Examples:\n  rialto restore --from monday.db --data ./restored --hub-key hub.key.copy\n  rialto restore --from monday.db --data ./restored --new-hub-key\n\nThe backup is audited before and after. The new hub starts a new epoch, which its history records:\nwhat the original did after the backup is not in it. A backup of a hub that is running on this\nmachine is refused, unless --beside-original is given."
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
    match made(args) {
        Ok(told) => {
            let _ = output::line(&told);
            Exit::Ok
        }
        Err(trouble) => trouble.tell(args.json),
    }
}

fn made(args: &Args) -> Result<String, Trouble> {
    let secret = match &args.hub_key {
        Some(path) => SecretFrom::File(path),
        None if args.new_hub_key => SecretFrom::New,
        None => SecretFrom::Place { in_environment: std::env::var_os(VARIABLE).is_some() },
    };
    let order = Restore {
        from: &args.from,
        dir: &args.data,
        secret,
        beside_original: args.beside_original,
    };
    let restored = backup::restore(&order, SystemClock::start().wall()).map_err(explained)?;
    let (data, epoch) = (args.data.display().to_string(), restored.epoch);
    Ok(match args.json {
        true => json!({"data": data, "epoch": epoch, "audited": true}).to_string(),
        false => format!("{data}: restored and audited, epoch {epoch} begins"),
    })
}

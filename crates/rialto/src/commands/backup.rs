//! `rialto backup`: copies a hub's store into one file, also while the hub runs.

use std::path::{Path, PathBuf};

use rialto_engine::backup::{self, BackupError};
use rialto_engine::clock::{Clock, SystemClock};
use rialto_engine::secret::{self, HubSecret};
use serde_json::json;

use super::error::CliError;
use super::output;
use crate::exit::Exit;

#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  rialto backup --data ./rialto-data --to monday.db\n  rialto backup --data ./rialto-data --to monday.db --hub-key hub.key.copy\n\nThe hub may keep running. The file holds what the hub had committed at one moment. It is audited\nbefore it gets its name, and existing files are never overwritten. The hub's secret is not in it:\nkeep a copy of hub.key elsewhere, for example with --hub-key. `rialto restore` restores the backup."
)]
pub struct Args {
    /// Data directory of the hub
    #[arg(long, default_value = "./rialto-data", value_name = "DIR")]
    data: PathBuf,
    /// File to write
    #[arg(long, value_name = "FILE")]
    to: PathBuf,
    /// Also copy the hub's secret to this file
    #[arg(long, value_name = "FILE")]
    hub_key: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args) -> Exit {
    match make_backup(args) {
        Ok(told) => {
            let _ = output::print_line(&told);
            Exit::Ok
        }
        Err(cli_error) => cli_error.report(args.json),
    }
}

fn make_backup(args: &Args) -> Result<String, CliError> {
    if let Some(key) = &args.hub_key {
        HubSecret::export_file(&args.data, key).map_err(BackupError::from).map_err(backup_error)?;
    }
    let now = SystemClock::start().wall_time();
    let copied = backup::create_backup(&args.data, &args.to, now).map_err(backup_error)?;
    let (to, bytes, epoch) = (args.to.display().to_string(), copied.bytes, copied.epoch);
    if args.json {
        let key = args.hub_key.as_ref().map(|path| path.display().to_string());
        let document =
            json!({"to": to, "bytes": bytes, "epoch": epoch, "audited": true, "hub_key": key});
        return Ok(document.to_string());
    }
    let mut told = format!("{to}: {bytes} bytes, epoch {epoch}, audited");
    let own = args.data.join(secret::FILE_NAME);
    if args.hub_key.is_none() && own.exists() {
        told.push_str(&format!(
            "\nthe hub's secret is not in the backup: keep a copy of {}",
            own.display()
        ));
    }
    Ok(told)
}

/// Turns a backup error into an error with a hint.
pub fn backup_error(error: BackupError) -> CliError {
    use rialto_engine::store::StoreError;
    let message = error.to_string();
    match &error {
        BackupError::Exists(_) => {
            CliError::conflict(message, "choose another name, or move the file")
        }
        BackupError::Missing(path) => {
            CliError::not_found(message, format!("check the path {}", shown(path)))
        }
        BackupError::NoBackup { .. } => {
            CliError::failed(message, "pass a file written by `rialto backup` with --from")
        }
        BackupError::WrongKey(_) => CliError::usage(
            message,
            "pass a copy of the original's hub.key with --hub-key, or use --new-hub-key to \
             continue with new webhook secrets and hub identities",
        ),
        BackupError::Store(StoreError::Missing(_)) => {
            CliError::not_found(message, "name a hub's data directory with --data")
        }
        BackupError::Store(StoreError::InUse(_)) => {
            CliError::conflict(message, "stop that hub first")
        }
        BackupError::OriginalRunning(_) => {
            CliError::conflict(message, "stop it, or add --beside-original to run both hubs")
        }
        BackupError::SecretMissing(dir) => CliError::usage(
            message,
            format!(
                "copy it to {}, pass a copy with --hub-key, set RIALTO_HUB_SECRET, or add \
                 --new-hub-key to continue with new webhook secrets and hub identities",
                shown(&dir.join(secret::FILE_NAME))
            ),
        ),
        BackupError::AuditFailed { .. } => {
            CliError::failed(message, "`rialto audit --data DIR` shows the details")
        }
        BackupError::Store(_) | BackupError::Io { .. } | BackupError::Secret(_) => {
            CliError::failed(message, "no backup was written")
        }
    }
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

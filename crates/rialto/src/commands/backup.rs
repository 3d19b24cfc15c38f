//! `rialto backup` and `rialto restore`: copy a hub's store into one file, also while the hub runs, and
//! create a data directory from it.

use std::path::PathBuf;

use rialto_engine::backup::{self, BackupError, RestoreOptions, SecretSource};
use rialto_engine::clock::{Clock, SystemClock};
use rialto_engine::migrate::Location;
use rialto_engine::secret::{self, ENV_VAR, HubSecret};
use rialto_engine::store::StoreError;
use serde_json::json;

use super::{CliError, CliResult, Exit, database, output};

#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    source: database::Source,
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
    create_backup(args).unwrap_or_else(|cli_error| cli_error.report(args.json))
}

fn create_backup(args: &Args) -> CliResult {
    let now = SystemClock::start().wall_time();
    let source = args.source.location();
    let (backup, secret) = match &source {
        Location::Directory(dir) => {
            if let Some(key) = &args.hub_key {
                let exported = HubSecret::export_file(dir, key);
                exported.map_err(BackupError::from).map_err(backup_error)?;
            }
            let backup = backup::create_backup(dir, &args.to, now).map_err(backup_error)?;
            (backup, Some(dir.join(secret::FILE_NAME)).filter(|file| file.exists()))
        }
        Location::Database(_) if args.hub_key.is_some() => {
            return Err(CliError::usage(
                "the database does not have the hub's secret",
                "copy RIALTO_HUB_SECRET, or the hub.key of any node, without --hub-key",
            ));
        }
        Location::Database(url) => {
            let backup = backup::create_backup_of_database(url, &args.to, now);
            let backup = backup.map_err(|error| match error {
                BackupError::Store(error) => database::cli_error(&error),
                error => backup_error(error),
            })?;
            (backup, None)
        }
    };
    let (to, bytes, epoch) = (args.to.display().to_string(), backup.bytes, backup.epoch);
    let key = args.hub_key.as_ref().map(|path| path.display().to_string());
    let document =
        json!({"to": to, "bytes": bytes, "epoch": epoch, "audited": true, "hub_key": key});
    Ok(output::print(args.json, document, || {
        let text = format!("{to}: {bytes} bytes, epoch {epoch}, audited");
        match (key.is_some(), &secret, &source) {
            (false, Some(secret), _) => {
                let secret = secret.display();
                format!("{text}\nthe hub's secret is not in the backup: keep a copy of {secret}")
            }
            (_, _, Location::Database(_)) => format!(
                "{text}\nthe hub's secret is not in the backup: keep a copy of RIALTO_HUB_SECRET, \
                 or of the hub.key of a node"
            ),
            _ => text,
        }
    }))
}

/// Turns a backup error into an error with a hint.
fn backup_error(error: BackupError) -> CliError {
    let message = error.to_string();
    match &error {
        BackupError::Exists(_) => {
            CliError::conflict(message, "choose another name, or move the file")
        }
        BackupError::Missing(path) => {
            CliError::not_found(message, format!("check the path {}", path.display()))
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
                dir.join(secret::FILE_NAME).display()
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

#[derive(clap::Args)]
pub struct RestoreArgs {
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

pub fn run_restore(args: &RestoreArgs) -> Exit {
    restore_backup(args).unwrap_or_else(|cli_error| cli_error.report(args.json))
}

fn restore_backup(args: &RestoreArgs) -> CliResult {
    let secret = match &args.hub_key {
        Some(path) => SecretSource::File(path),
        None if args.new_hub_key => SecretSource::New,
        None => SecretSource::Existing { in_environment: std::env::var_os(ENV_VAR).is_some() },
    };
    let options = RestoreOptions {
        from: &args.from,
        dir: &args.data,
        secret,
        allow_running_original: args.beside_original,
    };
    let now = SystemClock::start().wall_time();
    let epoch = backup::restore_backup(&options, now).map_err(backup_error)?.epoch;
    let data = args.data.display().to_string();
    let document = json!({"data": data, "epoch": epoch, "audited": true});
    Ok(output::print(args.json, document, || {
        format!("{data}: restored and audited, epoch {epoch} begins")
    }))
}

//! `rialto migrate`: moves a hub between a data directory and PostgreSQL.

use std::path::PathBuf;

use rialto_engine::migrate::{self, Location, MigrateError};
use rialto_engine::secret::{ENV_VAR, HubSecret};
use rialto_engine::store::StoreError;
use serde_json::json;

use super::{CliError, CliResult, Exit, database, output};

#[derive(clap::Args)]
pub struct Args {
    /// Data directory or PostgreSQL URL of the hub, whose process or nodes are stopped
    #[arg(long, value_name = "DIR|URL")]
    from: String,
    /// Where it goes on: a data directory or a PostgreSQL URL without a hub
    #[arg(long, value_name = "DIR|URL")]
    to: String,
    /// Copy of the hub's hub.key, if it is neither in the source directory nor in RIALTO_HUB_SECRET
    #[arg(long, value_name = "FILE")]
    hub_key: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args) -> Exit {
    migrate(args).unwrap_or_else(|error| error.report(args.json))
}

fn migrate(args: &Args) -> CliResult {
    let (from, to) = (Location::parse(&args.from), Location::parse(&args.to));
    let secret = match (&args.hub_key, std::env::var(ENV_VAR)) {
        (Some(path), _) => Some(HubSecret::from_file(path)),
        (None, Ok(text)) => Some(HubSecret::from_variable(&text)),
        (None, Err(_)) => None,
    };
    let secret = secret.transpose().map_err(|error| cli_error(&error.into()))?;
    let done = migrate::migrate(&from, &to, secret).map_err(|error| cli_error(&error))?;
    let document = json!({"rows": done.rows, "batch": done.batch, "epoch": done.epoch,
        "audited": true, "secret_copied": done.has_secret});
    Ok(output::print(args.json, document, || {
        let mut lines = vec![format!(
            "{} rows migrated and audited; the hub goes on at batch {}, epoch {}",
            done.rows, done.batch, done.epoch
        )];
        if !done.has_secret {
            lines.push(
                "start it with the same secret: RIALTO_HUB_SECRET, or the same hub.key in the \
                 data directory of every node"
                    .to_owned(),
            );
        }
        lines.push("the source is unchanged: do not start it again beside the new one".to_owned());
        lines.join("\n")
    }))
}

fn cli_error(error: &MigrateError) -> CliError {
    let message = error.to_string();
    match error {
        MigrateError::Store(StoreError::Missing(_)) => {
            CliError::not_found(message, "name the hub's data directory or database with --from")
        }
        MigrateError::Store(StoreError::InUse(_)) => {
            CliError::failed(message, "stop that hub first; nothing was changed")
        }
        MigrateError::Store(error) => {
            let CliError { exit, next, .. } = database::cli_error(error);
            CliError { exit, next, ..CliError::plain(message) }
        }
        MigrateError::NotEmpty(_) => CliError::failed(
            message,
            "name an empty directory, or another schema with `?schema=NAME`; nothing was changed",
        ),
        MigrateError::NodesRunning { .. } => CliError::failed(
            message,
            "stop all nodes; one that was killed counts as running for ten seconds",
        ),
        MigrateError::AuditFailed { .. } | MigrateError::Differs(_) => CliError::failed(
            message,
            "`rialto audit` shows the details of the source; nothing was changed",
        ),
        MigrateError::OtherSecret | MigrateError::Secret(_) => CliError::failed(
            message,
            "pass the hub's own secret with --hub-key or RIALTO_HUB_SECRET; nothing was changed",
        ),
        MigrateError::Io { .. } => CliError::failed(message, "nothing was changed"),
    }
}

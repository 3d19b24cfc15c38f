//! The option that names a hub's database, and errors of databases.

use std::path::PathBuf;

use rialto_engine::migrate::Location;
use rialto_engine::store::StoreError;

use super::{CliError, Exit};

const DEFAULT_DIR: &str = "./rialto-data";

/// The variable that `rialto serve` reads too. Other users of the machine can read arguments.
const VARIABLE: &str = "RIALTO_STORE__DATABASE_URL";

/// What a command works on: a data directory, or a database.
#[derive(clap::Args)]
pub struct Source {
    /// Data directory of the hub [default: ./rialto-data]
    #[arg(long, value_name = "DIR", conflicts_with = "database_url")]
    data: Option<PathBuf>,
    /// PostgreSQL database of the hub instead; env RIALTO_STORE__DATABASE_URL is used without --data
    #[arg(long, value_name = "URL")]
    database_url: Option<String>,
}

impl Source {
    pub fn location(&self) -> Location {
        let variable = || std::env::var(VARIABLE).ok().filter(|url| !url.is_empty());
        match (&self.data, &self.database_url) {
            (Some(dir), _) => Location::Directory(dir.clone()),
            (None, Some(url)) => Location::Database(url.clone()),
            (None, None) => match variable() {
                Some(url) => Location::Database(url),
                None => Location::Directory(DEFAULT_DIR.into()),
            },
        }
    }
}

/// The database of a command that needs one.
#[derive(clap::Args)]
pub struct Required {
    /// PostgreSQL database of the hub
    #[arg(long, env = VARIABLE, hide_env_values = true, value_name = "URL")]
    database_url: String,
}

impl Required {
    pub fn url(&self) -> &str {
        &self.database_url
    }
}

/// An error of a database, with what to do about it.
pub fn cli_error(error: &StoreError) -> CliError {
    let message = error.to_string();
    match error {
        StoreError::Missing(_) => CliError::not_found(
            message,
            "check the URL and its parameter `schema`; a first `rialto serve` creates the hub",
        ),
        StoreError::Unreachable(_) => CliError {
            exit: Exit::Unreachable,
            ..CliError::failed(
                message,
                "check the URL, and that the server runs and accepts writes",
            )
        },
        StoreError::NewerFormat { .. } | StoreError::NewerSchema { .. } => {
            CliError::failed(message, "use the version of the nodes")
        }
        _ => CliError::failed(message, "check the URL with --database-url"),
    }
}

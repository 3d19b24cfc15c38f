//! The database of a cluster for development: one that is given, or a private PostgreSQL.

use std::path::Path;

use crate::commands::{CliError, CliResult};

#[cfg(unix)]
use rialto_engine::local_postgres::{
    Folders, Listen, LocalPostgresError, Programs, Server, is_open_to_all,
};

/// Settings of a private server: a synced commit is what the hub's promises rest on, also here.
#[cfg(unix)]
const SETTINGS: [(&str, &str); 2] = [("shared_buffers", "64MB"), ("jit", "off")];

/// A database. A private server is stopped when this is dropped.
pub struct Database {
    pub url: String,
    #[cfg(unix)]
    server: Option<Server>,
}

impl Database {
    /// The database at this URL.
    pub fn at(url: String) -> Self {
        Self {
            url,
            #[cfg(unix)]
            server: None,
        }
    }

    /// A private server in this directory, which is removed with it if it is temporary.
    #[cfg(unix)]
    pub fn start(dir: &Path, is_temporary: bool) -> CliResult<Self> {
        let server = start_server(dir, is_temporary).map_err(|error| cli_error(&error))?;
        Ok(Self { url: server.url(), server: Some(server) })
    }

    #[cfg(not(unix))]
    pub fn start(_: &Path, _: bool) -> CliResult<Self> {
        Err(CliError::usage(
            "a private PostgreSQL cannot be started on this system",
            "name one with --database-url",
        ))
    }

    /// Whether it is a private server.
    pub fn is_private(&self) -> bool {
        #[cfg(unix)]
        return self.server.is_some();
        #[cfg(not(unix))]
        return false;
    }

    /// Stops a private server, if there is one.
    pub fn stop(self) {
        #[cfg(unix)]
        if let Some(server) = &self.server {
            // Dropping it ends it in any case.
            let _ = server.stop("INT");
        }
    }
}

#[cfg(unix)]
fn start_server(dir: &Path, is_temporary: bool) -> Result<Server, LocalPostgresError> {
    let programs = Programs::find()?;
    if programs.account.is_some() && !is_open_to_all(dir) {
        return Err(LocalPostgresError::Closed(dir.to_owned()));
    }
    let short_name = format!("rialto-pg-{}", std::process::id());
    let folders = Folders::create(programs.account, dir.join("postgres"), &short_name)?;
    // Only the socket is used, which needs none.
    let password = getrandom::u64().map(|number| format!("{number:016x}")).unwrap_or_default();
    let server = Server::new(programs, folders, Listen::Socket, password, is_temporary);
    if !server.is_initialized() {
        server.initialize(&SETTINGS)?;
    }
    server.start()?;
    Ok(server)
}

#[cfg(unix)]
fn cli_error(error: &LocalPostgresError) -> CliError {
    let message = error.to_string();
    match error {
        LocalPostgresError::NotInstalled(_) => CliError::not_found(
            message,
            "install it, on Debian and Ubuntu with `apt-get install postgresql`, or name a \
             database with --database-url",
        ),
        LocalPostgresError::Closed(dir) => CliError::failed(
            message,
            format!(
                "`chmod o+x {}` and the directories above it, or do not run this as root",
                dir.display()
            ),
        ),
        LocalPostgresError::NotOurs(_) => {
            CliError::conflict(message, "name another directory with --data")
        }
        LocalPostgresError::NotStarted(_) => CliError::failed(
            message,
            "name an empty directory with --data if this one is of another version of PostgreSQL",
        ),
        LocalPostgresError::Io { .. } | LocalPostgresError::Program { .. } => CliError::failed(
            message,
            "name another directory with --data, or a database with --database-url",
        ),
    }
}

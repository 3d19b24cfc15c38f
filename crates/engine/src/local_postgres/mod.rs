//! A PostgreSQL server of our own, as a process on this machine: for `rialto cluster dev` and for
//! tests.
//!
//! It listens on a Unix socket that only its user can reach, and on loopback if that is asked for.
//! It never outlives the process that started it, even if that is killed: the module `server` says
//! how.

mod folders;
mod programs;
mod server;

use std::ffi::OsStr;
use std::io;
use std::path::PathBuf;
use std::process::Command;

pub use folders::{Folders, create_private, is_open_to_all};
pub use programs::{Account, Programs};
pub use server::{Listen, Server, USER, process_entry, quoted, run};

/// Why the server could not be found or started.
#[derive(Debug, thiserror::Error)]
pub enum LocalPostgresError {
    #[error(
        "PostgreSQL is not installed: there is no `initdb` and `postgres` on the path or in {0}"
    )]
    NotInstalled(&'static str),
    #[error("{path}: {source}")]
    Io { path: PathBuf, source: io::Error },
    #[error("{0} belongs to another user")]
    NotOurs(PathBuf),
    /// PostgreSQL does not run as root, so it runs as another user.
    #[error("the user that PostgreSQL runs as cannot enter {0}")]
    Closed(PathBuf),
    #[error("{program} failed: {message}")]
    Program { program: String, message: String },
    /// The end of its log.
    #[error("PostgreSQL did not start:\n{0}")]
    NotStarted(String),
}

/// A command that the user's own settings for PostgreSQL do not change.
pub fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    for (name, _) in std::env::vars_os() {
        if name.as_encoded_bytes().starts_with(b"PG") {
            command.env_remove(name);
        }
    }
    // The account of the server may not be able to enter our working directory.
    command.env("LC_ALL", "C").current_dir("/");
    command
}

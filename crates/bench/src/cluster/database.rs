//! A private PostgreSQL with default settings, which is reached by its Unix socket.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use rialto_engine::local_postgres::{Folders, Listen, LocalPostgresError, Programs, Server};
use tempfile::TempDir;

use crate::hub::SharedStore;
use crate::process::temporary_dir;

/// A quarter of the secret of every hub, and the password of the database. They protect nothing: hubs
/// listen on loopback for the time of a measurement, and the folder of the socket is closed.
const SECRET: &str = "0123456789abcdef";
const PASSWORD: &str = "benchmark";

/// Tables whose rows every node keeps in memory.
const HOT_TABLES: [&str; 10] = [
    "agents",
    "aliases",
    "desks",
    "jobs",
    "keys",
    "mailboxes",
    "memories",
    "owners",
    "pushes",
    "turns",
];

/// An installed PostgreSQL.
pub struct Installation(Programs);

impl Installation {
    /// A note about what is missing if there is none.
    pub fn find() -> Result<Self, String> {
        Programs::find().map(Self).map_err(|error| {
            format!(
                "{error}; install it (Debian package postgresql) to measure the cluster, which was \
                 left out"
            )
        })
    }
}

/// A running server. It ends with this value, and its files are removed.
pub struct Database {
    server: Server,
    _dir: TempDir,
}

impl Database {
    pub fn start(postgres: &Installation) -> io::Result<Self> {
        let dir = temporary_dir()?;
        // Root starts it as another user, which must be able to reach its own folder in here.
        fs::set_permissions(dir.path(), Permissions::from_mode(0o711))?;
        let programs = postgres.0.clone();
        // The name of the directory is one that no other process has.
        let name = dir.path().file_name().unwrap_or_default().to_string_lossy();
        let short_name = format!("{name}-socket");
        let folders = Folders::create(programs.account, dir.path().join("postgres"), &short_name)
            .map_err(failed)?;
        let server = Server::new(programs, folders, Listen::Socket, PASSWORD.to_owned(), true);
        server.initialize(&[("fsync", "on")]).map_err(failed)?;
        server.start().map_err(failed)?;
        Ok(Self { server, _dir: dir })
    }

    /// A new hub in this database, with the name of its schema.
    pub fn new_hub(&self, schema: &str) -> SharedStore {
        SharedStore {
            database_url: format!("{}&schema={schema}", self.server.url()),
            database: self.server.process(),
            secret: SECRET.repeat(4),
        }
    }

    /// Ends it without a checkpoint, starts it again, and returns how long that took until it
    /// accepted connections.
    pub fn crash(&self) -> io::Result<Duration> {
        let began = Instant::now();
        self.server.stop("QUIT").map_err(failed)?;
        self.server.start().map_err(failed)?;
        Ok(began.elapsed())
    }

    /// Rows of a hub that every node keeps in memory.
    pub fn hot_rows(&self, schema: &str) -> io::Result<u64> {
        let counts = HOT_TABLES.map(|table| format!("(SELECT count(*) FROM {schema}.{table})"));
        let query = format!("SELECT {}", counts.join(" + "));
        let mut psql = self.server.programs.command("psql");
        psql.args([
            "--no-psqlrc",
            "--tuples-only",
            "--dbname",
            &self.server.url(),
            "--command",
            &query,
        ]);
        let output = psql.output()?;
        let text = String::from_utf8_lossy(&output.stdout);
        text.trim().parse().map_err(|_| {
            let error = String::from_utf8_lossy(&output.stderr);
            io::Error::other(format!("psql could not count rows: {text}{error}"))
        })
    }
}

fn failed(error: LocalPostgresError) -> io::Error {
    io::Error::other(error)
}

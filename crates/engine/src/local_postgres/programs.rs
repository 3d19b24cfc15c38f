//! Where the programs of PostgreSQL are, and the account they run as.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::LocalPostgresError;

/// Where Debian installs server programs, by major version: they are not on the path.
const DEBIAN: &str = "/usr/lib/postgresql";
/// The folder of the programs, for tests. Empty: PostgreSQL is not installed. Only builds with debug
/// assertions read it.
#[cfg(debug_assertions)]
const FOLDER: &str = "RIALTO_TEST_POSTGRES_BIN";

/// The programs of a PostgreSQL server.
#[derive(Clone, Debug)]
pub struct Programs {
    folder: PathBuf,
    pub account: Option<Account>,
}

/// The account that servers run as when this process runs as root, which `initdb` refuses.
#[derive(Clone, Copy, Debug)]
pub struct Account {
    pub user: u32,
    pub group: u32,
}

impl Programs {
    /// An error if there is no server on this machine.
    pub fn find() -> Result<Self, LocalPostgresError> {
        let folder = folder().ok_or(LocalPostgresError::NotInstalled(DEBIAN))?;
        Ok(Self { folder, account: Account::find() })
    }

    /// A command of one of them, under the right account.
    pub fn command(&self, name: &str) -> Command {
        self.as_account(super::command(self.folder.join(name)))
    }

    /// The same, for another program.
    pub fn as_account(&self, mut command: Command) -> Command {
        if let Some(Account { user, group }) = self.account {
            command.uid(user).gid(group);
        }
        command
    }

    /// The path of one of them.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }
}

impl Account {
    fn find() -> Option<Self> {
        // The owner of our own process, without a system call that needs `unsafe`.
        let is_root = Command::new("id").arg("-u").output();
        if !is_root.is_ok_and(|output| output.stdout.trim_ascii() == b"0") {
            return None;
        }
        let accounts = fs::read_to_string("/etc/passwd").unwrap_or_default();
        ["postgres", "nobody"].into_iter().find_map(|name| Self::read(&accounts, name))
    }

    /// Reads one account of `/etc/passwd`.
    pub fn read(accounts: &str, name: &str) -> Option<Self> {
        accounts.lines().find_map(|line| {
            let mut fields = line.split(':');
            if fields.next() != Some(name) {
                return None;
            }
            let user = fields.nth(1)?.parse().ok()?;
            let group = fields.next()?.parse().ok()?;
            Some(Self { user, group })
        })
    }
}

fn folder() -> Option<PathBuf> {
    #[cfg(debug_assertions)]
    if let Some(folder) = std::env::var_os(FOLDER) {
        return Some(PathBuf::from(folder)).filter(|folder| has_server(folder));
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let on_path = std::env::split_paths(&path).find(|folder| has_server(folder));
    // A link on the path leads to the folder that has all programs.
    let linked = on_path.and_then(|folder| fs::canonicalize(folder.join("postgres")).ok());
    linked.and_then(|postgres| postgres.parent().map(Path::to_owned)).or_else(newest_of_debian)
}

fn newest_of_debian() -> Option<PathBuf> {
    let version = |folder: &Path| folder.file_name()?.to_str()?.parse::<u32>().ok();
    let versions = fs::read_dir(DEBIAN).ok()?.flatten().map(|entry| entry.path());
    let newest =
        versions.filter(|folder| has_server(&folder.join("bin"))).max_by_key(|f| version(f));
    newest.map(|folder| folder.join("bin"))
}

fn has_server(folder: &Path) -> bool {
    ["initdb", "postgres"].iter().all(|program| folder.join(program).is_file())
}

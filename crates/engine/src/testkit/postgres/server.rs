//! The servers of tests: temporary, in the target directory, with settings for tests.

use std::fs;
use std::net::TcpListener;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, SystemTime};

use super::{CONNECTIONS_MAX, may_skip_fsync};
use crate::local_postgres::{
    Account, Folders, Listen, Programs, Server, create_private, is_open_to_all,
};

/// Files of an earlier run are removed at this age; they remain if the shell was killed too.
const LEFTOVER_AGE: Duration = Duration::from_secs(24 * 60 * 60);
/// Where ports on loopback are chosen from.
const PORTS: Range<u32> = 20_000..32_000;
const PORT_ATTEMPTS_MAX: usize = 100;

/// A new, empty server that runs.
pub(super) fn create_server(
    programs: Programs,
    listen: Listen,
    fsync: bool,
    settings: &[(impl AsRef<str>, impl AsRef<str>)],
    env: &[(String, String)],
) -> Server {
    let random = || getrandom::u64().expect("the system has random numbers");
    let password = format!("{:016x}{:016x}", random(), random());
    let folders = create_folders(programs.account);
    let mut server = Server::new(programs, folders, listen, password, true);
    server.env = env.to_vec();
    let connections = CONNECTIONS_MAX.to_string();
    let mut all = vec![("max_connections", connections.as_str()), ("jit", "off")];
    if !fsync && may_skip_fsync() {
        all.extend([("fsync", "off"), ("full_page_writes", "off")]);
    }
    all.extend(settings.iter().map(|(name, value)| (name.as_ref(), value.as_ref())));
    server.initialize(&all).unwrap_or_else(|error| panic!("{error}"));
    server.start().unwrap_or_else(|error| panic!("{error}"));
    server
}

/// A server whose data `fill` copies into the data directory.
pub(super) fn copy_server(of: &Server, fill: impl FnOnce(&Server)) -> Server {
    let folders = create_folders(of.programs.account);
    let (programs, password) = (of.programs.clone(), of.password.clone());
    let mut server = Server::new(programs, folders, Listen::Loopback(free_port()), password, true);
    server.env = of.env.clone();
    fill(&server);
    server.start().unwrap_or_else(|error| panic!("{error}"));
    server
}

/// Creates the folder of a server and the one of its socket.
fn create_folders(account: Option<Account>) -> Folders {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let name = format!("{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    let above = folder_of_servers(account);
    remove_leftovers(&above);
    let folder = above.join(&name);
    // Another container may have used the same id.
    let _ = fs::remove_dir_all(&folder);
    Folders::create(account, folder, &format!("rialto-pg-{name}"))
        .unwrap_or_else(|error| panic!("{error}"))
}

/// The folder of all servers of an account, which the shell can remove servers from.
fn folder_of_servers(account: Option<Account>) -> PathBuf {
    let name = match account {
        Some(Account { user, .. }) => format!("postgres-{user}"),
        None => "postgres".to_owned(),
    };
    let target = target_folder().filter(|target| account.is_none() || is_open_to_all(target));
    let folder = match target {
        Some(target) => target.join("tmp").join(name),
        None => std::env::temp_dir().join(format!("rialto-{name}")),
    };
    if let Some(above) = folder.parent() {
        fs::create_dir_all(above).expect("the target directory is ours");
    }
    create_private(account, &folder).unwrap_or_else(|error| panic!("{error}"));
    folder
}

/// The target directory of cargo that this program is in: the one that cargo has tagged.
fn target_folder() -> Option<PathBuf> {
    let program = std::env::current_exe().ok()?;
    let tagged = program.ancestors().find(|folder| folder.join("CACHEDIR.TAG").is_file());
    tagged.map(Path::to_owned).or_else(|| std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from))
}

fn remove_leftovers(above: &Path) {
    let Ok(entries) = fs::read_dir(above) else { return };
    let is_old = |entry: &fs::DirEntry| {
        let changed = entry.metadata().and_then(|metadata| metadata.modified());
        let age = changed.ok().and_then(|at| SystemTime::now().duration_since(at).ok());
        age.is_some_and(|age| age > LEFTOVER_AGE)
    };
    for entry in entries.flatten().filter(is_old) {
        let _ = fs::remove_dir_all(entry.path());
    }
}

/// A port on loopback that is free, and stays so while the server is down: the system gives ports
/// of this range neither to outgoing connections nor to listeners that ask for any port.
pub(super) fn free_port() -> u16 {
    let random = || getrandom::u32().expect("the system has random numbers");
    let mut ports =
        (0..PORT_ATTEMPTS_MAX).map(|_| random() % (PORTS.end - PORTS.start) + PORTS.start);
    let port = ports.find_map(|port| {
        let port = u16::try_from(port).ok()?;
        TcpListener::bind(("127.0.0.1", port)).ok().map(|_| port)
    });
    port.expect("loopback has free ports")
}

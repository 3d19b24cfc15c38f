//! Files on disk are accessible to their owner only, whatever the umask is.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::kit::{Lines, ended, output};

/// The binary under a umask of zero.
fn wide_open(home: &Path) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", "umask 000; exec \"$@\"", "sh", env!("CARGO_BIN_EXE_rialto")]);
    command.env("RIALTO_HOME", home);
    command
}

/// A hub process that is killed when dropped.
struct Hub {
    child: Child,
    url: String,
}

impl Hub {
    fn start(data: &Path) -> Self {
        let mut command = wide_open(data);
        command.args(["dev", "--listen", "127.0.0.1:0", "--data"]).arg(data);
        let mut child =
            command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it starts");
        let (greeting, url) = Lines::of(child.stdout.take()).address();
        Self { url: url.unwrap_or_else(|| panic!("it ended early: {greeting:?}")), child }
    }
}

impl Drop for Hub {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).expect("it is there").permissions().mode() & 0o777
}

/// Everything in a directory, itself first.
fn all_in(directory: &Path) -> Vec<PathBuf> {
    let mut all = vec![directory.to_owned()];
    for entry in fs::read_dir(directory).expect("a directory") {
        let path = entry.expect("an entry").path();
        match path.is_dir() {
            true => all.extend(all_in(&path)),
            false => all.push(path),
        }
    }
    all
}

#[track_caller]
fn assert_private(directory: &Path, at_least: usize) {
    let all = all_in(directory);
    assert!(all.len() >= at_least, "{all:?}");
    for path in all {
        let wanted = if path.is_dir() { 0o700 } else { 0o600 };
        assert_eq!(mode(&path), wanted, "{}", path.display());
    }
}

#[test]
fn what_hub_and_agents_write_is_their_owners_alone_whatever_the_umask() {
    let place = tempfile::tempdir().expect("a directory");
    let (data, home) = (place.path().join("deep/data"), place.path().join("home"));
    let hub = Hub::start(&data);
    let mut agent = wide_open(&home);
    agent.args(["agent", "run", "--skill", "keep", "--price", "0", "--hub", &hub.url, "--json"]);
    agent.args(["--exec", "echo '{}'; echo logged >&2; sleep 600"]);
    let mut agent = agent.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it starts");
    let mut said = Lines::of(agent.stdout.take());
    assert!(said.any(|line| line.contains("at_work")), "it is at work");
    let post = ["job", "post", "--skill", "keep", "--input", "{}", "--budget", "0", "--hub"];
    let posted = output(wide_open(&home).args(post).arg(&hub.url)).expect("it runs");
    assert!(posted.status.success(), "{posted:?}");
    // While the handler runs, every file of a job exists.
    assert!(said.any(|line| line.contains("logged")), "it runs");
    assert_private(&home, 8);
    // The database, its log and its index, the lock, the secret, and the directory.
    assert_private(&data, 6);
    assert_eq!(mode(&place.path().join("deep")), 0o700, "also a parent directory that was created");
    agent.kill().expect("it can be ended");
    ended(&mut agent);
}

#[test]
fn a_data_directory_that_was_open_to_others_is_narrowed_at_the_next_start() {
    let place = tempfile::tempdir().expect("a directory");
    let data = place.path().join("data");
    drop(Hub::start(&data));
    let widen = |path: &Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("it is ours");
    };
    widen(&data, 0o755);
    let files = all_in(&data);
    // The killed hub left its log. A secret that others can read is refused, so it is left out
    // here.
    assert!(files.iter().any(|path| path.ends_with("rialto.db-wal")), "{files:?}");
    for path in files.iter().filter(|path| path.is_file() && !path.ends_with("hub.key")) {
        widen(path, 0o644);
    }
    drop(Hub::start(&data));
    assert_private(&data, 6);
    // A directory with foreign files is left to the operator.
    fs::write(data.join("notes.txt"), "mine").expect("written");
    widen(&data, 0o755);
    drop(Hub::start(&data));
    assert_eq!(mode(&data), 0o755);
}

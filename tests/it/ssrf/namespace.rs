//! A network namespace in which all addresses are this machine.

use std::process::{Command, Output};

/// Environment variable: set for the process inside.
const INSIDE: &str = "RIALTO_TEST_NAMESPACE";
/// The exit code of a shell that could not create the namespace.
const NOT_MADE: i32 = 77;

/// Every address is delivered to this machine, and names are resolved by the test's server only.
const SCRIPT: &str = r#"
set -e
trap 'test $? -eq 0 || exit 77' EXIT
ip link set lo up
ip route add local default dev lo
ip -6 route add local default dev lo
printf 'nameserver 127.0.0.1\noptions timeout:2 attempts:2\n' > "$1/resolv.conf"
printf 'hosts: dns\n' > "$1/nsswitch.conf"
mount --bind "$1/resolv.conf" /etc/resolv.conf
mount --bind "$1/nsswitch.conf" /etc/nsswitch.conf
shift
trap - EXIT
exec "$@"
"#;

/// Where this process runs, or the result of the one inside.
pub enum Place {
    /// In the namespace.
    Inside,
    /// Outside of it; the test has passed inside with this output.
    Outside(String),
    /// The system does not allow it, for this reason.
    Denied(String),
}

/// Runs the named test of this program inside, unless this process is inside already.
pub fn enter(test: &str) -> Place {
    if std::env::var_os(INSIDE).is_some() {
        return Place::Inside;
    }
    let files = tempfile::TempDir::new().expect("a directory");
    let this = std::env::current_exe().expect("this program");
    let mut command = Command::new("unshare");
    command.args(["-r", "-n", "-m", "sh", "-c", SCRIPT, "sh"]).arg(files.path()).arg(this);
    command.args(["--exact", test, "--nocapture", "--test-threads=1"]).env(INSIDE, "1");
    match crate::kit::output(&mut command) {
        Err(error) => Place::Denied(format!("unshare: {error}")),
        Ok(output) => judge(&output),
    }
}

fn judge(output: &Output) -> Place {
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    // A shell that did not start has not printed that a test runs.
    let began = out.contains("running 1 test");
    match output.status.code() {
        Some(0) if began => Place::Outside(out),
        Some(NOT_MADE) => Place::Denied(err),
        _ if !began => Place::Denied(err),
        code => panic!("inside the namespace it ended with {code:?}:\n{out}\n{err}"),
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim().to_owned() + "\n"
}

/// Connections in this namespace that were refused.
pub fn refused_connects() -> u64 {
    let snmp = std::fs::read_to_string("/proc/self/net/snmp").expect("the kernel's counts");
    let mut lines = snmp.lines().filter_map(|line| line.strip_prefix("Tcp: "));
    let (names, counts) = (lines.next().expect("names"), lines.next().expect("counts"));
    let mut pairs = names.split(' ').zip(counts.split(' '));
    let found = pairs.find(|(name, _)| *name == "AttemptFails").expect("a count of failures");
    found.1.parse().expect("a number")
}
